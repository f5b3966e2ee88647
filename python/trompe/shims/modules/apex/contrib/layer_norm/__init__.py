"""The persistent layer norm of Apex' contributions."""

import torch


class FastLayerNorm(torch.nn.LayerNorm):
    """Layer norm over one dimension."""

    def __init__(self, hidden_size, eps=1e-5, memory_efficient=False):
        super().__init__(hidden_size, eps=eps)
