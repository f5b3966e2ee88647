"""A transformer layer as NPU kernels, tensor-parallel over the devices of a cluster.

trompe npu job examples/npu/layer.py --set ranks=8 --out layer.trace
trompe simulate layer.trace --cluster atlas-800t-a2 --out layer

Each device holds heads / ranks of the attention heads and ffn / ranks of the hidden units; what they make is
summed by two all-reduces. Everything between kernels is f16. `layers` layers make a step.
"""

from attention import attention
from matmul import matmul
from residual import residual
from rms_norm import rms_norm
from swiglu import swiglu
from trompe.npu import Job, f16, main

HEAD = 128


def kernels(tokens, hidden, heads, ffn, *, cores=20):
    """Name, program and kind of work of each kernel of a device with `heads` heads and `ffn` hidden units."""
    width = heads * HEAD

    def product(n, depth):
        return matmul(tokens, n, depth, result=f16, cores=cores)

    tile = min(8192, tokens * hidden // (2 * cores) // 128 * 128)
    while tokens * hidden % tile:
        tile -= 128
    return [
        ("norm", rms_norm(tokens, hidden, min(16, 8192 // hidden), cores=cores), "normalization"),
        ("qkv", product(3 * width, hidden), "gemm"),
        ("attention", attention(tokens, heads, cores=cores), "attention"),
        ("projection", product(hidden, width), "gemm"),
        ("residual", residual(tokens * hidden, tile, cores=cores), "elementwise"),
        ("up", product(2 * ffn, hidden), "gemm"),
        ("swiglu", swiglu(tokens, ffn, min(16, 8192 // ffn), cores=cores), "elementwise"),
        ("down", product(hidden, ffn), "gemm"),
    ]


def layer(ranks=8, tokens=1024, hidden=1024, heads=8, ffn=4096, *, layers=4, steps=3):  # noqa: PLR0913
    job = Job("transformer layers", ranks, steps=steps, tokens=tokens // ranks)
    group = job.group("tensor parallel", ranks)
    for name, program, does in kernels(tokens, hidden, heads // ranks, ffn // ranks):
        job.kernel(name, program, does)
    activations = tokens * hidden * 2
    for at in range(layers):
        for block in (("norm", "qkv", "attention", "projection"), ("norm", "up", "swiglu", "down")):
            name = f"layers.{at}.{'attention' if 'qkv' in block else 'mlp'}"
            for kernel in block:
                job.run(kernel, operator=f"{name}.{kernel}")
            job.all_reduce(group, activations, f16, operator=f"{name}.sum")
            job.run("residual", operator=f"{name}.residual")
    job.synchronize()
    weights = hidden * (4 * heads * HEAD + 3 * ffn) // ranks + 2 * hidden
    job.memory("weights", layers * weights * 2)
    job.memory("activations", 4 * activations + tokens * (3 * heads * HEAD + 3 * ffn) // ranks * 2)
    return job


if __name__ == "__main__":
    main(layer)
