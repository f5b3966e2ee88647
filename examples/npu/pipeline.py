"""Transformer layers as NPU kernels in pipeline stages, each tensor-parallel; micro-batches go forward.

trompe npu job examples/npu/pipeline.py --set stages=4 --set width=8 --out pipeline.trace
trompe simulate pipeline.trace --cluster atlas-800t-a2:4 --out pipeline

Stage 0 has the first `width` ranks. A stage receives and sends on streams of their own, so it works on the
next micro-batch meanwhile.
"""

from layer import kernels
from trompe.npu import Job, f16, main

BLOCKS = (("norm", "qkv", "attention", "projection"), ("norm", "up", "swiglu", "down"))
COMPUTE, INBOUND, OUTBOUND = 0, 1, 2


def pipeline(stages=4, width=8, tokens=1024, hidden=1024, *, layers=8, batches=8):  # noqa: PLR0913
    heads, ffn = hidden // 128, 4 * hidden
    job = Job("pipeline", stages * width, tokens=batches * tokens // (stages * width))
    group = job.group("tensor parallel", width)
    for name, program, does in kernels(tokens, hidden, heads // width, ffn // width):
        job.kernel(name, program, does)
    activations = tokens * hidden * 2
    for _ in range(stages):
        with job.stage() as stage:
            for batch in range(batches):
                if stage > 0:
                    job.receive(stage - 1, activations, f16, stream=INBOUND, operator=f"receive.{batch}")
                    job.record("here", INBOUND)
                    job.wait("here", COMPUTE)
                for at in range(stage * layers // stages, (stage + 1) * layers // stages):
                    layer(job, group, f"layers.{at}", activations)
                if stage + 1 < stages:
                    job.record("done", COMPUTE)
                    job.wait("done", OUTBOUND)
                    job.send(stage + 1, activations, f16, stream=OUTBOUND, operator=f"send.{batch}")
            job.synchronize()
            job.memory("weights", layers // stages * (hidden * (4 * hidden + 3 * ffn) // width) * 2)
            job.memory("activations", 8 * activations)
    return job


def layer(job, group, name, activations):
    for block in BLOCKS:
        for kernel in block:
            job.run(kernel, operator=f"{name}.{kernel}")
        job.all_reduce(group, activations, f16, operator=f"{name}.sum")
        job.run("residual", operator=f"{name}.residual")


if __name__ == "__main__":
    main(pipeline)
