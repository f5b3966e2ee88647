"""The modules of `transformer_engine.pytorch` that most models are made of."""

import contextlib

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint as _checkpoint
from trompe.shims import eight_bits
from trompe.shims.missing import attribute_of

__getattr__ = attribute_of("transformer_engine.pytorch")


@contextlib.contextmanager
def fp8_autocast(enabled=False, **_):
    """Products of the modules inside are made in fp8 (`eight_bits`)."""
    before = eight_bits.enabled()
    eight_bits.enable(enabled)
    try:
        yield
    finally:
        eight_bits.enable(before)


autocast = fp8_autocast


def _placed(params_dtype, device):
    return {"dtype": params_dtype or torch.get_default_dtype(), "device": device}


class Linear(torch.nn.Linear):
    """A product with a bias."""

    def __init__(self, in_features, out_features, bias=True, params_dtype=None, device="cuda", **_):
        super().__init__(in_features, out_features, bias=bias, **_placed(params_dtype, device))

    def forward(self, inp, is_first_microbatch=None):
        """The product."""
        return eight_bits.linear(inp, self.weight, self.bias)


class LayerNorm(torch.nn.LayerNorm):
    """Layer norm."""

    def __init__(self, hidden_size, eps=1e-5, params_dtype=None, device="cuda", **_):
        super().__init__(hidden_size, eps=eps, **_placed(params_dtype, device))


class RMSNorm(torch.nn.RMSNorm):
    """RMS norm."""

    def __init__(self, hidden_size, eps=1e-5, params_dtype=None, device="cuda", **_):
        super().__init__(hidden_size, eps=eps, **_placed(params_dtype, device))


_NORMS = {"LayerNorm": LayerNorm, "RMSNorm": RMSNorm}


class LayerNormLinear(torch.nn.Module):
    """A norm and a product."""

    def __init__(self, in_features, out_features, eps=1e-5, bias=True, normalization="LayerNorm", **options):
        super().__init__()
        placed = {key: options[key] for key in ("params_dtype", "device") if key in options}
        self.norm = _NORMS[normalization](in_features, eps=eps, **placed)
        self.linear = Linear(in_features, out_features, bias=bias, **placed)
        self.returns_norm = options.get("return_layernorm_output", False)

    def forward(self, inp, is_first_microbatch=None):
        """The product of the norm, and the norm too when asked for."""
        normed = self.norm(inp)
        result = self.linear(normed)
        return (result, normed) if self.returns_norm else result


_ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu, "silu": F.silu}
_GATED = {"swiglu": F.silu, "geglu": F.gelu, "reglu": F.relu}


class LayerNormMLP(torch.nn.Module):
    """A norm, a product, an activation and a product."""

    def __init__(
        self,
        hidden_size,
        ffn_hidden_size,
        eps=1e-5,
        bias=True,
        normalization="LayerNorm",
        activation="gelu",
        **options,
    ):
        super().__init__()
        placed = {key: options[key] for key in ("params_dtype", "device") if key in options}
        self.activation = activation
        width = ffn_hidden_size * (2 if activation in _GATED else 1)
        self.norm = _NORMS[normalization](hidden_size, eps=eps, **placed)
        self.fc1 = Linear(hidden_size, width, bias=bias, **placed)
        self.fc2 = Linear(ffn_hidden_size, hidden_size, bias=bias, **placed)

    def forward(self, inp, is_first_microbatch=None):
        """All of it."""
        hidden = self.fc1(self.norm(inp))
        if self.activation in _GATED:
            gate, hidden = hidden.chunk(2, dim=-1)
            return self.fc2(_GATED[self.activation](gate) * hidden)
        return self.fc2(_ACTIVATIONS[self.activation](hidden))


class DotProductAttention(torch.nn.Module):
    """Fused attention over `sbhd` or `bshd` tensors."""

    def __init__(
        self, num_attention_heads, kv_channels, num_gqa_groups=None, attention_dropout=0.0, **options
    ):
        super().__init__()
        self.dropout = attention_dropout
        self.layout = options.get("qkv_format", "sbhd")
        self.mask = options.get("attn_mask_type", "causal")
        self.scale = options.get("softmax_scale")

    def forward(self, query_layer, key_layer, value_layer, attention_mask=None, **options):
        """Attention, heads and widths as one dimension of the result."""
        first = self.layout == "bshd"
        heads = [
            t.permute(0, 2, 1, 3) if first else t.permute(1, 2, 0, 3)
            for t in (query_layer, key_layer, value_layer)
        ]
        causal = "causal" in (options.get("attn_mask_type") or self.mask)
        grouped = heads[0].shape[1] != heads[1].shape[1]
        result = F.scaled_dot_product_attention(
            *heads,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=causal,
            scale=self.scale,
            enable_gqa=grouped,
        )
        return (result.permute(0, 2, 1, 3) if first else result.permute(2, 0, 1, 3)).flatten(2)


def checkpoint(
    function, *args, distribute_saved_activations=False, get_rng_state_tracker=None, tp_group=None, **kwargs
):
    """Recomputes in the backward pass."""
    kwargs.setdefault("use_reentrant", False)
    return _checkpoint(function, *args, **kwargs)
