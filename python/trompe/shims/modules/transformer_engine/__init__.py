"""TransformerEngine's modules in the type of their parameters, also where it would compute in fp8."""

from trompe.shims.missing import attribute_of

from . import common, pytorch

__all__ = ["common", "pytorch"]
__version__ = "2.8.0"
__getattr__ = attribute_of("transformer_engine")
