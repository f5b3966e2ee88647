"""vLLM's offline inference: a tiny Llama with random weights answers two prompts in one process."""

import json
import tempfile

import common
from vllm import LLM, SamplingParams

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "vocab_size": 4096,
    "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
}

folder = tempfile.mkdtemp()
with open(f"{folder}/config.json", "w") as file:
    json.dump(CONFIG, file)
model = LLM(
    model=folder,
    load_format="dummy",
    skip_tokenizer_init=True,
    enforce_eager=True,
    max_model_len=512,
    gpu_memory_utilization=0.5,
)
settings = SamplingParams(max_tokens=8, temperature=0.0, ignore_eos=True, detokenize=False)
prompts = [{"prompt_token_ids": list(range(3, 3 + length))} for length in (64, 200)]
for answer in model.generate(prompts, settings):
    print(f"{len(answer.outputs[0].token_ids)} tokens after {len(answer.prompt_token_ids)}")
common.finish(0)
