"""Calls us once, right after `import torch` has finished.

A finder in front of `sys.meta_path` lets the other finders locate `torch` and
wraps only the loader's `exec_module`. It stays in place until an import has
succeeded, because libraries also *ask* for `torch` without importing it
(`importlib.util.find_spec`). Modules other than `torch` are never touched.
"""

import os
import sys


class AfterImport:
    """A meta-path finder for one module name."""

    def __init__(self, name, on_success, on_failure, on_missing):
        self._name = name
        self._on_success = on_success
        self._on_failure = on_failure
        self._on_missing = on_missing

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                self._wrap(spec)
                return spec
        self._on_missing()
        return None

    def _wrap(self, spec):
        loader = spec.loader
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module):
            try:
                execute(module)
            except Exception as error:
                self._on_failure(spec, error)
                raise
            finally:
                vars(loader).pop("exec_module", None)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._on_success(module)

        try:
            loader.exec_module = exec_module
        except AttributeError:  # a loader without instance attributes
            self._on_failure(spec, None)


def install():
    """Arranges for `torch_ready` to see PyTorch as soon as it has been imported."""

    def on_success(module):
        from . import torch_ready

        torch_ready.on_import(module)

    def on_failure(spec, error):
        from . import advice

        advice.on_failed_import(spec, error)

    def on_missing():
        from . import advice

        advice.on_missing_torch()

    sys.meta_path.insert(0, AfterImport("torch", on_success, on_failure, on_missing))


class _ShimsLater:
    """Stands at the end of `sys.meta_path` and loads `trompe.shims` when one of its modules is asked for."""

    _NAMES = (
        "flash_attn",
        "apex",
        "amp_C",
        "transformer_engine",
        "scaled_upper_triang_masked_softmax_cuda",
        "scaled_masked_softmax_cuda",
        "scaled_softmax_cuda",
        "fused_weight_gradient_mlp_cuda",
    )

    @staticmethod
    def tell(name):
        """A light module of that name is in use."""
        _tell_of_shim(name)

    def find_spec(self, name, path=None, target=None):
        if name not in self._NAMES:
            return None
        from trompe import shims

        sys.meta_path.remove(self)
        finder = shims.Finder(os.environ.get("TROMPE_SHIMS") == "on", _tell_of_shim)
        sys.meta_path.append(finder)
        return finder.find_spec(name, path, target)


def install_shims():
    """Lets light modules stand in for fused ones that are not installed (`trompe.shims`)."""
    if os.environ.get("TROMPE_SHIMS") != "off":
        sys.meta_path.append(_ShimsLater())


def _tell_of_shim(name):
    from . import library

    target = library.find()
    if target is not None:
        target.meta(f"stand-in.{name}", "1")
