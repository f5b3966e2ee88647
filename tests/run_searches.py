"""Searches over real PyTorch jobs, and what happens when they go wrong.

.venv/bin/python tests/run_searches.py --trompe target/release/trompe --python .venv/bin/python
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
SPACE = HERE / "searches" / "space.toml"


class Searches:
    """Runs `trompe search` in a folder of its own, with a cache of its own."""

    def __init__(self, trompe, python, folder):
        self.trompe = Path(trompe).resolve()
        self.folder = Path(folder)
        # Not resolved: a virtual environment's interpreter is a link.
        python = Path(python).absolute()
        self.environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"}
        self.environment["XDG_CACHE_HOME"] = str(self.folder / "cache")
        self.environment["XDG_DATA_HOME"] = str(self.folder / "data")
        shared = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "trompe"
        # What is made once for each PyTorch may be shared; results of earlier searches must not.
        (self.folder / "cache" / "trompe").mkdir(parents=True)
        for entry in shared.iterdir() if shared.is_dir() else ():
            if entry.name != "search":
                (self.folder / "cache" / "trompe" / entry.name).symlink_to(entry)

    def job(self):
        """A copy of the script and its space that may be changed."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        for file in (HERE / "searches").iterdir():
            if file.is_file():
                shutil.copy(file, folder)
        return folder

    def command(self, *arguments, cluster="h100-sxm"):
        named = ["--cluster", cluster] if cluster else []
        return [str(self.trompe), "search", *map(str, arguments), *named]

    def run(self, *arguments, expect=0, cluster="h100-sxm"):
        done = subprocess.run(
            self.command(*arguments, cluster=cluster),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        text = done.stdout + done.stderr
        assert done.returncode == expect, f"exit code {done.returncode} instead of {expect}:\n{text}"
        return text

    def study(self, folder):
        return json.loads((Path(folder) / "study.json").read_text())


def knobs(trial):
    return {knob["name"]: knob["value"] for knob in trial["knobs"]}


def check_whole_space(searches):
    """Every point: results, failures, out of memory, pruning; then everything from the memo."""
    out = searches.folder / "whole"
    text = searches.run(SPACE, "--strategy", "grid", "--out", out, "--jobs", 2)
    study = searches.study(out)
    counts = study["counts"]
    assert counts["feasible"] == len(study["trials"]) == 12, counts
    by_status = {}
    for trial in study["trials"]:
        by_status.setdefault(trial["status"], []).append(trial)
    assert len(by_status["fits"]) == 4 and len(by_status["failed"]) == 4, text
    assert all(knobs(trial)["width"] == "512" for trial in by_status["failed"])
    assert any("not for this script" in line for line in by_status["failed"][0]["last_lines"]), by_status[
        "failed"
    ][0]
    assert "4 of 12 trials failed" in text, text
    pruned = [trial for trial in study["trials"] if trial["origin"] == "pruned"]
    assert pruned and all(trial["rule"] and trial["because_of"] is not None for trial in pruned)
    assert all(trial["status"] == "out_of_memory" for trial in pruned)
    best = study["trials"][study["ranking"][0]]
    assert knobs(best) == {"width": "256", "batch": "4096", "reserve": "0"}, best
    metrics = best["metrics"]
    parts = sum(metrics["parts"].values())
    assert abs(parts - metrics["step_seconds"]) < 1e-6 * metrics["step_seconds"] + 1e-9, metrics
    assert metrics["cost_per_million_tokens"] > 0 and metrics["tokens_per_second_per_gpu"] > 0
    # The same again: nothing runs.
    again = searches.folder / "again"
    searches.run(SPACE, "--strategy", "grid", "--out", again)
    second = searches.study(again)
    assert second["counts"]["cached"] == counts["executed"] - counts["failed"], second["counts"]
    same = [(trial["number"], trial["metrics"]) for trial in study["trials"]]
    assert same == [(trial["number"], trial["metrics"]) for trial in second["trials"]]
    applied = searches.run("apply", "--best", out, cluster=None)
    assert "python train.py --width 256 --batch 4096 --accumulate 4" in applied, applied
    assert "no result to apply" in searches.run(
        "apply", out, "--trial", by_status["failed"][0]["number"], expect=2, cluster=None
    )
    assert (out / "trials.parquet").read_bytes()[:4] == b"PAR1"
    page = (out / "study.html").read_text()
    assert "Convergence" in page and "://" not in page.replace("http://www.w3.org", ""), "it loads nothing"


def check_interrupted_and_resumed(searches):
    """An interrupted study keeps what it had; a changed script is refused."""
    folder = searches.job()
    out = folder / "out"
    arguments = [folder / "space.toml", "--out", out, "--jobs", 1, "--no-cache", "--strategy", "grid"]
    with subprocess.Popen(
        searches.command(*arguments),
        env=searches.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        journal = out / "study.journal"
        until = time.monotonic() + 300
        while time.monotonic() < until and (
            not journal.exists() or len(journal.read_text().splitlines()) < 3
        ):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        text = process.communicate(timeout=60)[0]
    assert process.returncode == 130 and "--resume" in text, text
    kept = len(journal.read_text().splitlines()) - 1
    assert kept >= 2, text
    refused = searches.run(*arguments, expect=2)
    assert "--resume" in refused and "--restart" in refused, refused
    script = folder / "train.py"
    source = script.read_text()
    script.write_text(source + "\n# changed\n")
    assert "the script or the code beside it" in searches.run(*arguments, "--resume", expect=2)
    script.write_text(source)
    text = searches.run(*arguments, "--resume")
    assert f"going on with {kept} trials" in text, text
    lines = journal.read_text().splitlines()
    study = searches.study(out)
    ran = [trial for trial in study["trials"] if trial["origin"] != "pruned"]
    assert len(lines) - 1 == len(ran), "nothing that had finished ran again"


def check_one_trace_for_many_clusters(searches):
    """A trace with fewer replicas gives what the job on the larger cluster itself gives."""
    folder = searches.job()
    space = folder / "replicas.toml"

    def results(name):
        options = ["--strategy", "grid", "--no-cache", "--no-prune", "--out", folder / name]
        searches.run(space, *options, cluster=None)
        trials = searches.study(folder / name)["trials"]
        by_cluster = {trial["job"]["cluster"]: trial for trial in trials}
        assert len(by_cluster) == 4 and all(trial["status"] == "fits" for trial in trials), by_cluster.keys()
        return by_cluster

    reused = results("reused")
    source = space.read_text().splitlines()
    space.write_text(
        "\n".join(line for line in source if not line.startswith(("replicas =", "reuse_trace =")))
    )
    direct = results("direct")
    origins = [trial["origin"] for trial in reused.values()]
    assert sorted(origins) == ["executed"] + 3 * ["simulated"], origins
    assert all(trial["origin"] == "executed" for trial in direct.values())
    [emulated] = [cluster for cluster, trial in reused.items() if trial["origin"] == "executed"]
    for cluster, trial in reused.items():
        ours, other = dict(trial["metrics"]), dict(direct[cluster]["metrics"])
        if cluster.split(":")[0] != emulated.split(":")[0]:
            # NCCL's buffers and cuBLAS's workspaces stay those of the kind of GPU that was emulated.
            apart = abs(ours.pop("memory_bytes") - other.pop("memory_bytes"))
            assert apart < 256 * 2**20, (cluster, apart)
        assert ours == other, (cluster, ours, other)
    assert len({trial["metrics"]["step_seconds"] for trial in reused.values()}) == 4


def check_pruning_rules_of_the_file(searches):
    """A rule of the user's own tells in its direction only, and each pruned trial names it."""
    folder = searches.job()
    space = folder / "space.toml"
    source = space.read_text().replace("width = [256, 512, 4096]", "width = [256, 1024]")
    source = source.replace("reserve = { values = [0, 200]", "reserve = { values = [0]")
    rule = """
[[prune]]
name = "wider is slower"
knob = "width"
others = "{others}"
when = "fits"
effect = "no_better"
if = "batch == 4096"
"""
    for others, ran, told in (("later", "256", "1024"), ("earlier", "1024", "256")):
        space.write_text(source + rule.format(others=others))
        out = folder / others
        searches.run(space, "--strategy", "grid", "--out", out, "--verify", 0)
        trials = searches.study(out)["trials"]
        assert len(trials) == 4
        pruned = [trial for trial in trials if trial["origin"] == "pruned"]
        expect = {"width": told, "batch": "4096", "reserve": "0"}
        assert [knobs(trial) for trial in pruned] == [expect], trials
        assert pruned[0]["rule"] == "wider is slower" and pruned[0]["status"] == "no_better", pruned
        assert knobs(trials[pruned[0]["because_of"]])["width"] == ran, pruned
    # A rule that is not true: what it told runs after all, and turns out to be the best.
    space.write_text(space.read_text().replace("batch = { values = [512, 4096]", "batch = { values = [4096]"))
    out = folder / "verified"
    text = searches.run(space, "--strategy", "grid", "--out", out)
    [verified] = [trial for trial in searches.study(out)["trials"] if knobs(trial) == expect]
    assert verified["status"] == "fits" and verified["rule"] is None, verified
    assert "rules had made needless ran after all" in " ".join(text.split()), text


def check_estimators(searches):
    """What prices kernels is a choice of the study: other results, which are kept apart."""
    folder = searches.job()
    space = folder / "space.toml"
    space.write_text(space.read_text().replace("width = [256, 512, 4096]", "width = [4096]"))

    def steps(name, *more, expect=0):
        text = searches.run(space, "--out", folder / name, "--strategy", "grid", *more, expect=expect)
        if expect:
            return text
        study = searches.study(folder / name)
        fits = [trial for trial in study["trials"] if trial["metrics"]]
        return [trial["metrics"]["step_seconds"] for trial in fits], study["counts"]

    usual, _ = steps("usual")
    physics, counts = steps("physics", "--physics")
    assert physics != usual and counts["executed"] > 0, counts
    slow, counts = steps("slow", "--clock", "0.5")
    assert all(a > 1.2 * b for a, b in zip(slow, usual, strict=True)), (slow, usual)
    assert counts["executed"] > 0, counts
    again, counts = steps("again", "--clock", "0.5")
    assert again == slow and counts["executed"] == 0 and counts["cached"] > 0, counts
    text = steps("slow", "--resume", expect=2)
    assert "estimators" in text, text


def check_nothing_fits(searches):
    """All configurations are out of memory: the nearest miss and what would make it fit."""
    folder = searches.job()
    space = folder / "space.toml"
    text = space.read_text().replace("reserve = { values = [0, 200]", "reserve = { values = [90, 200]")
    space.write_text(text.replace("width = [256, 512, 4096]", "width = [256]"))
    text = searches.run(space, "--out", folder / "out", expect=1)
    assert "No configuration fits" in text and "nearest miss" in text and "would fit with" in text, text
    needs = next(float(word) for word in text.split("would fit with")[1].split() if word[0].isdigit())
    assert 10 < needs < 13, f"90 GiB and a little more on 79.6 GiB: {needs}"


def check_full_disk(searches):
    """A disk that is full ends the study and says nothing about its trials; with space it goes on."""
    folder = searches.job()
    mount = folder / "small"
    mount.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(mount)], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        return  # needs root; covered where continuous integration runs as root
    options = ["--strategy", "grid", "--no-cache", "--jobs", 1, "--budget", 1, "--out", mount / "out"]
    try:
        text = searches.run(folder / "space.toml", *options, expect=2)
        assert "No space left" in text and "--resume" in text, text
        journal = (mount / "out" / "study.journal").read_text().splitlines()
        assert len(journal) == 1, journal
        subprocess.run(["mount", "-o", "remount,size=64m", str(mount)], check=True)
        searches.run(folder / "space.toml", *options, "--resume")
        assert searches.study(mount / "out")["counts"]["fits"] == 1
    finally:
        # Processes of the last trial may still be ending there.
        subprocess.run(["umount", "--lazy", str(mount)], check=True)


def check_bad_spaces(searches):
    """What is wrong with a space is said before anything runs."""
    folder = searches.job()
    space = folder / "space.toml"
    source = space.read_text()

    def check(old, new, *expect):
        assert old in source
        space.write_text(source.replace(old, new))
        text = searches.run(space, "--out", folder / "out", expect=2)
        assert all(part in text for part in expect), text

    check("{width}", "{widht}", "`widht`", "did you mean `width`?")
    check(
        "[batch]",
        "[[constraints]]\nrule = 'width > 9999'\nbecause = 'wide'\n[batch]",
        "`wide` never holds",
        "nearest",
    )
    check(
        "[batch]",
        "[[constraints]]\nrule = 'width > 300'\nbecause = 'A'\n[[constraints]]\nrule = 'width < 300'\n"
        "because = 'B'\n[batch]",
        "`A` and `B` contradict each other",
    )
    check('objective = ["step_time", "memory"]', 'objective = "speed"', "`speed` cannot be sought")
    check(
        'price_per_gpu_hour = 2.0\nobjective = ["step_time", "memory"]',
        'objective = "cost_per_million_tokens"',
        "`price_per_gpu_hour`",
    )
    check("timeout_seconds", "timeout", "unknown field")
    check("width = [256, 512, 4096]", "width = []", "the knob `width`", "no values")
    space.write_text(source)
    assert "there is no cluster" in searches.run(space, "--out", folder / "out", expect=2, cluster=None)


def check_python(searches):
    """`trompe.search` asks, tells and runs."""
    folder = searches.job()
    space = folder / "space.toml"
    space.write_text('constraints = ["width != 256 or batch != 512"]\n' + space.read_text())
    script = f"""
import pickle
from trompe.search import Objective, SearchError, Study
options = dict(cluster="h100-sxm", out=r"{folder}/out", program=r"{searches.trompe}")
with Study(r"{folder}/space.toml", **options) as study:
    assert study.points == 10 and study.knobs["width"] == [256, 512, 4096]
    trial = study.evaluate({{"width": 256, "batch": 4096, "reserve": 0}})
    assert trial.fits and trial.loss > 0 and trial.knobs["batch"] == "4096"
    assert study.evaluate({{"width": 512, "batch": 4096, "reserve": 0}}).loss == float("inf")
    narrow = study.evaluate({{"width": 256, "batch": 512, "reserve": 0}})
    assert narrow["status"] == "infeasible" and narrow.loss == float("inf"), narrow
    try:
        study.evaluate({{"width": 7, "batch": 4096, "reserve": 0}})
    except SearchError as error:
        assert "no value 7" in str(error)
    else:
        raise AssertionError
    point = study.ask()
    study.tell(point["number"], 1e-9, memory_bytes=1)
    assert study.best["number"] == point["number"] and len(study.report["trials"]) >= 3
    assert study.verify() == []
options.pop("out")
objective = pickle.loads(pickle.dumps(Objective(r"{folder}/space.toml", **options)))
assert objective.knobs["reserve"] == [0, 200]
assert objective({{"width": 256, "batch": 4096, "reserve": 0}}) == trial.loss
"""
    environment = {**searches.environment, "PYTHONPATH": str(HERE.parent / "python")}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=300)


CHECKS = [
    check_bad_spaces,
    check_whole_space,
    check_interrupted_and_resumed,
    check_one_trace_for_many_clusters,
    check_pruning_rules_of_the_file,
    check_estimators,
    check_nothing_fits,
    check_full_disk,
    check_python,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trompe", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        searches = Searches(arguments.trompe, arguments.python, folder)
        for check in CHECKS:
            name = check.__name__.removeprefix("check_")
            if arguments.names and name not in arguments.names:
                continue
            began = time.monotonic()
            try:
                check(searches)
                print(f"ok      {name} ({time.monotonic() - began:.1f} s)", flush=True)
            except Exception as error:
                failed += 1
                print(f"FAILED  {name}: {type(error).__name__}: {error}", flush=True)
                traceback.print_exc()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
