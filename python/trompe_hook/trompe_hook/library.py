"""The preloaded library as Python sees it.

The library is found by symbol in the running process, never by path. `find`
returns `None` in a process that was started without it; the caller then does
nothing.
"""

import ctypes
import sys

ABI_VERSION = 3

# Kinds of `Library.marker`.
INSTANT, PUSH, POP = 0, 1, 2


class Library:
    """The C functions that the Python side calls."""

    def __init__(self, symbols):
        self._meta = symbols.trompe_meta
        self._meta.restype = None
        self._meta.argtypes = [ctypes.c_char_p, ctypes.c_uint32] * 2
        self._marker = symbols.trompe_marker
        self._marker.restype = None
        self._marker.argtypes = [ctypes.c_uint8, ctypes.c_char_p, ctypes.c_uint32]
        self._recording = symbols.trompe_recording
        self._recording.restype = ctypes.c_int
        self._place_id = symbols.trompe_place_id
        self._place_id.restype = ctypes.c_uint32
        self._place_id.argtypes = [ctypes.c_char_p, ctypes.c_uint32]
        self.place = symbols.trompe_place
        self.place.restype = None
        self.place.argtypes = [ctypes.c_uint32]
        self.ticks = symbols.trompe_ticks
        self.ticks.restype = ctypes.c_uint64
        self.give = symbols.trompe_give
        self.give.restype = None
        self.give.argtypes = [ctypes.c_uint64]
        self.take = symbols.trompe_take
        self.take.restype = None
        self.take.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
        self._prepare_ranks = symbols.trompe_prepare_ranks
        self._prepare_ranks.restype = ctypes.c_int
        self._begin_rank = symbols.trompe_begin_rank
        self._begin_rank.restype = None

    def recording(self):
        """Whether records are being taken now."""
        return self._recording() != 0

    def place_id(self, text):
        """The number of a place in the program, for `place`; zero when nothing is recorded."""
        text = text.encode(errors="surrogateescape")
        return self._place_id(text, len(text))

    def prepare_ranks(self):
        """Prepares this process for being forked into ranks; not 0 when that cannot be done."""
        return self._prepare_ranks()

    def begin_rank(self):
        """Begins anew in a forked rank whose environment has been set."""
        self._begin_rank()

    def meta(self, key, value):
        """Records one fact about this process; both are text."""
        key = key.encode()
        value = value.encode(errors="surrogateescape")
        self._meta(key, len(key), value, len(value))

    def marker(self, kind, text=""):
        """Records a mark of the script (an NVTX range or instant)."""
        text = text.encode(errors="surrogateescape")
        self._marker(kind, text, len(text))


def find():
    """The preloaded library, or `None` when this process runs without it."""
    symbols = ctypes.CDLL(None)
    try:
        version = symbols.trompe_abi_version
    except AttributeError:
        return None
    version.restype = ctypes.c_uint32
    found = version()
    if found != ABI_VERSION:
        note(
            f"the preloaded library speaks interface version {found}, the Python hook {ABI_VERSION}; "
            "operator names and shapes are not recorded. Install both from one release."
        )
        return None
    return Library(symbols)


def note(text):
    """One line of our own on stderr."""
    print(f"trompe: {text}", file=sys.stderr, flush=True)
