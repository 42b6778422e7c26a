"""Random texts of a data set, the same texts for the same seed."""

from collections.abc import Sequence

import numpy as np


def random_texts(texts: Sequence[str], *, n: int, seed: int = 0) -> list[str]:
    """`n` texts in random order, drawn without replacement, or all texts if there are fewer."""
    return [texts[int(index)] for index in np.random.default_rng(seed).permutation(len(texts))[:n]]
