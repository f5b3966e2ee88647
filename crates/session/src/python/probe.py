"""Answers trompe's questions about this interpreter as JSON, without importing PyTorch."""

import importlib.util
import json
import os
import re
import runpy
import sys
import sysconfig

# `python -c` looks into the current folder first, a script does not.
sys.path = [entry for entry in sys.path if entry]


def package(name):
    spec = importlib.util.find_spec(name)
    return spec and spec.origin and os.path.dirname(spec.origin)


def torch():
    folder = package("torch")
    if not folder:
        return None
    try:
        facts = runpy.run_path(os.path.join(folder, "version.py"))
    except Exception:
        facts = {}
    return {
        "version": str(facts.get("__version__", "of unknown version")),
        "cuda": facts.get("cuda"),
        "hip": facts.get("hip"),
        **libraries(folder),
        "folder": folder,
    }


def libraries(folder):
    """The cuDNN and NCCL that the wheel asks for: what it was built for."""
    found = {}
    parent, name = os.path.split(folder)
    for entry in os.listdir(parent):
        if not re.fullmatch(re.escape(name) + r"-[^-]+\.dist-info", entry):
            continue
        try:
            with open(os.path.join(parent, entry, "METADATA"), encoding="utf-8") as file:
                text = file.read()
        except OSError:
            continue
        for library in ("cudnn", "nccl"):
            match = re.search(rf"^Requires-Dist: nvidia-{library}-cu\d+ *\(?==([0-9.]+)", text, re.MULTILINE)
            found[library] = match and match[1]
    return found


def distributions():
    """Names and versions of installed distributions, and their folders of facts, from the names of these."""
    for entry in sys.path:
        try:
            names = os.listdir(entry)
        except OSError:
            continue
        for name in names:
            match = re.fullmatch(r"(.+?)-([^-]+)\.(dist|egg)-info", name)
            if match:
                yield match[1].replace("_", "-").lower(), (match[2], os.path.join(entry, name))


def has_libraries(facts):
    """Whether a distribution brings shared libraries; headers alone and pure Python are in nobody's way."""
    try:
        with open(os.path.join(facts, "RECORD"), encoding="utf-8") as file:
            return re.search(r"\.so(\.\d+)*,", file.read()) is not None
    except OSError:
        return False


installed = dict(distributions())
answer = {
    "executable": sys.executable,
    "version": ".".join(map(str, sys.version_info[:3])),
    "headers": os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")),
    "torch": torch(),
    "triton": installed.get("triton", (None,))[0],
    "nvidia": sorted(
        name for name, (_, facts) in installed.items() if name.startswith("nvidia-") and has_libraries(facts)
    ),
}
print("trompe:" + json.dumps(answer))
