"""`megatron_gpt.py` over TransformerEngine's own layers, as recent Megatron-LM and NeMo train.

TransformerEngine is the real one. Stand-ins (`megatron_lm/fused.py`) take the place of Apex's accumulating
product and of the activations that PyTorch's compiler fuses. Takes the same arguments and

    --environment NAME=VALUE ...   variables of the job, for example those that choose its attention kernel
    --cublas-workspace TEXT        CUBLAS_WORKSPACE_CONFIG of the job
    --keep-workspaces N            N workspaces of cuBLAS that stay allocated, as in older PyTorch
"""

import argparse
import importlib
import os
import sys

from megatron_lm import fused


def main():
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--environment", nargs="*", default=[])
    parser.add_argument("--cublas-workspace")
    parser.add_argument("--keep-workspaces", type=int, default=0)
    own, others = parser.parse_known_args()
    sys.argv[1:] = ["--transformer-impl", "transformer_engine", *others]
    os.environ.update(pair.split("=", 1) for pair in own.environment)
    if own.cublas_workspace:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = own.cublas_workspace
    fused.accumulated_products()
    fused.single_kernels()
    kept = fused.workspaces(own.keep_workspaces, own.cublas_workspace, 0)
    importlib.import_module("megatron_gpt").main()
    del kept


if __name__ == "__main__":
    main()
