"""The sweep of `trompe profile --gpu` at tiny sizes: on the pretended GPU, and for real on the processor."""

import gzip
import json
import tempfile
from pathlib import Path

from trompe.profile.__main__ import main

FAMILIES = {"attention", "convolution", "gemm", "optimizer", "pointwise"}

for device in ("cuda", "cpu"):
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--device", device, "--small", "--out", folder]
        assert main([*arguments, "--families", "gemm"]) == 0
        first = (Path(folder) / "gemm-00.json.gz").stat().st_mtime_ns
        assert main(arguments) == 0
        # What was there was not measured again.
        assert (Path(folder) / "gemm-00.json.gz").stat().st_mtime_ns == first
        assert not (Path(folder) / "failed.txt").exists(), (Path(folder) / "failed.txt").read_text()
        traces = {path.name.split("-")[0]: path for path in Path(folder).glob("*.json.gz")}
        assert set(traces) == FAMILIES, traces
        for family, path in traces.items():
            events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
            shaped = [event for event in events if event.get("args", {}).get("Input Dims")]
            assert shaped, f"no shapes in {family}"
        assert 'kind = "host"' in (Path(folder) / "host.toml").read_text()
        tables = {path.stem for path in Path(folder).glob("*.csv")}
        # Only what really ran took time.
        wanted = FAMILIES - {"optimizer"} if device == "cpu" else set()
        assert tables == wanted, tables
        print(f"{device}: {len(traces)} traces, {len(tables)} tables")
