"""Python side of trompe. `trompe.npu` writes NPU kernels."""
