"""Ranks that the script starts itself: `spawned.py WAY`, with spawn, fork or processes by command.

The store is named in each of the ways that scripts name it.
"""

import os
import subprocess
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS = 2


def train(rank, method):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=method, rank=rank, world_size=RANKS)
    model = torch.nn.Linear(256, 256).cuda()
    replica = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for _step in range(4):
        replica(torch.randn(64, 256, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    total = torch.tensor([rank + 1], device="cuda")
    dist.all_reduce(total)
    names = [None] * RANKS
    dist.all_gather_object(names, f"rank {rank}")
    print(f"rank {rank}: sum {total.item()}, {names}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    way = sys.argv[1]
    method = sys.argv[2] if len(sys.argv) > 2 else "tcp://127.0.0.1:29500"
    if way == "rank":  # started below
        train(int(os.environ["LOCAL_RANK"]), method)
    elif way == "spawn":
        mp.spawn(train, (method,), nprocs=RANKS)
    elif way == "fork":
        children = [
            mp.get_context("fork").Process(target=train, args=(rank, method)) for rank in range(RANKS)
        ]
        for child in children:
            child.start()
        for child in children:
            child.join()
        sys.exit(max(child.exitcode for child in children))
    else:
        command = [sys.executable, __file__, "rank", method]
        children = [
            subprocess.Popen(command, env=os.environ | {"LOCAL_RANK": str(rank)}) for rank in range(RANKS)
        ]
        sys.exit(max(child.wait() for child in children))
