"""Apex's product of a weight's gradient that adds to the gradient there is: a product and an addition."""

from trompe.shims.missing import attribute_of

__getattr__ = attribute_of("fused_weight_gradient_mlp_cuda")


def _accumulate(inputs, gradient, total):
    total.add_(gradient.flatten(0, -2).t() @ inputs.flatten(0, -2))


wgrad_gemm_accum_fp32 = _accumulate
wgrad_gemm_accum_fp16 = _accumulate
