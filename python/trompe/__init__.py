"""Python side of trompe. `gate` says how a job's experts are chosen; `trompe.npu` writes NPU kernels."""

from .routing import gate

__all__ = ["gate"]
