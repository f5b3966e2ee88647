"""A small transformer under PyTorch's own kinds of parallelism: `parallel.py KIND`."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=("ddp", "fsdp", "fsdp2", "hsdp", "tp", "fsdp-tp"))
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--bind", action="store_true", help="bind the device: groups are then split from others")
arguments = parser.parse_args()

WIDTH, BATCH, LENGTH = 512, 4, 256


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(WIDTH, 1000)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
if arguments.bind:
    dist.init_process_group("cpu:gloo,cuda:nccl", device_id=torch.device("cuda", local))
else:
    dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
model = Model().cuda()


def shard(mesh):
    from torch.distributed.fsdp import fully_shard

    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)


def split(mesh):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    for block in model.blocks:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})


if arguments.kind == "ddp":
    model = nn.parallel.DistributedDataParallel(model, device_ids=[local])
elif arguments.kind == "fsdp":
    from torch.distributed.fsdp import FullyShardedDataParallel

    model = FullyShardedDataParallel(model, device_id=local)
elif arguments.kind == "fsdp2":
    shard(init_device_mesh("cuda", (world,)))
elif arguments.kind == "hsdp":
    shard(init_device_mesh("cuda", (2, world // 2), mesh_dim_names=("replicate", "shard")))
elif arguments.kind == "tp":
    split(init_device_mesh("cuda", (world,)))
else:
    mesh = init_device_mesh("cuda", (world // 2, 2), mesh_dim_names=("dp", "tp"))
    split(mesh["tp"])
    shard(mesh["dp"])

optimizer = torch.optim.AdamW(model.parameters(), foreach="tp" not in arguments.kind)
for _step in range(arguments.steps):
    x = torch.randn(BATCH, LENGTH, WIDTH, device="cuda")
    target = torch.randint(0, 1000, (BATCH * LENGTH,), device="cuda")
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), target)
    loss.backward()
    if "tp" not in arguments.kind:  # some parameters are sharded, others are not
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
print(f"rank {rank} of {world}: loss {loss.item():.4f}", flush=True)
if rank == 0:
    print(f"max_memory_allocated {torch.cuda.max_memory_allocated()}", flush=True)
dist.destroy_process_group()
