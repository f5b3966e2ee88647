"""Wrong use and bad luck: one clear message each, nothing lost, nothing left running.

A scenario is a function of the runner that returns complaints.
"""

import concurrent.futures
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

SCENARIOS = {}

# Other builds of PyTorch, as far as one can tell without running them.
_TORCH_STUBS = {
    "cpu": (
        "from . import version\n__version__ = version.__version__\n",
        "__version__ = '2.15.0+cpu'\ncuda = None\nhip = None\n",
    ),
    "cuda11": (
        "import ctypes\nctypes.CDLL('libcudart.so.11.0')\n",
        "__version__ = '2.0.1+cu118'\ncuda = '11.8'\nhip = None\n",
    ),
}


def scenario(function):
    """Registers a scenario under `misuse-` and its own name."""
    name = "misuse-" + function.__name__.replace("_", "-")
    SCENARIOS[name] = lambda runner: function(runner, runner.fresh(name))
    return function


def _said(output, *texts):
    """Complaints about texts that were not printed."""
    return [f"did not say {text!r}" for text in texts if text not in output]


def _failed(code, expected=None):
    if expected is None:
        return [] if code not in (0, None) else [f"exit code {code}"]
    return [] if code == expected else [f"exit code {code} instead of {expected}"]


def _no_panic(output):
    return [f"{word} in the output" for word in ("panicked at", "RUST_BACKTRACE") if word in output]


def _run(runner, folder, command, *, cluster="h100-sxm", out=None, **options):
    out = folder / "out" if out is None else out
    return runner.run(["run", "--cluster", cluster, "--out", str(out), "--", *command], folder, **options)


def _stub_torch(folder, kind):
    """A `torch` package that looks like another build; returns its `PYTHONPATH`."""
    package = folder / "site" / "torch"
    package.mkdir(parents=True)
    init, version = _TORCH_STUBS[kind]
    (package / "__init__.py").write_text(init)
    (package / "version.py").write_text(version)
    return {"PYTHONPATH": str(package.parent)}


@scenario
def no_pytorch(runner, folder):
    # The interpreter that the virtual environment was made from has no PyTorch.
    python = sys.executable if sys.prefix == sys.base_prefix else sys._base_executable
    if subprocess.run([python, "-c", "import torch"], check=False, capture_output=True).returncode == 0:
        return []  # this machine has PyTorch everywhere
    code, output = _run(runner, folder, [python, "-c", "import torch"])
    return _failed(code) + _said(output, "PyTorch is not installed", "pip install torch") + _no_panic(output)


@scenario
def pytorch_without_cuda(runner, folder):
    env = _stub_torch(folder, "cpu")
    code, output = _run(runner, folder, ["python", "-c", "import torch"], env=env)
    return _failed(code) + _said(output, "without CUDA", "pip install torch") + _no_panic(output)


@scenario
def pytorch_of_another_cuda(runner, folder):
    env = _stub_torch(folder, "cuda11")
    code, output = _run(runner, folder, ["python", "-c", "import torch"], env=env)
    return _failed(code) + _said(output, "CUDA 11.8", "CUDA 12 and 13") + _no_panic(output)


@scenario
def unknown_gpu(runner, folder):
    code, output = _run(runner, folder, ["python", "-c", "pass"], cluster="h100-smx")
    return _failed(code) + _said(output, "h100-smx", "h100-sxm") + _no_panic(output)


@scenario
def command_not_found(runner, folder):
    code, output = _run(runner, folder, ["pythonn", "train.py"])
    return _failed(code) + _said(output, "pythonn") + _no_panic(output)


@scenario
def script_not_found(runner, folder):
    code, output = _run(runner, folder, ["python", "no_such_script.py"])
    return _failed(code, 2) + _said(output, "no_such_script.py") + _no_panic(output)


@scenario
def no_cuda_used(runner, folder):
    _, output = _run(runner, folder, ["python", "-c", "print('hello')"])
    return _said(output, "hello", "CUDA") + _no_panic(output)


@scenario
def output_folder_unwritable(runner, folder):
    # A folder below a file cannot be made, not even by root.
    (folder / "file").write_text("")
    path = folder / "file" / "out"
    code, output = _run(runner, folder, ["python", "nvtx_steps.py"], out=path)
    return _failed(code) + _said(output, str(path), "Not a directory") + _no_panic(output)


@scenario
def output_folder_exists(runner, folder):
    # Whatever happens to a folder that has other things in it, they are not lost.
    out = folder / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    code, output = _run(runner, folder, ["python", "nvtx_steps.py"], out=out)
    lost = [] if (out / "notes.txt").read_text() == "mine" else ["the user's file was changed"]
    if code != 0:
        return lost + _said(output, str(out)) + _no_panic(output)
    _, output = _run(runner, folder, ["python", "nvtx_steps.py"], out=out)
    return lost + ([] if (out / "notes.txt").exists() else ["the user's file is gone"]) + _no_panic(output)


@scenario
def static_cuda_runtime(runner, folder):
    """A statically linked runtime asks the driver for undocumented tables; its library is named."""
    source, library = folder / "extension.c", folder / "extension.so"
    source.write_text(
        "#include <dlfcn.h>\n"
        "int start(void) {\n"
        '    int (*init)(unsigned) = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuInit");\n'
        '    int (*table)(const void **, const void *) = dlsym(RTLD_DEFAULT, "cuGetExportTable");\n'
        "    const void *found = 0;\n"
        '    return init(0) || table(&found, "0123456789abcdef");\n'
        "}\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    job = f"import torch, ctypes; torch.zeros(1).cuda(); ctypes.CDLL({str(library)!r}).start(); print('done')"
    _, output = _run(runner, folder, ["python", "-c", job])
    said = _said(output, "done", f"`{library}` contains the CUDA runtime statically", "-cudart shared")
    return said + _no_panic(output)


@scenario
def disk_full(runner, folder):
    """The trace does not fit on the disk: the job still ends as it would, and it is said."""
    mount = folder / "small"
    mount.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mount)], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        return []  # needs root; covered where continuous integration runs as root
    try:
        _, output = _run(runner, folder, ["python", "transformer.py"], out=mount / "out")
        return _said(output, "max_memory_allocated", "No space left") + _no_panic(output)
    finally:
        subprocess.run(["umount", str(mount)], check=True)


@scenario
def interrupted(runner, folder):
    """Ctrl-C: the children end, and what was recorded so far is reported."""
    code, output = _run(
        runner,
        folder,
        ["python", "fails.py", "forever"],
        interrupt_after="now failing: forever",
    )
    complaints = _failed(code, 130) + _no_panic(output)
    report = folder / "out" / "report.json"
    if not report.is_file():
        return [*complaints, "no report of the part that ran"]
    status = json.loads(report.read_text())["verdict"]["status"]
    if status != "interrupted":
        complaints.append(f"verdict {status} instead of interrupted")
    return complaints + _left_running("fails.py forever")


def _left_running(command):
    """Complaints about processes of this command that are still there."""
    left = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if command in line:
                left.append(f"still running: {entry.name} {line.strip()}")
    return left


@scenario
def compiler_missing(runner, folder):
    """Without a C++ compiler the run goes on, without shapes, and says so once."""
    env = {"XDG_CACHE_HOME": str(folder / "cache"), "CXX": str(folder / "none")}
    tools = folder / "bin"
    tools.mkdir()
    for name in ("python", "bash", "env", "uname", "ldconfig"):
        found = [
            Path(runner.python).parent / name,
            Path("/usr/bin") / name,
            Path("/bin") / name,
            Path("/sbin") / name,
        ]
        for path in found:
            if path.exists():
                (tools / name).symlink_to(path)
                break
    # The symlink would lose the virtual environment, so `python` is a wrapper.
    (tools / "python").unlink()
    (tools / "python").write_text(f'#!/bin/bash\nexec {runner.python} "$@"\n')
    (tools / "python").chmod(0o755)
    code, output = _run(runner, folder, ["python", "nvtx_steps.py"], env=env | {"PATH": str(tools)})
    return (
        ([] if code == 0 else [f"exit code {code}"])
        + _said(output, "no C++ compiler", "goes on without")
        + _no_panic(output)
    )


def _distributed(runner, folder, ranks, *launcher):
    """A job that is refused before it starts."""
    arguments = ["run", "--cluster", "dgx-h100", *ranks, "--out", str(folder / "out"), "--"]
    return runner.run([*arguments, *launcher, "parallel.py", "ddp"], folder)


@scenario
def world_larger_than_the_cluster(runner, folder):
    """32 ranks on 8 devices: nothing is started."""
    code, output = _distributed(runner, folder, [], "torchrun", "--nnodes=4", "--nproc-per-node=8")
    return (
        _failed(code, 2)
        + _said(output, "the job has 32 ranks", "has 8 devices", "--cluster dgx-h100:NODES")
        + _no_panic(output)
    )


@scenario
def ranks_that_do_not_exist(runner, folder):
    """A rank beyond the last one, and ranks of a command that has none."""
    code, output = _distributed(runner, folder, ["--ranks", "0,8"], "torchrun", "--nproc-per-node=8")
    complaints = _failed(code, 2) + _said(output, "there is no rank 8: the job has 8 ranks")
    code, output = _distributed(runner, folder, ["--ranks", "0,1"], "python")
    return complaints + _failed(code, 2) + _said(output, "starts one process", "torchrun") + _no_panic(output)


@scenario
def launcher_without_a_script(runner, folder):
    """`torchrun` alone, and an option that it does not have."""
    out = ["--out", str(folder / "out"), "--"]
    code, output = runner.run(["run", *out, "torchrun", "--nproc-per-node=2"], folder)
    complaints = _failed(code, 2) + _said(output, "not told which script")
    code, output = runner.run(["run", *out, "torchrun", "--gpus=2", "parallel.py"], folder)
    return (
        complaints + _failed(code, 2) + _said(output, "torchrun has no option `--gpus`") + _no_panic(output)
    )


@scenario
def one_rank_killed(runner, folder):
    """A rank dies of a signal: which one is said, the others are stopped, their traces are used."""
    arguments = ["run", "--cluster", "dgx-h100", "--out", str(folder / "out"), "--"]
    command = ["torchrun", "--nproc-per-node=8", "dies.py"]
    code, output = runner.run([*arguments, *command], folder)
    return (
        _failed(code, 137)
        + _said(output, "Rank 7 of 8 ended with exit code 137; the other ranks were stopped")
        + _left_running("dies.py")
        + _no_panic(output)
    )


def _disagreement(runner, folder, how, *texts):
    """Two ranks that disagree: what it would be on the cluster is said, with both lines of the script."""
    arguments = ["run", "--cluster", "dgx-h100", "--out", str(folder / "out"), "--ranks", "0,1", "--"]
    code, output = runner.run([*arguments, "torchrun", "--nproc-per-node=4", "disagrees.py", how], folder)
    # Lines are wrapped for the terminal.
    flat = " ".join(output.split())
    # What would hang cannot be simulated; a group that only some of its members make can.
    complaints = _failed(code, 0 if how == "group" else 1) + _said(flat, *texts) + _no_panic(output)
    # What was recorded can be looked at either way.
    place = runner.fresh(f"{folder.name}/shown")
    shown, output = runner.run(["trace", "show", str(folder / "out" / "job.trace")], place)
    return complaints + _failed(shown, 0) + _said(output, "AllReduce of 4.00 MiB")


@scenario
def ranks_in_different_orders(runner, folder):
    return _disagreement(
        runner,
        folder,
        "order",
        "an all-reduce of 4194304 bytes (F32) at disagrees.py:22 on rank 0",
        "a broadcast of 4194304 bytes (F32) with root 0 at disagrees.py:25 on rank 1",
        "this hangs or corrupts data",
    )


@scenario
def ranks_with_different_sizes(runner, folder):
    return _disagreement(
        runner, folder, "size", "2097152 bytes", "2097156 bytes", "disagrees.py:28", "call 3 of"
    )


@scenario
def a_rank_that_does_not_take_part(runner, folder):
    return _disagreement(
        runner,
        folder,
        "missing",
        "rank 0 makes call 3",
        "disagrees.py:31",
        "rank 1 never does",
        "hangs there",
    )


@scenario
def a_message_that_nobody_receives(runner, folder):
    return _disagreement(runner, folder, "message", "disagrees.py:35", "with rank 1, which makes only 1")


@scenario
def a_group_of_different_ranks(runner, folder):
    return _disagreement(
        runner,
        folder,
        "group",
        "Ranks 0 and 1 disagree about a communicator",
        "for rank 0 it has ranks 0, 1, for rank 1 ranks 0, 1, 2",
    )


@scenario
def a_port_in_use(runner, folder):
    """Ranks meet at trompe's own store, so a port that somebody else has is no obstacle."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = ["run", "--cluster", "dgx-h100", "--out", str(folder / "out"), "--ranks", "0,1", "--"]
        launcher = ["torchrun", f"--master-port={port}", "--nproc-per-node=2", "--nnodes=1"]
        code, output = runner.run([*arguments, *launcher, "parallel.py", "ddp"], folder)
    return _failed(code, 0) + _said(output, "rank 1 of 2: loss 0.0000") + _no_panic(output)


@scenario
def two_runs_at_once(runner, folder):
    """Two jobs on one machine do not meet each other; two in one folder are refused."""
    command = ["run", "--cluster", "dgx-h100", "--ranks", "0,1", "--out"]
    job = ["--", "torchrun", "--nproc-per-node=2", "--nnodes=1", "parallel.py", "ddp"]
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(runner.run, [*command, str(folder / name / "out"), *job], folder / name)
            for name in "ab"
        ]
        found = [run.result() for run in runs]
    complaints = [
        complaint
        for code, output in found
        for complaint in _failed(code, 0) + _said(output, "rank 0 of 2: loss", "rank 1 of 2: loss")
    ]
    return complaints


@scenario
def world_that_does_not_divide(runner, folder):
    """The script's own message comes through, and which rank it ended."""
    code, output = _distributed(runner, folder, [], "torchrun", "--nproc-per-node=3", "--nnodes=1")
    complaints = _failed(code, 0)
    arguments = ["run", "--cluster", "dgx-h100", "--out", str(folder / "two"), "--"]
    launcher = ["torchrun", "--nproc-per-node=3", "--nnodes=1"]
    code, output = runner.run([*arguments, *launcher, "parallel.py", "hsdp"], folder)
    return (
        complaints
        + _failed(code, 1)
        + _said(output, "IndexError", "Rank 2 of 3 ended with exit code 1")
        + _no_panic(output)
    )


def _report(folder, name):
    """A report with numbers of twelve digits: the same summed up in another order differs in the last one."""
    text = (folder / name / "report.json").read_text()
    return json.loads(text, parse_float=lambda number: f"{float(number):.12g}")


@scenario
def forked_ranks_are_like_others(runner, folder):
    """With and without one import for all ranks: the same kernels, sizes, memory and collectives."""
    found, complaints = [], []
    for name, flags in (("forked", []), ("own", ["--no-prefork"])):
        out = ["--host", "off", "--ranks", "0,9", "--out", str(folder / name), "--"]
        launcher = ["torchrun", "--nproc-per-node=8", "parallel.py", "fsdp2"]
        code, output = runner.run(["run", "--cluster", "dgx-h100:2", *flags, *out, *launcher], folder)
        complaints += _failed(code, 0) + _no_panic(output)
        if code == 0:
            report = _report(folder, name)
            names = ("peak_allocated_bytes", "peak_reserved_bytes", "total_bytes")
            memory = [report["memory"][name] for name in names]
            found.append((report["kernels"], memory, report["step_time"], report["communication"]))
    if len(found) == 2 and found[0] != found[1]:
        complaints.append("the reports differ")
    return complaints


@scenario
def tracebacks_of_forked_ranks(runner, folder):
    """An exception in a forked rank looks as in any other process, and its rank is named."""
    arguments = ["run", "--cluster", "dgx-h100", "--ranks", "0,1", "--out", str(folder / "out"), "--"]
    code, output = runner.run([*arguments, "torchrun", "--nproc-per-node=2", "fails.py", "raise"], folder)
    inside = ["trompe_hook in a traceback"] if "trompe_hook" in output or "runpy" in output else []
    expected = (
        'fails.py", line 27, in <module>',
        "ValueError: the data is not what it was",
        "ended with exit code 1",
    )
    return _failed(code, 1) + _said(" ".join(output.split()), *expected) + inside + _no_panic(output)


@scenario
def ranks_that_cannot_be_forked(runner, folder):
    """A script whose import starts a thread runs as ever, with a note."""
    package = folder / "site-packages" / "restless"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(999,), daemon=True).start()\n"
    )
    script = folder / "job.py"
    script.write_text(
        "import os\nimport restless\nimport torch\ntorch.zeros(1).cuda()\nprint('rank', os.environ['RANK'])\n"
    )
    arguments = ["run", "--cluster", "dgx-h100", "--ranks", "0,1", "--out", str(folder / "out"), "--"]
    code, output = runner.run(
        [*arguments, "torchrun", "--nproc-per-node=2", str(script)],
        folder,
        env={"PYTHONPATH": str(package.parent)},
    )
    flat = " ".join(output.split())
    said = _said(flat, "rank 0", "rank 1", "a process of its own", "has left a thread running")
    return _failed(code, 0) + said + _no_panic(output)
