"""Notes which line of the program communicates.

When the ranks of a job disagree about a collective, a person has to find the two lines.
The methods of process groups, through which all of PyTorch's Python communicates, tell
the preloaded library the nearest line outside of PyTorch: an integer around the call,
about a microsecond. What C++ starts by itself (the buckets of DDP in a backward pass)
has no line.
"""

import functools
import os
import sys

_METHODS = (
    "_allgather_base",
    "_end_coalescing",
    "_reduce_scatter_base",
    "allgather",
    "allgather_coalesced",
    "allgather_into_tensor_coalesced",
    "allreduce",
    "allreduce_coalesced",
    "alltoall",
    "alltoall_base",
    "barrier",
    "broadcast",
    "gather",
    "recv",
    "recv_anysource",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor_coalesced",
    "scatter",
    "send",
)


def watch(target):
    """Starts telling places."""
    try:
        from torch._C._distributed_c10d import ProcessGroup
    except ImportError:  # a build without distributed support
        return
    if not target.recording():
        return
    nearest = _Nearest(target)
    for name in _METHODS:
        original = vars(ProcessGroup).get(name)
        if original is not None:
            setattr(ProcessGroup, name, _telling(original, target.place, nearest))


def _telling(original, place, nearest):
    @functools.wraps(original)
    def method(self, *arguments, **options):
        place(nearest(sys._getframe(1)))
        try:
            return original(self, *arguments, **options)
        finally:
            place(0)

    return method


class _Nearest:
    """The number of the nearest line outside of PyTorch."""

    def __init__(self, target):
        import torch

        self._target = target
        self._inside = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(__file__) + os.sep)
        self._known = {}

    def __call__(self, frame):
        while frame is not None and frame.f_code.co_filename.startswith(self._inside):
            frame = frame.f_back
        if frame is None:
            return 0
        key = (frame.f_code, frame.f_lineno)
        number = self._known.get(key)
        if number is None:
            file = os.path.relpath(frame.f_code.co_filename)
            file = file if not file.startswith("..") else frame.f_code.co_filename
            number = self._known[key] = self._target.place_id(f"{file}:{frame.f_lineno}")
        return number
