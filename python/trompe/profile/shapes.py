"""Which operations are measured: those that training jobs spend their time in, at the sizes that they have.

A case is a dictionary with `family`, `op` and sizes. The order is fixed and interleaves the families, so that
a sweep that runs out of time has a part of each.
"""

from itertools import product

# Widths of models, from GPT-2 small to 70 B and their slices under tensor parallelism.
_WIDTHS = (768, 1024, 1600, 2048, 2560, 4096, 5120, 8192)
_TOKENS = (512, 2048, 4096, 8192, 16384)
_HALVES = ("bfloat16", "float16")


def _case(family, op, **sizes):
    return {"family": family, "op": op, **sizes}


def gemms():
    """Products of transformer layers: forward, gradient of the input, gradient of the weight."""
    for dtype, tokens, width in product(("bfloat16", "float16", "float32"), _TOKENS, _WIDTHS):
        if dtype == "float32" and (tokens > 4096 or width > 4096):
            continue
        for out, inner in ((3 * width, width), (width, width), (4 * width, width), (width, 4 * width)):
            layouts = ("TN", "NN", "NT") if dtype == "bfloat16" else ("TN",)
            for layout in layouts:
                m, n, k = {
                    "TN": (tokens, out, inner),
                    "NN": (tokens, inner, out),
                    "NT": (out, inner, tokens),
                }[layout]
                yield _case("gemm", "mm", dtype=dtype, m=m, n=n, k=k, batch=1, layout=layout)
    for width, vocabulary in product((1024, 4096), (32000, 50304, 128256)):
        yield _case("gemm", "mm", dtype="bfloat16", m=4096, n=vocabulary, k=width, batch=1, layout="TN")
    for dtype, batch, length, head in product(_HALVES, (16, 64, 256), (512, 1024, 2048), (64, 128)):
        yield _case("gemm", "bmm", dtype=dtype, m=length, n=length, k=head, batch=batch, layout="TN")
        yield _case("gemm", "bmm", dtype=dtype, m=length, n=head, k=length, batch=batch, layout="NN")


def attentions():
    """Fused attention, forward and backward."""
    for dtype, length, head, heads, causal in product(
        _HALVES, (512, 1024, 2048, 4096, 8192), (64, 128), (8, 16, 32), (1, 0)
    ):
        tokens = 16384 if length < 8192 else 8192
        yield _case(
            "attention",
            "sdpa",
            dtype=dtype,
            batch=max(1, tokens // length // (heads // 8)),
            heads=heads,
            kv_heads=heads,
            seq=length,
            head_dim=head,
            causal=causal,
        )
    for length, heads, groups in product((1024, 2048, 4096), (16, 32), (4, 8)):
        yield _case(
            "attention",
            "sdpa",
            dtype="bfloat16",
            batch=max(1, 8192 // length),
            heads=heads,
            kv_heads=heads // groups,
            seq=length,
            head_dim=128,
            causal=1,
        )


def pointwise():
    """Norms, softmax, losses, activations, other passes over memory, embeddings; with their gradients."""
    rows_cols = [(t, w) for t in _TOKENS for w in (1024, 2048, 4096, 8192)]
    for (rows, cols), dtype in product(rows_cols, ("bfloat16", "float32")):
        for op in ("layer_norm", "rms_norm", "gelu", "silu", "add", "mul", "dropout", "silu_mul", "cast"):
            yield _case("pointwise", op, dtype=dtype, rows=rows, cols=cols)
    for dtype, batch_heads, length in product(("bfloat16", "float16"), (16, 64, 128), (512, 1024, 2048)):
        yield _case("pointwise", "softmax", dtype=dtype, rows=batch_heads * length, cols=length)
    for dtype, tokens, classes in product(
        ("bfloat16", "float32"), (1024, 4096, 8192), (1000, 32000, 50304, 128256)
    ):
        if tokens * classes <= 1 << 29:
            yield _case("pointwise", "cross_entropy", dtype=dtype, rows=tokens, cols=classes)
    for tokens, width in product((2048, 8192, 16384), (1024, 4096)):
        yield _case("pointwise", "embedding", dtype="bfloat16", rows=tokens, cols=width)


def convolutions():
    """Convolutions of image models, forward and both gradients."""
    stages = (
        (3, 64, 224, 7, 2), (64, 64, 56, 1, 1), (64, 64, 56, 3, 1), (64, 256, 56, 1, 1), (256, 128, 56, 1, 1),
        (128, 128, 56, 3, 2), (128, 128, 28, 3, 1), (128, 512, 28, 1, 1), (256, 256, 28, 3, 2),
        (256, 256, 14, 3, 1), (256, 1024, 14, 1, 1), (512, 512, 14, 3, 2), (512, 512, 7, 3, 1),
        (512, 2048, 7, 1, 1), (320, 320, 64, 3, 1), (640, 640, 32, 3, 1), (1280, 1280, 16, 3, 1),
    )  # fmt: skip
    for (inner, outer, size, kernel, stride), batch, dtype, layout in product(
        stages, (16, 64, 128), ("bfloat16", "float16", "float32"), ("NCHW", "NHWC")
    ):
        if (size == 64 and batch > 16) or (dtype == "float16" and layout == "NCHW"):
            continue
        yield _case(
            "convolution",
            "conv2d",
            dtype=dtype,
            batch=batch,
            in_channels=inner,
            out_channels=outer,
            size=size,
            kernel=kernel,
            stride=stride,
            layout=layout,
        )


def optimizers():
    """Parameter updates over lists of tensors, fused and foreach, and the norm of gradients."""
    for width, layers, op in product((1024, 2048, 4096), (2, 6), ("adam_fused", "adam_foreach", "clip")):
        yield _case("optimizer", op, dtype="float32", width=width, layers=layers)


FAMILIES = {
    "gemm": gemms,
    "attention": attentions,
    "pointwise": pointwise,
    "convolution": convolutions,
    "optimizer": optimizers,
}

# Cases of one profiler session: one trace, one unit of resuming.
CHUNK = 40


def chunks(families=tuple(FAMILIES), small=False):
    """All cases in chunks `(name, cases)`, the families in turn. `small`: few tiny ones, to try the code."""
    lists = {}
    for family in families:
        cases = _spread(list(FAMILIES[family]()))
        if small:
            cases = [_shrunk(case) for case in cases[:: max(1, len(cases) // 4)]]
        parts = [cases[at : at + CHUNK] for at in range(0, len(cases), CHUNK)]
        lists[family] = [(f"{family}-{number:02}", part) for number, part in enumerate(parts)]
    longest = max(map(len, lists.values()))
    return [parts[at] for at in range(longest) for parts in lists.values() if at < len(parts)]


def _spread(cases):
    """The cases in an order in which any beginning covers all sizes: every 7th, then those after them."""
    return [case for first in range(7) for case in cases[first::7]]


_SIZES = (
    "m",
    "n",
    "k",
    "batch",
    "heads",
    "kv_heads",
    "seq",
    "rows",
    "cols",
    "in_channels",
    "out_channels",
    "size",
    "width",
)


def _shrunk(case):
    return {key: (max(1, min(value, 16)) if key in _SIZES else value) for key, value in case.items()}
