"""Every store of the job is the one that trompe serves.

A rank that made a store of its own (a `TCPStore` on its own port, a `FileStore`)
would wait there for ranks that do not exist. It gets trompe's, with a prefix for the
place that it named.
"""

import importlib
import os

from . import exchange


def change(module):
    """Leads the names that make stores to trompe's store."""
    from torch._C import _distributed_c10d as binding

    # The package has a function of the same name.
    rendezvous = importlib.import_module("torch.distributed.rendezvous")

    real = binding.TCPStore
    served = os.environ["TROMPE_STORE"]

    class Elsewhere(binding.PrefixStore):
        """A store at another place than trompe's."""

        def __init__(self, host, port, timeout):
            super().__init__(f"tcp/{port}", exchange.client().clone())
            self.host, self.port = host, port
            if timeout is not None:
                self.set_timeout(timeout)

    class _Names(type):
        def __instancecheck__(cls, value):
            return isinstance(value, (real, Elsewhere))

    class TCPStore(metaclass=_Names):
        """Makes a client of trompe's store."""

        def __new__(cls, host_name, port, *arguments, **options):
            if port == 0 or f"{host_name}:{port}" == served:
                return real(host_name, port, *arguments, **options)
            timeout = options.get("timeout", arguments[2] if len(arguments) > 2 else None)
            return Elsewhere(host_name, port, timeout)

    for place in (module, rendezvous):
        if hasattr(place, "TCPStore"):
            place.TCPStore = TCPStore
    if not hasattr(module, "TCPStore"):
        module.TCPStore = TCPStore
    rendezvous._rendezvous_handlers["file"] = _file_handler(binding)


def _file_handler(binding):
    from urllib.parse import parse_qsl, urlparse

    def handler(url, timeout=None, **_):
        parts = urlparse(url)
        query = dict(parse_qsl(parts.query))
        store = binding.PrefixStore(f"file/{parts.path}", exchange.client().clone())
        if timeout is not None:
            store.set_timeout(timeout)
        yield store, int(query["rank"]), int(query["world_size"])
        raise RuntimeError("Unable to perform rerendezvous using file:// method")

    return handler
