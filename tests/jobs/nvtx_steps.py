"""A loop that marks its own steps with NVTX and has no optimizer to recognise them by."""

import torch

weight = torch.randn(1024, 1024, device="cuda")
for _ in range(6):
    torch.cuda.nvtx.range_push("iteration")
    with torch.cuda.nvtx.range("product"):
        x = weight @ weight
    x.relu_().sum().item()
    torch.cuda.nvtx.range_pop()
torch.cuda.nvtx.mark("done")
print("max_memory_allocated", torch.cuda.max_memory_allocated())
