"""Every store of the job is the one that trompe serves.

A rank that made a store of its own (a `TCPStore` on its own port, a `FileStore`)
would wait there for ranks that do not exist. It gets trompe's, with a prefix for the
place that it named.

- The names `TCPStore` and `FileStore` make such a store.
- A `HashStore` stays what it is, the values of one process, until it is given to
  `init_process_group`. There ranks of several processes would never meet in it, so the
  group gets trompe's store in its place.
- So does a `FileStore` or a `TCPStore` that the script made before it was known to be a rank.
"""

import functools
import importlib
import inspect
import os

from . import exchange, library


def change(module):
    """Leads the names that make stores to trompe's store."""
    from torch._C import _distributed_c10d as binding

    # The package has a function of the same name.
    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    kinds = _Kinds(binding)
    module.TCPStore, module.FileStore = kinds.tcp, kinds.file
    if hasattr(rendezvous, "TCPStore"):
        rendezvous.TCPStore = kinds.tcp
    rendezvous._rendezvous_handlers["file"] = _file_handler(kinds)
    _serve_groups(module, kinds)


class _Kinds:
    """The classes in place of PyTorch's."""

    def __init__(self, binding):
        self._binding = binding
        served = os.environ["TROMPE_STORE"]

        class Elsewhere(binding.PrefixStore):
            """A store at another place than trompe's."""

            def __init__(self, place, timeout=None, **attributes):
                super().__init__(place, exchange.client().clone())
                if timeout is not None:
                    self.set_timeout(timeout)
                self.place = place
                vars(self).update(attributes)

        def named(name, kind, make):
            real = getattr(binding, name)

            class Names(type):
                def __instancecheck__(cls, value):
                    of_ours = isinstance(value, Elsewhere) and value.place.startswith(f"{kind}/")
                    return of_ours or isinstance(value, real)

            return Names(name, (), {"__new__": lambda _, *given, **options: make(real, *given, **options)})

        def tcp(real, host_name, port, *given, **options):
            if port == 0 or f"{host_name}:{port}" == served:
                return real(host_name, port, *given, **options)
            timeout = options.get("timeout", given[2] if len(given) > 2 else None)
            return Elsewhere(f"tcp/{port}", timeout, host=host_name, port=port)

        def file(_real, file_name, _world_size=-1, **_):
            return self.file_at(file_name)

        self._elsewhere = Elsewhere
        self._served = served
        self.tcp = named("TCPStore", "tcp", tcp)
        self.file = named("FileStore", "file", file)

    def file_at(self, path, timeout=None):
        """The store in place of the one in a file."""
        return self._elsewhere(f"file/{os.path.abspath(path)}", timeout, path=path)

    def shared(self, store):
        """A store in which the ranks meet, in place of one that they would not."""
        binding, base = self._binding, store
        while isinstance(base, binding.PrefixStore) and not isinstance(base, self._elsewhere):
            base = base.underlying_store
        if isinstance(base, self._elsewhere):
            return store
        if isinstance(base, binding.FileStore):
            return self.file_at(base.path)
        if isinstance(base, binding.HashStore):
            library.note(
                "a HashStore holds the values of one process: the ranks of this group meet in trompe's store "
                "instead, and would not meet on the cluster; use init_method='env://' there"
            )
            return self._elsewhere(f"hash/{exchange.number('hash')}")
        if isinstance(base, binding.TCPStore) and f"{base.host}:{base.port}" != self._served:
            return self._elsewhere(f"tcp/{base.port}", host=base.host, port=base.port)
        return store


def _serve_groups(module, kinds):
    """Changes the store with which the first group is made."""
    original = module.init_process_group
    signature = inspect.signature(original)

    @functools.wraps(original)
    def init_process_group(*arguments, **options):
        try:
            bound = signature.bind(*arguments, **options)
        except TypeError:  # the original says what is wrong
            return original(*arguments, **options)
        store = bound.arguments.get("store")
        if store is not None and bound.arguments.get("world_size", -1) > 1:
            bound.arguments["store"] = kinds.shared(store)
        return original(*bound.args, **bound.kwargs)

    module.init_process_group = init_process_group


def _file_handler(kinds):
    from urllib.parse import parse_qsl, urlparse

    def handler(url, timeout=None, **_):
        parts = urlparse(url)
        query = dict(parse_qsl(parts.query))
        yield kinds.file_at(parts.path, timeout), int(query["rank"]), int(query["world_size"])
        raise RuntimeError("Unable to perform rerendezvous using file:// method")

    return handler
