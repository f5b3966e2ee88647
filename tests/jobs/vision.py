"""Training steps of a torchvision classifier, by name."""

import sys

import torch
import torchvision

model = torchvision.models.get_model(sys.argv[1]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for step in range(4):
    images = torch.randn(8, 3, 224, 224).cuda(non_blocking=True)
    labels = torch.randint(0, 1000, (8,)).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(images), labels, label_smoothing=0.1)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} loss {loss.item():.3f}")
print("max_memory_allocated", torch.cuda.max_memory_allocated())
