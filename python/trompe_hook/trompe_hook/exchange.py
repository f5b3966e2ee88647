"""Values exchanged between the ranks that exist, through the job's store.

Keys begin with `trompe/`: the store leaves those alone and never answers them for
anybody.
"""

import datetime
import os
import threading

_TIMEOUT = datetime.timedelta(minutes=30)
_local = threading.local()
_lock = threading.Lock()
_numbers = {}


def client():
    """This thread's connection to the store (a waiting one blocks its connection)."""
    if not hasattr(_local, "store"):
        from torch._C._distributed_c10d import TCPStore

        host, port = os.environ["TROMPE_STORE"].rsplit(":", 1)
        _local.store = TCPStore(host, int(port), None, False, _TIMEOUT, False)
    return _local.store


def number(*name):
    """How often this was asked for the same name before."""
    with _lock:
        _numbers[name] = _numbers.get(name, -1) + 1
        return _numbers[name]


def _key(name, sequence, rank):
    return f"trompe/{name}/{sequence}/{rank}"


def all_values(name, own, value, present):
    """What each of the ranks `present` gives in this call: `{rank: bytes}`."""
    sequence = number("all", name)
    if present == [own]:
        return {own: value}
    store = client()
    store.set(_key(name, sequence, own), value)
    values = {rank: value if rank == own else store.get(_key(name, sequence, rank)) for rank in present}
    if sequence > 0:  # everybody has come to this call, so everybody has read the one before
        store.delete_key(_key(name, sequence - 1, own))
    return values


class Gone(RuntimeError):
    """A rank was waited for that does not run any more."""


def _of_one(value, own, source):
    """A value that only `source` could give; the store answers so when it has gone."""
    if value == b"\0gone":
        client().set(f"trompe/wanted/{own}-{source}", b"")
        raise Gone(
            f"rank {own} waits for an object of rank {source}, which was stopped under trompe because it did "
            f"the same as another rank; let it run: name it in --ranks"
        )
    return value


def one_value(name, own, source, value, present):
    """The value of the rank `source` in this call."""
    sequence = number("one", name)
    if present == [own]:
        return value
    key = _key(f"{name}:one", sequence, source)
    if own == source:
        client().set(key, value)
        return value
    return _of_one(client().get(key), own, source)


def send(name, own, peer, value):
    """Gives `value` to `peer`."""
    sequence = number("send", name, own, peer)
    client().set(_key(f"{name}:{own}-{peer}", sequence, own), value)


def receive(name, own, peer):
    """The next value that `peer` gives to this rank."""
    sequence = number("receive", name, own, peer)
    key = _key(f"{name}:{peer}-{own}", sequence, peer)
    value = _of_one(client().get(key), own, peer)
    client().delete_key(key)
    return value
