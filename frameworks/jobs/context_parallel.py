"""Attention over a sequence that is split over 4 ranks: `context_parallel.py [allgather|alltoall]`."""

import sys

import common
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._attention import set_rotate_method

CONTEXT, HEADS, WIDTH, LENGTH, STEPS = 4, 4, 64, 1024, 4

torch.cuda.set_device(common.LOCAL)
dist.init_process_group("nccl")
mesh = init_device_mesh("cuda", (common.WORLD // CONTEXT, CONTEXT), mesh_dim_names=("dp", "cp"))
set_rotate_method(sys.argv[1] if len(sys.argv) > 1 else "allgather")


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(HEADS * WIDTH, 3 * HEADS * WIDTH, dtype=torch.bfloat16)
        self.out = nn.Linear(HEADS * WIDTH, HEADS * WIDTH, dtype=torch.bfloat16)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, WIDTH).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


model = nn.parallel.DistributedDataParallel(Attention().cuda(), device_ids=[common.LOCAL])
optimizer = torch.optim.AdamW(model.parameters())
for _step in range(STEPS):
    x = torch.randn(1, LENGTH, HEADS * WIDTH, device="cuda", dtype=torch.bfloat16)
    with (
        nn.attention.sdpa_kernel(nn.attention.SDPBackend.FLASH_ATTENTION),
        context_parallel(mesh["cp"], buffers=[x], buffer_seq_dims=[1], no_restore_buffers={x}),
    ):
        loss = model(x).float().square().mean()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
common.finish(STEPS)
dist.destroy_process_group()
