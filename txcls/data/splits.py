"""Splits into training and held-out rows: of data sets for validation, and of a user's own rows."""

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from txcls.config import DataConfig
from txcls.data.hashes import fingerprint, hashed_share, normalised
from txcls.data.types import Dataset, LabelledTexts, SplitName
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


def split_by_checksum(text: str) -> SplitName:
    """The split of a generated row: "test" or "validation" for a tenth of the texts each, otherwise "train"."""
    bucket = zlib.crc32(text.encode()) % 10
    return "test" if bucket == 0 else "validation" if bucket == 1 else "train"


def split_hash(text: str, *, seed: int) -> float:
    """A text's hash in [0, 1), which `hash_split` compares with `fraction`."""
    return hashed_share(text, salt=f"validation {seed}")


def hash_split(
    texts: Sequence[str],
    labels: Sequence[int],
    *,
    fraction: float,
    seed: int,
    classes: Sequence[str] | None = None,
) -> tuple[Indices, Indices]:
    """Split rows by a hash of their texts: sorted row indices (training, validation).

    Texts that are equal except for case and whitespace are in the same split, and the validation rows for a smaller
    fraction are a subset of those for a larger one. A row's split depends only on its text and the seed, with an
    exception that gives each class texts in both splits: among the texts that occur in only one class, the one with the
    lowest hash is always for validation and the one with the highest always for training.

    Raises:
        DataError: there is only one class, or a class has fewer than two texts that do not occur in other classes.
    """
    hashes = [fingerprint(text) for text in texts]
    text_hashes = {name: split_hash(text, seed=seed) for name, text in zip(hashes, texts, strict=True)}
    labels_by_hash: dict[bytes, set[int]] = {}
    for name, label in zip(hashes, labels, strict=True):
        labels_by_hash.setdefault(name, set()).add(label)
    unique_to: dict[int, list[bytes]] = {label: [] for label in labels}  # texts that occur only in this class
    for name, text_labels in labels_by_hash.items():
        if len(text_labels) == 1:
            unique_to[next(iter(text_labels))].append(name)
    _check(labels, {label: len(names) for label, names in unique_to.items()}, classes)
    held_out = {name for name, number in text_hashes.items() if number < fraction}
    for names in unique_to.values():
        lowest, *_, highest = sorted(names, key=lambda name: (text_hashes[name], name))
        held_out.add(lowest)
        held_out.discard(highest)
    is_held_out = np.fromiter((name in held_out for name in hashes), dtype=bool, count=len(hashes))
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)


def stratified_split(
    labels: Sequence[int], *, fraction: float, seed: int, classes: Sequence[str] | None = None
) -> tuple[Indices, Indices]:
    """Split rows by class: sorted row indices (training, validation), determined by labels, fraction and seed.

    Of each class, `fraction` of the rows (rounded) are for validation, but at least one row is in each split.

    Raises:
        DataError: there is only one class, or a class has only one row.
    """
    counts = Counter(labels)
    _check(labels, counts, classes)
    rng = np.random.default_rng(seed)
    label_array = np.asarray(labels, dtype=np.int64)
    is_held_out = np.zeros(len(label_array), dtype=bool)
    for label in sorted(counts):
        rows = rng.permutation(np.flatnonzero(label_array == label))
        is_held_out[rows[: min(max(round(fraction * len(rows)), 1), len(rows) - 1)]] = True
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)


def first_copies(texts: Sequence[str]) -> Indices:
    """For each row, the index of the first row with the same text, ignoring case and whitespace, (N,)."""
    first: dict[str, int] = {}
    return np.array([first.setdefault(normalised(text), row) for row, text in enumerate(texts)], dtype=np.int64)


MAX_COPIES, MAX_COPIES_SHARE = 5, 0.01
"""A group larger than both limits (a number, and a share of all), such as the variants of a form letter, is divided:
keeping it together would make the test set unlike new rows."""


def in_large_group(groups: Indices) -> npt.NDArray[np.bool_]:
    """Whether each row's group has too many rows to stay together, (N,)."""
    return np.bincount(groups, minlength=1)[groups] > max(MAX_COPIES, MAX_COPIES_SHARE * len(groups))


def hold_out(labels: Sequence[int], *, n: int, seed: int, groups: Indices | None = None) -> tuple[Indices, Indices]:
    """Hold out about `n` rows, in proportion to the classes: sorted row indices (training, held out).

    Each class keeps at least one training row. Of classes with few rows, a random selection has rows held out. Rows of
    the same group (N,), such as copies of a text, stay together: if a class then has too few or too many rows held out,
    the next classes make up for it.
    """
    label_array = np.asarray(labels, dtype=np.int64)  # N
    group = np.arange(len(label_array)) if groups is None else groups  # N
    _, first_rows, group_index, sizes = np.unique(group, return_index=True, return_inverse=True, return_counts=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(first_rows))
    group_labels = label_array[first_rows]
    share = n / max(len(label_array), 1)
    is_held_out = np.zeros(len(first_rows), dtype=bool)  # by group
    missing = 0  # rows that the classes so far should have had held out in addition
    for label in rng.permutation(np.unique(group_labels)):
        of_class = order[group_labels[order] == label]
        expected = share * sizes[of_class].sum()
        # The fractional part is rounded at random, so that small classes are held out in proportion too.
        n_rows = int(expected) + int(rng.random() < expected - int(expected))
        n_by_groups = np.cumsum([0, *sizes[of_class[:-1]]])  # rows in the first 0, 1, … groups
        wanted = missing + min(n_rows, n_by_groups[-1])
        n_groups = int(np.abs(n_by_groups - wanted).argmin())
        is_held_out[of_class[:n_groups]] = True
        missing = int(wanted - n_by_groups[n_groups])
    if n and not is_held_out.any():  # too few rows: none was drawn
        counts = np.bincount(group_labels)
        is_held_out[order[counts[group_labels[order]] > 1][:1]] = True
    return np.flatnonzero(~is_held_out[group_index]), np.flatnonzero(is_held_out[group_index])


def _check(labels: Sequence[int], counts: Mapping[int, int], classes: Sequence[str] | None) -> None:
    """Raise DataError if there is one class, or a class has too few rows or texts to be in both splits."""
    if (n := len(set(labels))) < 2:
        raise DataError(f"{len(labels)} rows of {n} class: expected at least two classes")
    if too_small := [str(classes[label]) if classes else str(label) for label, n in sorted(counts.items()) if n < 2]:
        names = ", ".join(f"'{shown(name)}'" for name in too_small[:5]) + (", …" if len(too_small) > 5 else "")
        raise DataError(
            f"only one row of class {names}: every class needs at least two, one for training and one for validation; "
            "add rows or drop the class"
        )
