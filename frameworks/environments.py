"""The virtual environments of the framework cases: made once, kept, small.

An environment is a set of pinned packages laid over others: a `.pth` file names the
packages below it, so PyTorch is on the disk once. Nothing is installed that is not named
(`--no-deps`), so no NVIDIA package comes along.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Wrappers for the programs of the packages below an environment: pip makes them only where it installs.
_WRAPPERS = """
import importlib.metadata, os, sys
for package in importlib.metadata.distributions():
    for entry in package.entry_points.select(group="console_scripts"):
        path = os.path.join(sys.argv[1], entry.name)
        if not os.path.exists(path):
            module, _, function = entry.value.partition(":")
            with open(path, "w") as file:
                file.write(f"#!{sys.executable}\\nimport sys\\nfrom {module} import {function}\\n")
                file.write(f"sys.exit({function}())\\n")
            os.chmod(path, 0o755)
"""


class Environments:
    """Makes and finds environments below `folder`; `base` is the Python of the job tests."""

    def __init__(self, folder, base, trompe):
        self.folder = Path(folder).absolute()
        self.base = Path(base).absolute()
        self.trompe = Path(trompe).absolute()
        self.specifications = tomllib.loads((HERE / "environments.toml").read_text())
        self.ready = {}

    def python(self, name):
        """The Python of an environment, which is made first where it is missing or out of date."""
        if name == "base":
            return self.base
        if name not in self.ready:
            self.ready[name] = self._make(name)
        return self.ready[name]

    def _make(self, name):
        if name not in self.specifications:
            raise SystemExit(f"environments.toml has no environment {name}")
        specification = self.specifications[name]
        below = specification.get("on", ["base"])
        layers = [self._packages(self.python(layer)) for layer in below]
        stamp_text = json.dumps([specification, [str(layer) for layer in layers], sys.version])
        stamp = self.folder / name / ".stamp"
        python = self.folder / name / "bin" / "python"
        digest = hashlib.sha256(stamp_text.encode()).hexdigest()
        if stamp.is_file() and stamp.read_text() == digest:
            return python
        print(f"frameworks: making the environment {name}", flush=True)
        shutil.rmtree(self.folder / name, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._call([self.base, "-m", "venv", "--without-pip", self.folder / name])
        (self._packages(python) / "layers.pth").write_text(
            "".join(f"{layer}\n" for layer in self._all_below(layers))
        )
        for package in specification.get("headers", []):
            self._headers(python, package)
        if specification.get("packages"):
            self._pip(python, [*specification.get("options", []), *specification["packages"]])
        if specification.get("sources"):
            # These import PyTorch while they are built: it finds trompe's libraries, and no GPU.
            libraries = {"LD_LIBRARY_PATH": self.trompe.parent / "trompe-lib"}
            environment = libraries | specification.get("build-environment", {})
            self._pip(python, ["--no-build-isolation", *specification["sources"]], environment)
        self._call([python, "-c", _WRAPPERS, python.parent])
        stamp.write_text(digest)
        return python

    @staticmethod
    def _packages(python):
        """The folder of an environment's packages."""
        return next((Path(python).parent.parent / "lib").glob("python3.*")) / "site-packages"

    @staticmethod
    def _all_below(layers):
        """The layers with those below them: a `.pth` file found through another one is not read."""
        found = []
        for layer in layers:
            below = layer / "layers.pth"
            deeper = [Path(line) for line in below.read_text().split()] if below.is_file() else []
            found += [folder for folder in [layer, *deeper] if folder not in found]
        return found

    def _pip(self, python, arguments, environment=None):
        pip = [self.base, "-m", "pip", "--disable-pip-version-check", "--python", python]
        options = ["install", "--quiet", "--no-deps", "--no-cache-dir"]
        path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
        self._call([*pip, *options, *arguments], {"PATH": path, **(environment or {})})

    def _headers(self, python, package):
        """Keeps a package's header files and its name and version."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            download = ["download", "--quiet", "--no-deps", "--no-cache-dir", "--dest", folder, package]
            self._call([self.base, "-m", "pip", "--disable-pip-version-check", *download])
            with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
                kept = [
                    name
                    for name in wheel.namelist()
                    if "include" in name.split("/") or name.endswith(".dist-info/METADATA")
                ]
                wheel.extractall(self._packages(python), kept)

    def _call(self, command, environment=None):
        completed = subprocess.run(
            [str(part) for part in command],
            check=False,
            env=os.environ | {key: str(value) for key, value in (environment or {}).items()},
        )
        if completed.returncode:
            raise RuntimeError(
                f"exit code {completed.returncode} of {' '.join(str(part) for part in command)}"
            )
