"""Saving a sharded checkpoint and gathering a whole one, in groups split from the world."""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("cpu:gloo,cuda:nccl", device_id=device)
mesh = init_device_mesh("cuda", (dist.get_world_size() // 2, 2), mesh_dim_names=("dp", "tp"))
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)).cuda()
fully_shard(model, mesh=mesh["dp"])
optimizer = torch.optim.AdamW(model.parameters())
model(torch.randn(4, 64, device="cuda")).sum().backward()
optimizer.step()

folder = [tempfile.mkdtemp(prefix="checkpoint-") if dist.get_rank() == 0 else None]
dist.broadcast_object_list(folder, src=0)
weights, state = get_state_dict(model, optimizer)
checkpoint.save({"model": weights, "optimizer": state}, checkpoint_id=folder[0])
print(f"rank {dist.get_rank()} saved {len(weights)} parameters", flush=True)
whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
if dist.get_rank() == 0:
    print(f"whole: {len(whole)} parameters of {whole['0.weight'].numel()}", flush=True)
    print(f"files: {sorted(os.listdir(folder[0]))}", file=sys.stderr)
dist.barrier()
dist.destroy_process_group()
