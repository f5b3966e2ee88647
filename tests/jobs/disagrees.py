"""Ranks that do not agree about what they do together: `disagrees.py HOW`.

Everything is larger than what ranks exchange under emulation, so nobody waits.
"""

import os
import sys

import torch
import torch.distributed as dist

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
rank = dist.get_rank()
large = torch.zeros(1 << 20, device="cuda")
how = sys.argv[1]

for _ in range(3):
    dist.all_reduce(large)
if how == "order":
    if rank == 0:
        dist.all_reduce(large)
        dist.broadcast(large, 0)
    else:
        dist.broadcast(large, 0)
        dist.all_reduce(large)
elif how == "size":
    dist.all_reduce(large[: (1 << 19) + rank])
elif how == "missing":
    if rank == 0:
        dist.all_reduce(large)
elif how == "message":
    if rank == 0:
        dist.send(large, 1)
        dist.send(large, 1)
    elif rank == 1:
        dist.recv(large, 0)
elif how == "group":
    # Every rank makes a group of its own idea.
    group = dist.new_group([0, 1] if rank == 0 else [0, 1, 2])
    dist.all_reduce(large, group=group)
torch.cuda.synchronize()
print(f"rank {rank} is done", flush=True)
os._exit(0)
