"""What ranks tell each other: objects, CPU tensors, small numbers on the device, stores, barriers."""

import datetime
import os

import torch
import torch.distributed as dist

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl")
rank, world = dist.get_rank(), dist.get_world_size()
gloo = dist.new_group(backend="gloo")

# Objects: those of ranks that exist are their own.
values = [None] * world
dist.all_gather_object(values, {"rank": rank})
assert values[rank] == {"rank": rank}, values[rank]
assert values[0] == {"rank": 0}, values[0]
plan = ["plan of rank 0", 17] if rank == 0 else [None, None]
dist.broadcast_object_list(plan, src=0)
assert plan == ["plan of rank 0", 17], plan
gathered = [None] * world if rank == 0 else None
dist.gather_object(rank, gathered, dst=0)
if rank == 0:
    assert gathered[0] == 0 and gathered[world - 1] == world - 1, gathered
part = [None]
dist.scatter_object_list(part, [f"for {i}" for i in range(world)] if rank == 0 else None, src=0)
assert part == [f"for {rank}"], part
if rank == 0:
    dist.send_object_list(["from 0", rank], dst=world - 1)
elif rank == world - 1:
    received = [None, None]
    dist.recv_object_list(received, src=0)
    assert received == ["from 0", 0], received

# CPU tensors.
seed = torch.tensor([41 + rank])
dist.broadcast(seed, src=0, group=gloo)
assert seed.item() == 41, seed
total = torch.ones(3, dtype=torch.int64)
dist.all_reduce(total, group=gloo)
assert total.tolist() == [world] * 3, total
largest = torch.tensor([rank])
dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=gloo)
assert largest.item() == world - 1, largest
parts = [torch.zeros(1, dtype=torch.int64) for _ in range(world)]
dist.all_gather(parts, torch.tensor([rank]), group=gloo)
assert parts[rank].item() == rank and parts[0].item() == 0, parts
dist.barrier(group=gloo)
dist.monitored_barrier(group=gloo, timeout=datetime.timedelta(minutes=5))

# Small integers on the device.
count = torch.tensor([1], device="cuda")
dist.all_reduce(count)
assert count.item() == world, count
number = torch.tensor([100 + rank], device="cuda")
dist.broadcast(number, src=0)
assert number.item() == 100, number
numbers = [torch.zeros(1, dtype=torch.int64, device="cuda") for _ in range(world)]
dist.all_gather(numbers, torch.tensor([rank], device="cuda"))
assert numbers[rank].item() == rank and numbers[0].item() == 0, numbers
if rank in (0, world - 1):
    token = torch.tensor([7 * rank + 1], device="cuda")
    if rank == 0:
        dist.send(token, dst=world - 1)
    else:
        got = torch.zeros_like(token)
        dist.recv(got, src=0)
        assert got.item() == 1, got

# Nothing at all: an empty tensor has no address, and what comes after it arrives.
nothing = torch.tensor([], dtype=torch.int64, device="cuda")
dist.broadcast(nothing, src=0)
dist.all_reduce(nothing)
number = torch.tensor([200 if rank == 0 else -1], device="cuda")
dist.broadcast(number, src=0)
assert number.item() == 200, number

# A store that the script makes itself.
store = dist.TCPStore("127.0.0.1", 29977, world, rank == 0, wait_for_workers=False)
store.set(f"address/{rank}", f"host of {rank}")
assert store.get(f"address/{rank}").decode() == f"host of {rank}"
assert store.get("address/0").decode() == "host of 0"

dist.barrier()
print(f"rank {rank} of {world}: all messages are right", flush=True)
dist.destroy_process_group()
