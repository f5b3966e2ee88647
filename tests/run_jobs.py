#!/usr/bin/env python3
"""Runs the job tests: real PyTorch scripts under `trompe run`, from `jobs.toml`, and
the scenarios of wrong use in `misuse.py`.

    python tests/run_jobs.py --trompe target/release/trompe --python .venv/bin/python
    ... run_jobs.py resnet50* lstm        # only these (shell patterns)
    ... run_jobs.py --list

Each test has a folder under `--out` with `job.log` (what the job printed) and the
report; the folders of tests that passed are kept too, for a look at the reports.
Needs Python 3.11 and nothing else.
"""

import argparse
import concurrent.futures
import fcntl
import fnmatch
import os
import shutil
import signal
import subprocess
import sys
import termios
import time
import tomllib
from pathlib import Path

import job_checks
import misuse

HERE = Path(__file__).resolve().parent
DEFAULTS = {
    "cluster": "h100-sxm",
    "env": {},
    "flags": [],
    "exit": 0,
    "verdict": "fits",
    "kinds": [],
    "steps": True,
    "peak": "equal",
    "refused": [],
    "shapes": 0.8,
    "notes": [],
    "output": [],
    "timeout": 180,
    "launcher": ["python"],
    "ranks": "",
    "after": [],
    "hidden": "",
    "waited": "",
    "family": 0,
    "outside": 4,
    "world": 1,
    "ran": 1,
}


def load_jobs():
    """The jobs of the manifest with defaults filled in; unknown keys are refused."""
    jobs = []
    for entry in tomllib.loads((HERE / "jobs.toml").read_text())["job"]:
        unknown = set(entry) - set(DEFAULTS) - {"name", "command"}
        if unknown:
            raise SystemExit(f"jobs.toml: {entry['name']}: unknown keys {sorted(unknown)}")
        jobs.append(DEFAULTS | entry)
    return jobs


class Runner:
    """How commands are run: the programs, the folder for results and that of the scripts."""

    def __init__(self, trompe, python, out, scripts=HERE / "jobs"):
        self.scripts = scripts
        self.trompe = str(Path(trompe).absolute())
        self.python = str(Path(python).absolute())
        self.out = out

    def environment(self, extra=()):
        """The environment of a user who has activated the virtual environment."""
        environment = dict(os.environ)
        environment["PATH"] = f"{Path(self.python).parent}{os.pathsep}{environment['PATH']}"
        environment.pop("PYTHONPATH", None)
        environment["HF_HUB_OFFLINE"] = "1"
        # What the developer has calibrated is no part of a test.
        environment["XDG_DATA_HOME"] = str(self.out.absolute() / "data")
        environment.update(extra)
        return environment

    def fresh(self, name):
        """An empty folder for the test of this name."""
        folder = self.out / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def run(self, arguments, folder, *, env=(), timeout=180, interrupt_after=None):
        """Runs `trompe ARGUMENTS`; returns its exit code and everything printed.

        With `interrupt_after`, runs it on a terminal of its own and presses Ctrl-C
        as soon as that text has been printed.
        """
        log = folder / "job.log"
        terminal, end = os.openpty()

        def take_terminal():
            fcntl.ioctl(end, termios.TIOCSCTTY, 0)

        with open(log, "wb") as file:
            child = subprocess.Popen(
                [self.trompe, *arguments],
                cwd=self.scripts,
                env=self.environment(env),
                stdin=end if interrupt_after else subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=take_terminal if interrupt_after else None,
            )
        try:
            if interrupt_after:
                self._wait_for(interrupt_after, log, child, timeout)
                os.write(terminal, b"\x03")
            code = child.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return None, log.read_text(errors="replace") + f"\n[still running after {timeout} s]"
        finally:
            os.close(terminal)
            os.close(end)
        return code, log.read_text(errors="replace")

    @staticmethod
    def _wait_for(text, log, child, timeout):
        deadline = time.monotonic() + timeout
        while text not in log.read_text(errors="replace") and child.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(child.args, timeout)
            time.sleep(0.1)


def run_job(job, runner):
    """Runs one job of the manifest; returns its complaints."""
    folder = runner.fresh(job["name"])
    code, output = run_command(job, runner, folder)
    return job_checks.check(job, folder / "out", code, output)


def run_command(job, runner, folder):
    """Runs a job with its report in `folder/out`; returns its exit code and everything printed."""
    ranks = ["--ranks", job["ranks"]] if job["ranks"] else []
    command = [*job["launcher"], *job["command"]]
    arguments = ["run", "--cluster", job["cluster"], *ranks, *job["flags"]]
    return runner.run(
        [*arguments, "--out", str(folder / "out"), "--", *command],
        folder,
        env=job["env"],
        timeout=job["timeout"],
    )


def main():
    parser = argparse.ArgumentParser(description="Runs the job tests.")
    parser.add_argument("names", nargs="*", default=["*"], help="shell patterns of test names")
    parser.add_argument("--trompe", default="target/release/trompe")
    parser.add_argument("--python", default=".venv/bin/python")
    parser.add_argument("--out", type=Path, default=Path("target/jobs"))
    parser.add_argument("--parallel", type=int, default=2, choices=(1, 2))
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()

    tests = {job["name"]: (lambda runner, job=job: run_job(job, runner)) for job in load_jobs()}
    tests |= misuse.SCENARIOS
    chosen = [name for name in tests if any(fnmatch.fnmatch(name, pattern) for pattern in arguments.names)]
    if arguments.list:
        print("\n".join(chosen))
        return 0
    if not chosen:
        raise SystemExit(f"no test matches {' '.join(arguments.names)}; see --list")
    for program in (arguments.trompe, arguments.python):
        if not Path(program).exists():
            raise SystemExit(f"{program} does not exist; run `make build venv-test` first")

    runner = Runner(arguments.trompe, arguments.python, arguments.out.absolute())
    failed = []

    def timed(name):
        started = time.monotonic()
        try:
            complaints = tests[name](runner)
        except Exception as error:  # a broken report is a failed test, not the end
            complaints = [f"{type(error).__name__}: {error}"]
        return name, complaints, time.monotonic() - started

    with concurrent.futures.ThreadPoolExecutor(arguments.parallel) as pool:
        futures = [pool.submit(timed, name) for name in chosen]
        for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
            name, complaints, seconds = future.result()
            word = "FAIL" if complaints else "ok  "
            print(f"[{number:2}/{len(chosen)}] {word} {name} ({seconds:.1f} s)", flush=True)
            for complaint in complaints:
                print(f"            {complaint}", flush=True)
            if complaints:
                failed.append(name)
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    if failed:
        print(f"logs and reports: {runner.out}; failed: {' '.join(sorted(failed))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
