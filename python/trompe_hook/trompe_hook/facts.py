"""Facts about the process that a trace must carry to be understood later.

Versions and every environment variable that changes what PyTorch and the CUDA
libraries do (workspaces, allocator, collectives) at start; PyTorch's own memory
statistics at exit, against which the report checks what it derived from the
allocator events. Values are text; structured values are JSON with sorted keys.
"""

import json
import os
import platform
import sys

# Variables that change kernels, workspaces, memory or communication.
_PREFIXES = (
    "ACCELERATE_",
    "CUBLAS",
    "CUDA_",
    "CUDNN_",
    "DEEPSPEED_",
    "DS_",
    "FSDP_",
    "GLOO_",
    "MEGATRON_",
    "MKL_",
    "NCCL_",
    "NVIDIA_TF32_OVERRIDE",
    "NVSHMEM_",
    "NVTE_",
    "OMP_",
    "PYTORCH_",
    "TORCH",
    "TRITON_",
)
_NAMES = (
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "NODE_RANK",
    "GROUP_RANK",
    "RANK",
    "TROMPE_RANK",
    "TROMPE_RANKS",
    "TROMPE_WORLD_SIZE",
    "WORLD_SIZE",
)

# Packages that decide which kernels run, or are good to know of when numbers differ.
_PACKAGES = (
    "accelerate",
    "apex",
    "deepspeed",
    "flash_attn",
    "lightning",
    "megatron.core",
    "numpy",
    "pytorch_lightning",
    "torch",
    "torchao",
    "torchtitan",
    "torchvision",
    "transformer_engine",
    "transformers",
    "triton",
    "vllm",
    "xformers",
)


def _json(value):
    return json.dumps(value, sort_keys=True, default=str)


def at_start(target, torch):
    """Records what is known when PyTorch has just been imported."""
    environment = {
        name: value for name, value in os.environ.items() if name in _NAMES or name.startswith(_PREFIXES)
    }
    facts = {
        "python.version": platform.python_version(),
        "python.executable": sys.executable,
        # `sys.argv` is not there yet when PyTorch is imported by a start-up file.
        "python.argv": _json(getattr(sys, "orig_argv", None) or getattr(sys, "argv", [])),
        "torch.version": torch.__version__,
        "torch.git_version": str(torch.version.git_version),
        "torch.cuda": str(torch.version.cuda),
        "torch.path": os.path.dirname(torch.__file__),
        "torch.allocator_backend": torch.cuda.get_allocator_backend(),
        "torch.allocator_settings": _allocator_settings(),
        "environment": _json(environment),
    }
    for key, value in facts.items():
        target.meta(key, value)


def _allocator_settings():
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        if name in os.environ:
            return os.environ[name]
    return ""


def at_exit(target, torch):
    """Records PyTorch's memory statistics and how the script ended."""
    error = getattr(sys, "last_value", None)
    if error is not None:
        kind = type(error)
        target.meta("python.exception", f"{kind.__module__}.{kind.__qualname__}")
        target.meta("python.exception_message", str(error))
    versions = {
        name: str(version)
        for name in _PACKAGES
        if (version := getattr(sys.modules.get(name), "__version__", None)) is not None
    }
    target.meta("python.packages", _json(versions))
    if not torch.cuda.is_initialized():
        return
    statistics = {}
    peaks = {}
    for device in range(torch.cuda.device_count()):
        counters = dict(torch.cuda.memory_stats(device))
        if not counters.get("reserved_bytes.all.peak", 0):
            continue
        statistics[device] = counters
        peaks[device] = {
            "max_memory_allocated": torch.cuda.max_memory_allocated(device),
            "max_memory_reserved": torch.cuda.max_memory_reserved(device),
            "memory_allocated": torch.cuda.memory_allocated(device),
            "memory_reserved": torch.cuda.memory_reserved(device),
        }
    target.meta("torch.memory_stats", _json(statistics))
    target.meta("torch.memory_peaks", _json(peaks))
