"""What happens once PyTorch has been imported, in order.

1. Facts about the software are recorded (`facts`).
2. The compiled observer is built if need be, loaded and attached (`observer`).
3. When PyTorch initialises CUDA, the observer starts handing over operators and
   events of the caching allocator.
4. Marks of the script (NVTX) are handed over (`marks`), and what its threads hand to each
   other (`hand_overs`).
5. In a rank of a distributed job, what absent ranks would say is answered (`ranks`).
6. At exit, PyTorch's own memory statistics are recorded (`facts`).

Each step stands alone: one that fails is named in a note and the next is done.
"""

import atexit
import os
import time

from . import advice, facts, hand_overs, launchers, library, marks, observer, places, ranks


class _Deferred:
    """In a process from which ranks are forked: what was imported waits for the ranks."""

    waiting = None


def defer():
    """Leaves everything that belongs to one rank to the ranks, which are forked from this process."""
    _Deferred.waiting = []


def in_rank():
    """In a forked rank: does now what was left to it."""
    waiting, _Deferred.waiting = _Deferred.waiting or [], None
    for torch in waiting:
        on_import(torch)


def on_import(torch):
    """Attaches everything to a freshly imported `torch`."""
    if _Deferred.waiting is not None:
        _Deferred.waiting.append(torch)
        _attempt("preparing the observer", observer.prepare, torch)
        return
    if getattr(torch.version, "cuda", None) is None:
        advice.on_torch_without_cuda(torch)
        return
    target = library.find()
    if target is not None:
        _attempt("meeting launchers", launchers.install)
        _attempt("answering for absent ranks", ranks.install)
        _Process(torch, target).attach()


class _Process:
    """One process that has imported PyTorch, and its forked children."""

    def __init__(self, torch, target):
        self._torch = torch
        self._target = target
        # The process whose trace has the facts: a forked child has a trace of its own.
        self._described = None
        self._watcher = None

    def attach(self):
        started = time.perf_counter()
        self._describe()
        watcher = _attempt("watching operators", observer.load, self._target, self._torch)
        self._watcher = watcher
        if watcher is not None:
            _attempt("watching the start of CUDA", self._start_with_cuda, watcher)
        _attempt("watching marks", marks.watch, self._torch, self._target)
        _attempt("watching collectives", places.watch, self._target)
        _attempt("watching threads", hand_overs.watch, self._target)
        self._target.meta("hook.seconds", f"{time.perf_counter() - started:.6f}")
        atexit.register(self._at_exit)

    def _describe(self):
        self._described = os.getpid()
        _attempt("recording the software versions", facts.at_start, self._target, self._torch)

    def _start_with_cuda(self, watcher):
        """Lets the observer start right after PyTorch has initialised CUDA.

        The per-device allocators do not exist before, and nothing can be allocated on
        a device before, so no event is lost. A process that never uses CUDA leaves no
        operators in a trace.
        """
        initialize = self._torch._C._cuda_init

        def initialize_and_follow():
            initialize()
            if self._described != os.getpid():
                self._describe()
            watcher.start(self._target)

        self._torch._C._cuda_init = initialize_and_follow
        if self._torch.cuda.is_initialized():
            watcher.start(self._target)

    def _at_exit(self):
        if self._described == os.getpid():  # not in a forked child without CUDA
            _attempt("recording the memory statistics", facts.at_exit, self._target, self._torch)
            if self._watcher is not None:
                _attempt("reporting unknown values", self._watcher.report)


def _attempt(what, action, *arguments):
    """The action's value, or `None` and a note: a missing record never stops the job."""
    try:
        return action(*arguments)
    except Exception as error:
        library.note(f"{what} failed and is left out: {error!r}")
        return None
