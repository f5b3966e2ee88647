"""A job that `trompe profile` records: three of its steps become a trace with shapes."""

import glob
import gzip
import importlib.util
import json
import os
import sys

# Libraries ask whether PyTorch is there before anything imports it.
assert importlib.util.find_spec("torch")

import torch  # noqa: E402

OUT = json.loads(os.environ["TROMPE_PROFILE"])["out"]
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(8):
    model(torch.randn(64, 256, device="cuda")).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
(trace,) = glob.glob(f"{OUT}/trace.*.{os.getpid()}.json.gz")
with gzip.open(trace) as file:
    events = json.load(file)["traceEvents"]
os.remove(trace)
products = [event["args"]["Input Dims"] for event in events if event.get("name") == "aten::addmm"]
steps = {event["name"] for event in events if event.get("name", "").startswith("ProfilerStep#")}
print(f"{len(products)} products of {products[0][1:3]} in {len(steps)} steps", file=sys.stdout)
