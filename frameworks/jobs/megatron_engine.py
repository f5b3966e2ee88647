"""`megatron_gpt.py` over TransformerEngine's own layers, as recent Megatron-LM and NeMo train.

TransformerEngine is the real one. Stand-ins (`megatron_lm/fused.py`) take the place of Apex's accumulating
product and of the activations that PyTorch's compiler fuses. Takes the same arguments.
"""

import importlib
import sys

from megatron_lm import fused


def main():
    sys.argv[1:] = ["--transformer-impl", "transformer_engine", *sys.argv[1:]]
    fused.accumulated_products()
    fused.single_kernels()
    importlib.import_module("megatron_gpt").main()


if __name__ == "__main__":
    main()
