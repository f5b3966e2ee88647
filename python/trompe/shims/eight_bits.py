"""Products in fp8 as TransformerEngine makes them on Hopper and newer.

Inputs and weights are cast to e4m3, gradients to e5m2, each together with its transpose, because Hopper's
fp8 products take rows of both operands only; the products are cuBLAS's. Kept for the backward pass are the
transposed casts of input and weight, a byte per element. Scales are those of earlier steps (delayed
scaling): nothing is read to find them. Where a width is no multiple of 16, or the device has no fp8,
products stay in the type of the parameters, as TransformerEngine refuses them.
"""

import torch
import torch.nn.functional as F

FORWARD, BACKWARD = torch.float8_e4m3fn, torch.float8_e5m2
_state = {"enabled": False}
_scales = {}


def enabled():
    """Whether products are made in fp8."""
    return _state["enabled"]


def enable(value):
    """Makes products in fp8 from now on, or not."""
    _state["enabled"] = bool(value)


def linear(x, weight, bias):
    """`x` times the weight, plus the bias."""
    if not (enabled() and x.is_cuda and torch.cuda.get_device_capability(x.device) >= (8, 9)):
        return F.linear(x, weight, bias)
    tokens, width = x.numel() // x.shape[-1], x.shape[-1]
    if tokens % 16 or width % 16 or weight.shape[0] % 16:
        return F.linear(x, weight, bias)
    return _Product.apply(x, weight, bias)


def cast_both(x, kind):
    """`x` `[rows, columns]` and its transpose in `kind`, by one kernel that reads it once.

    TransformerEngine's `cast_transpose` reads 16 bits and writes two bytes per element: as a copy of the
    halves of `x` to two tensors does. The values are those bytes, for emulation only.
    """
    if x.element_size() != 2:
        x = x.to(torch.bfloat16)
    x = x.contiguous()
    rows = torch.empty(x.shape, dtype=kind, device=x.device)
    turned = torch.empty(x.shape[::-1], dtype=kind, device=x.device)
    halves = x.view(-1).chunk(2)
    torch._foreach_copy_([rows.view(x.dtype).view(-1), turned.view(x.dtype).view(-1)], list(halves))
    return rows, turned


def product(rows, columns, kind, bias=None, out=None):
    """`rows` `[m, k]` times the transpose of `columns` `[n, k]`, as `kind`; into `out` where it is given."""
    scale = _scales.get(rows.device)
    if scale is None:
        scale = _scales[rows.device] = torch.ones((), dtype=torch.float32, device=rows.device)
    given = {} if out is None else {"out": out}
    return torch._scaled_mm(
        rows, columns.t(), scale_a=scale, scale_b=scale, bias=bias, out_dtype=kind, **given
    )


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        kind = x.dtype if x.dtype != torch.float32 else torch.bfloat16
        rows, turned = cast_both(x.reshape(-1, x.shape[-1]), FORWARD)
        weights, turned_weights = cast_both(weight, FORWARD)
        ctx.save_for_backward(turned, turned_weights)
        ctx.kinds, ctx.bias, ctx.shape = (kind, weight.dtype), bias is not None, x.shape
        result = product(rows, weights, kind, bias if bias is None else bias.to(kind))
        return result.view(*x.shape[:-1], weight.shape[0])

    @staticmethod
    def backward(ctx, gradient):
        turned, turned_weights = ctx.saved_tensors
        kind, weight_kind = ctx.kinds
        flat = gradient.reshape(-1, gradient.shape[-1])
        columns = flat.sum(0) if ctx.bias else None
        rows, turned_rows = cast_both(flat, BACKWARD)
        own = product(rows, turned_weights, kind).view(ctx.shape) if ctx.needs_input_grad[0] else None
        weight = None
        if ctx.needs_input_grad[1]:
            weight = product(turned_rows, turned, kind).to(weight_kind)
        return own, weight, columns
