"""Which rows are held out: training and validation rows of a data set, and parts of a user's own rows."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from txcls.config import DataConfig
from txcls.data.hashes import fingerprint, hashed_share, normalised
from txcls.data.types import Dataset, LabelledTexts
from txcls.errors import DataError
from txcls.wording import shown

Indices = npt.NDArray[np.int64]


def training_and_validation(dataset: Dataset, config: DataConfig) -> tuple[LabelledTexts, LabelledTexts]:
    """The published training and validation rows, or a deterministic split of the training rows.

    Raises:
        DataError: there are no training rows, or they cannot be split.
    """
    rows = dataset.load("train")
    if "validation" in dataset.splits:
        return rows, dataset.load("validation")
    fraction, seed = config.validation_fraction, config.split_seed
    if config.validation == "hash":
        training, held_out = hash_split(rows.texts, rows.labels, fraction=fraction, seed=seed, classes=rows.classes)
    else:
        training, held_out = stratified_split(rows.labels, fraction=fraction, seed=seed, classes=rows.classes)
    return rows.subset(training), rows.subset(held_out)


def validation_share(text: str, *, seed: int) -> float:
    """The number in [0, 1) that `hash_split` compares with `fraction`."""
    return hashed_share(text, salt=f"validation {seed}")


def hash_split(
    texts: Sequence[str],
    labels: Sequence[int],
    *,
    fraction: float,
    seed: int,
    classes: Sequence[str] | None = None,
) -> tuple[Indices, Indices]:
    """Row indices (training, validation), each sorted, split by a hash of each row's text.

    Texts that are equal except for case and whitespace are on the same side, and the validation rows of a smaller
    fraction are a subset of those of a larger one. A row's side depends only on its text and the seed, except that each
    class has texts on both sides: among the texts that occur only in this class, the one with the lowest hash is always
    for validation and the one with the highest always for training.

    Raises:
        DataError: there is only one class, or a class has fewer than two texts of its own.
    """
    _check_two_classes(labels)
    names = [fingerprint(text) for text in texts]
    shares = {name: validation_share(text, seed=seed) for name, text in zip(names, texts, strict=True)}
    classes_of: dict[bytes, set[int]] = {}
    for name, label in zip(names, labels, strict=True):
        classes_of.setdefault(name, set()).add(label)
    own: dict[int, list[bytes]] = {label: [] for label in labels}  # texts that occur only in this class
    for name, its in classes_of.items():
        if len(its) == 1:
            own[next(iter(its))].append(name)
    _refuse_single({label: len(its) for label, its in own.items()}, classes)
    held_out = {name for name, share in shares.items() if share < fraction}
    for own_texts in own.values():
        by_hash = sorted(own_texts, key=lambda name: (shares[name], name))
        held_out.add(by_hash[0])
        held_out.discard(by_hash[-1])
    chosen = np.fromiter((name in held_out for name in names), dtype=bool, count=len(names))
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def stratified_split(
    labels: Sequence[int], *, fraction: float, seed: int, classes: Sequence[str] | None = None
) -> tuple[Indices, Indices]:
    """Row indices (training, validation), each sorted; the same labels, fraction and seed give the same split.

    Each class gives `fraction` of its rows, rounded, to validation, but at least one, and keeps at least one.

    Raises:
        DataError: there is only one class, or a class has only one row.
    """
    _check_two_classes(labels)
    counts = Counter(labels)
    _refuse_single(counts, classes)
    rng = np.random.default_rng(seed)
    of_row = np.asarray(labels, dtype=np.int64)
    validation = []
    for label in sorted(counts):
        rows = rng.permutation(np.flatnonzero(of_row == label))
        validation.append(rows[: min(max(round(fraction * len(rows)), 1), len(rows) - 1)])
    chosen = np.zeros(len(of_row), dtype=bool)
    chosen[np.concatenate(validation)] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def first_copies(texts: Sequence[str]) -> Indices:
    """(N,): for each text, the first row with the same text, ignoring case and whitespace."""
    first: dict[str, int] = {}
    return np.array([first.setdefault(normalised(text), row) for row, text in enumerate(texts)], dtype=np.int64)


MAX_COPIES, MAX_COPIES_SHARE = 5, 0.01
"""A text with more copies than the first, and than this share of the rows, is one that will come again, such as "see
above": its copies are held out like other rows, or the result would be better than it will be on new rows."""


def hold_out(labels: Sequence[int], *, n: int, seed: int, groups: Indices | None = None) -> tuple[Indices, Indices]:
    """Row indices (training, held out), each sorted; about `n` rows are held out, in proportion to the classes.

    Every class keeps at least one row. A class with few rows may have none held out; chance decides which classes have
    some. Rows of the same group (N,), such as copies of a text, stay together unless there are many of them.
    """
    of_row = np.asarray(labels, dtype=np.int64)  # N
    rows = np.arange(len(of_row))
    group = rows if groups is None else groups  # N
    is_large = np.bincount(group)[group] > max(MAX_COPIES, MAX_COPIES_SHARE * len(group)) if len(group) else rows > 0
    group = np.where(is_large, rows, group)
    leaders, inverse, sizes = np.unique(group, return_inverse=True, return_counts=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(leaders))
    of_leader = of_row[leaders]
    share = n / max(len(of_row), 1)
    chosen = np.zeros(len(leaders), dtype=bool)
    for label in rng.permutation(np.unique(of_leader)):
        own = order[of_leader[order] == label]
        n_held_out = share * sizes[own].sum()
        # The fractional part is rounded at random, so that small classes are held out in proportion too.
        target = np.floor(n_held_out) + (rng.random() < n_held_out - np.floor(n_held_out))
        taken = own[np.cumsum(sizes[own]) <= target][: max(len(own) - 1, 0)]
        chosen[taken] = True
    if n and not chosen.any():  # there are so few rows that none was drawn
        counts = np.bincount(of_leader)
        chosen[order[counts[of_leader[order]] > 1][:1]] = True
    held = chosen[inverse]
    return np.flatnonzero(~held), np.flatnonzero(held)


def _check_two_classes(labels: Sequence[int]) -> None:
    if (n := len(set(labels))) < 2:
        raise DataError(f"{len(labels)} rows of {n} class: expected at least two classes")


def _refuse_single(counts: Mapping[int, int], classes: Sequence[str] | None) -> None:
    """Raise DataError if a class has too few rows or texts to be on both sides."""
    single = [str(classes[label]) if classes else str(label) for label, n in sorted(counts.items()) if n < 2]
    if single:
        names = ", ".join(f"'{shown(name)}'" for name in single[:5]) + (", …" if len(single) > 5 else "")
        raise DataError(
            f"only one row of class {names}: every class needs at least two, one to train on and one to validate on; "
            "add rows or drop the class"
        )
