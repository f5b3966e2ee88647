#!/usr/bin/env python3
"""Runs the framework cases under `trompe run` and writes docs/coverage.md.

    python frameworks/run.py --trompe target/release/trompe --python .venv/bin/python
    ... run.py 'megatron-*'    # only these (shell patterns of cases, frameworks or runs)
    ... run.py --list

Results of earlier runs stay in results.json until the same run is made again, so the
cases can be run in parts. Needs the package index for environments that do not exist yet.
"""

import argparse
import fcntl
import fnmatch
import json
import subprocess
import sys
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import coverage  # noqa: E402
import job_checks  # noqa: E402
import manifest  # noqa: E402
from environments import Environments  # noqa: E402
from run_jobs import DEFAULTS, Runner, run_command  # noqa: E402

RESULTS = HERE / "results.json"


def run(chosen, environments, arguments):
    """Makes one run; returns its entry for results.json."""
    job = DEFAULTS | chosen.job
    python = None
    started = time.monotonic()
    try:
        folder = arguments.out.absolute() / chosen.name
        python = environments.python(job["environment"])
        if arguments.recheck:
            code = json.loads((folder / "out" / "report.json").read_text())["job"]["exit_code"]
            output = (folder / "job.log").read_text(errors="replace")
        else:
            runner = Runner(arguments.trompe, python, arguments.out.absolute(), HERE / "jobs")
            folder = runner.fresh(chosen.name)
            code, output = run_command(job, runner, folder)
        complaints = job_checks.check(job, folder / "out", code, output)
        complaints += _check_groups(job, folder / "out" / "report.json")
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        complaints, folder = [f"{type(error).__name__}: {error}"], None
    entry = {
        "framework": chosen.framework,
        "case": job["name"],
        "cluster": chosen.cluster,
        "ranks": chosen.ranks,
        "passed": not complaints,
        "complaints": complaints,
        "seconds": round(time.monotonic() - started, 1),
    }
    return entry | _facts(folder) | {"version": python and _version(python, chosen.package)}


def _check_groups(job, path):
    """Complaints about collectives and the number of steps."""
    if not path.is_file():
        return []
    report = json.loads(path.read_text())
    groups = (report["communication"] or {"groups": []})["groups"]
    present = {f"{group['operation']} of {group['ranks']}" for group in groups}
    complaints = [
        f"no {text} (there is {', '.join(sorted(present))})" for text in job["groups"] if text not in present
    ]
    if job["counted"] is not None and report["steps"]["seen"] != job["counted"]:
        complaints.append(f"{report['steps']['seen']} steps found instead of {job['counted']}")
    return complaints


def _facts(folder):
    """What docs/coverage.md shows of a run."""
    path = folder and folder / "out" / "report.json"
    if not path or not path.is_file():
        return {}
    report = json.loads(path.read_text())
    software = report["software"]
    step = report["step_time"]
    return {
        "torch": software["torch"],
        "cuda": software["cuda"],
        "world": report["world_size"],
        "ran": report["ranks_emulated"],
        "records": report["job"]["records"],
        "step_seconds": step and step["seconds"],
        "peak_bytes": report["memory"]["peak_allocated_bytes"],
    }


def _version(python, package):
    """The version of a package in an environment."""
    command = [
        python,
        "-c",
        "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))",
        package,
    ]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip() or None


def keep(files, new):
    """Adds results to those that are kept, drops those of runs that are no more, and writes docs/coverage.md.

    After every run, so that an interrupted or a second process loses nothing.
    """
    with open(RESULTS, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        results = json.loads(file.read() or "{}") | new
        known = {item.name for item in manifest.runs(files)}
        results = {name: results[name] for name in sorted(results) if name in known}
        file.truncate(0)
        file.write(json.dumps(results, indent=1) + "\n")
        absent = tomllib.loads((HERE / "absent.toml").read_text())["absent"]
        (HERE.parent / "docs" / "coverage.md").write_text(coverage.page(files, results, absent))


def main():
    parser = argparse.ArgumentParser(description="Runs the framework cases.")
    parser.add_argument("names", nargs="*", default=["*"], help="shell patterns of cases, frameworks or runs")
    parser.add_argument("--trompe", default="target/release/trompe")
    parser.add_argument("--python", default=".venv/bin/python")
    parser.add_argument(
        "--cache", type=Path, default=Path("target/frameworks"), help="where environments are kept"
    )
    parser.add_argument("--out", type=Path, default=Path("target/frameworks/runs"))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--recheck", action="store_true", help="check what earlier runs left in --out")
    parser.add_argument(
        "--write-only", action="store_true", help="only write docs/coverage.md from results.json"
    )
    arguments = parser.parse_args()

    files = manifest.load()
    every = manifest.runs(files)
    chosen = [
        item
        for item in every
        if any(
            fnmatch.fnmatch(text, pattern)
            for pattern in arguments.names
            for text in (item.name, item.case["name"], item.framework)
        )
    ]
    if arguments.list:
        print("\n".join(item.name for item in chosen))
        return 0
    if not chosen:
        raise SystemExit(f"no case matches {' '.join(arguments.names)}; see --list")
    failed = []
    if not arguments.write_only:
        environments = Environments(arguments.cache, arguments.python, arguments.trompe)
        for number, item in enumerate(chosen, 1):
            entry = run(item, environments, arguments)
            keep(files, {item.name: entry})
            print(
                f"[{number:2}/{len(chosen)}] {'ok  ' if entry['passed'] else 'FAIL'} {item.name} "
                f"({entry['seconds']} s)"
            )
            for complaint in entry["complaints"]:
                print(f"            {complaint}", flush=True)
            if not entry["passed"]:
                failed.append(item.name)
    keep(files, {})
    if failed:
        print(f"logs and reports: {arguments.out}; failed: {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
