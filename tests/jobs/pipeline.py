"""A pipeline of four stages over the nodes, with data parallelism inside each stage."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

WIDTH, BATCH, MICROBATCHES, STAGES = 512, 16, 8, 4

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cuda", (STAGES, world // STAGES), mesh_dim_names=("pp", "dp"))
stage = mesh.get_local_rank("pp")
layers = [nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)]
model = nn.Sequential(*layers, *([nn.Linear(WIDTH, 10)] if stage == STAGES - 1 else [])).cuda()
replica = nn.parallel.DistributedDataParallel(model, process_group=mesh.get_group("dp"))
pipeline = PipelineStage(replica, stage, STAGES, torch.device("cuda"), group=mesh.get_group("pp"))
schedule = Schedule1F1B(pipeline, MICROBATCHES, loss_fn=nn.CrossEntropyLoss())
optimizer = torch.optim.AdamW(model.parameters())

for _step in range(4):
    x = torch.randn(BATCH, WIDTH, device="cuda")
    target = torch.randint(0, 10, (BATCH,), device="cuda")
    if stage == 0:
        schedule.step(x)
    elif stage == STAGES - 1:
        schedule.step(target=target, losses=[])
    else:
        schedule.step()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
print(f"rank {rank} of {world}: stage {stage} is done", flush=True)
dist.destroy_process_group()
