"""`megatron_gpt.py` over TransformerEngine's own layers, as recent Megatron-LM and NeMo train.

TransformerEngine is the real one. Stand-ins (`megatron_lm/fused.py`) take the place of Apex's accumulating
product and of the activations that PyTorch's compiler fuses. Takes the same arguments and

    --cublas-workspace TEXT   CUBLAS_WORKSPACE_CONFIG of the job
    --keep-workspaces N       N workspaces of cuBLAS that stay allocated, as in older PyTorch
    --flash-layout            attention over batches of rows, as TransformerEngine calls FlashAttention
"""

import argparse
import functools
import importlib
import inspect
import os
import sys

from megatron_lm import fused


def flash_layout():
    """Attention over copies with the batch first, its result copied back: both stay for the backward pass."""
    attention = importlib.import_module("transformer_engine.pytorch").DotProductAttention
    forward = attention.forward

    def turned(self, query, key, value, *others, qkv_format=None, **named):
        rows = [x.transpose(0, 1).contiguous() for x in (query, key, value)]
        result = forward(self, *rows, *others, qkv_format="bshd", **named)
        return result.transpose(0, 1).contiguous()

    attention.forward = turned


def loss_over_logits():
    """The gradient of the loss written over the logits, as TransformerEngine before 2.20 did."""
    module = importlib.import_module("transformer_engine.pytorch.cross_entropy")
    if "overwrite_input" in inspect.signature(module.parallel_cross_entropy).parameters:
        module.parallel_cross_entropy = functools.partial(module.parallel_cross_entropy, overwrite_input=True)


def main():
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--cublas-workspace")
    parser.add_argument("--keep-workspaces", type=int, default=0)
    parser.add_argument("--flash-layout", action="store_true")
    own, others = parser.parse_known_args()
    sys.argv[1:] = ["--transformer-impl", "transformer_engine", *others]
    if own.cublas_workspace:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = own.cublas_workspace
    loss_over_logits()
    fused.accumulated_products()
    fused.single_kernels()
    if own.flash_layout:
        flash_layout()
    kept = fused.workspaces(own.keep_workspaces, own.cublas_workspace, 0)
    importlib.import_module("megatron_gpt").main()
    del kept


if __name__ == "__main__":
    main()
