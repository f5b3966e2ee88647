"""A search on a local Ray cluster of two nodes, one of which is killed during the study.

    RAY_PYTHON tests/run_ray.py --trompe target/release/trompe

RAY_PYTHON is an interpreter that has ray and a CUDA build of PyTorch. The result must be that of a local
search, trial by trial, and nothing may be lost.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ray.cluster_utils import Cluster

SPACE = Path(__file__).resolve().parent / "searches" / "space.toml"


def search(trompe, out, *more):
    python = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{python}:{os.environ['PATH']}"}
    command = [trompe, "search", SPACE, "--cluster", "h100-sxm", "--strategy", "random", "--no-cache"]
    command += ["--jobs", "2", "--out", out, *more]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def trials(out):
    """What must be equal: everything that is no time of this machine."""
    study = json.loads((Path(out) / "study.json").read_text())
    keys = ("number", "knobs", "status", "origin", "rule", "metrics", "missing_bytes")
    return [[trial[key] for key in keys] for trial in study["trials"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trompe", required=True)
    trompe = str(Path(parser.parse_args().trompe).resolve())
    with tempfile.TemporaryDirectory() as folder:
        local, remote = Path(folder, "local"), Path(folder, "ray")
        process = search(trompe, local)
        text = process.communicate()[0]
        assert process.returncode == 0, text
        cluster = Cluster()
        cluster.add_node(num_cpus=1)
        second = cluster.add_node(num_cpus=1)
        process = search(trompe, remote, "--ray", cluster.address)
        journal = remote / "study.journal"
        while process.poll() is None and (not journal.exists() or len(journal.read_text().splitlines()) < 3):
            time.sleep(0.1)
        before = len(journal.read_text().splitlines()) - 1
        cluster.remove_node(second, allow_graceful=False)
        print(f"one of two nodes was killed after {before} trials", flush=True)
        text = process.communicate()[0]
        assert process.returncode == 0, text
        cluster.shutdown()
        different = [pair for pair in zip(trials(local), trials(remote), strict=True) if pair[0] != pair[1]]
        assert not different, f"{text}\nnot equal, local and on Ray: {different}"
        print(f"ok: {len(trials(remote))} trials, equal to the local study")


if __name__ == "__main__":
    main()
