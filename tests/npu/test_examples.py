"""The examples in Python against PyTorch on the CPU, alone and as a whole transformer layer."""

import json
import tempfile
from pathlib import Path

import torch
from attention import attention
from chain import chain
from harness import DEVICES, EXAMPLES, Case, noise, run, trompe
from layer import HEAD, kernels
from matmul import matmul
from rms_norm import rms_norm
from softmax import softmax
from swiglu import swiglu
from torch.nn import functional

HALF = torch.float16


def norm(x, gain):
    return functional.rms_norm(x.double(), (x.shape[-1],), gain.double().flatten(), 1e-5)


def attend(qkv, heads):
    q, k, v = qkv.double().reshape(qkv.shape[0], 3, heads, HEAD).permute(1, 2, 0, 3)
    return functional.scaled_dot_product_attention(q, k, v).permute(1, 0, 2).reshape(qkv.shape[0], -1)


def gated(x):
    gate, up = x.double().chunk(2, dim=-1)
    return functional.silu(gate) * up


class Examples(Case):
    def check(self, program, inputs, expect, tolerance):
        for device in DEVICES:
            with self.subTest(device=device):
                (found,) = run(program, inputs, device).values()
                self.close(found, expect, tolerance)

    def test_vector_add(self):
        x, y = noise(10_000, seed=1), noise(10_000, seed=2)
        self.check(EXAMPLES / "vector_add.py", {"x": x, "y": y}, x + y, 0.0)

    def test_softmax(self):
        x = noise(128, 64, seed=3)
        # Registers of 256 bytes: the micro program is one of the 950 family, and runs on any device here.
        self.check(softmax(128, 32), {"x": x}, x.double().softmax(-1), 1e-6)

    def test_matmul(self):
        a, b = noise(256, 384, seed=4, dtype=HALF), noise(128, 384, seed=5, dtype=HALF)
        self.check(matmul(256, 128, 384, cores=2), {"a": a, "b": b}, a.double() @ b.double().T, 2e-5)

    def test_collective_of_cubes(self):
        a, b, e = (noise(rows, 256, seed=rows, dtype=HALF, scale=0.1) for rows in (512, 256, 384))
        c = (a.double() @ b.double().T).half()
        program = chain(512, 256, 256, 384, cores=4)
        self.check(program, {"a": a, "b": b, "e": e}, c.double() @ e.double().T, 2e-3)

    def test_rms_norm(self):
        x, gain = noise(64, 512, seed=6, dtype=HALF), noise(1, 512, seed=7)
        self.check(rms_norm(64, 512, cores=2), {"x": x, "gain": gain}, norm(x, gain), 1e-3)

    def test_swiglu(self):
        x = noise(64, 1024, seed=8, dtype=HALF)
        self.check(swiglu(64, 512, cores=2), {"x": x}, gated(x), 1e-3)

    def test_attention(self):
        qkv = noise(384, 3 * 2 * HEAD, seed=9, dtype=HALF)
        self.check(attention(384, 2, cores=3), {"qkv": qkv}, attend(qkv, 2), 1e-3)

    def test_a_layer_on_two_devices(self):
        """Every kernel of the layer, rank by rank; the all-reduces are sums here."""
        tokens, hidden, heads, ffn, ranks = 128, 256, 2, 512, 2
        x = noise(tokens, hidden, seed=10, dtype=HALF)
        gain = noise(1, hidden, seed=11) * 0.1 + 1
        qkv = noise(3, heads * HEAD, hidden, seed=12, dtype=HALF, scale=0.05)
        out = noise(hidden, heads * HEAD, seed=13, dtype=HALF, scale=0.05)
        up, down = (
            noise(2, ffn, hidden, seed=14, dtype=HALF, scale=0.05),
            noise(hidden, ffn, seed=15, scale=0.05),
        )
        down = down.half()
        programs = {name: program for name, program, _ in kernels(tokens, hidden, 1, ffn // ranks, cores=2)}

        def call(name, **inputs):
            (found,) = run(programs[name], inputs, "ascend-910b").values()
            return found

        def part(weight, rank, dim):
            return weight.chunk(ranks, dim)[rank]

        def block(state, device_part):
            near = call("norm", x=state, gain=gain)
            total = sum(device_part(near, rank).float() for rank in range(ranks)).half()
            return call("residual", x=state.flatten(), y=total.flatten()).reshape(tokens, hidden)

        def attention_part(near, rank):
            weight = part(qkv, rank, 1).reshape(-1, hidden)
            packed = call("qkv", a=near, b=weight)
            return call("projection", a=call("attention", qkv=packed), b=part(out, rank, 1))

        def mlp_part(near, rank):
            wide = call("up", a=near, b=part(up, rank, 1).reshape(-1, hidden))
            return call("down", a=call("swiglu", x=wide), b=part(down, rank, 1))

        found = block(block(x, attention_part), mlp_part)

        near = norm(x, gain)
        packed = near @ qkv.double().reshape(-1, hidden).T
        state = x.double() + attend(packed, heads) @ out.double().T
        wide = norm(state, gain) @ up.double().reshape(-1, hidden).T
        self.close(found, state + gated(wide) @ down.double().T, 4e-3)


class Job(Case):
    def test_a_layer_on_a_cluster(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            trace, out = folder / "layer.trace", folder / "out"
            said = trompe("npu", "job", EXAMPLES / "layer.py", "--set", "layers=2", "--out", trace)
            self.assertIn("8 ranks, 8 kernels", said)
            trompe("simulate", trace, "--cluster", "atlas-800t-a2", "--out", out)
            report = json.loads((out / "report.json").read_text())
            self.assertEqual(report["verdict"]["status"], "fits")
            self.assertEqual(report["world_size"], 8)
            names = {kernel["name"]: kernel["count"] for kernel in report["kernels"]}
            self.assertEqual(names["attention"], 2)
            self.assertEqual(names["norm"], 4)
            kinds = {part["kind"] for part in report["breakdown"]}
            self.assertLessEqual({"gemm", "attention", "norm", "elementwise", "communication"}, kinds)
            self.assertTrue((out / "report.html").stat().st_size > 10_000)
            for kernel in report["kernels"]:
                self.assertEqual(kernel["method"], "simulated")
                self.assertIn("simulated on ascend-910b with profile calibrated", kernel["note"])
                self.assertLess(kernel["low"], kernel["seconds"])
                self.assertLess(kernel["seconds"], kernel["high"])
            again = folder / "again"
            trompe("simulate", trace, "--npu-profile", "reference", "--out", again)
            other = json.loads((again / "report.json").read_text())
            self.assertNotEqual(other["step_time"]["seconds"], report["step_time"]["seconds"])
            said = trompe("simulate", trace, "--cluster", "dgx-h100", code=2)
            self.assertIn("`h100-sxm5-80` is none", said)

    def test_a_pipeline_on_a_cluster(self):
        """Four stages of two ranks: every stage works on each micro-batch after the one before it."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            trace = folder / "pipeline.trace"

            def step(batches):
                options = ("stages=4", "width=2", "layers=4", f"batches={batches}")
                values = [part for option in options for part in ("--set", option)]
                said = trompe("npu", "job", EXAMPLES / "pipeline.py", *values, "--out", trace)
                self.assertIn("8 ranks, 8 kernels", said)
                trompe("simulate", trace, "--cluster", "atlas-800t-a2", "--out", folder / "out")
                report = json.loads((folder / "out" / "report.json").read_text())
                self.assertEqual(report["verdict"]["status"], "fits")
                operations = {group["operation"] for group in report["communication"]["groups"]}
                self.assertLessEqual({"send", "receive"}, operations)
                return report["step_time"]["seconds"]

            one, two, four = step(1), step(2), step(4)
            # Filling and draining costs the same; a further micro-batch adds what the slowest stage takes.
            self.assertLess(two, 2 * one)
            self.assertAlmostEqual((four - two) / 2, two - one, delta=0.02 * (two - one))
