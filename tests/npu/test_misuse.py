"""Bad input: one clear error each, with exit code 2."""

import json
import tempfile
from pathlib import Path

import numpy as np
from harness import EXAMPLES, Case, rust, trompe
from trompe.npu import Kernel


class Misuse(Case):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.program = json.loads(rust("vector_add").read_text())

    def refused(self, text, *parts, command="run", options=()):
        """A program (text or JSON value) is refused with one line that has all the parts."""
        path = self.folder / "program.json"
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        self.refused_path(path, *parts, command=command, options=options)

    def refused_path(self, path, *parts, command="run", options=()):
        said = trompe("npu", command, path, *options, code=2)
        for part in parts:
            self.assertIn(part, said)
        lines = [line for line in said.splitlines() if line.strip()]
        self.assertEqual(len(lines), 1, said)
        self.assertTrue(lines[0].startswith("error: "), said)

    def test_files(self):
        text = json.dumps(self.program)
        self.refused(text[: len(text) // 2], "is not valid", "EOF while parsing")
        self.refused(self.program | {"version": 7}, "version 7, this build reads version 1")
        self.refused(self.program | {"format": "other"}, "`format` is `other`")
        self.refused_path(self.folder / "none.json", "cannot read", "No such file")
        self.refused_path(self.folder / "none.py", "there is no such file")
        (self.folder / "wrong.py").write_text("raise ValueError('no kernel here')")
        self.refused_path(self.folder / "wrong.py", "wrong.py` failed: ValueError: no kernel here")
        (self.folder / "silent.py").write_text("")
        self.refused_path(self.folder / "silent.py", "wrote no file", "trompe.npu.main")

    def test_places_are_named(self):
        self.program["tensors"][0]["dtype"] = "f33"
        self.refused(self.program, "tensors[0].dtype: unknown variant `f33`", command="validate")

    def test_instructions_and_operands_are_named(self):
        instructions = self.program["lanes"][0]["instructions"]
        (at,) = (index for index, each in enumerate(instructions) if each["op"] == "add")
        instructions[at]["args"]["src1"] = "nowhere"
        message = "`add`, operand `src1`: there is no tensor or view `nowhere`"
        self.refused(self.program, message, command="validate")
        instructions[at]["op"] = "fly"
        self.refused(self.program, "`fly`: no such instruction", command="validate")

    def test_devices_and_profiles(self):
        self.refused(self.program, "no device is called `h100`", options=("--device", "h100"))
        self.refused(self.program, "no profile is called `fast`", options=("--profile", "fast"))
        (self.folder / "mine.toml").write_text("name = 1")
        mine = ("--profile", self.folder / "mine.toml")
        self.refused(self.program, "mine.toml` is not valid", options=mine)

    def test_inputs(self):
        def given(**arrays):
            for name, array in arrays.items():
                np.save(self.folder / f"{name}.npy", array)
            return [part for name in arrays for part in ("--in", f"{name}={self.folder}/{name}.npy")]

        good = np.zeros(10_001, "f4")
        self.refused(self.program, "input `y`: is missing", options=given(x=good))
        wrong = given(x=good.astype("f2"), y=good)
        self.refused(self.program, "has f16 elements, the program wants f32", options=wrong)
        wrong = given(x=good[:5], y=good)
        self.refused(self.program, "has shape [5], the program wants [10001]", options=wrong)
        wrong = given(x=good, y=good, w=good)
        self.refused(self.program, "input `w`: the program has no such input", options=wrong)
        wrong = given(x=good.astype("f8"), y=good)
        self.refused(self.program, "tensor `x`: has elements of type", options=wrong)
        (self.folder / "x.npy").write_bytes(b"no array")
        wrong = ["--in", f"x={self.folder}/x.npy"]
        self.refused(self.program, "tensor `x`: is no .npy file", options=wrong)

    def test_a_loop_that_never_ends(self):
        k = Kernel("endless")
        with k.vec0(), k.range(10**12):
            k.noop(pipe="V")
        options = ("--timing-only", "--budget", "10000")
        self.refused(
            k.build().to_json(), "more than 10000 instructions ran; raise the budget", options=options
        )

    def test_a_program_larger_than_memory(self):
        k = Kernel("large")
        k.local("all", "ub", "f32", 1024, 128)
        with k.vec0():
            k.noop(pipe="V")
        self.refused(k.build().to_json(), "tensor `all` exceeds ub: 524288 bytes at 0 of 262144")
        self.program["tensors"][0]["shape"] = [1 << 16, 1 << 19]
        self.refused(self.program, "global memory is 137439", "run it timing-only")

    def test_jobs(self):
        said = trompe("npu", "job", EXAMPLES / "layer.py", "--set", "ranks=3", code=2)
        self.assertIn("error: ", said)
        job = {"format": "trompe-npu-job", "version": 1, "name": "x", "ranks": 2, "kernels": {}, "step": []}
        path = self.folder / "job.json"
        path.write_text(json.dumps(job))
        said = trompe("npu", "job", path, code=2)
        self.assertIn("`step` has no kernel and no collective", said)
        said = trompe("run", "--cluster", "atlas-800t-a2", "--", "python3", "-c", "pass", code=2)
        self.assertIn("`ascend-910b3` is an NPU and runs no CUDA program", said)
