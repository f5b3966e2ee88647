"""Light modules in place of fused ones that are not installed here.

flash-attn, Apex and TransformerEngine only build with CUDA's compiler, so a machine without a GPU often
lacks them. A script that imports one would fail; under `trompe run` it gets a module from `modules/`
instead, which allocates what the real one does and launches PyTorch's own kernel for the same work, so that
memory is right and the time is that of a kernel with the same traffic and arithmetic. Each use is a fact of
the trace and a note of the report.

Nothing happens where the real module is found: the finder stands at the end of `sys.meta_path`. An import
that the script guards (`try: import apex` with a handler for `ImportError`) is left to fail, because the
script has another way then; so is the question whether a module is there (`importlib.util.find_spec`).
`TROMPE_SHIMS=on` stands in for those too, as on a cluster that has them; `TROMPE_SHIMS=off` stands in for
none. A script that wants them whatever is installed calls `install`.
"""

import ast
import importlib.machinery
import importlib.util
import os
import sys

NAMES = (
    "flash_attn",
    "apex",
    "amp_C",
    "transformer_engine",
    "scaled_upper_triang_masked_softmax_cuda",
    "scaled_masked_softmax_cuda",
    "scaled_softmax_cuda",
    "fused_weight_gradient_mlp_cuda",
)
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "modules")
_GUARDS = ("ImportError", "ModuleNotFoundError")
_BROAD = ("Exception", "BaseException")


class Finder:
    """Finds the light modules when nobody else finds the real ones; `tell(name)` hears of each."""

    def __init__(self, always, tell):
        self._always = always
        self._tell = tell

    def tell(self, name):
        """A light module of that name is in use."""
        self._tell(name)

    def find_spec(self, name, path=None, target=None):
        """The light module `name`, if it is one of ours and its import would fail the script."""
        if name not in NAMES:
            return None
        # Finders that came after us have a word first.
        own = sys.meta_path.index(self) if self in sys.meta_path else len(sys.meta_path)
        for finder in sys.meta_path[own + 1 :]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        if not self._always and _guarded(sys._getframe(1)):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, [_FOLDER])
        if spec is not None:
            self._tell(name)
        return spec


def install(*names):
    """Puts the light modules of these names in place now, whatever is installed."""
    tell = next((own.tell for own in sys.meta_path if hasattr(own, "tell")), None)
    for name in names:
        spec = importlib.machinery.PathFinder.find_spec(name, [_FOLDER])
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        if tell is not None:
            tell(name)


def _guarded(frame):
    """Whether some caller catches that the import fails, or only asks."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name == "<frozen importlib.util>" or name.endswith(os.path.join("importlib", "util.py")):
            return True
        if not name.startswith("<frozen") and _inside_guard(name, frame.f_lineno):
            return True
        frame = frame.f_back
    return False


def _inside_guard(file, line):
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return False
    for node in ast.walk(tree):
        if not isinstance(node, ast.Try) or not node.body[0].lineno <= line <= _end(node.body[-1]):
            continue
        caught = {name for handler in node.handlers for name in _caught(handler)}
        if caught & set(_GUARDS):
            return True
        # A handler for everything guards an import only when that is what it is for.
        imports = all(isinstance(part, (ast.Import, ast.ImportFrom, ast.Assign)) for part in node.body)
        if imports and caught & set(_BROAD):
            return True
    return False


def _end(node):
    return node.end_lineno or node.lineno


def _caught(handler):
    if handler.type is None:
        return [_BROAD[0]]
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [kind.id if isinstance(kind, ast.Name) else getattr(kind, "attr", "") for kind in types]
