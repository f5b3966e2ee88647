"""Instructions of the vector unit, one kernel each, against PyTorch."""

import torch
from harness import Case, integers, noise, run
from trompe.npu import Kernel

NAMES = {
    torch.float16: "f16",
    torch.float32: "f32",
    torch.int16: "i16",
    torch.uint16: "u16",
    torch.int32: "i32",
    torch.uint8: "u8",
}
ROWS = 4  # Repeats of an instruction.


def lanes(dtype):
    return 256 // dtype.itemsize


def kernel(write, inputs, output):
    """Loads `inputs`, lets `write(k, locals, out)` work on them and stores `out`, which is (dtype, shape)."""
    k = Kernel("instruction")
    dtype, shape = output
    sources = {name: k.input(name, NAMES[x.dtype], *x.shape) for name, x in inputs.items()}
    near = {name: k.local(f"{name}_ub", "ub", NAMES[x.dtype], *x.shape) for name, x in inputs.items()}
    result, out = k.local("out_ub", "ub", NAMES[dtype], *shape), k.output("out", NAMES[dtype], *shape)
    with k.vec0():
        for name, x in inputs.items():
            k.gm_to_ub_pad(near[name], sources[name], 1, x.numel() * x.element_size())
        if dtype.is_floating_point:
            k.dup(result, 0.0)
        write(k, near, result)
        size = dtype.itemsize
        for length in shape:
            size *= length
        k.ub_to_gm_pad(out, result, 1, size)
    return run(k.build(), inputs)["out"]


class Instructions(Case):
    def check(self, op, expect, inputs, tolerance, **operands):
        x = inputs["a"]
        names = {"a": "src"} if "b" not in inputs else {"a": "src1", "b": "src2"}

        def write(k, near, out):
            sources = {names[name]: view for name, view in near.items()}
            getattr(k, op)(dst=out, **sources, repeat=ROWS, **operands)

        with self.subTest(op, dtype=x.dtype):
            found = kernel(write, inputs, (x.dtype, x.shape))
            if tolerance == 0:
                self.same(found, expect.to(x.dtype))
            else:
                self.close(found, expect, tolerance)

    def test_of_two_tensors(self):
        for dtype, tolerance in ((torch.float32, 1e-6), (torch.float16, 1e-3)):
            a, b = (noise(ROWS, lanes(dtype), seed=seed, dtype=dtype) for seed in (1, 2))
            b = b + torch.where(b >= 0, 0.5, -0.5).to(dtype)
            for op, function in (
                ("add", torch.add),
                ("sub", torch.sub),
                ("mul", torch.mul),
                ("div", torch.div),
                ("vmax", torch.maximum),
                ("vmin", torch.minimum),
            ):
                self.check(op, function(a.double(), b.double()), {"a": a, "b": b}, tolerance)
        a, b = (integers(-32768, 32768, (ROWS, 128), torch.int16, seed) for seed in (3, 4))
        self.check("vand", a & b, {"a": a, "b": b}, 0)
        self.check("vor", a | b, {"a": a, "b": b}, 0)

    def test_of_one_tensor(self):
        for dtype, tolerance in ((torch.float32, 1e-6), (torch.float16, 1e-3)):
            a = noise(ROWS, lanes(dtype), seed=5, dtype=dtype)
            for op, function in (("exp", torch.exp), ("abs", torch.abs), ("relu", torch.relu)):
                self.check(op, function(a.double()), {"a": a}, tolerance)
            a = a.abs() + 0.25
            for op, function in (
                ("ln", torch.log),
                ("rec", torch.reciprocal),
                ("sqrt", torch.sqrt),
                ("rsqrt", torch.rsqrt),
            ):
                self.check(op, function(a.double()), {"a": a}, tolerance)
        a = integers(-32768, 32768, (ROWS, 128), torch.int16, 6)
        self.check("vnot", ~a, {"a": a}, 0)

    def test_with_a_number(self):
        for dtype, tolerance in ((torch.float32, 1e-6), (torch.float16, 1e-3)):
            a = noise(ROWS, lanes(dtype), seed=7, dtype=dtype)
            wide = a.double()
            for op, expect in (
                ("adds", wide + 0.75),
                ("muls", wide * 0.75),
                ("vmaxs", wide.clamp(min=0.75)),
                ("vmins", wide.clamp(max=0.75)),
                ("lrelu", torch.where(wide > 0, wide, wide * 0.75)),
                ("axpy", wide * 0.75),
            ):
                self.check(op, expect, {"a": a}, tolerance, val=0.75)

    def test_reductions(self):
        a = noise(ROWS * 8, 64, seed=8)
        wide, blocks = a.double(), a.double().reshape(-1, 8)
        for op, expect in (
            ("cmax", wide.amax(1)),
            ("cmin", wide.amin(1)),
            ("cadd", wide.sum(1)),
            ("cgmax", blocks.amax(1)),
            ("cgmin", blocks.amin(1)),
            ("cgadd", blocks.sum(1)),
            ("cpadd", wide.reshape(-1, 2).sum(1)),
        ):
            with self.subTest(op):

                def write(k, near, out, op=op):
                    getattr(k, op)(out, near["a"], repeat=ROWS * 8)

                found = kernel(write, {"a": a}, (torch.float32, (1, expect.numel())))
                self.close(found[0], expect, 1e-6)

    def test_casts(self):
        a = noise(ROWS, 64, seed=9, scale=9.0)
        for mode, function in (
            ("CAST_RINT", torch.round),
            ("CAST_FLOOR", torch.floor),
            ("CAST_CEIL", torch.ceil),
            ("CAST_TRUNC", torch.trunc),
        ):
            with self.subTest(mode):
                found = kernel(
                    lambda k, near, out, mode=mode: k.cast(out, near["a"], mode, repeat=ROWS),
                    {"a": a},
                    (torch.int32, (ROWS, 64)),
                )
                self.same(found, function(a).int())
        found = kernel(
            lambda k, near, out: k.cast(out, near["a"], "CAST_RINT", repeat=ROWS, dst_rep_stride=4),
            {"a": a},
            (torch.float16, (ROWS, 64)),
        )
        self.same(found, a.half())

    def test_compare_and_select(self):
        a, b = noise(ROWS, 64, seed=10), noise(ROWS, 64, seed=11)
        for mode, function in (("LT", torch.lt), ("GE", torch.ge), ("EQ", torch.eq), ("NE", torch.ne)):

            def write(k, near, out, mode=mode):
                bits = k.local("bits", "ub", "u8", 1, 32)
                k.compare(bits, near["a"], near["b"], mode, repeat=ROWS)
                k.select(out, bits, near["a"], near["b"], repeat=ROWS)

            with self.subTest(mode):
                found = kernel(write, {"a": a, "b": b}, (torch.float32, (ROWS, 64)))
                self.same(found, torch.where(function(a, b), a, b))

    def test_gather(self):
        a = noise(1, 256, seed=12)
        index = integers(0, 256, (1, 64), torch.int32, 13)

        def write(k, near, out):
            k.gather(out, near["a"], near["offset"], repeat=1)

        found = kernel(write, {"a": a, "offset": index * 4}, (torch.float32, (1, 64)))
        self.same(found[0], a[0][index[0].long()])

    def test_micro_instructions(self):
        a, b = noise(1, 64, seed=14), noise(1, 64, seed=15)
        b = b + torch.where(b >= 0, 0.5, -0.5)
        wide, other = a.double(), b.double()
        for op, operands, expect in (
            ("vadd", "xy", wide + other),
            ("vsub", "xy", wide - other),
            ("vmul", "xy", wide * other),
            ("vdiv", "xy", wide / other),
            ("vmax", "xy", torch.maximum(wide, other)),
            ("vmin", "xy", torch.minimum(wide, other)),
            ("vprelu", "xy", torch.where(wide > 0, wide, wide * other)),
            ("vabs", "x", wide.abs()),
            ("vneg", "x", -wide),
            ("vexp", "x", wide.exp()),
            ("vrelu", "x", wide.relu()),
            ("vadds", "xn", wide + 0.5),
            ("vmuls", "xn", wide * 0.5),
            ("vmaxs", "xn", wide.clamp(min=0.5)),
            ("vmins", "xn", wide.clamp(max=0.5)),
            ("vcadd", "x", wide.sum(1)),
            ("vcmax", "x", wide.amax(1)),
            ("vcmin", "x", wide.amin(1)),
        ):

            def write(k, near, out, op=op, operands=operands):
                with k.micro("one", "a", "b", "out") as (first, second, target):
                    for name in "xyz":
                        k.create_reg(name, "f32")
                    k.ub2reg("x", first)
                    k.ub2reg("y", second)
                    values = [0.5 if name == "n" else name for name in operands]
                    getattr(k, op)("z", *values)
                    k.reg2ub(target, "z")
                k.call_micro("one", [near["a"], near["b"], out])

            with self.subTest(op):
                found = kernel(write, {"a": a, "b": b}, (torch.float32, (1, 64)))
                self.close(found[0][: expect.numel()], expect.flatten(), 1e-6)
