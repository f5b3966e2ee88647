#!/usr/bin/env python3
"""Runs the NPU tests against PyTorch on the CPU.

    python tests/npu/run.py --trompe target/release/trompe --kernels FOLDER [NAME…]

`FOLDER` has the programs of `cargo run -p trompe-npu --example kernels -- FOLDER`. PyTorch's CUDA build loads
NVIDIA's libraries when it is imported; the ones beside `trompe` stand in for them here as in a job.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trompe", type=Path, required=True)
    parser.add_argument("--kernels", type=Path, required=True)
    parser.add_argument("names", nargs="*", help="tests, as unittest names them (all when not given)")
    arguments = parser.parse_args()
    trompe = arguments.trompe.resolve()
    environment = os.environ | {
        "TROMPE": str(trompe),
        "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("python", "examples/npu")),
        "NPU_KERNELS": str(arguments.kernels.resolve()),
        "LD_LIBRARY_PATH": os.pathsep.join(
            filter(None, [str(trompe.parent / "trompe-lib"), os.environ.get("LD_LIBRARY_PATH")])
        ),
    }
    what = arguments.names or ["discover", "-s", "."]
    command = [sys.executable, "-B", "-m", "unittest", *what]
    return subprocess.run(command, cwd=HERE, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
