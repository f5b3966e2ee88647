"""Calls an operation of `amp_C` on lists of tensors."""


class MultiTensorApply:
    """As Apex has it: an object that is called."""

    available = True

    def __init__(self, chunk_size=2048 * 32):
        self.chunk_size = chunk_size

    def __call__(self, op, noop_flag_buffer, tensor_lists, *args):
        return op(self.chunk_size, noop_flag_buffer, tensor_lists, *args)


multi_tensor_applier = MultiTensorApply()
