"""What the scripts share: the rank from the launcher's environment, and the last lines that each prints."""

import os

import torch

RANK = int(os.environ.get("RANK", "0"))
WORLD = int(os.environ.get("WORLD_SIZE", "1"))
LOCAL = int(os.environ.get("LOCAL_RANK", "0"))
LOCAL_WORLD = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def tiny_llama(layers=2, **changes):
    """A Llama of the transformers library with random weights: two layers 256 wide."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(tiny_llama_config(LlamaConfig, layers, **changes))


def tiny_llama_config(kind, layers=2, **changes):
    """Its configuration."""
    return kind(
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=2000,
        max_position_embeddings=256,
        **changes,
    )


class Tokens(torch.utils.data.Dataset):
    """Synthetic sequences of tokens for a language model."""

    def __init__(self, count=1024, length=128, vocabulary=2000):
        self.tokens = torch.randint(
            0, vocabulary, (count, length), generator=torch.Generator().manual_seed(0)
        )

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


def finish(steps):
    """Prints what the checks look for."""
    torch.cuda.synchronize()
    print(f"rank {RANK} of {WORLD}: {steps} steps done", flush=True)
    print(f"max_memory_allocated {torch.cuda.max_memory_allocated()}", flush=True)
