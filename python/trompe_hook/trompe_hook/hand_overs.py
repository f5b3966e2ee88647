"""Tells the preloaded library what the program's threads hand to each other.

A thread that the program makes (one that writes a checkpoint, or brings the next batch
to the device) goes its own way: on the cluster it may wait for the device while the
others go on. What has to come before what is decided by the objects through which
threads meet, so these are watched: `Thread` (start, join), `Event`, `Condition`,
`Semaphore`, `Barrier`, the queues of `queue` and the futures of `concurrent.futures`.
Whoever starts, sets, notifies, releases, puts or resolves *gives* a token; whoever
joins, waits, acquires, gets or asks for the result *takes* it, also when it was there
already, because on the cluster it may come later.

Locks are not watched: they say that two things do not happen at once, not which comes
first. Whatever is watched does what it always did; a hand-over costs two short calls,
about two microseconds.
"""

import collections
import concurrent.futures
import functools
import itertools
import queue
import sys
import threading

_NAMESPACES = ("threading", "queue", "concurrent.futures._base", "concurrent.futures.thread")


def watch(target):
    """Starts telling hand-overs of threads that are made from now on."""
    if not target.recording():
        return
    teller = _Teller(target)
    _threads(teller)
    _events(teller)
    _conditions(teller)
    _semaphores(teller)
    _barriers(teller)
    _queues(teller)
    _simple_queues(teller)
    _futures(teller)


class _Teller:
    def __init__(self, target):
        self._numbers = itertools.count(1)
        self._give = target.give
        self._take = target.take
        self.now = target.ticks

    def number(self):
        """A token, to be given later."""
        return next(self._numbers)

    def give(self, token=None):
        """Hands over; the token by which that is taken."""
        if token is None:
            token = next(self._numbers)
        self._give(token)
        return token

    def take(self, token, since):
        """Has taken what is behind `token` (`None`: nothing), after waiting since then."""
        if token is not None:
            self._take(token, since)


def _replace(kind, name, make):
    """Puts `make(original)` in the place of a method of `kind`, if it has one of its own."""
    original = vars(kind).get(name)
    if original is not None:
        setattr(kind, name, functools.wraps(original)(make(original)))


def _giving_first(teller):
    """A method whose effect another thread may see: the token is given before."""

    def make(original):
        def method(self, *arguments, **options):
            self._trompe_token = teller.give()
            return original(self, *arguments, **options)

        return method

    return make


def _taking(teller, succeeded, own=lambda: True):
    """A method that waits for that, and has it when `succeeded(self, result)`."""

    def make(original):
        def method(self, *arguments, **options):
            since = teller.now()
            result = original(self, *arguments, **options)
            if own() and succeeded(self, result):
                teller.take(getattr(self, "_trompe_token", None), since)
            return result

        return method

    return make


def _threads(teller):
    def start(original):
        def method(self):
            self._trompe_ended = teller.number()
            self._trompe_started = teller.give()
            return original(self)

        return method

    def run(original):
        def method(self):
            teller.take(getattr(self, "_trompe_started", None), teller.now())
            try:
                return original(self)
            finally:
                ended = getattr(self, "_trompe_ended", None)
                if ended is not None:
                    teller.give(ended)

        return method

    def join(original):
        def method(self, *arguments, **options):
            since = teller.now()
            original(self, *arguments, **options)
            if not self.is_alive():
                teller.take(getattr(self, "_trompe_ended", None), since)

        return method

    _replace(threading.Thread, "start", start)
    _replace(threading.Thread, "_bootstrap_inner", run)
    _replace(threading.Thread, "join", join)


def _events(teller):
    _replace(threading.Event, "set", _giving_first(teller))
    _replace(threading.Event, "wait", _taking(teller, lambda _, result: result))


def _conditions(teller):
    """Those that the program uses itself; what the library builds on them is watched as what it is."""

    def own():  # asked by the method, of its caller
        return sys._getframe(2).f_globals.get("__name__") not in _NAMESPACES

    def notifying(original):
        def method(self, *arguments, **options):
            if own():
                self._trompe_token = teller.give()
            return original(self, *arguments, **options)

        return method

    for name in ("notify", "notify_all"):
        _replace(threading.Condition, name, notifying)
    for name in ("wait", "wait_for"):
        _replace(threading.Condition, name, _taking(teller, lambda _, result: result, own))


def _semaphores(teller):
    """Of `n` to begin with, the acquisition after the `n`-th takes the first release."""

    def released(self):
        if not hasattr(self, "_trompe_released"):
            self._trompe_free, self._trompe_released = self._value, collections.deque()
        return self._trompe_released

    def acquire(original):
        def method(self, *arguments, **options):
            tokens, since = released(self), teller.now()
            result = original(self, *arguments, **options)
            if result and self._trompe_free > 0:
                self._trompe_free -= 1
            elif result and tokens:
                teller.take(tokens.popleft(), since)
            return result

        return method

    def release(original):
        def method(self, *arguments, **options):
            count = arguments[0] if arguments else options.get("n", 1)
            released(self).extend([teller.give()] * count)
            return original(self, *arguments, **options)

        return method

    for kind in (threading.Semaphore, threading.BoundedSemaphore):
        _replace(kind, "acquire", acquire)
        _replace(kind, "__enter__", acquire)
        _replace(kind, "release", release)


def _barriers(teller):
    def wait(original):
        def method(self, *arguments, **options):
            round_ = self.__dict__.setdefault("_trompe_round", [])
            since, own = teller.now(), teller.give()
            round_.append(own)
            if len(round_) >= self.parties:
                self._trompe_round = []
            result = original(self, *arguments, **options)
            for token in round_:
                if token != own:
                    teller.take(token, since)
            return result

        return method

    _replace(threading.Barrier, "wait", wait)


def _queues(teller):
    """Items are told apart; a full queue hands over its room in turn."""
    waiting = threading.local()

    def noting(original):
        def method(self, *arguments, **options):
            waiting.since = teller.now()
            return original(self, *arguments, **options)

        return method

    # Both are called with the queue's lock held.
    def put(original):
        def method(self, item):
            state = self.__dict__.setdefault("_trompe_state", _State())
            state.puts += 1
            if 0 < self.maxsize < state.puts and state.room:
                teller.take(state.room.popleft(), getattr(waiting, "since", 0))
            state.tokens[id(item)].append(teller.give())
            return original(self, item)

        return method

    def get(original):
        def method(self):
            item = original(self)
            state = self.__dict__.setdefault("_trompe_state", _State())
            tokens = state.tokens.get(id(item))
            if tokens:
                teller.take(tokens.popleft(), getattr(waiting, "since", 0))
                if not tokens:
                    del state.tokens[id(item)]
            if self.maxsize > 0:
                state.room.append(teller.give())
            return item

        return method

    def task_done(original):
        def method(self):
            done = self.__dict__.setdefault("_trompe_done", {})
            done[threading.get_ident()] = teller.give()
            return original(self)

        return method

    def join(original):
        def method(self):
            since = teller.now()
            original(self)
            for token in list(getattr(self, "_trompe_done", {}).values()):
                teller.take(token, since)

        return method

    for name, make in (("put", noting), ("get", noting), ("task_done", task_done), ("join", join)):
        _replace(queue.Queue, name, make)
    for kind in (queue.Queue, queue.LifoQueue, queue.PriorityQueue):
        _replace(kind, "_put", put)
        _replace(kind, "_get", get)


class _State:
    """What a queue's items and its room were given by."""

    def __init__(self):
        self.puts = 0
        self.tokens = collections.defaultdict(collections.deque)
        self.room = collections.deque()


def _simple_queues(teller):
    """The queue of executors is written in C: one of ours, which is one of those, takes its place."""
    original = queue.SimpleQueue

    class SimpleQueue(original):
        def put(self, item, block=True, timeout=None):
            super().put((teller.give(), item))

        def put_nowait(self, item):
            self.put(item)

        def get(self, block=True, timeout=None):
            since = teller.now()
            token, item = super().get(block, timeout)
            teller.take(token, since)
            return item

        def get_nowait(self):
            return self.get(False)

    SimpleQueue.__module__, SimpleQueue.__qualname__ = original.__module__, original.__qualname__
    queue.SimpleQueue = SimpleQueue


def _futures(teller):
    kind = concurrent.futures.Future
    for name in ("set_result", "set_exception"):
        _replace(kind, name, _giving_first(teller))

    def asking(original):
        def method(self, *arguments, **options):
            since = teller.now()
            try:
                return original(self, *arguments, **options)
            finally:
                if self.done():
                    teller.take(getattr(self, "_trompe_token", None), since)

        return method

    for name in ("result", "exception"):
        _replace(kind, name, asking)
