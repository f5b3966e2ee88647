"""What must hold of a job's output folder. Every check appends to a list of complaints."""

import json
import re

FILES = ("report.json", "report.html", "timeline.json")
_GIB = 2**30


def check(job, folder, code, output):
    """Complaints about a finished job: an empty list is a pass."""
    complaints = []

    def require(condition, text):
        if not condition:
            complaints.append(text)

    require(code == job["exit"], f"exit code {code} instead of {job['exit']}")
    for text in job["output"]:
        require(text in output, f"the job did not print {text!r}")
    missing = [name for name in FILES if not (folder / name).is_file()]
    require(not missing, f"not written: {', '.join(missing)}")
    if "report.json" in missing:
        return complaints

    report = json.loads((folder / "report.json").read_text())
    status = report["verdict"]["status"]
    require(status == job["verdict"], f"verdict {status} instead of {job['verdict']}")
    ranks = (report["world_size"], report["ranks_emulated"])
    ran = job["ran"] if isinstance(job["ran"], list) else [job["ran"]]
    require(ranks in [(job["world"], count) for count in ran], f"{ranks[1]} of {ranks[0]} ranks ran")
    require(report["job"]["exit_code"] in (job["exit"], None), f"job.exit_code {report['job']['exit_code']}")
    require(report["job"]["records"] > 0, "no records")
    _check_memory(job, report["memory"], output, require)
    if job["steps"]:
        _check_step(job, report, require)
    _check_coverage(job, report["coverage"], require)
    if job["family"]:
        _check_family(job["family"], report, folder, require)
    notes = "\n".join(note["text"] for note in report["notes"])
    for text in job["notes"]:
        require(text in notes, f"no note says {text!r}")
    if "timeline.json" not in missing:
        events = json.loads((folder / "timeline.json").read_text())["traceEvents"]
        require(not job["steps"] or len(events) > 10, f"{len(events)} events in the timeline")
        _check_order(job, events, require)
    return complaints


def _check_family(count, report, folder, require):
    family = report["family"]
    samples, steps = family["samples"], family["steps_without_host"]
    require(len(samples) == count, f"{len(samples)} samples instead of {count}")
    require(samples[0]["seconds"] == report["step_time"]["seconds"], "the first sample is not the report's")
    require(steps["low"] <= steps["median"] <= steps["high"], f"percentiles out of order: {steps}")
    seconds = {sample["seconds_without_host"] for sample in samples}
    require(len(seconds) == count, f"other choices, but the same steps: {sorted(seconds)}")
    missing = [sample["report"] for sample in samples if not (folder / sample["report"]).is_file()]
    require(not missing, f"no reports: {missing}")


def _check_memory(job, memory, output, require):
    allocated, reserved = memory["peak_allocated_bytes"], memory["peak_reserved_bytes"]
    total, capacity = memory["total_bytes"], memory["capacity_bytes"]
    require(
        0 < allocated <= reserved <= total <= capacity,
        f"memory out of order: peak {allocated}, reserved {reserved}, total {total}, capacity {capacity}",
    )
    # Something outside the allocator is always there: the context.
    require(total - reserved > 100 * 2**20, f"only {total - reserved} bytes outside the allocator")
    require(
        total - reserved < job["outside"] * _GIB, f"{(total - reserved) / _GIB:.1f} GiB outside the allocator"
    )
    printed = re.findall(r"^max_memory_allocated (\d+)$", output, re.MULTILINE)
    if printed and job["peak"] == "equal":
        largest = max(int(bytes_) for bytes_ in printed)  # the report's is that of the rank with the most
        require(allocated == largest, f"peak {allocated} but the script printed {largest}")


def _check_step(job, report, require):
    step = report["step_time"]
    if step is None:
        require(False, "no step was found")
        return
    require(
        0 < step["low"] <= step["seconds"] <= step["high"],
        f"step time {step['seconds']} is not within {step['low']}..{step['high']}",
    )
    require(1e-6 < step["seconds"] < 100, f"step time {step['seconds']} s")
    parts = sum(part["seconds"] for part in report["breakdown"])
    require(abs(parts - step["seconds"]) <= 1e-6 * step["seconds"], f"the breakdown adds up to {parts}")
    busy = {part["kind"] for part in report["breakdown"] if part["kernel_seconds"] > 0}
    absent = [kind for kind in job["kinds"] if kind not in busy]
    require(not absent, f"no kernel time for {', '.join(absent)} (there is {', '.join(sorted(busy))})")
    for kernel in report["kernels"]:
        require(kernel["seconds"] > 0, f"kernel {kernel['name']} costs nothing")
        require(kernel["count"] > 0, f"kernel {kernel['name']} is never launched")
    claims = {
        "hidden": lambda time: time > 1.2 * step["seconds"],
        "waited": lambda time: time < 1.2 * step["seconds"],
    }
    for key, holds in claims.items():
        if job[key]:
            time = sum(kernel["seconds"] for kernel in report["kernels"] if kernel["name"] == job[key])
            require(time > 0 and holds(time), f"{job[key]}: {time} s in a step of {step['seconds']} s")
    flops = report["flops"]
    require(flops is None or 0 <= flops["mfu"] <= 1, f"MFU {flops and flops['mfu']}")


def _check_coverage(job, coverage, require):
    refused = {call["symbol"] for call in coverage["unsupported_calls"]} - set(job["refused"])
    require(not refused, f"refused calls: {', '.join(sorted(refused))}")
    share = coverage["kernels_with_shapes_share"]
    if job["steps"] and share is not None:
        require(share > job["shapes"], f"only {share:.0%} of the kernels have an operator with shapes")


def _check_order(job, events, require):
    """Work of the second category waits for all work of the first that began before it on its rank."""
    if not job["after"]:
        return
    first, second = job["after"]
    spans = [event for event in events if event["ph"] == "X"]
    earlier = [event for event in spans if event.get("cat") == first]
    later = [event for event in spans if event.get("cat") == second]
    require(earlier and later, f"no {first} or no {second} in the timeline")
    for event in later:
        for other in earlier:
            overlaps = other["ts"] < event["ts"] < other["ts"] + other["dur"] - 0.001
            require(
                not (other["pid"] == event["pid"] and overlaps),
                f"{event['name']} at {event['ts']} does not wait for {other['name']}",
            )
