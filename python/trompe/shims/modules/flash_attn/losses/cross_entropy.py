"""The loss over classes."""

import torch


class CrossEntropyLoss(torch.nn.CrossEntropyLoss):
    """PyTorch's, with the arguments of flash-attn's."""

    def __init__(self, ignore_index=-100, reduction="mean", label_smoothing=0.0, **_):
        super().__init__(ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)
