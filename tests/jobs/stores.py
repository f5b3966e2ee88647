"""Stores that ranks make themselves, and the way in which older versions of PyTorch exchange unique ids.

A file, a table of one process, and a communicator of NCCL that one member makes the id for and the others
read from the store.
"""

import ctypes
import os

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))


class UniqueId(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_byte * 128),)


def exchange_as_2_4(store):
    """`ProcessGroupNCCL::broadcastUniqueNCCLID` of PyTorch 2.4 and 2.6, and a sum over the communicator."""
    nccl = ctypes.CDLL("libnccl.so.2")
    unique_id, communicator = UniqueId(), ctypes.c_void_p()
    key = "default_pg/0//cuda//0"
    if rank == 0:
        assert nccl.ncclGetUniqueId(ctypes.byref(unique_id)) == 0
        store.set(key, bytes(unique_id))
    else:
        unique_id = UniqueId.from_buffer_copy(store.get(key))
    assert nccl.ncclCommInitRank(ctypes.byref(communicator), world, unique_id, rank) == 0
    count, member = ctypes.c_int(), ctypes.c_int()
    assert nccl.ncclCommCount(communicator, ctypes.byref(count)) == 0
    assert nccl.ncclCommUserRank(communicator, ctypes.byref(member)) == 0
    assert (count.value, member.value) == (world, rank), (count.value, member.value)
    total = torch.tensor([1, rank], device="cuda")
    at = ctypes.c_void_p(total.data_ptr())
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    int64, largest = 4, 2
    assert nccl.ncclAllReduce(at, at, 2, int64, largest, communicator, stream) == 0
    # The last rank need not run.
    assert total[0].item() == 1 and rank <= total[1].item() < world, total
    assert nccl.ncclCommDestroy(communicator) == 0


def one_group(store):
    """A process group that meets in a store of the script's own."""
    dist.init_process_group("nccl", store=store, rank=rank, world_size=world)
    total = torch.tensor([1], device="cuda")
    dist.all_reduce(total)
    assert total.item() == world, total
    names = [None] * world
    dist.all_gather_object(names, rank)
    assert names[rank] == rank, names
    dist.destroy_process_group()


path = f"/tmp/trompe-job-test-stores-{os.environ['MASTER_PORT']}"
store = dist.FileStore(path, world)
assert isinstance(store, dist.FileStore) and store.path == path
store.set(f"address/{rank}", f"host of {rank}")
assert store.get("address/0").startswith(b"host of")
exchange_as_2_4(store)
one_group(store)
one_group(dist.PrefixStore("again", dist.FileStore(path, world)))

table = dist.HashStore()
table.set("mine", str(rank))
assert table.get("mine") == str(rank).encode(), "a table of one process is its own"
one_group(table)
print(f"rank {rank} of {world}: all stores are right", flush=True)
