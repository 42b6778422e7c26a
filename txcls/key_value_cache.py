"""Keys and values of the tokens that a causal model has already read."""

import torch
from torch import Tensor


class KeyValueCache:
    """The keys and values of one layer, (B, H, T, E) each, for T tokens read so far.

    In causal attention a token never attends to later ones, so its keys and values stay valid while the text grows.
    """

    def __init__(self) -> None:
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    @property
    def length(self) -> int:
        """T: tokens read so far."""
        return 0 if self.k is None else self.k.shape[2]

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append the new tokens' keys and values; returns those of all tokens."""
        self.k = k if self.k is None else torch.cat([self.k, k], dim=2)
        self.v = v if self.v is None else torch.cat([self.v, v], dim=2)
        return self.k, self.v
