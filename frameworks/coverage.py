"""The text of docs/coverage.md from the cases and their last results."""

from collections import defaultdict

_HEAD = """# Frameworks that run unmodified

Written by `make frameworks` from the last run of each case in `frameworks/cases`; do not edit. Every
line is an ordinary script of `frameworks/jobs` under `trompe run`, on a machine without a GPU and without
an NVIDIA package. What is checked of each run: its exit code, that the report's peak of allocated memory
is the script's own `torch.cuda.max_memory_allocated()`, the steps found, the kinds of work, the
collectives with the sizes of their groups, and that no library call was refused.

*Ranks* says which ranks of which world ran here as processes of their own (`all`: every one); the others
were answered for. *Step* is the predicted time of a step of these tiny models, mostly the host's time on
the machine that ran them: it says that there is a prediction, not how fast the framework is.
"""


def page(files, results, absent):
    """The whole page.

    `files` as `manifest.load()` gives them, `results` by the names of runs, `absent` with names and reasons.
    """
    lines = [_HEAD]
    by_case = defaultdict(list)
    for entry in results.values():
        by_case[entry["case"]].append(entry)
    lines += _summary(files, by_case)
    for file in files:
        lines += _framework(file, by_case)
    lines += ["## Not covered", "", "| framework | why |", "|---|---|"]
    lines += [f"| {item['framework']} | {item['why']} |" for item in absent]
    return "\n".join(lines).rstrip() + "\n"


def _summary(files, by_case):
    lines = [
        "| framework | version | PyTorch | CUDA | runs that pass | missing |",
        "|---|---|---|---|---|---|",
    ]
    for file in files:
        entries = [entry for case in file["case"] for entry in by_case[case["name"]]]
        planned = sum(len(case["runs"]) for case in file["case"])
        passed = f"{sum(entry['passed'] for entry in entries)} of {len(entries)}"
        if planned > len(entries):
            passed += f" ({planned - len(entries)} more not made yet)"
        versions = " | ".join(_values(entries, key) for key in ("version", "torch", "cuda"))
        missing = "; ".join(file.get("missing", [])) or "-"
        lines.append(f"| {file['framework']} | {versions} | {passed} | {missing} |")
    return [*lines, ""]


def _values(entries, key):
    """The values of a field over runs, in order and once each."""
    values = (str(entry[key]) for entry in entries if entry.get(key))
    # PyTorch's version names the CUDA, which has a column of its own.
    return ", ".join(dict.fromkeys(value.split("+")[0] for value in values)) or "-"


def _framework(file, by_case):
    lines = [
        f"## {file['framework']}",
        "",
        "| what | ranks | step | peak memory | result |",
        "|---|---|---|---|---|",
    ]
    for case in file["case"]:
        entries = {(entry["cluster"], entry["ranks"]): entry for entry in by_case[case["name"]]}
        for number, text in enumerate(case["runs"]):
            entry = entries.get(tuple(text.split()))
            lines.append(f"| {case['what'] if number == 0 else ''} | {_row(entry, text)} |")
    return [*lines, ""]


def _row(entry, text):
    cluster, ranks = text.split()
    if entry is None:
        return f"{ranks} on {cluster} | - | - | not run yet"
    place = (
        f"one process on {cluster}" if ranks == "-" else f"{ranks} of {entry.get('world', '?')} ({cluster})"
    )
    step = entry.get("step_seconds")
    peak = entry.get("peak_bytes")
    result = (
        "passes"
        if entry["passed"]
        else "**fails**: " + "; ".join(entry["complaints"][:2]).replace("|", "\\|").replace("\n", " ")[:300]
    )
    cells = [
        place,
        f"{step * 1e3:.1f} ms" if step else "-",
        f"{peak / 2**20:.0f} MiB" if peak else "-",
        result,
    ]
    return " | ".join(cells)
