"""Searches from Python: a study that is asked, told, and runs trials without a GPU.

    from trompe.search import Study

    with Study("space.toml", cluster="dgx-h100:4") as study:
        best = study.run(budget=100)
        print(best.loss, best.knobs)

As the objective of another library (Optuna, Ray Tune, ...), in this process or in others:

    step_time = Objective("space.toml", cluster="dgx-h100:4")
    print(step_time({"tp": 2, "pp": 1}), "of", step_time.knobs)

Everything runs in the `trompe` program, which is looked for beside this package's
checkout, in `$TROMPE`, and on `PATH`.
"""

import json
import math
import os
import shutil
import subprocess
import tempfile
import warnings
import weakref
from pathlib import Path

__all__ = ["Objective", "SearchError", "Study", "Trial"]


class SearchError(Exception):
    """A space, point or trial makes no sense; the text says what to do."""


class Trial(dict):
    """What is known of a trial: `trompe search` writes the same to `study.json`."""

    @property
    def knobs(self):
        """Its knob values, as text."""
        return {knob["name"]: knob["value"] for knob in self["knobs"]}

    @property
    def fits(self):
        """Whether it ran and its memory fits."""
        return self["status"] == "fits"

    @property
    def loss(self):
        """What is sought; smaller is better. The seconds of a step, or infinite when it does not fit."""
        return math.inf if self.get("loss") is None else self["loss"]


class Study:
    """A study over a space file. Close it, or use it in a `with` statement."""

    def __init__(self, space, cluster=None, *, out="trompe-search", program=None, **options):
        """`options` are those of `trompe search`: `strategy="cma"`, `seed=7`, `no_cache=True`, ..."""
        command = [program or _program(), "search", "serve", str(space), "--out", str(out)]
        command += ["--cluster", cluster] if cluster else []
        for name, value in options.items():
            flag = "--" + name.replace("_", "-")
            command += [flag] if value is True else [flag, str(value)]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - `close` closes it
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        ready = self._hear()
        self.points = ready["ready"]
        self._knobs = dict(ready["knobs"])

    @property
    def knobs(self):
        """The values of each knob, for libraries that choose themselves."""
        return {name: list(values) for name, values in self._knobs.items()}

    def ask(self):
        """The next point to try, `{"number": n, "values": {...}, "command": [...]}`; `None` at the end."""
        answer = self._say({"ask": None})
        return None if answer.get("done") else answer

    def tell(self, number, step_seconds=None, *, at_least_seconds=None, out_of_memory=False, memory_bytes=0):
        """What became of a point that was asked for and run elsewhere.

        `at_least_seconds` is for one that was stopped because a step takes longer than the best.
        """
        if step_seconds is not None:
            numbers = {
                "step_seconds": step_seconds,
                "step_seconds_low": step_seconds,
                "step_seconds_high": step_seconds,
            }
            parts = dict.fromkeys(("compute", "recompute", "communication", "bubble", "host"), 0.0)
            metrics = {**numbers, "memory_bytes": memory_bytes, "capacity_bytes": 0, "parts": parts}
            outcome = {"status": "fits", "metrics": metrics}
        elif at_least_seconds is not None:
            outcome = {"status": "stopped", "at_least_seconds": at_least_seconds}
        else:
            outcome = {"status": "out_of_memory" if out_of_memory else "failed"}
        self._say({"tell": {"number": number, "outcome": outcome}})

    def evaluate(self, knobs):
        """The trial with these knob values: run here under emulation, or known already.

        Where the constraints exclude them its status is `infeasible`; a trial that failed gives a warning.
        """
        answer = self._say({"evaluate": knobs})
        if "infeasible" in answer:
            named = [{"name": name, "value": str(value)} for name, value in knobs.items()]
            return Trial(status="infeasible", knobs=named, metrics=None)
        trial = Trial(answer)
        if trial["status"] == "failed":
            warnings.warn(f"{trial.knobs} failed: {trial['why']}", RuntimeWarning, stacklevel=2)
        return trial

    def run(self, budget=None):
        """Asks and runs until the budget of trials is spent or every point is known; the best trial.

        Then trials near the best that a pruning rule had told run after all (see `verify`).
        """
        done = 0
        while budget is None or done < budget:
            point = self.ask()
            if point is None:
                break
            self._say({"run": {"number": point["number"]}})
            done += 1
        for point in self.verify():
            self._say({"run": {"number": point["number"]}})
        return self.best

    def verify(self):
        """Points near the best whose result a pruning rule had told, as `ask` gives them, to be run or told.

        Rules are nearly true; among the best that may decide. `verify=N` to the study says how many (4).
        """
        return self._say({"verify": None})

    @property
    def best(self):
        """The best trial so far; `None` when none fits."""
        best = self._say({"best": None})
        return Trial(best) if best else None

    @property
    def report(self):
        """Everything, as in `study.json`."""
        return self._say({"study": None})

    def close(self):
        """Ends the study; its files are written."""
        if self._process.poll() is None:
            self._process.stdin.close()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _say(self, question):
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._hear()

    def _hear(self):
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise SearchError(self._errors.read().strip() or "the trompe program has ended")
        answer = json.loads(line)
        if isinstance(answer, dict) and "error" in answer:
            hint = f" ({answer['hint']})" if answer.get("hint") else ""
            raise SearchError(answer["error"] + hint)
        return answer


class Objective:
    """What a search seeks, as a function of the knob values; libraries may send it to other processes.

    Each process that calls it has a study of its own, whose results the others find in the cache.
    """

    def __init__(self, space, cluster=None, **options):
        """`options` are those of `Study`."""
        self._options = {"space": str(Path(space).resolve()), "cluster": cluster, **options}
        self._options["program"] = str(Path(options.get("program") or _program()).resolve())
        self._study = None
        self.knobs = self._here().knobs

    def __call__(self, knobs):
        """The loss with these knob values; infinite where they do not fit or constraints exclude them."""
        return self._here().evaluate(knobs).loss

    def __getstate__(self):
        """Everything but the study, which is a process of this one."""
        return {**self.__dict__, "_study": None}

    def _here(self):
        if self._study is None:
            folder = self._options.get("out") or tempfile.mkdtemp(prefix="trompe-search-")
            self._study = Study(**{**self._options, "out": folder})
            weakref.finalize(self, _end, self._study, None if "out" in self._options else folder)
        return self._study


def _end(study, folder):
    study.close()
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


def _program():
    named = os.environ.get("TROMPE")
    beside = Path(__file__).parents[2] / "target" / "release" / "trompe"
    found = named or (str(beside) if beside.exists() else shutil.which("trompe"))
    if not found:
        raise SearchError("the trompe program was not found; put it on PATH or set TROMPE to it")
    return found
