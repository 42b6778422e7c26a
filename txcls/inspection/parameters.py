"""How many parameters does each part of a model have?"""

import math
from dataclasses import dataclass

from txcls.model import Encoder


@dataclass(frozen=True, slots=True)
class PartSize:
    """A part of the model with trained parameters; one entry stands for that part of every layer.

    Attributes:
        name: its attribute path in `txcls.model`; `layers.*.attn.query` stands for that of every layer.
        shapes: of its matrix or table, and of its bias if it has one.
        times: how many such parts there are: L in the layers, 1 elsewhere.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    times: int

    @property
    def each(self) -> int:
        """Parameters in one of them."""
        return sum(math.prod(shape) for shape in self.shapes)

    @property
    def total(self) -> int:
        """Parameters in all of them."""
        return self.times * self.each


def part_sizes(model: Encoder) -> tuple[PartSize, ...]:
    """The sizes of a model's parts in the order of its code; a tied output matrix counts as embeddings only."""
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
