"""Trains an MPT (llm-foundry's GPT) under PyTorch's fully sharded data parallelism, on synthetic tokens.

    torchrun --nproc-per-node 8 mpt_fsdp.py --hidden-size 768 --num-layers 12 --num-attention-heads 12 \
        --seq-length 2048 --micro-batch-size 8 --global-batch-size 64

What shapes the step is llm-foundry's: blocks without biases, low-precision norms, learned
positions, embeddings tied to the head, one shard per block, parameters, gradients and buffers
in bfloat16 (`PURE`), reductions after every micro batch, a fused loss. The last micro batch is
smaller where they do not divide the batch.
"""

import argparse

import torch
from common import LOCAL, RANK, WORLD, finish
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    apply_activation_checkpointing,
    checkpoint_wrapper,
)
from torch.distributed.fsdp import BackwardPrefetch, MixedPrecision, ShardingStrategy
from torch.distributed.fsdp import FullyShardedDataParallel as Sharded
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}


class Block(torch.nn.Module):
    """Attention and feed-forward part, each with a norm before it and a residual around it."""

    def __init__(self, width, heads, inner, device):
        super().__init__()
        plain = {"bias": False, "device": device}
        self.heads = heads
        self.norm_1 = torch.nn.LayerNorm(width, **plain)
        self.qkv = torch.nn.Linear(width, 3 * width, **plain)
        self.out = torch.nn.Linear(width, width, **plain)
        self.norm_2 = torch.nn.LayerNorm(width, **plain)
        self.up = torch.nn.Linear(width, inner, **plain)
        self.down = torch.nn.Linear(inner, width, **plain)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm_1(x)).chunk(3, dim=2)
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm_2(x))))


class FusedLoss(torch.autograd.Function):
    """Stands in for flash-attention's fused cross-entropy, llm-foundry's default.

    It reads the logits once forward, and overwrites them with their gradient backward. Values are
    not those of the original: for emulation only.
    """

    @staticmethod
    def forward(ctx, logits, _targets):
        ctx.save_for_backward(logits)
        return logits.sum(dim=-1, dtype=torch.float32).mean()

    @staticmethod
    def backward(ctx, _gradient):
        (logits,) = ctx.saved_tensors
        return logits.detach().mul_(0.5), None


class Mpt(torch.nn.Module):
    """Embeddings, blocks, norm, and the embeddings again as head."""

    def __init__(self, arguments, device):
        super().__init__()
        width = arguments.hidden_size
        self.words = torch.nn.Embedding(arguments.vocab_size, width, device=device)
        self.positions = torch.nn.Embedding(arguments.seq_length, width, device=device)
        inner = arguments.ffn_hidden_size or 4 * width
        self.blocks = torch.nn.ModuleList(
            Block(width, arguments.num_attention_heads, inner, device) for _ in range(arguments.num_layers)
        )
        self.norm = torch.nn.LayerNorm(width, bias=False, device=device)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        return torch.nn.functional.linear(self.norm(x), self.words.weight)


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("hidden-size", "num-layers", "num-attention-heads", "seq-length", "micro-batch-size"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--ffn-hidden-size", type=int)
    parser.add_argument("--vocab-size", type=int, default=50368)
    parser.add_argument("--global-batch-size", type=int, help="one micro batch per rank when not given")
    parser.add_argument("--train-iters", type=int, default=4)
    parser.add_argument(
        "--sharding", choices=[strategy.name for strategy in ShardingStrategy], default="FULL_SHARD"
    )
    parser.add_argument("--attention", choices=list(BACKENDS), default="flash")
    parser.add_argument("--recompute", action="store_true", help="recompute every block in the backward pass")
    return parser.parse_args()


def build(arguments):
    """The model in shards: parameters are made where they stay."""
    half = torch.bfloat16
    model = Mpt(arguments, torch.device("meta"))
    model = Sharded(
        model,
        sharding_strategy=ShardingStrategy[arguments.sharding],
        auto_wrap_policy=torch.distributed.fsdp.wrap.ModuleWrapPolicy({Block}),
        mixed_precision=MixedPrecision(param_dtype=half, reduce_dtype=half, buffer_dtype=half),
        backward_prefetch=BackwardPrefetch.BACKWARD_POST,
        limit_all_gathers=True,
        param_init_fn=lambda module: module.to_empty(device=torch.device("cuda", LOCAL), recurse=False),
        device_id=LOCAL,
    )
    if arguments.recompute:
        apply_activation_checkpointing(
            model,
            checkpoint_wrapper_fn=lambda module: checkpoint_wrapper(
                module, checkpoint_impl=CheckpointImpl.NO_REENTRANT
            ),
            check_fn=lambda module: isinstance(module, Block),
        )
    return model


def main():
    arguments = parse()
    torch.cuda.set_device(LOCAL)
    torch.distributed.init_process_group("nccl")
    model = build(arguments)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    micro = arguments.micro_batch_size
    own = max(1, (arguments.global_batch_size or micro * WORLD) // WORLD)
    count = -(-own // micro)
    shape = (own, arguments.seq_length)
    generator = torch.Generator().manual_seed(RANK)
    batch = torch.randint(0, arguments.vocab_size, shape, generator=generator).pin_memory()
    with sdpa_kernel(BACKENDS[arguments.attention]):
        for _ in range(arguments.train_iters):
            tokens = batch.cuda(non_blocking=True)
            for part in tokens.split(micro):
                logits = model(part).view(-1, arguments.vocab_size)
                loss = FusedLoss.apply(logits, torch.roll(part, -1, 1).view(-1))
                (loss / count).backward()
            model.clip_grad_norm_(1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    finish(arguments.train_iters)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
