"""The schedules of torch.distributed.pipelining over 4 stages: `pipelining.py SCHEDULE`."""

import sys

import common
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import pipelining
from torch.distributed.device_mesh import init_device_mesh

STAGES, WIDTH, BATCH, MICROBATCHES, STEPS = 4, 256, 16, 8, 4

name = sys.argv[1]
torch.cuda.set_device(common.LOCAL)
dist.init_process_group("nccl")
mesh = init_device_mesh("cuda", (STAGES, common.WORLD // STAGES), mesh_dim_names=("pp", "dp"))
rank, group = mesh.get_local_rank("pp"), mesh.get_group("pp")
schedule_class = pipelining.schedules.get_schedule_class(name)
several = issubclass(schedule_class, pipelining.schedules.PipelineScheduleMulti)
v_shaped = name in ("ZBVZeroBubble", "DualPipeV")
chunks = 2 if several else 1
total = STAGES * chunks
places = [rank + STAGES * chunk for chunk in range(chunks)]
if v_shaped:
    places = [rank, total - 1 - rank]


def layers():
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH)).cuda()


models = [layers() for _ in places]
stages = [
    pipelining.PipelineStage(model, place, total, torch.device("cuda", common.LOCAL), group=group)
    for model, place in zip(models, places, strict=True)
]
schedule = schedule_class(stages if several else stages[0], MICROBATCHES, loss_fn=nn.functional.mse_loss)
optimizer = torch.optim.AdamW([p for model in models for p in model.parameters()])
for _step in range(STEPS):
    x = torch.randn(BATCH, WIDTH, device="cuda")
    target = torch.randn(BATCH, WIDTH, device="cuda")
    inputs = (x,) if 0 in places else ()
    last = {"target": target, "losses": []} if total - 1 in places else {}
    schedule.step(*inputs, **last)
    for model in models:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, group=mesh.get_group("dp"))
    optimizer.step()
    optimizer.zero_grad()
common.finish(STEPS)
dist.destroy_process_group()
