"""A small GPT with tensor, pipeline and data parallelism by plain collectives: `gpt3d.py --tp 8 --pp 8`.

The mesh is (pipeline, data, tensor): tensor parallelism inside a node, stages far apart.
Micro-batches go through the stages one after the other, then back (GPipe).
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

parser = argparse.ArgumentParser()
parser.add_argument("--tp", type=int, default=1)
parser.add_argument("--pp", type=int, default=1)
parser.add_argument("--layers", type=int, default=2, help="per stage")
parser.add_argument("--width", type=int, default=512)
parser.add_argument("--steps", type=int, default=4)
arguments = parser.parse_args()
WIDTH, LENGTH, BATCH, MICROBATCHES, VOCABULARY = arguments.width, 256, 2, 2, 8192

local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl", device_id=torch.device("cuda", local))
rank, world = dist.get_rank(), dist.get_world_size()
shape = (arguments.pp, world // arguments.pp // arguments.tp, arguments.tp)
mesh = init_device_mesh("cuda", shape, mesh_dim_names=("pp", "dp", "tp"))
stage = mesh.get_local_rank("pp")
tensor_group, data_group = mesh.get_group("tp"), mesh.get_group("dp")
stages = dist.get_process_group_ranks(mesh.get_group("pp"))
first, last = stage == 0, stage == arguments.pp - 1


class Reduce(torch.autograd.Function):
    """Sums over the tensor-parallel ranks in the forward pass."""

    @staticmethod
    def forward(_, x):
        dist.all_reduce(x, group=tensor_group)
        return x

    @staticmethod
    def backward(_, gradient):
        return gradient


class Copy(torch.autograd.Function):
    """Sums over the tensor-parallel ranks in the backward pass."""

    @staticmethod
    def forward(_, x):
        return x

    @staticmethod
    def backward(_, gradient):
        dist.all_reduce(gradient, group=tensor_group)
        return gradient


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        own, self.heads = WIDTH // arguments.tp, max(8 // arguments.tp, 1)
        self.norm, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * own), nn.Linear(own, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * own), nn.Linear(4 * own, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(Copy.apply(self.norm(x))).chunk(3, -1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + Reduce.apply(self.out(y.transpose(1, 2).flatten(2)))
        return x + Reduce.apply(self.down(nn.functional.gelu(self.up(Copy.apply(self.norm2(x))))))


embedding = nn.Embedding(VOCABULARY, WIDTH).cuda().bfloat16() if first else None
layers = nn.Sequential(*(Layer() for _ in range(arguments.layers))).cuda().bfloat16()
head = nn.Linear(WIDTH, VOCABULARY, bias=False).cuda().bfloat16() if last else None
parameters = [p for part in (embedding, layers, head) if part is not None for p in part.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)


def activation():
    return torch.empty(BATCH, LENGTH, WIDTH, device="cuda", dtype=torch.bfloat16)


for _step in range(arguments.steps):
    waiting = []
    for _ in range(MICROBATCHES):
        tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH), device="cuda")
        if first:
            x = embedding(tokens)
        else:
            x = activation()
            dist.recv(x, stages[stage - 1])
            x.requires_grad_()
        y = layers(x)
        if last:
            y = nn.functional.cross_entropy(head(y).flatten(0, 1).float(), tokens.flatten())
        else:
            dist.send(y.detach(), stages[stage + 1])
        waiting.append((x, y))
    for x, y in waiting:
        if last:
            y.backward()
        else:
            gradient = activation()
            dist.recv(gradient, stages[stage + 1])
            y.backward(gradient)
        if not first:
            dist.send(x.grad, stages[stage - 1])
    flat = torch.cat([p.grad.flatten() for p in parameters])
    dist.all_reduce(flat, group=data_group)
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
print(f"rank {rank} of {world}: stage {stage} is done", flush=True)
if rank == 0:
    print(f"max_memory_allocated {torch.cuda.max_memory_allocated()}", flush=True)
dist.barrier()  # all ranks are there at once
dist.destroy_process_group()
