"""What the hook says of threads that meet: each take has its give before it, and nothing else changes.

Runs in a plain interpreter, with a recorder in the place of the preloaded library.
"""

import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from multiprocessing.pool import ThreadPool
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python" / "trompe_hook"))

from trompe_hook import hand_overs

_log = []


class _Recorder:
    def recording(self):
        return True

    def ticks(self):
        return time.perf_counter_ns()

    def give(self, token):
        _log.append(("give", token, threading.get_ident()))

    def take(self, token, since):
        _log.append(("take", token, threading.get_ident()))


def _joined(target):
    thread = threading.Thread(target=target)
    thread.start()
    return thread


def threads():
    _joined(lambda: None).join()


def events():
    event = threading.Event()
    assert not event.wait(0.001)
    setter = _joined(event.set)
    assert event.wait(5)
    setter.join()


def conditions():
    condition, ready = threading.Condition(), []

    def tell():
        with condition:
            ready.append(1)
            condition.notify_all()

    with condition:
        teller = _joined(tell)
        assert condition.wait_for(lambda: ready, 5)
    teller.join()


def semaphores():
    semaphore = threading.Semaphore(1)
    with semaphore:
        releaser = _joined(semaphore.release)
        assert semaphore.acquire(timeout=5)
        releaser.join()
    bounded = threading.BoundedSemaphore(2)
    with bounded:
        assert bounded.acquire(blocking=False)
        bounded.release()


def barriers():
    barrier = threading.Barrier(3)
    others = [_joined(lambda: [barrier.wait() for _ in range(3)]) for _ in range(2)]
    for _ in range(3):
        barrier.wait()
    for other in others:
        other.join()


def bounded_queues():
    for kind in (queue.Queue, queue.LifoQueue, queue.PriorityQueue):
        items, got = kind(2), []

        def consume(items=items, got=got):
            for _ in range(6):
                got.append(items.get(timeout=5))
                items.task_done()

        consumer = _joined(consume)
        for number in range(6):
            items.put(number)
        items.join()
        consumer.join()
        assert sorted(got) == list(range(6))
        try:
            items.get_nowait()
            raise AssertionError("there was nothing left")
        except queue.Empty:
            pass


def simple_queues():
    items = queue.SimpleQueue()
    producer = _joined(lambda: [items.put(number) for number in range(3)])
    assert [items.get() for _ in range(3)] == [0, 1, 2]
    producer.join()
    assert items.empty()


def futures():
    with ThreadPoolExecutor(2) as executor:
        assert list(executor.map(abs, [-1, -2])) == [1, 2]
        asked = [executor.submit(lambda number=number: number) for number in range(4)]
        assert sorted(future.result() for future in as_completed(asked)) == [0, 1, 2, 3]
        wait(asked)
        assert isinstance(executor.submit(lambda: 1 / 0).exception(), ZeroDivisionError)


def pools():
    with ThreadPool(2) as pool:
        assert pool.map(abs, [-3, -4]) == [3, 4]


def main():
    hand_overs.watch(_Recorder())
    for meet in (
        threads,
        events,
        conditions,
        semaphores,
        barriers,
        bounded_queues,
        simple_queues,
        futures,
        pools,
    ):
        _log.clear()
        meet()
        givers, between = {}, 0
        for what, token, thread in list(_log):
            if what == "give":
                assert token not in givers or meet is semaphores, f"{meet.__name__}: {token} is given twice"
                givers[token] = thread
            else:
                assert token in givers, f"{meet.__name__}: {token} is taken before it is given"
                between += givers[token] != thread
        assert between >= 2, f"{meet.__name__}: {between} hand-overs between threads"
    print("hand-overs: each is given before it is taken")


if __name__ == "__main__":
    main()
