"""`megatron_gpt.py` with stand-ins for fused kernels that are not installed (`megatron_lm/fused.py`).

Takes the same arguments and, for comparisons of memory with older software:

    --cublas-workspace TEXT   CUBLAS_WORKSPACE_CONFIG of the job
    --keep-workspaces N       N workspaces of cuBLAS that stay allocated, as in older PyTorch: one per thread
    --stand-in-engine BYTES   as TransformerEngine: a workspace of so many bytes, no score buffer
    --newer-kernels           and for TransformerEngine's (`megatron_lm/newer.py`)
"""

import argparse
import importlib
import os
import sys

from megatron_lm import fused


def main():
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--cublas-workspace")
    parser.add_argument("--keep-workspaces", type=int, default=0)
    parser.add_argument("--stand-in-engine", type=int, default=0)
    parser.add_argument("--newer-kernels", action="store_true")
    own, others = parser.parse_known_args()
    sys.argv[1:] = [*others, *(["--newer-kernels"] if own.newer_kernels else [])]
    if own.cublas_workspace:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = own.cublas_workspace
    if own.newer_kernels:
        # Megatron-Core asks for it when it is imported.
        fused.accumulated_products()
    fused.install()
    if own.newer_kernels:
        importlib.import_module("megatron_lm.newer").install()
    kept = fused.workspaces(own.keep_workspaces, own.cublas_workspace, own.stand_in_engine)
    importlib.import_module("megatron_gpt").main()
    del kept


if __name__ == "__main__":
    main()
