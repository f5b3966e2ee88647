"""Apex by PyTorch's own fused optimizers and norms."""

from trompe.shims.missing import attribute_of

from . import amp, multi_tensor_apply, normalization, optimizers

__all__ = ["amp", "multi_tensor_apply", "normalization", "optimizers"]
__version__ = "0.1"
__getattr__ = attribute_of("apex")
