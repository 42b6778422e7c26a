"""Where to compute, and in which precision."""

import os
import platform
from pathlib import Path

import torch

from txcls.config import ModelConfig
from txcls.errors import TrainingError

KERNEL_CACHE = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
"""The environment variable that limits the number of compiled kernels in oneDNN's cache."""
MAX_KERNELS = 128
"""Maximum number of cached kernels. oneDNN compiles a kernel for each operation and shape; batches of texts have many
shapes, and with oneDNN's default of 1024, a process grows by 2 GB in a few hundred training steps in bfloat16."""


def bound_kernel_cache() -> None:
    """Limit oneDNN's cache to `MAX_KERNELS` in this process, unless the environment sets a limit.

    It must be called before the first computation, when oneDNN reads the variable.
    """
    os.environ.setdefault(KERNEL_CACHE, str(MAX_KERNELS))


def choose_device(name: str | None) -> torch.device:
    """The device with this name ("cpu", "cuda", …), checked by allocating a tensor on it; CUDA is preferred if the name
    is None.

    Raises:
        TrainingError: the device cannot be used here.
    """
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise TrainingError(f"device {name!r} cannot be used here ({reason}); try --device cpu") from None
    return device


def autocast_dtype(precision: str, *, device: torch.device, model: ModelConfig) -> torch.dtype | None:
    """The dtype for autocast, or None for float32 throughout.

    "auto" is bfloat16 where it is faster: on CUDA devices that support it, and on processors with bfloat16 instructions
    if d_model is at least 128 (the overhead of smaller models dominates, and casting adds to it).
    """
    if precision == "float32":
        return None
    if precision == "bfloat16":
        return torch.bfloat16
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else None
    has_bfloat16 = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.bfloat16 if device.type == "cpu" and has_bfloat16 and model.d_model >= 128 else None


def processor_name() -> str:
    """The processor's name, if the system reports it, and its number of cores."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()} ({os.cpu_count()} cores)"
