"""TransformerEngine's modules by PyTorch's operations; products in fp8 under `fp8_autocast`."""

from trompe.shims.missing import attribute_of

from . import common, pytorch

__all__ = ["common", "pytorch"]
__version__ = "2.8.0"
__getattr__ = attribute_of("transformer_engine")
