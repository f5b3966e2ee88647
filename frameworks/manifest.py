"""What is run: the cases of `cases/*.toml`, one file per framework, with defaults filled in.

Of a file:

    framework    its name in docs/coverage.md
    environment  the environment of environments.toml that its cases run in (default "base")
    package      the package whose version is shown (a name as pip knows it)
    missing      sentences for docs/coverage.md: what does not work, and why
    runs         the default `runs` of its cases

Of a `[[case]]`: the keys of tests/jobs.toml but for those that a run decides, and

    what         one line for docs/coverage.md
    environment  another environment than the file's
    runs         list of "CLUSTER RANKS": each is one `trompe run`; RANKS as for `--ranks`, `-` for a job
                 without a launcher. `{gpus}` in the command is the number of devices of a node
    groups       operations that must be among the collectives, as "all-gather of 8"; not asked of runs
                 of all ranks, whose worlds are smaller
    counted      how many steps must be found (default: not checked)
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Rank 33 alone, the first and the last together, and a job whose ranks all run.
RUNS = ["dgx-h100:8 33", "dgx-h100:8 0,63", "h100-sxm:2 all"]
TORCHRUN = ["torchrun", "--nproc-per-node", "{gpus}"]
CASE = {
    "what": "",
    "env": {},
    "exit": 0,
    "verdict": "fits",
    "kinds": [],
    "steps": True,
    "peak": "equal",
    "outside": 4,
    "refused": [],
    "shapes": 0.8,
    "output": [],
    "timeout": 600,
    "launcher": TORCHRUN,
    "groups": [],
    "counted": None,
    "environment": "base",
    "runs": RUNS,
}
OF_FILE = {"framework", "environment", "package", "missing", "runs", "case"}


@dataclass(frozen=True)
class Run:
    """One `trompe run` of a case."""

    framework: str
    package: str
    case: dict
    cluster: str
    ranks: str

    @property
    def name(self):
        """Unique, and a good name for a folder."""
        return f"{self.case['name']}@{self.cluster}@{self.ranks}".replace(":", "x")

    @property
    def nodes(self):
        """Nodes of the cluster, and devices of each."""
        kind, _, count = self.cluster.partition(":")
        if kind.startswith("dgx"):
            return int(count or 1), 8
        return 1, int(count or 1)

    @property
    def job(self):
        """The job in the terms of tests/jobs.toml."""
        nodes, gpus = self.nodes
        job = dict(self.case)
        for key in ("launcher", "command"):
            job[key] = [word.replace("{gpus}", str(gpus)) for word in job[key]]
        job["cluster"] = self.cluster
        job["ranks"] = "" if self.ranks == "-" else self.ranks
        job["world"] = nodes * gpus if self.ranks != "-" else 1
        job["ran"] = {"-": 1, "all": job["world"]}.get(self.ranks) or _count(self.ranks)
        if self.ranks == "all":
            job["groups"] = []
        job["output"] = [text.replace("{world}", str(job["world"])) for text in job["output"]]
        return job


def _count(ranks):
    """Ranks in a list such as `0,5,8-11`."""
    ends = [part.split("-") for part in ranks.split(",")]
    return sum(int(end[-1]) - int(end[0]) + 1 for end in ends)


def load():
    """The files in order of their names, each with its cases."""
    files = []
    for path in sorted((HERE / "cases").glob("*.toml")):
        content = tomllib.loads(path.read_text())
        if unknown := set(content) - OF_FILE:
            raise SystemExit(f"{path.name}: unknown keys {sorted(unknown)}")
        defaults = CASE | {key: content[key] for key in ("environment", "runs") if key in content}
        for number, case in enumerate(content["case"]):
            if unknown := set(case) - set(CASE) - {"name", "command"}:
                raise SystemExit(f"{path.name}: {case.get('name')}: unknown keys {sorted(unknown)}")
            content["case"][number] = defaults | case
        files.append(content)
    return files


def runs(files):
    """Every run of every case."""
    return [
        Run(file["framework"], file["package"], case, *text.split())
        for file in files
        for case in file["case"]
        for text in case["runs"]
    ]
