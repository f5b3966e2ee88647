"""Builds and loads the compiled observer (`ext/*.cpp`).

PyTorch's C++ interface changes between releases, so the observer is compiled on
the user's machine against the installed PyTorch: once, a few seconds, with the
system's C++ compiler and no build system. The result lies in the user's cache
folder under a name made from everything that it depends on; several processes may
ask for it at once (a lock), and a half-written file is never seen (rename).

Without a compiler the run goes on: kernels are still recorded by the preloaded
library, but not which operator launched them on which shapes, and memory that the
allocator hands out again is not made fresh.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import os
import shutil
import subprocess
import sysconfig
import tempfile

from . import library

_EXTENSION = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "ext")
_HEADERS = os.path.join(_EXTENSION, "cuda_headers")
_FLAGS = ("-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-w")
_LIBRARIES = ("-Wl,--no-as-needed", "-ltorch_cpu", "-lc10_cuda", "-lc10")


class Unavailable(Exception):
    """The observer cannot be built here; the text says why and what to do."""


_loaded = []


def current():
    """The observer of this process, or `None` before PyTorch is imported or when it cannot be built."""
    return _loaded[-1] if _loaded else None


class Observer:
    """The loaded observer."""

    def __init__(self, path):
        self._code = ctypes.CDLL(path)

    def attach(self, target, describe):
        """Registers for operators, which are recorded if `describe`; True when that worked."""
        if self._code.trompe_observer_attach(int(describe)) != 0:
            return False
        cost = self._code.trompe_observer_operator_cost
        cost.restype = ctypes.c_double
        target.meta("hook.nanoseconds_per_operator", f"{cost():.0f}")
        return True

    def start(self, target):
        """Starts handing over; PyTorch must just have initialised CUDA."""
        state = self._code.trompe_observer_start()
        names = {0: "watched", 2: "not watched: not the caching allocator"}
        target.meta("hook.allocator", names[state])

    def set_routing(self, policy):
        """How choices in unknown values are made up (`ext/routing.h`); True when the text is a policy."""
        return self._code.trompe_routing_default(policy.encode()) == 0

    def push_routing(self, policy):
        """The same for this thread, until `pop_routing`."""
        self._code.trompe_routing_push(policy.encode())

    def pop_routing(self):
        self._code.trompe_routing_pop()

    def report(self):
        """Records what is known only at the end."""
        self._code.trompe_observer_report()


def prepare(torch):
    """Compiles the observer if need be and loads it, for forks of this process to attach."""
    with contextlib.suppress(Unavailable, OSError):
        ctypes.CDLL(_build(torch))


def load(target, torch):
    """The observer for this PyTorch, attached, or `None`."""
    try:
        path = _build(torch)
        watcher = Observer(path)
    except (Unavailable, OSError) as reason:
        library.note(
            f"operator names, shapes and allocator events are not recorded: {reason}. "
            "The run goes on without them; values that it reads back from the GPU may be left over "
            "from other tensors."
        )
        target.meta("hook.observer", f"absent: {reason}")
        return None
    describe = target.recording() and os.environ.get("TROMPE_RECORD_OPS") != "0"
    attached = watcher.attach(target, describe)
    target.meta("hook.observer", "attached" if attached and describe else "operators are not recorded")
    policy = os.environ.get("TROMPE_ROUTING") or "balanced"
    if not watcher.set_routing(policy):
        library.note(f"TROMPE_ROUTING={policy} is no policy; choices in unknown values are balanced")
    target.meta("values.routing", policy)
    _loaded.append(watcher)
    return watcher


def _files(folder, ending):
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(ending))


def _compiler():
    """The C++ compiler's command as a list."""
    chosen = os.environ.get("CXX", "").split()
    if chosen and shutil.which(chosen[0]):
        return chosen
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    raise Unavailable("no C++ compiler found (looked for $CXX, c++, g++, clang++); install g++")


def _key(torch):
    """A short name for everything that the compiled file depends on."""
    digest = hashlib.sha256()
    for path in _files(_EXTENSION, ".cpp") + _files(_EXTENSION, ".h") + _files(_HEADERS, ".h"):
        with open(path, "rb") as file:
            digest.update(file.read())
    facts = (
        torch.__version__,
        str(torch.version.git_version),
        str(torch.compiled_with_cxx11_abi()),
        str(sysconfig.get_config_var("SOABI")),
        *_FLAGS,
    )
    digest.update("\0".join(facts).encode())
    return digest.hexdigest()[:16]


def _cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(base, "trompe")
    try:
        os.makedirs(folder, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    # Built again in each run; better than no shapes.
    return tempfile.mkdtemp(prefix="trompe-")


def _build(torch):
    """Path of the compiled observer; compiles it when it is not in the cache."""
    name = f"observer-{torch.__version__}-{_key(torch)}.so"
    folder = _cache_folder()
    path = os.path.join(folder, name)
    if os.path.exists(path):
        return path
    with _locked(path + ".lock"):
        if not os.path.exists(path):  # another process may have been faster
            _compile(torch, path)
    return path


@contextlib.contextmanager
def _locked(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile(torch, path):
    compiler = _compiler()
    root = os.path.dirname(os.path.abspath(torch.__file__))
    library.note(
        f"compiling the observer for PyTorch {torch.__version__} with {compiler[0]} "
        "(a few seconds, once per PyTorch)"
    )
    draft = f"{path}.{os.getpid()}"
    command = [
        *compiler,
        *_FLAGS,
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        f"-I{_HEADERS}",
        f"-I{os.path.join(root, 'include')}",
        "-o",
        draft,
        *_files(_EXTENSION, ".cpp"),
        f"-L{os.path.join(root, 'lib')}",
        *_LIBRARIES,
    ]
    # The compiler is an ordinary program: it runs outside the emulation.
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    try:
        done = subprocess.run(
            command, check=False, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode != 0:
            log = path[: -len(".so")] + ".log"
            with open(log, "w") as file:
                file.write(" ".join(command) + "\n\n" + done.stderr)
            lines = [line for line in done.stderr.splitlines() if "error" in line]
            first = lines[0].strip() if lines else f"exit code {done.returncode}"
            raise Unavailable(f"{compiler[0]} could not compile the observer ({first}; see {log})")
        os.replace(draft, path)
    except OSError as error:
        raise Unavailable(f"the observer could not be built in {os.path.dirname(path)}: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(draft)
