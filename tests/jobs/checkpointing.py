"""Activation checkpointing lowers the peak; the script compares both ways itself."""

import torch
from torch.utils.checkpoint import checkpoint

layers = torch.nn.ModuleList(
    torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True) for _ in range(6)
).cuda()
optimizer = torch.optim.SGD(layers.parameters(), lr=1e-3)


def steps(recompute):
    torch.cuda.reset_peak_memory_stats()
    for _ in range(3):
        x = torch.randn(8, 256, 512, device="cuda")
        for layer in layers:
            x = checkpoint(layer, x, use_reentrant=False) if recompute else layer(x)
        x.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return torch.cuda.max_memory_allocated()


# The reduced peak comes first, so that the last peak is also the largest one.
recomputed, kept = steps(True), steps(False)
print(f"recomputed {recomputed} kept {kept}")
if recomputed >= kept:
    raise SystemExit("recomputation did not save memory")
print("max_memory_allocated", torch.cuda.max_memory_allocated())
