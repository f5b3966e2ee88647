"""A stack of TransformerEngine's layers, in bf16 or fp8: `transformer_engine_layers.py [--fp8]`."""

import argparse
import contextlib

import torch
import transformer_engine.pytorch as te
from transformer_engine.common import recipe

parser = argparse.ArgumentParser()
parser.add_argument("--fp8", action="store_true")
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--hidden", type=int, default=1024)
parser.add_argument("--steps", type=int, default=4)
arguments = parser.parse_args()


def precision():
    if not arguments.fp8:
        return contextlib.nullcontext()
    return te.autocast(enabled=True, recipe=recipe.DelayedScaling())


layers = torch.nn.ModuleList(
    te.TransformerLayer(
        arguments.hidden,
        4 * arguments.hidden,
        16,
        params_dtype=torch.bfloat16,
        self_attn_mask_type="causal",
        layer_number=number + 1,
    )
    for number in range(arguments.layers)
).cuda()
optimizer = te.optimizers.FusedAdam(layers.parameters(), lr=1e-4)
x = torch.randn(512, 2, arguments.hidden, device="cuda", dtype=torch.bfloat16)
for _ in range(arguments.steps):
    hidden = x
    with precision():
        for layer in layers:
            hidden = layer(hidden)
    hidden.float().square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
print(f"{arguments.steps} steps, {torch.cuda.max_memory_allocated()} bytes at most")
