"""Fused modules that are not installed: a transformer of flash-attn, Apex and TransformerEngine."""

import importlib.util

import torch
import transformer_engine.pytorch as te
from apex.normalization import FusedLayerNorm, FusedRMSNorm
from apex.optimizers import FusedAdam
from flash_attn import flash_attn_func, flash_attn_varlen_func

# A script that has another way keeps it: neither of these gets a light module.
try:
    import amp_C
except ImportError:
    amp_C = None
print("guarded import:", amp_C, "asked for:", importlib.util.find_spec("amp_C"))


class Block(torch.nn.Module):
    """Attention, dense or packed, and a multi-layer perceptron."""

    def __init__(self, width, heads, packed):
        super().__init__()
        self.heads, self.packed = heads, packed
        self.norm, self.rms = FusedLayerNorm(width), FusedRMSNorm(width)
        self.qkv, self.out = te.Linear(width, 3 * width), te.Linear(width, width)
        self.mlp = te.LayerNormMLP(width, 4 * width, activation="swiglu")

    def forward(self, x):
        batch, length, width = x.shape
        heads = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, -1)
        if self.packed:
            ends = torch.arange(0, batch + 1, device=x.device, dtype=torch.int32) * length
            query, key, value = heads.flatten(0, 1).unbind(1)
            attended = flash_attn_varlen_func(query, key, value, ends, ends, length, length, causal=True)
        else:
            attended = flash_attn_func(*heads.unbind(2), causal=True)
        x = x + self.out(attended.reshape(batch, length, width))
        return x + self.mlp(self.rms(x))


model = torch.nn.Sequential(Block(512, 8, False), Block(512, 8, True)).cuda().to(torch.bfloat16)
optimizer = FusedAdam(model.parameters(), lr=1e-4)
for _ in range(4):
    x = torch.randn(2, 256, 512, device="cuda", dtype=torch.bfloat16)
    with te.fp8_autocast(enabled=True):
        loss = model(x).float().pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("max_memory_allocated", torch.cuda.max_memory_allocated())
