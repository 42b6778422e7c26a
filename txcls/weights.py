"""How a checkpoint's file stores weights: as float16, or wide tables as int8 where the config says so.

A row of a table as int8 is an integer from -127 to 127 per number and one scale, the largest absolute value divided by
127 (symmetric absmax quantization by row: Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization", with
rows as blocks): half the size of float16, with an error of at most half a scale.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from txcls.config import RunConfig, StoredTables
from txcls.errors import CheckpointError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from txcls.model import Encoder

TABLES = ("embeddings.token.weight", "embeddings.ngram.table.weight", "phrases.table")
"""Names of the weights that may be stored in eight bits: a row for each token, bigram, phrase."""
NARROWEST = 16
"""Columns from which on eight bits pay: narrower rows stay float16, as a scale for each would eat what is saved."""
LARGEST = 127
"""Of the integers."""
SMALLEST_SCALE = 2.0**-14
"""The smallest number that float16 holds in full precision: what a row's scale is at least."""
SCALE = ".scale"
"""What is added to a table's name for the name of its scales."""
LARGEST_HEADER = 2_000_000
"""Bytes in which a file names its tensors; a hundred layers take a tenth of it."""
MOST_DIMENSIONS = 8


def packed(weights: "Mapping[str, Tensor]", tables: StoredTables) -> "dict[str, Tensor]":
    """A model's weights as they are written: a table of N rows as (N, D) int8 and its scales (N, 1) float16.

    Storing what `unpacked` gives makes the same bits again, so that a checkpoint may be read and written at will.

    Args:
        weights: a `state_dict`.
        tables: "float16" for all that is floating point, or "int8" for wide tables.
    """
    found: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        values = tensor.detach().cpu()
        if tables == "int8" and name in TABLES and values.shape[1] >= NARROWEST:
            found[name], found[name + SCALE] = in_eight_bits(values)
        else:
            found[name] = (values.half() if values.is_floating_point() else values).contiguous()
    return found


def in_eight_bits(table: "Tensor") -> "tuple[Tensor, Tensor]":
    """A table of floats (N, D) as int8 (N, D), and the scale of each row (N, 1) in float16."""
    import torch

    scale = (table.float().abs().amax(dim=1, keepdim=True) / LARGEST).clamp(min=SMALLEST_SCALE).half()  # N 1
    integers = (table.float() / scale.float()).round().clamp(-LARGEST, LARGEST)  # N D
    return integers.to(torch.int8), scale


def unpacked(weights: "Mapping[str, Tensor]") -> "dict[str, Tensor]":
    """What `packed` wrote, with tables in float32 again; other weights, and what is no table with its scales, as is."""
    import torch

    found = dict(weights)
    for name in TABLES:
        table, scale = weights.get(name), weights.get(name + SCALE)
        if table is None or scale is None or table.dtype != torch.int8:
            continue
        if table.dim() == 2 and scale.shape == (len(table), 1):
            # Arithmetic on the meta device would import torch's compiler, which takes 2 s.
            found[name] = (
                torch.empty_like(table, dtype=torch.float32) if table.is_meta else table.float() * scale.float()
            )
            del found[name + SCALE]
    return found


def read_shapes(path: Path) -> "dict[str, Tensor]":
    """Names, shapes and types of a safetensors file's tensors, as meta tensors; values are not read.

    Raises:
        CheckpointError: it is not a complete safetensors file, or names more tensors than any model here has.
    """
    import torch
    from safetensors import SafetensorError, safe_open

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
                if kind not in types or len(shape) > MOST_DIMENSIONS:
                    raise CheckpointError(f"{path}: {name:.200} is {kind} in {len(shape)} dimensions; no weight is")
                found[name] = torch.empty(shape, dtype=types[kind], device="meta")
    except (SafetensorError, OSError, ValueError, RuntimeError, OverflowError) as error:
        raise CheckpointError(f"{path}: not a complete safetensors file ({error!s:.200})") from None
    return found


def round_as_stored(model: "nn.Module", tables: StoredTables) -> None:
    """Round a model's weights in place to their stored values, so that it is evaluated as it will be used."""
    model.load_state_dict(unpacked(packed(model.state_dict(), tables)))


@contextmanager
def shapes_only() -> "Iterator[None]":
    """Build models on the meta device, where tensors have shapes but no numbers, so that nothing is allocated.

    In-place functions return such tensors as they are: there is nothing to fill, and some of them would import torch's
    compiler, which takes 2 s.
    """
    import torch
    from torch.overrides import TorchFunctionMode

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


def build_without_memory(config: RunConfig, *, vocab_size: int, n_classes: int) -> "Encoder":
    """The model of a configuration on torch's meta device: shapes without numbers, which cannot compute.

    Args:
        config: of a preset or checkpoint.
        vocab_size: V.
        n_classes: C; only used by classifiers.
    """
    from txcls.model import LanguageModel, ReplacedTokenDetector, TextClassifier

    with shapes_only():
        if config.objective == "classify":
            return TextClassifier(config.model, vocab_size=vocab_size, n_classes=n_classes)
        kind = ReplacedTokenDetector if config.objective == "replaced" else LanguageModel
        return kind(config.model, vocab_size=vocab_size)
