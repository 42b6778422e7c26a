"""How many parameters does each part of a model have?"""

import math
from dataclasses import dataclass

from txcls.model import Encoder


@dataclass(frozen=True, slots=True)
class PartSize:
    """A part of the model with trained parameters; parts that occur in every layer share one entry.

    Attributes:
        name: its attribute path in `txcls.model`; `layers.*.attn.query` covers all layers.
        shapes: the shapes of its matrix or table, and of its bias if it has one.
        times: number of such parts: L in the layers, 1 elsewhere.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    times: int

    @property
    def each(self) -> int:
        """Number of parameters in one such part."""
        return sum(math.prod(shape) for shape in self.shapes)

    @property
    def total(self) -> int:
        """Number of parameters in all of them."""
        return self.times * self.each


def part_sizes(model: Encoder) -> tuple[PartSize, ...]:
    """The sizes of a model's parts in the order of its code; a tied output matrix is counted only as embeddings."""
    shapes: dict[str, list[tuple[int, ...]]] = {}
    for name, parameter in model.named_parameters():
        part = name.removesuffix(".weight").removesuffix(".bias")
        if part.startswith("layers."):
            _, layer, rest = part.split(".", 2)
            if layer != "0":
                continue
            part = f"layers.*.{rest}"
        shapes.setdefault(part, []).append(tuple(parameter.shape))
    n_layers = model.config.n_layers
    return tuple(
        PartSize(part, tuple(of_part), n_layers if part.startswith("layers.") else 1)
        for part, of_part in shapes.items()
    )
