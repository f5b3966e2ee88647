"""What happens once PyTorch has been imported, in order.

1. Facts about the software are recorded (`facts`).
2. The compiled observer is built if need be, loaded, and starts handing over
   operators (`observer`).
3. When PyTorch initialises CUDA, the observer also follows the caching allocator.
4. Marks of the script (NVTX) are handed over (`marks`).
5. At exit, PyTorch's own memory statistics are recorded (`facts`).

Each step stands alone: one that fails is named in a note and the next is done.
"""

import atexit
import os
import time

from . import advice, facts, library, marks, observer


def on_import(torch):
    """Attaches everything to a freshly imported `torch`."""
    if getattr(torch.version, "cuda", None) is None:
        advice.on_torch_without_cuda(torch)
        return
    target = library.find()
    if target is None:
        return
    started = time.perf_counter()

    def attempt(what, action):
        try:
            return action()
        except Exception as error:  # a missing record never stops the user's job
            library.note(f"{what} failed and is left out: {error!r}")
            return None

    attempt("recording the software versions", lambda: facts.at_start(target, torch))
    watcher = attempt("watching operators", lambda: observer.load(target, torch))
    if watcher is not None:
        attempt("watching the allocator", lambda: _follow_allocator(torch, target, watcher))
    attempt("watching marks", lambda: marks.watch(torch, target))
    target.meta("hook.seconds", f"{time.perf_counter() - started:.6f}")

    process = os.getpid()

    def at_exit():
        if os.getpid() == process:  # not in a forked child
            attempt("recording the memory statistics", lambda: facts.at_exit(target, torch))

    atexit.register(at_exit)


def _follow_allocator(torch, target, watcher):
    """Attaches to the allocator right after PyTorch has initialised CUDA.

    The per-device allocators do not exist before, and nothing can be allocated
    on a device before, so no event is lost.
    """
    initialize = torch._C._cuda_init

    def initialize_and_follow():
        initialize()
        watcher.watch_allocator(target)

    torch._C._cuda_init = initialize_and_follow
    if torch.cuda.is_initialized():
        watcher.watch_allocator(target)
