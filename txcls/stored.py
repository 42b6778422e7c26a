"""How weights lie in a checkpoint's file: float16, and wide tables in eight-bit integers where the config says so.

Most of a small classifier's numbers stand in tables that a text reads a few rows of. A row in eight bits is an integer
from -127 to 127 for each number and one scale for all of them, what the largest is divided by 127 (symmetric absmax
quantization, a row at a time: Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization", with rows for
blocks). That is half of float16, at an error of at most half a scale.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from txcls.config import StoredTables

if TYPE_CHECKING:
    from torch import Tensor, nn

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


def stored(weights: "Mapping[str, Tensor]", tables: StoredTables) -> "dict[str, Tensor]":
    """A model's weights as they are written: a table of N rows as (N, D) int8 and its scales (N, 1) float16.

    Storing what `restored` gives makes the same bits again, so that a checkpoint may be read and written at will.

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


def restored(weights: "Mapping[str, Tensor]") -> "dict[str, Tensor]":
    """What `stored` wrote, with tables in float32 again; other weights, and what is no table with its scales, as is."""
    import torch

    found = dict(weights)
    for name in TABLES:
        table, scale = weights.get(name), weights.get(name + SCALE)
        if table is None or scale is None or table.dtype != torch.int8:
            continue
        if table.dim() == 2 and scale.shape == (len(table), 1):
            found[name] = table.float() * scale.float()
            del found[name + SCALE]
    return found


def as_stored(model: "nn.Module", tables: StoredTables) -> None:
    """Round a model's weights in place to what a checkpoint will hold, so that it is judged as it will be used."""
    model.load_state_dict(restored(stored(model.state_dict(), tables)))
