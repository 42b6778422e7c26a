"""Confusion matrices in an order in which classes that are confused stand together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class WorstPair:
    """Two classes and how many rows of either were taken for the other.

    `share` is of the rows of both.
    """

    first: str
    second: str
    first_as_second: int
    second_as_first: int
    share: float

    @property
    def n(self) -> int:
        """Rows confused, both ways."""
        return self.first_as_second + self.second_as_first


def cluster_order(confusion: Sequence[Sequence[int]] | Counts) -> NDArray[np.intp]:
    """An order of the classes (C,) in which those that are confused with each other are neighbours.

    Average-linkage hierarchical clustering of classes by 1 - the share of rows confused, both ways, with the leaves in
    the order that keeps neighbours closest (Bar-Joseph et al. 2001), by SciPy. Classes without any error come last.

    Args:
        confusion: (C, C), rows of true class i predicted as j.

    Raises:
        ValueError: it is not square.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    counts = np.asarray(confusion, dtype=np.float64)  # C C
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ValueError(f"got a matrix of shape {counts.shape}; wanted as many rows as columns")
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)  # C C
    both = (shares + shares.T) / 2
    np.fill_diagonal(both, 0.0)
    confused = np.flatnonzero(both.sum(axis=1) > 0)
    others = np.flatnonzero(both.sum(axis=1) == 0)
    if len(confused) < 3:
        return np.concatenate([confused, others])
    distances = 1 - both[np.ix_(confused, confused)]
    np.fill_diagonal(distances, 0.0)
    tree = linkage(squareform(distances, checks=False), method="average", optimal_ordering=True)
    return np.concatenate([confused[leaves_list(tree)], others])


def worst_pairs(classes: Sequence[str], confusion: Sequence[Sequence[int]] | Counts, *, n: int = 20) -> list[WorstPair]:
    """The n pairs of classes with the most rows confused, both ways together; pairs without any are left out."""
    counts = np.asarray(confusion)  # C C
    support = counts.sum(axis=1)  # C
    both = np.triu(counts + counts.T, k=1)
    found = []
    for place in np.argsort(-both, axis=None, kind="stable")[:n]:
        i, j = divmod(int(place), len(classes))
        if not both[i, j]:
            break
        rows = int(support[i] + support[j])
        share = float(both[i, j] / rows) if rows else 0.0
        found.append(WorstPair(classes[i], classes[j], int(counts[i, j]), int(counts[j, i]), share))
    return found
