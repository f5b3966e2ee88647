"""PyTorch's own profiler around the loop, as many scripts have it."""

import tempfile
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
folder = Path(tempfile.mkdtemp())
names = set()


def on_trace_ready(profiler):
    profiler.export_chrome_trace(str(folder / "trace.json"))
    names.update(event.key for event in profiler.key_averages())


with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    schedule=schedule(wait=1, warmup=1, active=2),
    on_trace_ready=on_trace_ready,
    record_shapes=True,
    profile_memory=True,
) as profiler:
    for step in range(5):
        with record_function("step"):
            loss = model(torch.randn(128, 256, device="cuda")).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        profiler.step()
        print(f"step {step} loss {loss.item():.3f}")

missing = {"aten::addmm", "aten::relu", "step"} - names
if missing or not (folder / "trace.json").stat().st_size:
    raise SystemExit(f"the profile lacks {missing}")
print("max_memory_allocated", torch.cuda.max_memory_allocated())
