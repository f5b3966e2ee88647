"""A model of Llama-3-70B's shape on one device: too big for 80 GB, fits on a terabyte."""

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

WIDTH, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCABULARY = 8192, 28672, 80, 64, 8, 128256
HEAD = WIDTH // HEADS


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1 = torch.nn.RMSNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, (HEADS + 2 * KV_HEADS) * HEAD, bias=False)
        self.out = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.norm_2 = torch.nn.RMSNorm(WIDTH)
        self.gate = torch.nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up = torch.nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = torch.nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        batch, seq, _ = x.shape
        heads = self.qkv(self.norm_1(x)).view(batch, seq, -1, HEAD).transpose(1, 2)
        q, k, v = heads.split([HEADS, KV_HEADS, KV_HEADS], dim=1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, seq, WIDTH))
        h = self.norm_2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def main():
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        norm = torch.nn.RMSNorm(WIDTH)
        head = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)
    parameters = [p for part in (embedding, layers, norm, head) for p in part.parameters()]
    print(f"{sum(p.numel() for p in parameters) / 1e9:.1f}B parameters")
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, fused=True)
    for step in range(3):
        tokens = torch.randint(0, VOCABULARY, (1, 2048), device="cuda")
        x = embedding(tokens)
        for layer in layers:
            x = checkpoint(layer, x, use_reentrant=False)
        loss = F.cross_entropy(head(norm(x))[0, :-1].float(), tokens[0, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.3f}")
    print("max_memory_allocated", torch.cuda.max_memory_allocated())


if __name__ == "__main__":
    main()
