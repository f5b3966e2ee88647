#!/usr/bin/env python3
"""Measures worlds: memory and time of a rank, and a job of 16,384 ranks from command to report.

    cargo xtask bench worlds
    python tests/bench_worlds.py --trompe target/release/trompe --python .venv/bin/python [--resident 128]

Memory is the proportional set size (what a process has alone, and its share of what it has
with others) of all processes of the run together, sampled; so the sum is what the
machine really spends.
"""

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def tree(root):
    """Process ids of `root` and all that descend from it."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def memory(pid, field):
    """A field of a process's memory in bytes."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def own_peak(pid):
    """Most memory that a process ever had."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def run(programs, cluster, flags, script):
    """Runs a job with (trompe, python); returns what was measured."""
    trompe, python = programs
    with tempfile.TemporaryDirectory(prefix="trompe-bench-") as folder:
        out = Path(folder) / "out"
        environment = os.environ | {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
        command = [trompe, "run", "--cluster", cluster, *flags, "--out", out, "--", *script]
        started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        job = subprocess.Popen(
            command, cwd=HERE / "jobs", env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        spent = resident = count = top = 0
        with open(Path(folder) / "log", "wb") as log:
            os.set_blocking(job.stdout.fileno(), False)
            while job.poll() is None:
                time.sleep(0.5)
                log.write(job.stdout.read() or b"")
                top = max(top, own_peak(job.pid))
                pids = tree(job.pid)[1:]
                sizes = [memory(pid, "Pss:") for pid in pids]
                if sum(sizes) > spent:
                    spent, count = sum(sizes), len(pids) - 1
                    resident = max((memory(pid, "Rss:") for pid in pids), default=0)
            log.write(job.stdout.read() or b"")
        wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if job.returncode != 0:
            raise SystemExit((Path(folder) / "log").read_text(errors="replace"))
        report = json.loads((out / "report.json").read_text())
        traces = list((out / "workers").glob("*.trompe"))
        return {
            "ranks": report["world_size"],
            "ran": report["ranks_emulated"],
            "checked": report["ranks_checked"],
            "wall_seconds": round(wall, 1),
            "processor_seconds": round(processor, 1),
            "emulation_seconds": round(report["job"]["emulation_seconds"], 1),
            "report_seconds": round(report["job"]["simulation_seconds"], 1),
            "step_seconds": report["step_time"]["seconds"],
            "processes_at_peak": count,
            "pss_bytes": spent,
            "pss_bytes_per_rank": spent // count if count else None,
            "rss_bytes_of_a_rank": resident,
            "trompe_peak_bytes": top,
            "bytes_per_record": round(
                sum(path.stat().st_size for path in traces) / report["job"]["records"], 1
            ),
        }


def show(name, result):
    """Prints what was measured of one run."""
    print(f"{name}:")
    for key, value in result.items():
        size = key.endswith(("_bytes", "_bytes_per_rank")) or "_bytes_of" in key
        print(f"  {key:22} {f'{value / 2**20:.0f} MiB' if size and value else value}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Measures worlds of many ranks.")
    parser.add_argument("--trompe", type=Path, default=Path("target/release/trompe"))
    parser.add_argument("--python", type=Path, default=Path(".venv/bin/python"))
    parser.add_argument("--resident", type=int, default=32, help="ranks that run at once")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    # Not resolved: the interpreter of a virtual environment is a link.
    programs = arguments.trompe.absolute(), arguments.python.absolute()
    launcher = ["torchrun", "--nproc-per-node", "8", "gpt3d.py"]
    results = {}

    def measure(name, *settings):
        results[name] = run(programs, *settings)
        if not arguments.json:
            show(name, results[name])

    large = [*launcher, "--tp", "8", "--pp", "8"]
    measure("tp8-pp8-dp256", "dgx-h100:2048", [], large)
    # Many at once, and few: what one more costs is the difference.
    nodes = max(arguments.resident // 8, 2)
    everybody = ["--ranks", "all"]
    measure("forked", f"dgx-h100:{nodes}", everybody, launcher)
    measure("forked-few", "dgx-h100:1", everybody, launcher)
    measure("plain", "dgx-h100:1", [*everybody, "--no-prefork"], launcher)
    many, few = results["forked"], results["forked-few"]
    further = {
        key: round((many[key] - few[key]) / (many["ran"] - few["ran"]), 2)
        for key in ("wall_seconds", "processor_seconds")
    }
    # Every rank run in full, and only those that differ: the same step.
    mesh = [*launcher, "--tp", "2", "--pp", "2"]
    measure("32-in-full", "dgx-h100:4", ["--host", "off", *everybody], mesh)
    measure("32-folded", "dgx-h100:4", ["--host", "off"], mesh)
    whole, folded = (results[name]["step_seconds"] for name in ("32-in-full", "32-folded"))
    results["totals"] = {"one-further-rank": further, "folded-to-whole": folded / whole}
    if arguments.json:
        print(json.dumps(results))
    else:
        show("totals", results["totals"])


if __name__ == "__main__":
    main()
