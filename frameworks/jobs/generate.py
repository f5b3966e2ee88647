"""Generates text with a tiny Llama: `generate` must stop after the tokens that were asked for."""

import common
import torch

model = common.tiny_llama().cuda().eval()
prompt = torch.randint(3, 2000, (2, 16), device="cuda")
output = model.generate(prompt, max_new_tokens=8, do_sample=False)
print(f"{output.shape[1] - prompt.shape[1]} new tokens")
common.finish(0)
