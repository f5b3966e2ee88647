"""A rank that is killed in the middle of a job, while the others wait for it."""

import os
import signal
import time

import torch
import torch.distributed as dist

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
weights = torch.randn(512, 512, device="cuda")
for _step in range(3):
    weights = weights @ weights
    dist.all_reduce(weights)
torch.cuda.synchronize()
if dist.get_rank() == dist.get_world_size() - 1:
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(100)
