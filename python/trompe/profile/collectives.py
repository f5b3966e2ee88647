"""Collectives between the GPUs of this machine, as a table that `trompe network fit` takes."""

import csv
import os
import socket
import statistics
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

_SIZES = [1 << shift for shift in range(10, 31)]


def measure(out, ranks, device="cuda", sizes=None):
    """Measures with `ranks` processes and writes `collectives.csv` into the folder `out`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(_rank, ((ranks, port, str(out), device, sizes or _SIZES),), nprocs=ranks)


def _rank(rank, settings):
    ranks, port, out, device, sizes = settings
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    on_gpu = device == "cuda"
    if on_gpu:
        torch.cuda.set_device(rank)
    dist.init_process_group("nccl" if on_gpu else "gloo", rank=rank, world_size=ranks)
    target = torch.device(device, rank) if on_gpu else torch.device(device)
    rows = []
    for size in sizes:
        for name, call in _calls(size, ranks, target):
            rows.append((name, ranks, 1, size, f"{_time(call, size, on_gpu):.2f}"))
    dist.destroy_process_group()
    if rank == 0:
        with (Path(out) / "collectives.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("collective", "ranks", "nodes", "bytes", "time_us"))
            writer.writerows(rows)


def _calls(size, ranks, device):
    """Operations whose size, as nccl-tests counts it, is `size`."""
    whole = torch.zeros(max(size // 2 // ranks, 1) * ranks, device=device, dtype=torch.bfloat16)
    part = whole[: whole.numel() // ranks].clone()
    yield "all_reduce", lambda: dist.all_reduce(whole)
    yield "all_gather", lambda: dist.all_gather_into_tensor(whole, part)
    if device.type == "cuda":
        yield "reduce_scatter", lambda: dist.reduce_scatter_tensor(part, whole)
        yield "alltoall", lambda: dist.all_to_all_single(torch.empty_like(whole), whole)


def _time(call, size, on_gpu):
    runs = 20 if size < 1 << 26 else 5
    for _ in range(3):
        call()
    times = []
    for _ in range(3):
        dist.barrier()
        if on_gpu:
            torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(runs):
            call()
        if on_gpu:
            torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / runs * 1e6)
    return statistics.median(times)
