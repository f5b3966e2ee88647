"""A dropless mixture of experts: which expert a token goes to nobody knows, so a policy says it."""

import torch
from torch import nn
from torch.nn.functional import gelu

EXPERTS, WIDTH, TOKENS = 8, 512, 2048


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up = nn.ModuleList(nn.Linear(WIDTH, 4 * WIDTH) for _ in range(EXPERTS))
        self.down = nn.ModuleList(nn.Linear(4 * WIDTH, WIDTH) for _ in range(EXPERTS))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2, dim=-1)
        out = torch.zeros_like(x)
        for expert, (up, down) in enumerate(zip(self.up, self.down, strict=True)):
            token, place = torch.where(chosen == expert)
            out.index_add_(0, token, down(gelu(up(x[token]))) * weights[token, place, None])
        return out


model = nn.Sequential(Mixture(), Mixture()).cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for _step in range(4):
    model(torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"max_memory_allocated {torch.cuda.max_memory_allocated()}")
