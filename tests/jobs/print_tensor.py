"""Prints device tensors between steps: reads values whose memory held other things before."""

import torch

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.Adam(model.parameters())

for _ in range(4):
    tokens = torch.randint(0, 2**31 - 1, (4, 64)).cuda()
    del tokens  # its memory is handed out again below
    x = torch.randn(4, 64, device="cuda")
    y = model(x)
    print(y)
    loss = y.square().mean()
    print(loss, repr(model.weight.grad), f"{loss:.3f}", y.tolist()[0][:3])
    loss.backward()
    if torch.isnan(model.weight.grad).any():
        raise SystemExit("a gradient is not a number")
    optimizer.step()
    optimizer.zero_grad()
print(torch.arange(12).view(3, 4).cuda())
print("max_memory_allocated", torch.cuda.max_memory_allocated())
