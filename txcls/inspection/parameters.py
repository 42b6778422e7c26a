"""How many parameters does each part of a model have?"""

import math
from dataclasses import dataclass

from txcls.model import Encoder


@dataclass(frozen=True, slots=True)
class PartSize:
    """The parameters of a part of the model; parts that occur in every layer share one entry.

    Attributes:
        name: attribute path in `txcls.model`; `layers.*.attn.query` covers all layers.
        shapes: shapes of the weight and of the bias, if there is one.
        times: number of such parts: L for parts of layers, otherwise 1.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    times: int

    @property
    def per_part(self) -> int:
        """Number of parameters in one such part."""
        return sum(math.prod(shape) for shape in self.shapes)

    @property
    def total(self) -> int:
        """Number of parameters in all such parts."""
        return self.times * self.per_part


def part_sizes(model: Encoder) -> tuple[PartSize, ...]:
    """The sizes of a model's parts in the order of definition; a tied output matrix counts only as embeddings."""
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
        PartSize(part, tuple(part_shapes), n_layers if part.startswith("layers.") else 1)
        for part, part_shapes in shapes.items()
    )
