"""A training loop with accelerate: gradient accumulation, clipping, gathered metrics."""

import argparse

import common
import torch
from accelerate import Accelerator

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--fsdp", action="store_true")
arguments = parser.parse_args()

plugin = None
if arguments.fsdp:
    from accelerate import FullyShardedDataParallelPlugin

    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2,
        auto_wrap_policy="transformer_based_wrap",
        transformer_cls_names_to_wrap=["LlamaDecoderLayer"],
    )
accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2, fsdp_plugin=plugin)
model = common.tiny_llama()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
loader = torch.utils.data.DataLoader(common.Tokens(), batch_size=2, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
done = 0
for batch in loader:
    with accelerator.accumulate(model):
        loss = model(**batch).loss
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    if accelerator.sync_gradients:
        losses = accelerator.gather(loss.detach())
        accelerator.print(f"loss {losses.mean().item():.4f} over {losses.numel()} ranks")
        done += 1
    if done == arguments.steps:
        break
common.finish(done)
accelerator.end_training()
