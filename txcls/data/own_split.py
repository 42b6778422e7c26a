"""Parts of a user's own rows: training, validation and test, proportional by class, with copies of a text in one part.

Unlike `txcls.data.splits`, this refuses no class: one of a single row is trained on and not measured.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from txcls.data.types import LabelledTexts

Indices = npt.NDArray[np.int64]


def text_key(text: str) -> str:
    """What two texts have in common that differ in case and white space alone."""
    return " ".join(text.lower().split())


def copies(texts: Sequence[str]) -> Indices:
    """(N,): for each text the first row with the same text, case and white space aside."""
    first: dict[str, int] = {}
    return np.array([first.setdefault(text_key(text), row) for row, text in enumerate(texts)], dtype=np.int64)


def hold_out(labels: Sequence[int], *, n: int, seed: int, groups: Indices | None = None) -> tuple[Indices, Indices]:
    """Row indices (kept, held out), each sorted; about `n` rows are held out, of each class in proportion to its size.

    Rows of a group (copies of a text) stay together. Every class keeps at least one row, and one with few rows may have
    none held out: which of these do is drawn by chance.

    Args:
        labels: class index of each row.
        n: rows to hold out.
        seed: random seed.
        groups: (N,) group of each row; None for each row alone.
    """
    of_row = np.asarray(labels, dtype=np.int64)  # N
    group = np.arange(len(of_row)) if groups is None else groups  # N
    leaders, inverse, sizes = np.unique(group, return_inverse=True, return_counts=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(leaders))
    of_leader = of_row[leaders]
    share = n / max(len(of_row), 1)
    chosen = np.zeros(len(leaders), dtype=bool)
    for label in rng.permutation(np.unique(of_leader)):
        own = order[of_leader[order] == label]
        wanted = share * sizes[own].sum()
        # The whole part for certain, the rest by chance, so that small classes are held out in proportion too.
        target = np.floor(wanted) + (rng.random() < wanted - np.floor(wanted))
        taken = own[np.cumsum(sizes[own]) <= target][: max(len(own) - 1, 0)]
        chosen[taken] = True
    if n and not chosen.any():  # so few rows that chance held out none
        counts = np.bincount(of_leader)
        chosen[order[counts[of_leader[order]] > 1][:1]] = True
    held = chosen[inverse]
    return np.flatnonzero(~held), np.flatnonzero(held)


def in_classes(rows: LabelledTexts, classes: tuple[str, ...]) -> tuple[LabelledTexts, Indices]:
    """The rows whose class is among these, labelled by them, and which rows they are."""
    place = {name: number for number, name in enumerate(classes)}
    known = np.array([row for row, label in enumerate(rows.labels) if rows.classes[label] in place], dtype=np.int64)
    texts = [rows.texts[row] for row in known]
    return LabelledTexts(texts, [place[rows.classes[rows.labels[row]]] for row in known], classes), known
