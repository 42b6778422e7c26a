"""Random texts of a data set."""

from collections.abc import Sequence

import numpy as np


def random_texts(texts: Sequence[str], *, n: int, seed: int = 0) -> list[str]:
    """`n` distinct texts in random order, or all if there are fewer; the same texts for the same seed."""
    places = np.random.default_rng(seed).permutation(len(texts))[:n]
    return [texts[int(place)] for place in places]
