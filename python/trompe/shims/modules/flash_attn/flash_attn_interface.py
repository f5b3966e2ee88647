"""The functions of flash-attn 2: `(batch, sequence, heads, width)` tensors, or packed ones with cumulative
lengths."""

import torch
import torch.nn.functional as F

_FORWARD = torch.ops.aten._flash_attention_forward


def _attend(query, key, value, lengths, options):
    width = query.shape[-1]
    # As flash-attn does: widths are filled up to a multiple of 8.
    fill = -width % 8
    if fill:
        query, key, value = (F.pad(tensor, (0, fill)) for tensor in (query, key, value))
    scale = options.get("softmax_scale") or width**-0.5
    left, right = options.get("window_size") or (-1, -1)
    window = {} if left < 0 and right < 0 else {"window_size_left": left, "window_size_right": right}
    dropout = options.get("dropout_p", 0.0)
    causal = options.get("causal", False)
    result = _FORWARD(query, key, value, *lengths, dropout, causal, False, scale=scale, **window)
    attended = result[0][..., :width] if fill else result[0]
    return (attended, result[1], None) if options.get("return_attn_probs") else attended


def _dense(query, key, value, options):
    return _attend(query, key, value, (None, None, query.shape[1], key.shape[1]), options)


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, **options):
    """Attention of `q` over `k` and `v`, which may have fewer heads."""
    return _dense(
        q, k, v, {**options, "dropout_p": dropout_p, "softmax_scale": softmax_scale, "causal": causal}
    )


def flash_attn_qkvpacked_func(qkv, dropout_p=0.0, softmax_scale=None, causal=False, **options):
    """The same of one tensor `(batch, sequence, 3, heads, width)`."""
    return flash_attn_func(*qkv.unbind(2), dropout_p, softmax_scale, causal, **options)


def flash_attn_kvpacked_func(q, kv, dropout_p=0.0, softmax_scale=None, causal=False, **options):
    """The same of `q` and `(batch, sequence, 2, heads, width)`."""
    return flash_attn_func(q, *kv.unbind(2), dropout_p, softmax_scale, causal, **options)


def flash_attn_varlen_func(
    q,
    k,
    v,
    cu_seqlens_q,
    cu_seqlens_k,
    max_seqlen_q,
    max_seqlen_k,
    **options,
):
    """Attention within sequences packed one after the other."""
    lengths = (cu_seqlens_q, cu_seqlens_k, int(max_seqlen_q), int(max_seqlen_k))
    return _attend(q, k, v, lengths, options)


def flash_attn_varlen_qkvpacked_func(qkv, cu_seqlens, max_seqlen, **options):
    """The same of one tensor `(tokens, 3, heads, width)`."""
    query, key, value = qkv.unbind(1)
    return flash_attn_varlen_func(
        query, key, value, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, **options
    )


def flash_attn_varlen_kvpacked_func(q, kv, cu_seqlens_q, cu_seqlens_k, *most, **options):
    """The same of `q` and `(tokens, 2, heads, width)`."""
    key, value = kv.unbind(1)
    return flash_attn_varlen_func(q, key, value, cu_seqlens_q, cu_seqlens_k, *most, **options)
