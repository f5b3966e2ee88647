"""Layer norm and RMS norm: PyTorch's own kernels, which read and write the same."""

import torch
import torch.nn.functional as F
from trompe.shims.missing import attribute_of

__getattr__ = attribute_of("apex.normalization.fused_layer_norm")


class FusedLayerNorm(torch.nn.LayerNorm):
    """Layer norm."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, memory_efficient=False):
        super().__init__(normalized_shape, eps=eps, elementwise_affine=elementwise_affine)


class FusedRMSNorm(torch.nn.RMSNorm):
    """RMS norm."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, memory_efficient=False):
        super().__init__(normalized_shape, eps=eps, elementwise_affine=elementwise_affine)


MixedFusedLayerNorm = FusedLayerNorm
MixedFusedRMSNorm = FusedRMSNorm


def fused_layer_norm_affine(input, weight, bias, normalized_shape, eps=1e-6, memory_efficient=False):
    """Layer norm with weight and bias."""
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


def fused_layer_norm(input, normalized_shape, eps=1e-6, memory_efficient=False):
    """Layer norm without."""
    return F.layer_norm(input, normalized_shape, None, None, eps)


def fused_rms_norm_affine(input, weight, normalized_shape, eps=1e-6, memory_efficient=False):
    """RMS norm with a weight."""
    return F.rms_norm(input, normalized_shape, weight, eps)


def fused_rms_norm(input, normalized_shape, eps=1e-6, memory_efficient=False):
    """RMS norm without."""
    return F.rms_norm(input, normalized_shape, None, eps)
