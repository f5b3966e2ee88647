"""Runs the sweep: chunk after chunk until all are there or the time is over.

A chunk is one trace and a few rows of the tables. What is there already is not measured again, so an
interrupted sweep goes on where it stopped. A case that fails (no memory, not supported on this GPU) is named
in `failed.txt` and left out.
"""

import csv
import gzip
import json
import os
import statistics
import time
from pathlib import Path

import torch

from . import operations, shapes

# Runs that are timed; as many again before, to choose algorithms and raise the clocks.
_RUNS = 5
_COLUMNS = {
    "gemm": "gpu dtype m n k batch layout direction time_us source",
    "attention": "gpu dtype batch heads kv_heads seq_q seq_kv head_dim causal direction impl time_us source",
    "convolution": "gpu dtype batch in_channels out_channels in_h in_w kernel_h kernel_w "
    "stride_h stride_w pad_h pad_w layout direction time_us source",
    "pointwise": "gpu dtype op rows cols bytes_moved direction time_us source",
}
_LABEL = "trompe:"


class Sweep:
    """A sweep into a folder."""

    def __init__(self, out, device="cuda", budget=600.0, small=False, say=print):
        self.out = Path(out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.device = torch.device(device)
        self.budget = budget
        self.small = small
        self.say = say
        on_gpu = self.device.type == "cuda"
        self.gpu = torch.cuda.get_device_name(self.device) if on_gpu else "cpu"
        self.failed = []

    def run(self, families=tuple(shapes.FAMILIES)):
        """Measures what is not there yet; returns (chunks there, chunks in all)."""
        chunks = shapes.chunks(families, self.small)
        start = time.monotonic()
        there = 0
        for number, (name, cases) in enumerate(chunks):
            if self._trace(name).exists():
                there += 1
                continue
            spent = time.monotonic() - start
            if spent > self.budget:
                self.say(f"time is over after {number} of {len(chunks)} parts; run it again to go on")
                break
            self._measure(name, cases)
            there += 1
            self.say(f"{name}: {len(cases)} cases ({there} of {len(chunks)} parts, {spent:.0f} s)")
        if self.failed:
            (self.out / "failed.txt").write_text("".join(f"{line}\n" for line in self.failed))
            self.say(f"{len(self.failed)} cases failed, see failed.txt")
        return there, len(chunks)

    def _trace(self, name):
        return self.out / f"{name}.json.gz"

    def _measure(self, name, cases):
        calls = []
        for case in cases:
            try:
                for label, call, row in operations.build(case, self.device):
                    for _ in range(_RUNS if self.device.type == "cuda" else 1):
                        call()
                    calls.append((f"{_LABEL}{len(calls)}:{label}", call, row))
                self._synchronize()
                self._profile(name, calls, case)
            except (RuntimeError, TypeError, NotImplementedError) as error:
                self.failed.append(f"{case}: {str(error).splitlines()[0]}")
            calls = calls[:0]
        self._merge(name)

    def _profile(self, name, calls, case):
        """One session of the profiler for one case; its trace becomes a part of the chunk's."""
        from torch.profiler import ProfilerActivity, profile, record_function

        activities = [ProfilerActivity.CPU]
        if self.device.type == "cuda":
            activities.append(ProfilerActivity.CUDA)
        wall = {}
        with profile(activities=activities, record_shapes=True) as profiler:
            for label, call, _ in calls:
                for run in range(_RUNS):
                    begin = time.perf_counter()
                    with record_function(f"{label}:{run}"):
                        call()
                    wall.setdefault(label, []).append((time.perf_counter() - begin) * 1e6)
            self._synchronize()
        part = self.out / f".{name}.{len(list(self.out.glob(f'.{name}.*')))}.json"
        profiler.export_chrome_trace(str(part))
        device = {}
        for event in profiler.events():
            if event.name.startswith(_LABEL):
                total = getattr(event, "device_time_total", None)
                total = event.cuda_time_total if total is None else total
                device.setdefault(event.name.rsplit(":", 1)[0], []).append(total)
        for label, _, row in calls:
            times = [t for t in device.get(label, []) if t > 0] or (
                wall[label] if self.device.type == "cpu" else []
            )
            if row is not None and times:
                self._row(row, statistics.median(times))

    def _row(self, row, microseconds):
        table = row["table"]
        columns = _COLUMNS[table].split()
        path = self.out / f"{table}.csv"
        fresh = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            if fresh:
                writer.writeheader()
            more = {
                "gpu": self.gpu,
                "time_us": f"{microseconds:.3f}",
                "source": f"sweep/torch-{torch.__version__}",
            }
            writer.writerow({**row, **more})

    def _merge(self, name):
        """The sessions of a chunk as one trace: correlations and threads are made distinct."""
        parts = sorted(self.out.glob(f".{name}.*.json"), key=lambda path: int(path.name.split(".")[-2]))
        merged = {}
        for number, part in enumerate(parts):
            trace = json.loads(part.read_text())
            events = [_distinct(event, number) for event in trace["traceEvents"] if event.get("ph") == "X"]
            if number == 0:
                merged = {key: value for key, value in trace.items() if key != "traceEvents"}
                merged["traceEvents"] = []
                merged.setdefault("deviceProperties", [{"id": 0, "name": self.gpu}])
            merged["traceEvents"] += events
        scratch = self.out / f".{name}.json.gz"
        with gzip.open(scratch, "wt") as file:
            json.dump(merged or {"traceEvents": []}, file)
        os.replace(scratch, self._trace(name))
        for part in parts:
            part.unlink()

    def _synchronize(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


# Beyond the numbers of one session.
_APART = 1 << 24


def _distinct(event, number):
    arguments = event.get("args", {})
    for key in ("correlation", "External id"):
        if isinstance(arguments.get(key), int):
            arguments[key] += number * _APART
    return event
