"""Trains a little, then fails in a way of the caller's choice."""

import os
import signal
import sys
import time

import torch

model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def steps(count):
    for _ in range(count):
        model(torch.randn(32, 256, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


how = sys.argv[1]
steps(4)
print(f"now failing: {how}", flush=True)
if how == "exit":
    sys.exit(3)
elif how == "raise":
    raise ValueError("the data is not what it was")
elif how == "abort":
    os.kill(os.getpid(), signal.SIGKILL)
elif how == "memory":
    keep = [torch.empty(2**30, dtype=torch.uint8, device="cuda") for _ in range(10**6)]
elif how == "forever":
    while True:
        steps(1)
        time.sleep(0.01)
else:
    raise SystemExit(f"unknown way to fail: {how}")
