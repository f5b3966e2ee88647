"""The whole GPT-3 space once, and how many trials each strategy needs of it.

    python examples/search/reference.py run 2.7b dgx-h100 1 --jobs 2
    python examples/search/reference.py compare 2.7b dgx-h100 1

`run` searches every point of `gpt3.toml` for a model on so many nodes and keeps how each ended
in `gpt3/`; it may be stopped and run again. What a job does depends neither on the kind of GPU (it is
fp16 everywhere) nor, without a distributed optimizer, on the number of replicas, so all studies of a
model share their traces: the first one runs jobs, the others mostly simulate. `compare` lets each
strategy choose points and answers from that table, so nothing is emulated: what is counted are trials,
not time.
Both take the `trompe` program from $TROMPE or PATH, `run` the job's Python from PATH.
"""

import argparse
import csv
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))

from trompe.search import Study  # noqa: E402

MODELS = {
    "2.7b": {"layers": 32, "hidden": 2560, "heads": 32, "samples": 256},
    "18.4b": {"layers": 40, "hidden": 6144, "heads": 48, "samples": 512},
}
NODES = {"2.7b": [1, 2], "18.4b": [4, 8]}
CLUSTERS = ["dgx-h100", "dgx-v100"]
KNOBS = ["tp", "pp", "multiplier", "vpp", "recompute", "sequence_parallel", "distributed_optimizer"]
STRATEGIES = ["auto", "cma", "oneplusone", "pso", "twopointsde", "random", "grid"]
SEEDS = range(5)
BUDGET = 300


# Traces are those of the nodes with the most memory, on as few of them as show what replicas do.
HARDWARE = """
[hardware]
cluster = {clusters}
nodes = {nodes}
reuse_trace = true
replicas = {{ degree = "dp", apart = "tp", if = "not distributed_optimizer" }}

[[constraints]]
rule = "cluster == '{cluster}:{own}' and nodes == {own}"
because = "this study is about one cluster"
"""


def shared_space_of(model, place, folder):
    """The space of one cluster whose traces serve others."""
    cluster, nodes = place
    path = space_of(model, folder)
    hardware = HARDWARE.format(clusters=CLUSTERS, nodes=NODES[model], cluster=cluster, own=nodes)
    shared = path.with_name(f"{model}-{cluster}-{nodes}.toml")
    shared.write_text(path.read_text() + hardware)
    return shared


def space_of(model, folder):
    """A copy of the space for this model, with the job where it is."""
    text = (HERE / "gpt3.toml").read_text()
    for name, value in MODELS[model].items():
        before = next(line for line in text.splitlines() if line.startswith(f"{name} = "))
        text = text.replace(before, f"{name} = {value}")
    text = text.replace("GPT-3 2.7B", f"GPT-3 {model.upper()}")
    jobs = os.environ.get("JOBS", HERE.parents[1] / "frameworks" / "jobs")
    text = text.replace("../../frameworks/jobs", str(jobs))
    path = folder / f"{model}.toml"
    path.write_text(text)
    return path


def run(model, cluster, nodes, options):
    """Searches the whole space and keeps the table."""
    folder = Path(options.folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"{model}-{cluster}-{nodes}"
    out.mkdir(exist_ok=True)
    traces = folder / f"{model}-traces"
    traces.mkdir(exist_ok=True)
    if not (out / "traces").exists():
        (out / "traces").symlink_to(traces)
    space = shared_space_of(model, (cluster, nodes), folder)
    # The kept tables are of the highest clock.
    command = [os.environ.get("TROMPE", "trompe"), "search", str(space), "--strategy", "auto", "--clock", "1"]
    command += ["--out", str(out), "--jobs", str(options.jobs), "--resume", "--force"]
    subprocess.run(command, check=False)
    keep(out, table_of(model, cluster, nodes))


def table_of(model, cluster, nodes):
    return HERE / "gpt3" / f"{model}-{cluster}-{nodes}.tsv"


def keep(out, path):
    """Writes how every point ended, in the order of the knobs."""
    study = json.loads((out / "study.json").read_text())
    journal = [json.loads(line) for line in (out / "study.journal").read_text().splitlines()[1:]]
    names = [knob["name"] for knob in study["knobs"]]
    places = [names.index(name) for name in KNOBS]
    order = [[value["value"] for value in study["knobs"][place]["values"]] for place in places]
    bounds = {
        tuple(entry["point"][place] for place in places): entry["outcome"].get("at_least_seconds")
        for entry in journal
    }
    rows = []
    for trial in study["trials"]:
        knobs = {knob["name"]: knob["value"] for knob in trial["knobs"]}
        metrics = trial["metrics"] or {}
        point = tuple(values.index(knobs[name]) for values, name in zip(order, KNOBS, strict=True))
        step = metrics.get("step_seconds") or bounds.get(point)
        memory = metrics.get("memory_bytes")
        rows.append(
            [knobs[name] for name in KNOBS]
            + [trial["status"], trial["origin"], trial["rule"] or ""]
            + [f"{step:.6f}" if step else "", f"{memory / 2**30:.2f}" if memory else ""]
            + [f"{trial['seconds']:.1f}"]
        )
    rows.sort(key=lambda row: [values.index(cell) for values, cell in zip(order, row, strict=False)])
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow([*KNOBS, "status", "origin", "rule", "step_seconds", "memory_gib", "seconds"])
        writer.writerows(rows)


def read(path):
    """The table by point."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return {tuple(row[name] for name in KNOBS): row for row in rows}


def best_of(table):
    return min(float(row["step_seconds"]) for row in table.values() if row["status"] == "fits")


def compare(model, cluster, nodes, _):
    """Lets every strategy search the table; prints and returns what each needed."""
    table = read(table_of(model, cluster, nodes))
    optimum = best_of(table)
    print(f"{model} on {cluster}:{nodes}: {len(table)} points, optimum {optimum:.3f} s")
    print("strategy     regret at 300 (median, worst)   trials to 5 %   to 2 %   to the optimum")
    curves = {}
    for strategy in STRATEGIES:
        runs = [curve(model, (cluster, nodes), (strategy, seed), table) for seed in SEEDS]
        curves[strategy] = runs
        regret = [run[-1] / optimum - 1 for run in runs]
        needed = [first(runs, optimum * factor) for factor in (1.05, 1.02, 1.0 + 1e-9)]
        print(
            f"{strategy:<12} {statistics.median(regret):7.2%} {max(regret):7.2%}"
            + "".join(f"{text:>16}" for text in needed)
        )
    plot(curves, optimum, HERE / "gpt3" / f"{model}-{cluster}-{nodes}.svg")


def first(runs, wanted):
    """Median number of trials until a result is at most `wanted`, and how many runs came to it."""
    found = [next((at + 1 for at, best in enumerate(run) if best <= wanted), None) for run in runs]
    there = sorted(count for count in found if count is not None)
    if not there:
        return "never"
    return f"{statistics.median_low(there)} ({len(there)}/{len(found)})"


def curve(model, place, chooser, table):
    """The best step after each trial that had to run."""
    (cluster, nodes), (strategy, seed) = place, chooser
    with tempfile.TemporaryDirectory() as folder:
        space = space_of(model, Path(folder))
        options = {"strategy": strategy, "seed": seed, "out": f"{folder}/out", "no_cache": True}
        program = os.environ.get("TROMPE") or shutil.which("trompe")
        best, curve = math.inf, []
        with Study(space, cluster=f"{cluster}:{nodes}", program=program, **options) as study:
            if study.points > len(table):
                sys.exit(f"the table holds {len(table)} of {study.points} points; `run` looks at the others")
            while len(curve) < BUDGET and (point := study.ask()):
                best = min(best, answer(study, point, table))
                curve.append(best)
            for point in study.verify():
                best = min(best, answer(study, point, table))
                curve.append(best)
    return curve


def answer(study, point, table):
    """Tells what the table says of a point; its step, if it fits."""
    row = table[tuple(text(point["values"][name]) for name in KNOBS)]
    if row["status"] == "fits":
        step = float(row["step_seconds"])
        study.tell(point["number"], step)
        return step
    if row["step_seconds"]:
        study.tell(point["number"], at_least_seconds=float(row["step_seconds"]))
    else:
        study.tell(point["number"], out_of_memory=row["status"] == "out_of_memory")
    return math.inf


def text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


COLOURS = ["#1b6ca8", "#d1495b", "#66a182", "#edae49", "#8d6a9f", "#7a7a7a", "#2e4057"]


def plot(curves, optimum, path):
    """The median regret after each trial, one line for each strategy."""
    width, height, left, below, top = 640, 360, 56, 40, 0.5

    def place(trial, regret):
        x = left + (width - left - 110) * trial / BUDGET
        y = 16 + (height - below - 16) * (1 - min(regret, top) / top)
        return f"{x:.1f},{y:.1f}"

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">'
    ]
    lines.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    for regret in (0.0, 0.02, 0.1, 0.2, 0.3, 0.4, 0.5):
        (x, y), (right, _) = place(0, regret).split(","), place(BUDGET, regret).split(",")
        lines.append(f'<path d="M{x} {y}H{right}" stroke="#ddd"/>')
        lines.append(
            f'<text x="{left - 6}" y="{y}" dy="4" font-size="11" text-anchor="end">{regret:.0%}</text>'
        )
    for trial in (0, 100, 200, 300):
        x = place(trial, 0).split(",")[0]
        lines.append(f'<text x="{x}" y="{height - 22}" font-size="11" text-anchor="middle">{trial}</text>')
    lines.append(f'<text x="{left}" y="{height - 6}" font-size="11">trials that had to run</text>')
    for number, (strategy, runs) in enumerate(curves.items()):
        most = max(len(run) for run in runs)
        at = [[run[min(trial, len(run) - 1)] for run in runs] for trial in range(most)]
        regrets = [statistics.median(values) / optimum - 1 for values in at]
        points = " ".join(
            place(trial + 1, regret) for trial, regret in enumerate(regrets) if regret < math.inf
        )
        colour = COLOURS[number]
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        y = 24 + 18 * number
        lines.append(f'<text x="{width - 96}" y="{y}" font-size="12" fill="{colour}">{strategy}</text>')
    path.write_text("\n".join([*lines, "</svg>", ""]))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["run", "compare"])
    parser.add_argument("model", choices=list(MODELS))
    parser.add_argument("cluster")
    parser.add_argument("nodes", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", default="trompe-reference", help="where the studies lie")
    options = parser.parse_args()
    {"run": run, "compare": compare}[options.what](options.model, options.cluster, options.nodes, options)


if __name__ == "__main__":
    main()
