"""A small encoder with growing sequences: makes the allocator grow, split and reuse."""

import torch

model = torch.nn.TransformerEncoder(
    torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), num_layers=4
).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)

for step, length in enumerate([64, 128, 256, 192, 256, 256]):
    x = torch.randn(8, length, 512, device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x).float().square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.3f}")
print("max_memory_allocated", torch.cuda.max_memory_allocated())
