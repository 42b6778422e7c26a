"""A checkpoint's weights: stored as float16, their shapes read without their values, and models without memory."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from txcls.config import RunConfig
from txcls.errors import CheckpointError
from txcls.model import Encoder, LanguageModel, TextClassifier

LARGEST_HEADER = 2_000_000
"""Bytes in which a file names its tensors; a hundred layers take a tenth of it."""
MAX_DIMENSIONS = 8


def as_stored(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A model's `state_dict` as it is written: float16, on the CPU."""
    return {name: tensor.detach().cpu().half().contiguous() for name, tensor in weights.items()}


def read_shapes(path: Path) -> dict[str, Tensor]:
    """Names, shapes and types of a safetensors file's tensors, as meta tensors; values are not read.

    Raises:
        CheckpointError: it is not a complete safetensors file, or names more tensors than any model here has.
    """
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if LARGEST_HEADER < size <= path.stat().st_size:
                raise CheckpointError(
                    f"{path}: a header of {size:,} bytes; at most {LARGEST_HEADER:,} are read. Is it a txcls model?"
                )
            header = file.read(min(size, LARGEST_HEADER))
            if header.count(b"{") > 20_000 or header.count(b",") > 200_000 or header.count(b"[") > 50_000:
                raise CheckpointError(f"{path}: names more tensors than any txcls model has")
        types = {
            "F64": torch.float64,
            "F32": torch.float32,
            "F16": torch.float16,
            "BF16": torch.bfloat16,
            "I64": torch.int64,
            "I32": torch.int32,
            "I16": torch.int16,
            "I8": torch.int8,
            "U8": torch.uint8,
            "BOOL": torch.bool,
        }
        found = {}
        with safe_open(path, framework="pt") as tensors:  # checks that sizes in the header fit the file's
            for name in tensors.keys():  # noqa: SIM118  # not a mapping
                part = tensors.get_slice(name)
                shape, kind = part.get_shape(), part.get_dtype()
                if kind not in types or len(shape) > MAX_DIMENSIONS:
                    raise CheckpointError(f"{path}: {name:.200} is {kind} in {len(shape)} dimensions; no weight is")
                found[name] = torch.empty(shape, dtype=types[kind], device="meta")
    except (SafetensorError, OSError, ValueError, RuntimeError, OverflowError) as error:
        raise CheckpointError(f"{path}: not a complete safetensors file ({error!s:.200})") from None
    return found


def read_header(path: Path) -> dict[str, str]:
    """The named texts in a safetensors file's header; empty without any.

    Raises:
        CheckpointError: it is not a complete safetensors file.
    """
    try:
        with safe_open(path, framework="pt") as tensors:
            return dict(tensors.metadata() or {})
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path}: not a complete safetensors file ({error!s:.200})") from None


def round_as_stored(model: nn.Module) -> None:
    """Round a model's weights in place to their stored values, so that it is evaluated as it will be used."""
    model.load_state_dict(as_stored(model.state_dict()))


@contextmanager
def shapes_only() -> Iterator[None]:
    """Build models on the meta device, where tensors have shapes but no numbers, so that nothing is allocated.

    In-place functions return such tensors as they are: there is nothing to fill, and some of them would import torch's
    compiler, which takes 2 s.
    """

    class NoFilling(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            kwargs = kwargs or {}
            name = func.__name__
            if name.endswith("_") and not name.endswith("__"):
                tensor = args[0] if args else kwargs.get("tensor")
                if getattr(tensor, "is_meta", False):
                    return tensor
            return func(*args, **kwargs)

    with torch.device("meta"), NoFilling():
        yield


def build_without_memory(config: RunConfig, *, vocab_size: int, n_classes: int) -> Encoder:
    """The model of a configuration on torch's meta device: shapes without numbers, which cannot compute.

    Args:
        config: of a preset or checkpoint.
        vocab_size: V.
        n_classes: C; only used by classifiers.
    """
    with shapes_only():
        if config.objective == "classify":
            return TextClassifier(config.model, vocab_size=vocab_size, n_classes=n_classes)
        return LanguageModel(config.model, vocab_size=vocab_size)
