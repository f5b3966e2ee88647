"""A small training job with options to search over: it can fail, and run out of memory."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=256)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--reserve-gib", type=int, default=0)
parser.add_argument("--break-at", type=int, default=0)
options = parser.parse_args()

if options.width == options.break_at:
    raise ValueError(f"a width of {options.width} is not for this script")
reserve = torch.empty(options.reserve_gib << 30, dtype=torch.uint8, device="cuda")
model = nn.Sequential(
    nn.Linear(options.width, 4 * options.width), nn.GELU(), nn.Linear(4 * options.width, 10)
).cuda()
optimizer = torch.optim.Adam(model.parameters(), fused=True)
data = torch.randn(options.batch, options.width, device="cuda")
target = torch.zeros(options.batch, dtype=torch.long, device="cuda")
for _ in range(3):
    for _ in range(options.accumulate):
        nn.functional.cross_entropy(model(data), target).backward()
    optimizer.step()
    optimizer.zero_grad()
