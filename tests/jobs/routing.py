"""Where tokens go when a router's values are unknown: in turn, or as `trompe.gate` and `--routing` say."""

import torch
import trompe

hidden = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16)
router = torch.nn.Linear(1024, 8, bias=False).to(hidden)


def counts():
    chosen = router(hidden).softmax(-1).topk(2, dim=-1).indices
    return torch.bincount(chosen.flatten(), minlength=8).tolist()


@trompe.gate("balanced")
def balanced():
    return counts()


print("balanced", balanced())
with trompe.gate("zipf", shape=1.5, seed=3):
    first = counts()
    print("again", first == counts(), sum(first), max(first) > 2 * min(first))
with trompe.gate("zipf", shape=1.5, seed=4):
    print("another seed", first != counts())
print("drawn by the run", counts() != balanced(), sum(counts()))
print(f"max_memory_allocated {torch.cuda.max_memory_allocated()}")
