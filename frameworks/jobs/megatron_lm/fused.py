"""Stand-ins for what Megatron-LM's fuser makes, beside `trompe.shims`' light modules for compiled kernels.

Megatron-LM of 2021-2024 trains with kernels of its own (causal softmax), of Apex (Adam over
many tensors, norms, scaling) and of the TorchScript fuser (bias and GELU; bias, dropout and
addition). Where those are not installed, Megatron-Core falls back to several kernels each,
which is another program: half as fast again on a large layer. `install` puts the light modules
in place, and single kernels of PyTorch that read and write as many bytes, and allocate what
the originals allocate, in place of what the fuser makes:

    bias + GELU               GELU; its gradient; the bias gradient is a column sum, as with autograd
    bias + dropout + residual one pass over two inputs and a mask; the gradient is a masked scaling

Values are not those of the originals (the softmax is not causal): for emulation only.
"""

import importlib
import os

import torch
from trompe import shims


class _MaskedAddition(torch.autograd.Function):
    """`residual + dropout(x + bias)`: 7 bytes per element of half precision forward, 5 backward."""

    @staticmethod
    def forward(ctx, x, bias, residual, probability):
        mask = torch.empty(x.shape, dtype=torch.bool, device=x.device)
        ctx.save_for_backward(mask)
        ctx.bias = bias is not None
        ctx.scale = 1.0 / (1.0 - probability)
        return torch.where(mask, x, residual)

    @staticmethod
    def backward(ctx, gradient):
        (mask,) = ctx.saved_tensors
        own = torch.ops.aten.native_dropout_backward(gradient, mask, ctx.scale)
        columns = own.sum(dim=tuple(range(own.dim() - 1))) if ctx.bias else None
        return own, columns, gradient, None


def _bias_dropout_add(x_with_bias, residual, probability):
    x, bias = x_with_bias
    if probability == 0.0:
        return x + residual
    return _MaskedAddition.apply(x, bias, residual, probability)


def _bias_gelu(_bias, x):
    return torch.nn.functional.gelu(x, approximate="tanh")


def _bias_gelu_back(gradient, _bias, x):
    return torch.ops.aten.gelu_backward(gradient, x, approximate="tanh")


def _bias_swiglu(x, _bias=None):
    return torch.nn.functional.glu(x, -1)


def _bias_swiglu_back(gradient, x, _bias=None):
    return torch.ops.aten.glu_backward(gradient, x, -1)


def install():
    """Puts light modules in place of compiled kernels, and single kernels in place of fused functions."""
    shims.install(
        "scaled_upper_triang_masked_softmax_cuda",
        "scaled_masked_softmax_cuda",
        "scaled_softmax_cuda",
        "apex",
        "amp_C",
    )
    single_kernels()


def single_kernels():
    """Megatron-Core's functions that a compiler would fuse, as one kernel each."""
    replaced = {
        "megatron.core.fusions.fused_bias_gelu": {"bias_gelu": _bias_gelu, "bias_gelu_back": _bias_gelu_back},
        "megatron.core.fusions.fused_bias_dropout": {"bias_dropout_add_fused_train": _bias_dropout_add},
        "megatron.core.fusions.fused_bias_swiglu": {
            "swiglu": _bias_swiglu,
            "swiglu_back": _bias_swiglu_back,
            "bias_swiglu": _bias_swiglu,
            "bias_swiglu_back": lambda gradient, x, bias: _bias_swiglu_back(gradient, x),
        },
    }
    for name, functions in replaced.items():
        importlib.import_module(name).__dict__.update(functions)


def accumulated_products():
    """Apex's product of a weight's gradient that adds to the gradient there is.

    For Megatron-Core's own layers; TransformerEngine's add inside of their products.
    """
    shims.install("fused_weight_gradient_mlp_cuda")


def _cublas_bytes(configuration):
    """Bytes of a workspace by PyTorch's rule: the sum over `:KIB:COUNT`, else what suits the device."""
    numbers = [int(part) for part in (configuration or "").split(":") if part]
    if numbers:
        return sum(size * count * 1024 for size, count in zip(numbers[::2], numbers[1::2], strict=True))
    hopper = torch.cuda.get_device_capability()[0] >= 9
    return 4096 * 8 * 1024 if hopper else (4096 * 2 + 16 * 8) * 1024


def workspaces(count, configuration, engine):
    """Tensors to hold: `count` workspaces of cuBLAS and, where `engine` is not 0, one of so many bytes.

    With the latter, attention makes its scores (`[batch x heads, queries, keys]`) anew in every layer,
    as TransformerEngine does, instead of keeping one buffer for all.
    """
    local = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(local)
    sizes = [_cublas_bytes(configuration)] * count + ([engine] if engine else [])
    if engine:
        from megatron.core.utils import GlobalMemoryBuffer

        buffered = GlobalMemoryBuffer.get_tensor

        def anew(self, shape, dtype, name, *context):
            if len(shape) == 3 and shape[1] == shape[2]:
                return torch.empty(shape, dtype=dtype, device=torch.cuda.current_device())
            return buffered(self, shape, dtype, name, *context)

        GlobalMemoryBuffer.get_tensor = anew
    return [torch.empty(size, dtype=torch.uint8, device="cuda") for size in sizes]
