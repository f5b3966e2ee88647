"""Apex' operations over lists of tensors, by PyTorch's own."""

import torch
from trompe.shims.missing import attribute_of

__getattr__ = attribute_of("amp_C")


def multi_tensor_l2norm(chunk_size, noop_flag, tensor_lists, per_tensor=False):
    """The norm of all elements, and those of each tensor when asked for."""
    norms = torch.stack(torch._foreach_norm(tensor_lists[0]))
    return torch.linalg.vector_norm(norms).view(1), norms if per_tensor else norms[:0]


def multi_tensor_scale(chunk_size, noop_flag, tensor_lists, scale):
    """Writes the scaled first list into the second: one pass, as Apex does, also between element types."""
    source, target = tensor_lists
    if source is target:
        torch._foreach_mul_(target, scale)
    else:
        torch._foreach_copy_(target, source)
