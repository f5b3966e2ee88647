"""Mixed precision in fp16 with a gradient scaler, whose decisions depend on device values."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.LayerNorm(2048), torch.nn.Linear(2048, 512)
).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda")

for step in range(5):
    x = torch.randn(64, 512, device="cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        loss = torch.nn.functional.mse_loss(model(x), x)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.3f} scale {before:.0f}")
    if scaler.get_scale() < before:
        raise SystemExit("the scaler saw an overflow that cannot have happened")
print("max_memory_allocated", torch.cuda.max_memory_allocated())
