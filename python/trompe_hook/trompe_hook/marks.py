"""Hands over the marks that a script makes with `torch.cuda.nvtx`.

PyTorch's binding ends in header-only NVTX, which without a tool attached does
nothing, so the three functions of the binding are wrapped: the original is still
called and its value returned.
"""

from . import library


def watch(torch, target):
    """Starts handing over NVTX ranges and instants."""
    binding = getattr(torch._C, "_nvtx", None)
    if binding is None:
        return

    push, pop, mark = binding.rangePushA, binding.rangePop, binding.markA

    def range_push(text):
        target.marker(library.PUSH, text)
        return push(text)

    def range_pop():
        target.marker(library.POP)
        return pop()

    def instant(text):
        target.marker(library.INSTANT, text)
        return mark(text)

    binding.rangePushA = range_push
    binding.rangePop = range_pop
    binding.markA = instant
