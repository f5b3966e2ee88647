"""One process that imports the framework once, from which the ranks of a job are forked.

Started by `trompe run` as `python -m trompe_hook.zygote SOCKET` with the job's own
interpreter, options and environment. It connects to the socket, is told the command of
the ranks, imports what the script imports at its top level (installed packages only:
the user's own modules are each rank's business), and then forks a child for every rank
it is asked for. A child has its own environment, arguments and process group members as
a process started by itself would have, and runs the script as `__main__`.

What cannot be forked is said, and `trompe run` starts ordinary processes instead: the
script is not Python, an import failed, left a thread running, has started CUDA, or has
looked at a variable that differs from rank to rank.

The conversation is one JSON object a line, both ways:

    <- {"argv": [...], "options": [...], "module": bool, "private": [names of variables]}
    -> {"ready": {"seconds": s, "modules": [...]}}    or {"unfit": "why"}
    <- {"fork": {"environment": {...}, "argv": [...], "core": n or null, "nice": n}}
    -> {"forked": {"pid": p}}
    -> {"ended": {"pid": p, "status": wait status}}
"""

import ast
import atexit
import contextlib
import ctypes
import gc
import importlib
import importlib.util
import io
import json
import mmap
import os
import select
import signal
import socket
import sys
import threading
import time
import types

from . import library, torch_ready

# Packages whose import is worth sharing. Others that the script names are imported when
# they are installed packages; these also when they lie elsewhere (editable installs).
_FRAMEWORKS = {
    "accelerate",
    "deepspeed",
    "lightning",
    "megatron",
    "torch",
    "torchtitan",
    "torchvision",
    "transformers",
}

# What PyTorch itself imports later, when an optimizer is made: a second and 90 MiB in every rank.
_LATER = "torch._dynamo"

# What torch.compile imports and computes when it first compiles, the same in every rank: the second
# element is called, a digest of Triton's own files that takes half a second.
_COMPILING = {
    "torch._inductor.compile_fx": None,
    "torch._inductor.codecache": "triton_key",
    "torch._inductor.async_compile": None,
    "torch._inductor.scheduler": None,
}

# What numerical libraries would start threads for while they are imported.
_CALM = ("OPENBLAS_NUM_THREADS",)


class Unfit(Exception):
    """The ranks cannot be forked from this process; the text says why."""


class Job:
    """What a rank runs."""

    def __init__(self, command):
        self.module = command["module"]
        self.argv = command["argv"]
        self.options = command["options"]
        self.private = set(command["private"])
        self.code = None

    @property
    def path(self):
        return self.argv[0]

    def source(self):
        """The script's source and file name."""
        if self.module:
            # The parents of a submodule are imported to find it; those are installed or the script's own.
            spec = importlib.util.find_spec(self.path.partition(".")[0])
            if spec is not None and spec.submodule_search_locations:
                name = f"{self.path}.__main__" if "." not in self.path else self.path
                spec = _spec_without_import(spec, name)
            path = spec and spec.origin
        else:
            path = self.path
        if not path or not os.path.isfile(path) or (not path.endswith((".py", ".pyw")) and self.module):
            raise Unfit(f"`{self.path}` is not a Python source file")
        with open(path, "rb") as file:
            return file.read(), os.path.abspath(path)

    def prepare(self):
        """Reads the script; returns the top-level names of what it imports."""
        source, path = self.source()
        try:
            tree = ast.parse(source, path)
            if not self.module:
                self.code = compile(source, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            raise Unfit(f"`{path}` is not Python") from None
        return imports(tree)

    def run(self, argv):
        """Runs the script as `__main__`, as the interpreter itself would."""
        sys.argv = list(argv)
        sys.orig_argv = [sys.executable, *self.options, *(["-m"] if self.module else []), *argv]
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        if self.module:
            import runpy

            sys.argv[0] = "-m"
            runpy._run_module_as_main(self.path)
            return
        from importlib.machinery import SourceFileLoader

        scope = vars(main)
        path = os.path.abspath(self.path)
        scope.update(
            __file__=path,
            __builtins__=sys.modules["builtins"],
            __loader__=SourceFileLoader("__main__", path),
            __spec__=None,
            __cached__=None,
        )
        exec(self.code, scope)


def _spec_without_import(spec, name):
    """The spec of a submodule, found by files alone."""
    from importlib.machinery import PathFinder

    where = spec.submodule_search_locations
    full = spec.name
    for part in name.split(".")[1:]:
        full = f"{full}.{part}"
        spec = PathFinder.find_spec(full, where)
        if spec is None:
            return None
        where = spec.submodule_search_locations
    return spec


def imports(tree):
    """Names of the modules that a script imports before it does anything, in order."""
    found = []

    def look(statements):
        for statement in statements:
            if isinstance(statement, ast.Import):
                found.extend(alias.name for alias in statement.names)
            elif isinstance(statement, ast.ImportFrom) and statement.level == 0 and statement.module:
                if statement.module != "__future__":
                    found.append(statement.module)
            elif isinstance(statement, ast.Try):
                look(statement.body)

    look(tree.body)
    return list(dict.fromkeys(found))


def _is_shared(name):
    """Whether a module belongs to an installed package (or to Python itself)."""
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names:
        return False
    if top in _FRAMEWORKS:
        return True
    spec = importlib.util.find_spec(top)
    places = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
    return any(place and ("site-packages" in place or "dist-packages" in place) for place in places)


class _Watched(dict):
    """The values of `os.environ`, noting which of some names were asked for."""

    def __init__(self, values, names):
        super().__init__(values)
        self._names = {os.fsencode(name) for name in names}
        self.asked = set()

    def __getitem__(self, key):
        if key in self._names:
            self.asked.add(os.fsdecode(key))
        return super().__getitem__(key)

    def __contains__(self, key):
        if key in self._names:
            self.asked.add(os.fsdecode(key))
        return super().__contains__(key)


def _refuse_asked(name, watched):
    """Raises `Unfit` when an import has looked at what differs from rank to rank."""
    if watched.asked:
        asked = ", ".join(sorted(watched.asked))
        raise Unfit(f"importing `{name}` reads {asked}, which differs from rank to rank")


def preload(names, private):
    """Imports the installed packages among `names`; returns those that were."""
    added = [name for name in _CALM if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    kept = os.environ._data
    watched = _Watched(kept, private)
    os.environ._data = watched
    done = []
    try:
        for name in names:
            try:
                if not _is_shared(name):
                    continue
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                if error.name and name.startswith(error.name):
                    continue  # perhaps a name in a package, or the script's own fallback: the ranks will see
                raise Unfit(f"importing `{name}` failed: {error}") from None
            except Exception as error:
                raise Unfit(f"importing `{name}` failed: {type(error).__name__}: {error}") from None
            done.append(name)
            _refuse_asked(name, watched)
        if "torch" in sys.modules:
            # Why it cannot be imported the ranks that need it will see.
            with contextlib.suppress(Exception):
                importlib.import_module(_LATER)
            _refuse_asked(_LATER, watched)
    finally:
        kept.clear()
        kept.update(watched)
        os.environ._data = kept
        for name in added:
            os.environ.pop(name, None)
    return done


def check(target):
    """Raises `Unfit` when this process must not be forked any more."""
    if target.prepare_ranks() != 0:
        raise Unfit("an import has started CUDA")
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        raise Unfit("an import has started CUDA")
    extra = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    if extra:
        raise Unfit(f"an import has left a thread running ({', '.join(extra)})")
    tasks = len(os.listdir("/proc/self/task"))
    if tasks > 1:
        raise Unfit(f"an import has left {tasks - 1} native threads running")


class Compiling:
    """Lets ranks tell the ones that are forked after them that they compile.

    One byte that all of them share. A job that never compiles pays nothing.
    """

    _KNOWN = "torch._inductor.compile_fx"

    def __init__(self):
        self._told = mmap.mmap(-1, 1)
        self._ready = False

    def tell(self):
        """In a rank that ends."""
        if self._KNOWN in sys.modules:
            self._told[0] = 1

    def prepare(self):
        """Before a fork: does what the next ranks would each do when they compile."""
        if self._ready or not self._told[0]:
            return
        self._ready = True
        # No pool of compiling processes belongs to this one.
        own = os.environ.get("TORCH_WARM_POOL")
        os.environ["TORCH_WARM_POOL"] = "0"
        for name, function in _COMPILING.items():
            # Whatever does not work here the rank does itself.
            with contextlib.suppress(Exception):
                module = importlib.import_module(name)
                if function:
                    getattr(module, function)()
        if own is None:
            del os.environ["TORCH_WARM_POOL"]
        else:
            os.environ["TORCH_WARM_POOL"] = own


class Server:
    """The process's side of the conversation."""

    def __init__(self, connection):
        self.connection = connection
        self.compiling = Compiling()
        self._received = b""

    def say(self, message):
        self.connection.sendall(json.dumps(message).encode() + b"\n")

    def next(self):
        """The next message, or `None` at the end."""
        while b"\n" not in self._received:
            more = self.connection.recv(1 << 16)
            if not more:
                return None
            self._received += more
        line, self._received = self._received.split(b"\n", 1)
        return json.loads(line)

    def serve(self, job):
        """Forks ranks until the other side goes away. Returns the order in a child, `None` here."""
        wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        while True:
            if b"\n" not in self._received:
                ready, _, _ = select.select([self.connection, wake], [], [])
                if wake in ready:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake, 4096)
                    self._reap()
                if self.connection not in ready:
                    continue
            order = self.next()
            if order is None:
                return None
            order = order["fork"]
            self.compiling.prepare()
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                os.close(wake)
                os.close(woken)
                self.connection.close()
                return order
            self.say({"forked": {"pid": pid}})

    def _reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.say({"ended": {"pid": pid, "status": status}})


_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def become(order, dispositions):
    """In a child: takes the place of a process started for this rank."""
    for number, handler in dispositions.items():
        signal.signal(number, handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.update(order["environment"])
    if order["core"] is not None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {order["core"]})
    config = sys.modules.get("torch._inductor.config")
    if order["core"] is not None and config is not None:
        # As a process on this processor alone would have chosen: more would each import PyTorch again.
        with contextlib.suppress(AttributeError, TypeError, ValueError):
            config.compile_threads = config.decide_compile_threads()
    if order["nice"]:
        os.nice(order["nice"])
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def own_frames(traceback):
    """A traceback without the frames of this file and of `runpy` at its outer end."""
    ours = {__file__, importlib.util.find_spec("runpy").origin}
    while traceback is not None and traceback.tb_frame.f_code.co_filename in (*ours, "<frozen runpy>"):
        traceback = traceback.tb_next
    return traceback


def run_to_the_end(job, argv):
    """Runs the script; an exception is shown as the interpreter does it. The exit code."""
    try:
        job.run(argv)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        error.__traceback__ = own_frames(error.__traceback__)
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        if sys.version_info >= (3, 12):
            sys.last_exc = error
        sys.excepthook(type(error), error, error.__traceback__)
        if isinstance(error, KeyboardInterrupt):
            sys.excepthook = lambda *_: None
            raise KeyboardInterrupt from None
        return 1
    return 0


def finish(code):
    """Ends the rank after what programs arrange for their end, and without taking the interpreter apart.

    That would touch every object that the ranks share, and cost each of them 100 MiB and
    half a second. What is left out is finalizers (`__del__`) of objects that live to the
    end; files that are still open are written out.
    """
    with contextlib.suppress(Exception):
        threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except (OSError, ValueError):
            code = code or 120  # as the interpreter has it
    # Only those of this rank: what was there before the fork is not among them.
    for thing in gc.get_objects():
        # Not `isinstance`, which would ask a proxy for what is gone.
        if issubclass(type(thing), (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)):
            with contextlib.suppress(Exception):
                thing.flush()
    ctypes.CDLL(None).fflush(None)
    os._exit(code)


def main(address):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(b"\0" + address.encode())
    server = Server(connection)
    command = server.next()
    if command is None:
        return
    # Ctrl-C reaches the whole group; it is the ranks that it is meant for.
    dispositions = {number: signal.getsignal(number) for number in _HANDLED}
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    job = Job(command)
    started = time.perf_counter()
    target = library.find()
    torch_ready.defer()
    try:
        if target is None:
            raise Unfit("the preloaded library is not there")
        names = job.prepare()
        if not getattr(sys.flags, "safe_path", False):
            sys.path[0] = os.getcwd() if job.module else os.path.dirname(os.path.realpath(job.path))
        modules = preload(names, job.private)
        check(target)
    except Unfit as reason:
        server.say({"unfit": str(reason)})
        return
    gc.collect()
    gc.freeze()
    server.say({"ready": {"seconds": time.perf_counter() - started, "modules": modules}})
    order = server.serve(job)
    if order is None:
        os._exit(0)  # nothing of its own is left to do
    become(order, dispositions)
    target.begin_rank()
    torch_ready.in_rank()
    status = run_to_the_end(job, order["argv"])
    server.compiling.tell()
    finish(status)


if __name__ == "__main__":
    main(sys.argv[1])
