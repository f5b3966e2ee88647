"""Trains a GPT with tensor parallelism and FSDP, in plain PyTorch: a script to search configurations of.

    torchrun --nproc-per-node 8 train.py --tensor-parallel 2 --shard 4 --micro-batch 4

`--shard` ranks share one copy of the parameters: all data-parallel ranks (FSDP), fewer
(HSDP), or 1 (plain data parallelism).
"""

import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.out = nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, length, _ = x.shape
        y = self.norm1(x)
        parts = (
            f(y).view(batch, length, self.heads, -1).transpose(1, 2)
            for f in (self.query, self.key, self.value)
        )
        y = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, -1))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.checkpoint = options.checkpoint
        self.tokens = nn.Embedding(options.vocabulary, options.hidden)
        self.positions = nn.Embedding(options.sequence, options.hidden)
        self.blocks = nn.ModuleList(Block(options.hidden, options.heads) for _ in range(options.layers))
        self.norm = nn.LayerNorm(options.hidden)
        self.head = nn.Linear(options.hidden, options.vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoint else block(x)
        return self.head(self.norm(x))


def read_options():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in {
        "layers": 12,
        "hidden": 1024,
        "heads": 16,
        "sequence": 1024,
        "vocabulary": 50304,
        "micro-batch": 4,
        "accumulate": 1,
        "tensor-parallel": 1,
        "shard": 1,
        "steps": 3,
    }.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--reshard", choices=["never", "after_forward"], default="after_forward")
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--compile", action="store_true")
    return parser.parse_args()


def parallel(model, options, mesh):
    """The model over the ranks: tensor parallelism inside, data parallelism outside."""
    if options.tensor_parallel > 1:
        columns, rows = ColwiseParallel(), RowwiseParallel()
        plan = {"query": columns, "key": columns, "value": columns, "out": rows, "up": columns, "down": rows}
        for block in model.blocks:
            parallelize_module(block, mesh["tensor"], plan)
            block.heads //= options.tensor_parallel
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    reshard = options.reshard == "after_forward" and options.shard > 1
    for module in (*model.blocks, model):
        fully_shard(module, mesh=mesh["replicate", "shard"], mp_policy=policy, reshard_after_forward=reshard)
    return model


def main():
    options = read_options()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl")
    world = torch.distributed.get_world_size()
    replicas = world // options.tensor_parallel // options.shard
    mesh = init_device_mesh(
        "cuda",
        (replicas, options.shard, options.tensor_parallel),
        mesh_dim_names=("replicate", "shard", "tensor"),
    )
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = GPT(options)
    model = parallel(model, options, mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    forward = torch.compile(model) if options.compile else model
    tokens = torch.randint(options.vocabulary, (options.micro_batch, options.sequence + 1), device="cuda")
    for step in range(options.steps):
        for part in range(options.accumulate):
            model.set_requires_gradient_sync(part == options.accumulate - 1)
            logits = forward(tokens[:, :-1])
            loss = F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
            (loss / options.accumulate).backward()
        optimizer.step()
        optimizer.zero_grad()
        if torch.distributed.get_rank() == 0:
            print(f"step {step}", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
