"""Rotary position embeddings; several passes where flash-attn has one kernel."""

import torch


def apply_rotary_emb(x, cos, sin, interleaved=False, inplace=False, **_):
    """Rotates pairs of the last dimension of `(batch, sequence, heads, width)`."""
    half = cos.shape[-1]
    cos, sin = (table[: x.shape[1], None, :].to(x.dtype) for table in (cos, sin))
    turned, rest = x[..., : 2 * half], x[..., 2 * half :]
    if interleaved:
        first, second = turned[..., 0::2], turned[..., 1::2]
        pair = torch.stack((first * cos - second * sin, first * sin + second * cos), dim=-1).flatten(-2)
    else:
        first, second = turned.chunk(2, dim=-1)
        pair = torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)
    result = torch.cat((pair, rest), dim=-1) if rest.shape[-1] else pair
    return x.copy_(result) if inplace else result
