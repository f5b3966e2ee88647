"""Runs kernels with `trompe npu run` and hands arrays in and out; `run.py` sets the environment."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "npu"
DEVICES = ("ascend-910b", "ascend-950")
TROMPE = os.environ["TROMPE"]
# Programs of the Rust builder, written by `cargo run -p trompe-npu --example kernels`.
KERNELS = Path(os.environ["NPU_KERNELS"])
RAW = {torch.bfloat16: torch.uint16, torch.float8_e4m3fn: torch.uint8, torch.float8_e5m2: torch.uint8}


def trompe(*arguments, code=0):
    """Runs the program; its output."""
    ran = subprocess.run([TROMPE, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert ran.returncode == code, f"{arguments}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout + ran.stderr


def array(tensor):
    """What a `.npy` file holds of a tensor: bfloat16 and 8-bit floats as unsigned integers."""
    raw = RAW.get(tensor.dtype)
    return (tensor.view(raw) if raw else tensor).contiguous().numpy()


def run(program, inputs, device="ascend-950", options=()):
    """Outputs by name of a program (a file or what the Python builder made) on these tensors."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not isinstance(program, Path):
            program.save(folder / "program.json")
            program = folder / "program.json"
        given = []
        for key, tensor in inputs.items():
            np.save(folder / f"in_{key}.npy", array(tensor))
            given += ["--in", f"{key}={folder}/in_{key}.npy"]
        trompe("npu", "run", program, "--device", device, "--out", folder / "out", *given, *options)
        files = sorted((folder / "out").glob("*.npy"))
        return {file.stem: torch.from_numpy(np.load(file)) for file in files}


def rust(name):
    return KERNELS / f"{name}.json"


class Case(unittest.TestCase):
    """A test that compares tensors."""

    def close(self, found, expect, tolerance):
        """`tolerance` is absolute for values below one, relative above."""
        found, expect = found.double(), expect.double()
        self.assertEqual(found.shape, expect.shape)
        error = ((found - expect).abs() / expect.abs().clamp(min=1.0)).max().item()
        self.assertLessEqual(error, tolerance)

    def same(self, found, expect):
        self.assertTrue(torch.equal(found, expect), f"{found}\nis not\n{expect}")


def noise(*shape, seed=0, dtype=torch.float32, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator) * scale).to(dtype)


def integers(low, high, shape, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, high, shape, generator=generator).to(dtype)
