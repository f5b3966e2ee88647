"""What to tell a user whose PyTorch cannot run under the emulation.

Python's own error and traceback always come through unchanged; these notes add
the reason and the way out, one line each.
"""

import atexit
import glob
import os
import re
import sys

from .library import note

_INSTALL = "install the CUDA build with `python -m pip install torch`"


def on_torch_without_cuda(torch):
    """PyTorch was imported and has no CUDA in it."""
    note(
        f"PyTorch {torch.__version__} is a build without CUDA, so this job would never use a GPU "
        f"and there is nothing to predict; {_INSTALL} (no GPU and no NVIDIA package is needed)."
    )


def on_missing_torch():
    """Something asked for PyTorch and it is not installed.

    Many libraries only look whether it is there, so the note waits for the end and
    appears only when the script died of it.
    """

    def explain():
        error = getattr(sys, "last_value", None)
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            note(f"PyTorch is not installed for {sys.executable}; {_INSTALL}.")

    if not getattr(on_missing_torch, "registered", False):
        on_missing_torch.registered = True
        atexit.register(explain)


def on_failed_import(spec, error):
    """`import torch` raised; `error` is what it raised."""
    built_for = _cuda_of(spec)
    emulated = _emulated_major()
    if built_for and emulated and built_for.split(".")[0] != emulated:
        note(
            f"this PyTorch is built for CUDA {built_for} and trompe emulates CUDA {emulated}; "
            f"use a PyTorch for CUDA {emulated}, or a trompe for CUDA {built_for.split('.')[0]}."
        )
    elif isinstance(error, OSError):
        note(f"PyTorch could not be loaded ({error}); `trompe doctor` shows what is missing.")


def _cuda_of(spec):
    """The CUDA version in `torch/version.py`, read as text since torch does not import."""
    try:
        with open(os.path.join(os.path.dirname(spec.origin), "version.py")) as file:
            match = re.search(r"^cuda\b[^=]*=\s*['\"]([0-9.]+)['\"]", file.read(), re.MULTILINE)
    except (OSError, TypeError):
        return None
    return match and match.group(1)


def _emulated_major():
    """The CUDA major of the libraries on `LD_LIBRARY_PATH`, from their file names."""
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        for path in glob.glob(os.path.join(folder, "libcudart.so.*")) if folder else ():
            return path.rsplit(".", 1)[1]
    return None
