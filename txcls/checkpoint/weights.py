"""Store weights as float16, check them before they are read, and build models on the meta device to get their
shapes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from txcls.checkpoint.json_files import refuse_pointer
from txcls.config import RunConfig
from txcls.errors import CheckpointError
from txcls.model import Encoder, LanguageModel, TextClassifier

MAX_HEADER_BYTES = 2_000_000
"""Maximum size of a file's header; a model with a hundred layers needs a tenth of this."""
MAX_DIMENSIONS = 8
_TYPES = {
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


def as_stored(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A model's `state_dict` in its stored form: float16, on the CPU."""
    return {name: tensor.detach().cpu().half().contiguous() for name, tensor in weights.items()}


def check_finite(weights: dict[str, Tensor], *, where: str) -> dict[str, Tensor]:
    """Check that all weights are finite, and return them unchanged.

    Raises:
        CheckpointError: some are not finite; the message begins with `where` and names them.
    """
    if names := [name for name, tensor in weights.items() if not torch.stack(tensor.aminmax()).isfinite().all()]:
        raise CheckpointError(f"{where}: not finite: {', '.join(names[:5])}")
    return weights


def round_as_stored(model: nn.Module) -> None:
    """Round a model's weights in place to their stored values, so that evaluation uses the weights that are saved."""
    model.load_state_dict(as_stored(model.state_dict()))


def read_header(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file as meta tensors, and its metadata; values are not read.

    Raises:
        CheckpointError: it is not a complete safetensors file, or has more tensors than any txcls model.
    """
    try:
        with path.open("rb") as file:
            refuse_pointer(file.read(64), where=str(path))
            file.seek(0)
            size = int.from_bytes(file.read(8), "little")
            if MAX_HEADER_BYTES < size <= path.stat().st_size:
                raise CheckpointError(
                    f"{path}: a header of {size:,} bytes; expected at most {MAX_HEADER_BYTES:,}. Is it a txcls model?"
                )
            header = file.read(min(size, MAX_HEADER_BYTES))
            if header.count(b"{") > 20_000 or header.count(b",") > 200_000:
                raise CheckpointError(f"{path}: has more tensors than any txcls model")
        tensors = {}
        with safe_open(path, framework="pt") as stored:  # checks that the sizes in the header match the file
            for name in stored.keys():  # noqa: SIM118  # not a mapping
                part = stored.get_slice(name)
                shape, kind = part.get_shape(), part.get_dtype()
                if kind not in _TYPES or len(shape) > MAX_DIMENSIONS:
                    raise CheckpointError(
                        f"{path}: {name:.200} is {kind} in {len(shape)} dimensions; no txcls model has such weights"
                    )
                tensors[name] = torch.empty(shape, dtype=_TYPES[kind], device="meta")
            return tensors, dict(stored.metadata() or {})
    except (SafetensorError, OSError, ValueError, RuntimeError, OverflowError) as error:
        raise CheckpointError(f"{path}: not a complete safetensors file ({error!s:.200})") from None


def load_weights(
    path: Path,
    shapes: Mapping[str, Sequence[int]],
    *,
    rename: Callable[[dict[str, Tensor]], dict[str, Tensor]] = dict,
) -> dict[str, Tensor]:
    """The weights of a safetensors file, read only if its header has exactly these names and shapes.

    float64 becomes float32. `rename` turns a published model's weights, or meta tensors, into ours.

    Raises:
        CheckpointError: the file is damaged or does not match, or a weight is not finite in float32; the message names
            the weights.
    """
    header, _ = read_header(path)
    try:
        stored = rename(header)
    except KeyError as error:
        raise CheckpointError(f"{path}: lacks {error.args[0]}") from None
    except (ValueError, RuntimeError, IndexError) as error:
        raise CheckpointError(f"{path} does not fit config.json: {error!s:.200}") from None
    problems = [f"lacks {name}" for name in shapes if name not in stored]
    problems += [f"holds unknown {name:.200}" for name in stored if name not in shapes]
    for name, shape in shapes.items():
        if name in stored and stored[name].shape != tuple(shape):
            problems.append(f"{name} is {tuple(stored[name].shape)}, expected {tuple(shape)}")
        elif name in stored and not stored[name].is_floating_point():
            problems.append(f"{name} is {stored[name].dtype}, expected floating point")
    if problems:
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise CheckpointError(f"{path} does not fit the other files: {'; '.join(problems[:5])}{more}")
    try:
        weights = {name: w.float() if w.dtype == torch.float64 else w for name, w in load_file(path).items()}
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path}: not a complete safetensors file ({error!s:.200})") from None
    return check_finite(rename(weights), where=str(path))


@contextmanager
def shapes_only() -> Iterator[None]:
    """Inside the block, models are built on the meta device: tensors have shapes but no values, and take no memory.

    In-place functions return such tensors unchanged, since some of them would import torch's compiler, which takes 2 s.
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


def load_model(
    path: Path,
    config: RunConfig,
    *,
    vocab_size: int,
    n_classes: int,
    rename: Callable[[dict[str, Tensor]], dict[str, Tensor]] = dict,
) -> Encoder:
    """A configuration's model in evaluation mode, with the weights of a safetensors file as float32.

    Raises:
        CheckpointError: as for `load_weights`, or there is no model with these settings.
    """
    try:
        model = build_without_memory(config, vocab_size=vocab_size, n_classes=n_classes)
    except (ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path.parent}: cannot build a model with these settings ({error!s:.200})") from None
    # Nothing has been allocated, and nothing is unless the file contains a model of this size.
    shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}
    weights = load_weights(path, shapes, rename=rename)
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()}, assign=True)
    return model.eval()


def build_without_memory(config: RunConfig, *, vocab_size: int, n_classes: int) -> Encoder:
    """A configuration's model on torch's meta device: its tensors have shapes but no values."""
    with shapes_only():
        if config.objective == "classify":
            return TextClassifier(config.model, vocab_size=vocab_size, n_classes=n_classes)
        return LanguageModel(config.model, vocab_size=vocab_size)
