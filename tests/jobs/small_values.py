"""What programs decide by: small tensors of integers, truth values and a few floats."""

import torch
from torch.nn.functional import one_hot

DEVICE = "cuda"
WRONG = []


def tensor(*values):
    return torch.tensor(values, device=DEVICE)


def check(name, got, expected):
    if got != expected:
        WRONG.append(f"{name}: {got} instead of {expected}")


def arithmetic():
    x = torch.arange(10, device=DEVICE)
    check("arange", x.tolist(), list(range(10)))
    check("sum", x.sum().item(), 45)
    check("max", x.max().item(), 9)
    check("compare", (x > 4).tolist(), [value > 4 for value in range(10)])
    check("cumsum", x.cumsum(0)[-1].item(), 45)
    check("cast", x.float().mean().item(), 4.5)
    check("where", torch.where(x > 5, x, -x)[5:7].tolist(), [-5, 6])
    x.add_(1)
    x[3] = 100
    check("in place", x[:4].tolist(), [1, 2, 3, 100])
    check("cat", torch.cat([x[:2], x[2:4]]).tolist(), [1, 2, 3, 100])
    check("transposed", torch.arange(6, device=DEVICE).view(2, 3).t().contiguous()[0].tolist(), [0, 3])
    check("difference", tensor(0, 2, 5).diff().tolist(), [2, 3])
    check("float", (torch.tensor(0.5, device=DEVICE) * 4).item(), 2.0)
    check("equal", torch.equal(tensor(1, 2), tensor(1, 2)), True)
    check("not equal", torch.equal(tensor(1, 2), tensor(1, 3)), False)


def places():
    x = torch.arange(10, device=DEVICE)
    check("nonzero", (x % 3 == 0).nonzero().flatten().tolist(), [0, 3, 6, 9])
    check("mask", x[x > 6].tolist(), [7, 8, 9])
    values, counts = torch.unique(tensor(3, 1, 3), return_counts=True)
    check("unique", (values.tolist(), counts.tolist()), ([1, 3], [1, 2]))
    check("gather", tensor(5, 6, 7).gather(0, tensor(2, 0)).tolist(), [7, 5])
    check("isin", torch.isin(tensor(1, 2), tensor(2)).tolist(), [False, True])
    check("sort", tensor(3, 1, 2).sort().values.tolist(), [1, 2, 3])
    check("bincount", torch.bincount(tensor(0, 1, 1)).tolist(), [1, 2])
    check("repeat", torch.repeat_interleave(tensor(5, 6), tensor(2, 1)).tolist(), [5, 5, 6])
    check("histogram", torch.histc(tensor(0, 1, 1, 3), bins=4, min=0, max=3).tolist(), [1, 2, 0, 1])
    check("one hot", one_hot(tensor(1, 0), 3).tolist(), [[0, 1, 0], [1, 0, 0]])
    check("drawn", sorted(torch.randperm(6, device=DEVICE).tolist()), list(range(6)))
    zeros = torch.zeros(3, dtype=torch.long, device=DEVICE)
    check("scatter", zeros.scatter_add_(0, tensor(1, 1), tensor(1, 1)).tolist(), [0, 2, 0])


def floats():
    x = torch.randn(3000, 3000, device=DEVICE)
    check("finite", bool(x.isfinite().all()), True)
    check("not a number", bool(x.isnan().any() | x.isinf().any()), False)
    check("close", torch.allclose(x, x), True)
    torch.linalg.eig(torch.randn(4, 4, device=DEVICE))
    scaler = torch.amp.GradScaler("cuda", init_scale=4.0, growth_interval=2)
    weight = torch.nn.Parameter(torch.randn(3, device=DEVICE))
    optimizer = torch.optim.SGD([weight], 0.1)
    for _ in range(4):
        scaler.scale(weight.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    check("scale", scaler.get_scale(), 16.0)


def marked_scores():
    """Scores that nobody knows, some of them marked as not to be chosen."""
    scores = torch.randn(2, 6, device=DEVICE) @ torch.randn(6, 6, device=DEVICE)
    allowed = torch.tensor([False, True, False, True, True, False], device=DEVICE)
    masked = scores.masked_fill(~allowed, float("-inf"))
    chosen = masked.topk(2, dim=-1).indices
    check("allowed", bool(allowed[chosen].all()), True)
    check("argmax", bool(allowed[masked.argmax(-1)].all()), True)
    first = (
        torch.cat([masked, torch.full((2, 1), 5.0, device=DEVICE)], -1)
        .sort(-1, descending=True)
        .indices[:, 0]
    )
    check("largest", first.tolist(), [6, 6])


def documents():
    """Lengths of the documents that lie in one sequence, as attention of variable length takes them."""
    end, length = 0, 64
    tokens = torch.randint(1, 100, (2, length)).to(DEVICE)
    tokens[0, 9], tokens[0, 40], tokens[1, 63] = end, end, end
    starts = []
    for row in range(2):
        begins = (tokens[row] == end).nonzero(as_tuple=True)[0].to(torch.int32) + 1
        edges = torch.cat([torch.tensor([0, length], dtype=torch.int32, device=DEVICE), begins]).unique()
        starts.append(edges[:-1] + row * length)
    packed = torch.cat([*starts, torch.tensor([2 * length], dtype=torch.int32, device=DEVICE)])
    check("documents", packed.tolist(), [0, 10, 41, 64, 128])
    check("longest", packed.diff().max().item(), 64)


def routing():
    """Tokens of a dropless mixture of experts, whose router's values nobody knows."""
    hidden = torch.randn(256, 512, device=DEVICE, dtype=torch.bfloat16)
    router = torch.nn.Linear(512, 8, bias=False).to(hidden)
    chosen = router(hidden).softmax(-1).topk(2, dim=-1).indices
    counts = torch.bincount(chosen.flatten(), minlength=8)
    check("balanced", counts.tolist(), [64] * 8)
    tokens = [torch.where((chosen == expert).any(-1))[0].numel() for expert in range(8)]
    check("per expert", tokens, [64] * 8)


def generation():
    from transformers import LlamaConfig, LlamaForCausalLM

    size = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=8000, **size)).to(DEVICE, torch.bfloat16)
    prompt = torch.randint(5, 1000, (2, 16)).to(DEVICE)
    beams = {"num_beams": 3, "num_return_sequences": 1}
    for options in (
        {"do_sample": False},
        {"do_sample": True, "top_k": 5},
        beams,
        beams | {"do_sample": True},
    ):
        mask = torch.ones_like(prompt)
        out = model.generate(prompt, attention_mask=mask, max_new_tokens=8, pad_token_id=0, **options)
        check("tokens", tuple(out.shape), (2, 24))
        check("prompt", torch.equal(out[:, :16], prompt), True)


for part in (arithmetic, places, floats, marked_scores, documents, routing, generation):
    part()
for line in WRONG:
    print(line)
print("values are right" if not WRONG else f"{len(WRONG)} values are wrong")
print(f"max_memory_allocated {torch.cuda.max_memory_allocated()}")
