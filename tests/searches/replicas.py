"""Data parallelism over pairs of tensor-parallel ranks: replicas do the same however many there are."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

parser = argparse.ArgumentParser()
parser.add_argument("--tensor-parallel", type=int, default=2)
parser.add_argument("--batch", type=int, default=64)
options = parser.parse_args()

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
mesh = init_device_mesh(
    "cuda",
    (dist.get_world_size() // options.tensor_parallel, options.tensor_parallel),
    mesh_dim_names=("data", "tensor"),
)
model = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.randn(options.batch, 1024, device="cuda")
for _ in range(3):
    output = model(data)
    dist.all_reduce(output, group=mesh.get_group("tensor"))
    output.square().mean().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, group=mesh.get_group("data"))
    optimizer.step()
    optimizer.zero_grad()
