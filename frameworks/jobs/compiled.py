"""torch.compile alone and under DDP and FSDP2: `compiled.py one|ddp|fsdp2 [--mode MODE]`."""

import argparse

import common
import torch
import torch.distributed as dist
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=("one", "ddp", "fsdp2"))
parser.add_argument("--mode", default="default", choices=("default", "reduce-overhead"))
parser.add_argument("--steps", type=int, default=6)
arguments = parser.parse_args()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(256)
        self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 256)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


torch.cuda.set_device(common.LOCAL)
blocks = [Block().cuda() for _ in range(2)]
if arguments.kind != "one":
    dist.init_process_group("nccl")
if arguments.kind == "fsdp2":
    from torch.distributed.fsdp import fully_shard

    for block in blocks:
        fully_shard(block)
model = nn.Sequential(*blocks, nn.Linear(256, 1000).cuda())
if arguments.kind == "ddp":
    model = nn.parallel.DistributedDataParallel(model, device_ids=[common.LOCAL])
elif arguments.kind == "fsdp2":
    fully_shard(model)
compiled = torch.compile(model, mode=arguments.mode)
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(512, 256, device="cuda")
target = torch.randint(0, 1000, (512,), device="cuda")
for _step in range(arguments.steps):
    with torch.autocast("cuda", torch.bfloat16):
        loss = nn.functional.cross_entropy(compiled(x), target)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
common.finish(arguments.steps)
if arguments.kind != "one":
    dist.destroy_process_group()
