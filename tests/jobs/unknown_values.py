"""Decides by values that nobody computes, which the report must name."""

import torch

model = torch.nn.Linear(2048, 2048, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    loss = model(torch.randn(2048, 2048, device="cuda")).square().mean()
    if loss > 0.5:
        print("large")
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"loss {loss.item()}")
print(f"max_memory_allocated {torch.cuda.max_memory_allocated()}")
