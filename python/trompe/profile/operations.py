"""Cases made runnable: tensors, the calls to time, and the row of a table that the forward call is.

`build(case, device)` gives a list of `(label, call, row)`: `row` is a dictionary in the columns of
docs/estimators.md with its `table`, or None where one time covers several kernels (the traces tell those
apart). Several sets of tensors are used in turn, so that small ones do not stay in the cache as they would
not in a job.
"""

import itertools

import torch
import torch.nn.functional as F

# Bytes that the sets of tensors of one case take together: more than any level-2 cache.
_COLD = 256 << 20
_MOST_SETS = 8


def build(case, device):
    """The calls of a case, each with a label and a row or None."""
    return _BUILDERS[case["family"]](case, device)


def _sets(make, nbytes, device):
    """Sets of tensors in turn, as an endless iterator."""
    count = 1 if device.type == "cpu" else max(1, min(_MOST_SETS, _COLD // max(nbytes, 1)))
    return itertools.cycle([make() for _ in range(count)])


def _random(shape, dtype, device, grad=False):
    tensor = torch.randn(shape, device=device, dtype=torch.float32).to(getattr(torch, dtype))
    return tensor.requires_grad_(grad)


def _size(dtype):
    return getattr(torch, dtype).itemsize


def _gemm(case, device):
    dtype, m, n, k, batch = (case[key] for key in ("dtype", "m", "n", "k", "batch"))

    def make():
        lead = () if case["op"] == "mm" else (batch,)
        a = _random((*lead, k, m) if case["layout"] == "NT" else (*lead, m, k), dtype, device)
        b = _random((*lead, n, k) if case["layout"] == "TN" else (*lead, k, n), dtype, device)
        return (a.mT if case["layout"] == "NT" else a), (b.mT if case["layout"] == "TN" else b)

    sets = _sets(make, batch * (m * k + k * n + m * n) * _size(dtype), device)
    call = torch.mm if case["op"] == "mm" else torch.bmm
    tf32 = dtype == "float32" and torch.backends.cuda.matmul.allow_tf32
    row = {
        "table": "gemm",
        "dtype": "tf32" if tf32 else dtype,
        "m": m,
        "n": n,
        "k": k,
        "batch": batch,
        "layout": case["layout"],
        "direction": {"TN": "fwd", "NN": "dgrad", "NT": "wgrad"}[case["layout"]],
    }
    return [("fwd", lambda: call(*next(sets)), row)]


def _attention(case, device):
    dtype, batch, length, head = (case[key] for key in ("dtype", "batch", "seq", "head_dim"))
    heads, kv_heads, causal = case["heads"], case["kv_heads"], bool(case["causal"])

    def make():
        # Heads beside each other in memory, as projections leave them.
        query = _random((batch, length, heads, head), dtype, device).transpose(1, 2)
        key, value = (_random((batch, length, kv_heads, head), dtype, device).transpose(1, 2) for _ in "kv")
        tensors = [tensor.detach().requires_grad_() for tensor in (query, key, value)]
        result = attend(*tensors)
        return tensors, result, torch.randn_like(result)

    def attend(query, key, value):
        grouped = {"enable_gqa": True} if heads != kv_heads else {}
        return F.scaled_dot_product_attention(query, key, value, is_causal=causal, **grouped)

    sets = _sets(make, 8 * batch * length * heads * head * _size(dtype), device)
    row = {
        "table": "attention",
        "dtype": dtype,
        "batch": batch,
        "heads": heads,
        "kv_heads": kv_heads,
        "seq_q": length,
        "seq_kv": length,
        "head_dim": head,
        "causal": int(causal),
        "direction": "fwd",
        "impl": "flash",
    }

    def backward():
        tensors, result, gradient = next(sets)
        return torch.autograd.grad(result, tensors, gradient, retain_graph=True)

    return [("fwd", lambda: attend(*next(sets)[0]), row), ("bwd", backward, None)]


def _pointwise(case, device):
    op, dtype, rows, cols = case["op"], case["dtype"], case["rows"], case["cols"]
    size, area = _size(dtype), rows * cols
    weight = _random((cols,), dtype, device, grad=True)
    bias = _random((cols,), dtype, device, grad=True)
    forwards = {
        "layer_norm": (lambda x: F.layer_norm(x, (cols,), weight, bias), 2),
        "rms_norm": (lambda x: F.rms_norm(x, (cols,), weight), None),
        "gelu": (F.gelu, 2),
        "silu": (F.silu, 2),
        "add": (lambda x: x + x.detach().flip(0), None),
        "mul": (lambda x: x * 0.5, 2),
        "dropout": (lambda x: F.dropout(x, 0.1), None),
        "silu_mul": (lambda x: F.silu(x[:, : cols // 2]) * x[:, cols // 2 :], None),
        "cast": (lambda x: x.to(torch.float32 if dtype != "float32" else torch.bfloat16), None),
        "softmax": (lambda x: F.softmax(x, -1), 2),
        "cross_entropy": (None, None),
        "embedding": (None, None),
    }
    forward, passes = forwards[op]
    if op == "cross_entropy":
        target = torch.randint(cols, (rows,), device=device)

        def forward(x):
            return F.cross_entropy(x.float(), target)

    if op == "embedding":
        table = _random((50304, cols), dtype, device, grad=True)

        def make():
            return torch.randint(table.shape[0], (rows,), device=device), None, None

        def forward(indices):
            return F.embedding(indices, table)

        def backward():
            indices, _, _ = next(sets)
            result = F.embedding(indices, table)
            return torch.autograd.grad(result, table, result.detach())

        passes = 2
    else:

        def make():
            x = _random((rows, cols), dtype, device, grad=True)
            result = forward(x)
            return x, result, torch.randn_like(result)

        def backward():
            x, result, gradient = next(sets)
            wanted = [x, weight, bias] if op == "layer_norm" else [x]
            return torch.autograd.grad(result, wanted, gradient, retain_graph=True)

    sets = _sets(make, 3 * area * size, device)
    row = None
    if passes is not None:
        row = {
            "table": "pointwise",
            "op": op if op != "mul" else "mul_scalar",
            "dtype": dtype,
            "rows": rows,
            "cols": cols,
            "bytes_moved": passes * area * size,
            "direction": "fwd",
        }
    return [("fwd", lambda: forward(next(sets)[0]), row), ("bwd", backward, None)]


def _convolution(case, device):
    dtype, kernel, stride = case["dtype"], case["kernel"], case["stride"]
    batch, inner, outer, size = (case[key] for key in ("batch", "in_channels", "out_channels", "size"))
    order = torch.channels_last if case["layout"] == "NHWC" else torch.contiguous_format
    padding = kernel // 2

    def make():
        x = _random((batch, inner, size, size), dtype, device).to(memory_format=order).requires_grad_()
        w = _random((outer, inner, kernel, kernel), dtype, device).to(memory_format=order).requires_grad_()
        result = F.conv2d(x, w, stride=stride, padding=padding)
        return (x, w), result, torch.randn_like(result)

    sets = _sets(make, 4 * batch * max(inner, outer) * size * size * _size(dtype), device)
    tf32 = dtype == "float32" and torch.backends.cudnn.allow_tf32
    row = {
        "table": "convolution",
        "dtype": "tf32" if tf32 else dtype,
        "batch": batch,
        "in_channels": inner,
        "out_channels": outer,
        "in_h": size,
        "in_w": size,
        "kernel_h": kernel,
        "kernel_w": kernel,
        "stride_h": stride,
        "stride_w": stride,
        "pad_h": padding,
        "pad_w": padding,
        "layout": case["layout"],
        "direction": "fwd",
    }

    def forward():
        (x, w), _, _ = next(sets)
        return F.conv2d(x, w, stride=stride, padding=padding)

    def backward():
        tensors, result, gradient = next(sets)
        return torch.autograd.grad(result, tensors, gradient, retain_graph=True)

    return [("fwd", forward, row), ("bwd", backward, None)]


def _optimizer(case, device):
    width = case["width"]
    shapes = [(width, width), (3 * width, width), (4 * width, width), (width, 4 * width), (width,), (width,)]
    parameters = [
        torch.nn.Parameter(_random(shape, case["dtype"], device))
        for _ in range(case["layers"])
        for shape in shapes
    ]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    if case["op"] == "clip":
        return [("fwd", lambda: torch.nn.utils.clip_grad_norm_(parameters, 1.0), None)]
    kind = {"fused": True} if case["op"] == "adam_fused" else {"foreach": True}
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, **kind)
    return [("fwd", optimizer.step, None)]


_BUILDERS = {
    "gemm": _gemm,
    "attention": _attention,
    "pointwise": _pointwise,
    "convolution": _convolution,
    "optimizer": _optimizer,
}
