"""Apex's product of a weight's gradient that adds to the gradient there is."""

import torch
from trompe.shims.missing import attribute_of

__getattr__ = attribute_of("fused_weight_gradient_mlp_cuda")


def _accumulate(inputs, gradient, total):
    rows, columns = gradient.flatten(0, -2).t(), inputs.flatten(0, -2)
    if total.dtype == rows.dtype:
        total.addmm_(rows, columns)
        return
    try:
        torch.addmm(total, rows, columns, out_dtype=total.dtype, out=total)
    except TypeError:
        # PyTorch before 2.8 has no product into another type: a product and an addition.
        total.add_(rows @ columns)


wgrad_gemm_accum_fp32 = _accumulate
wgrad_gemm_accum_fp16 = _accumulate
