"""Write NPU kernels in Python and save them as program files for `trompe npu run`.

A kernel is a function that gets a `Kernel` and calls instructions; calling it records them:

    @kernel
    def double(k, rows):
        x, y = k.input("x", f32, rows, 64), k.output("y", f32, rows, 64)
        a, b = k.buffer("a", "ub", f32, 1, 64, slots=2), k.buffer("b", "ub", f32, 1, 64, slots=2)
        with k.vec0(), k.auto_sync(), k.range(rows) as i:
            k.gm_to_ub_pad(a[i], x[i:i + 1, :], 1, 256)
            k.muls(b[i], a[i], 2.0, repeat=1)
            k.ub_to_gm_pad(y[i:i + 1, :], b[i], 1, 256)

    double(rows=8).save("double.json")

Every instruction of `docs/npu/instructions.md` is a method; operands go by position or by name. Variables are
made by arithmetic (`i * 64 + 1`), conditions by comparison. Nothing is checked here but names and counts of
operands: the program's reader checks the rest, and names the line of the kernel.

A `Job` puts kernels and collectives together into what every device of a cluster does; `trompe npu job` makes
a trace of it for `trompe simulate`. `examples/npu/layer.py` is one.
"""

from trompe.npu._builder import Kernel, Program, Var, View, kernel
from trompe.npu._job import Job

f16, bf16, f32, f8e4m3, f8e5m2 = "f16", "bf16", "f32", "f8e4m3", "f8e5m2"
i8, u8, i16, u16, i32, u32, i64, u64 = "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"

__all__ = [
    "Job",
    "Kernel",
    "Program",
    "Var",
    "View",
    "bf16",
    "f8e4m3",
    "f8e5m2",
    "f16",
    "f32",
    "i8",
    "i16",
    "i32",
    "i64",
    "kernel",
    "main",
    "u8",
    "u16",
    "u32",
    "u64",
]


def main(make):
    """Writes a kernel or a job as `trompe npu` asks: `SCRIPT OUT.json NAME=VALUE…` with whole numbers."""
    import sys

    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} OUT.json [NAME=VALUE]…")
    values = dict(part.split("=", 1) for part in sys.argv[2:])
    make(**{name: int(value) for name, value in values.items()}).save(sys.argv[1])
