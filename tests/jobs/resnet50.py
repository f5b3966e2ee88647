"""ResNet-50 training steps: layouts and precisions."""

import argparse

import torch
import torchvision

parser = argparse.ArgumentParser()
parser.add_argument("--dtype", choices=["fp32", "fp16", "bf16"], default="bf16")
parser.add_argument("--channels-last", action="store_true")
parser.add_argument("--benchmark", action="store_true")
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--steps", type=int, default=4)
args = parser.parse_args()

torch.backends.cudnn.benchmark = args.benchmark
layout = torch.channels_last if args.channels_last else torch.contiguous_format
precision = {"fp32": None, "fp16": torch.float16, "bf16": torch.bfloat16}[args.dtype]

model = torchvision.models.resnet50().cuda().to(memory_format=layout)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
criterion = torch.nn.CrossEntropyLoss()

for step in range(args.steps):
    images = torch.randn(args.batch, 3, 224, 224, device="cuda").to(memory_format=layout)
    labels = torch.randint(0, 1000, (args.batch,), device="cuda")
    with torch.autocast("cuda", dtype=precision, enabled=precision is not None):
        loss = criterion(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.3f}")
print("max_memory_allocated", torch.cuda.max_memory_allocated())
