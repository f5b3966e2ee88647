"""What calls into CUDA cost on this machine's processor: a host sheet.

Times are lower deciles of the profiler's own record of the calls: the decile, because a profiler is attached.
"""

import platform
import statistics
import time

import torch

_CALLS = {
    "launch_kernel": ("cudaLaunchKernel", "cudaLaunchKernelExC"),
    "memcpy_async": ("cudaMemcpyAsync",),
    "memset_async": ("cudaMemsetAsync",),
    "event_record": ("cudaEventRecord", "cudaEventRecordWithFlags"),
    "event_query": ("cudaEventQuery",),
    "stream_wait_event": ("cudaStreamWaitEvent",),
    "synchronize": ("cudaStreamSynchronize", "cudaDeviceSynchronize"),
}


def processor():
    """The processor's name."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"


def measure(device, runs=300):
    """Lower deciles of calls, and of eager operators without the profiler, in microseconds."""
    from torch.profiler import ProfilerActivity, profile

    x = torch.zeros(256, device=device)
    host = torch.zeros(256, pin_memory=device.type == "cuda")
    dispatch = {}
    for name, call in (("add", lambda: x + 1), ("mm", lambda: torch.mm(x.view(16, 16), x.view(16, 16)))):
        for _ in range(50):
            call()
        times = []
        for _ in range(runs):
            begin = time.perf_counter()
            call()
            times.append((time.perf_counter() - begin) * 1e6)
        dispatch[name] = statistics.quantiles(times, n=10)[0]
    calls = {}
    if device.type == "cuda":
        events = [torch.cuda.Event() for _ in range(2)]
        side = torch.cuda.Stream(device)
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            for _ in range(runs):
                x.add_(1)
                x.copy_(host, non_blocking=True)
                x.zero_()
                events[0].record()
                side.wait_event(events[0])
                events[0].query()
            for _ in range(20):
                torch.cuda.synchronize(device)
        for event in profiler.events():
            calls.setdefault(event.name, []).append(event.cpu_time_total)
    return calls, dispatch


def sheet(calls, dispatch):
    """The sheet as TOML; what was not seen is the generic host's."""
    name = processor()
    plain = "".join(c.lower() if c.isalnum() else "-" for c in name).strip("-")
    lines = [
        "# Written by `trompe profile`: use it with `trompe run --host FILE`.",
        'kind = "host"',
        'base = "generic"',
        f'name = "measured-{plain}"',
        f'processor = "{name}"',
        "",
        "[sources]",
        f'measured = "lower decile of the calls in a profile of PyTorch {torch.__version__} on {name}"',
    ]
    seen = []
    for key, symbols in _CALLS.items():
        times = [time for symbol in symbols for time in calls.get(symbol, [])]
        if len(times) >= 10:
            value = statistics.quantiles(times, n=10)[0]
            seen.append(f'{key} = {{ value = {max(value, 0.05):.2f}, unit = "us", source = "measured" }}')
    if seen:
        lines += ["", "[api]", *seen]
    eager = ", ".join(f"{name} {time:.1f} us" for name, time in dispatch.items())
    lines += ["", f"# A whole eager operator on the host, without a profiler: {eager}."]
    return "\n".join(lines) + "\n"
