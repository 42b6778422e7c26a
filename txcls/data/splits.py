"""Splits of a data set and of a user's own rows, and near copies of texts, which stay in one split."""

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.config import DataConfig
from txcls.data.hashes import hash_text, hashed_share, normalise_text, repeats
from txcls.data.labels import label_name
from txcls.data.types import Dataset, LabelledTexts, SplitName, join_rows, rows_in_classes
from txcls.errors import DataError, Note, list_names, quote, sanitize
from txcls.text.formatting import percentage

Indices = NDArray[np.int64]

MIN_SIMILARITY = 0.8
"""Minimum Jaccard similarity of near copies, over their words and word pairs."""
MAX_COMPARED_CHARACTERS, MAX_JOINED_CHARACTERS = 4000, 25_000_000
"""Number of characters compared at the beginning of each text, and their maximum total over all texts."""
_NEIGHBOURS = 50
"""Each text is compared with at most this many texts that share an element with it; all would take quadratic time."""
_PAIRS_AT_ONCE = 4096
"""Number of pairs compared at a time, to limit memory."""
_WORD = r"(?u)[぀-ヿ㐀-鿿]|[^\W぀-ヿ㐀-鿿]+"
"""A word, or a single character of a script that is written without spaces."""


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

    A row's split depends only on its text (without case and repeated whitespace) and the seed, with an exception that
    gives each class texts in both splits: among the texts that occur in only one class, the one with the lowest hash is
    always for validation and the one with the highest always for training.

    Raises:
        DataError: there is only one class, or a class has fewer than two texts that do not occur in other classes.
    """
    hashes = [hash_text(text) for text in texts]
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
    return np.array([first.setdefault(normalise_text(text), row) for row, text in enumerate(texts)], dtype=np.int64)


def near_copies(texts: Sequence[str], copies: Indices) -> Indices:
    """For each row, the index of the first row with the same or nearly the same text, (N,).

    `copies` (N,), from `first_copies`, are returned unchanged if comparing the texts would take over ten seconds.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    rows = np.unique(copies)
    begun = [texts[row][:MAX_COMPARED_CHARACTERS] for row in rows]
    if sum(min(len(text), MAX_COMPARED_CHARACTERS) for text in texts) > MAX_JOINED_CHARACTERS or not any(begun):
        return copies
    left, right = _similar_pairs(begun)
    graph = csr_array((np.ones(len(left)), (left, right)), shape=(len(rows), len(rows)))
    group = connected_components(graph, directed=False)[1]
    first_of_group = rows[np.unique(group, return_index=True)[1]]
    first = np.zeros(len(texts), dtype=np.int64)
    first[rows] = first_of_group[group]
    return first[copies]


def same_text_other_label(rows: LabelledTexts) -> list[list[int]]:
    """Groups of rows with the same text and different labels, both compared without case and repeated spaces."""
    by_text: dict[str, list[int]] = defaultdict(list)
    for row, text in enumerate(rows.texts):
        by_text[normalise_text(text)].append(row)
    keys = [normalise_text(name) for name in rows.classes]
    return [group for group in by_text.values() if len({keys[rows.labels[row]] for row in group}) > 1]


def _similar_pairs(texts: Sequence[str]) -> tuple[Indices, Indices]:
    """Pairs of texts that are near copies, (P,) and (P,): enough to connect each group of near copies.

    If two sets of words and word pairs, ordered from rare to frequent, have a Jaccard similarity of s, the first 1 - s
    of each share an element (prefix filtering, Chaudhuri, Ganti & Kaushik 2006). Each text is compared with the
    _NEIGHBOURS texts before it that share such an element.
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(
        ngram_range=(1, 2), n_features=2**22, binary=True, norm=None, alternate_sign=False, token_pattern=_WORD
    )
    shingles = hashing.transform(texts)  # N, hashed words and pairs
    size = np.diff(shingles.indptr)  # N
    row, column = np.repeat(np.arange(len(texts)), size), shingles.indices
    by_rarity = np.lexsort((column, np.bincount(column)[column], row))
    rank = np.arange(len(row)) - shingles.indptr[row]  # within the row
    is_compared = rank < np.floor((1 - MIN_SIMILARITY) * size[row] + 1e-9) + 1
    row, column = row[is_compared], column[by_rarity][is_compared]
    order = np.lexsort((row, column))
    row, column = row[order], column[order]
    found = [np.zeros(0, dtype=np.int64)]
    for lag in range(1, _NEIGHBOURS + 1):
        shares = np.flatnonzero(column[lag:] == column[:-lag])
        found.append(np.unique(row[shares] * len(texts) + row[shares + lag]))
    pairs = np.stack(np.divmod(np.unique(np.concatenate(found)), len(texts)))  # 2 P
    small, large = np.sort(size[pairs], axis=0)
    left, right = pairs[:, small >= MIN_SIMILARITY * large]
    n_shared = np.zeros(len(left))
    for start in range(0, len(left), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        n_shared[part] = shingles[left[part]].multiply(shingles[right[part]]).sum(axis=1).ravel()
    is_near = n_shared >= MIN_SIMILARITY * (size[left] + size[right] - n_shared)
    return left[is_near], right[is_near]


MAX_COPIES, MAX_COPIES_SHARE = 5, 0.01
"""A group larger than both limits (a number, and a share of all), such as the variants of a form letter, is divided:
keeping it together would make the test set unlike new rows."""


def in_large_group(groups: Indices) -> NDArray[np.bool_]:
    """Whether each row's group has too many rows to stay together, (N,)."""
    return np.bincount(groups, minlength=1)[groups] > max(MAX_COPIES, MAX_COPIES_SHARE * len(groups))


def hold_out(labels: Sequence[int], *, n: int, seed: int, groups: Indices | None = None) -> tuple[Indices, Indices]:
    """Hold out about `n` rows, in proportion to the classes: sorted row indices (training, held out).

    Each class keeps at least one training row. Rows of the same group (N,), such as copies of a text, stay together: if
    a class then has too few or too many rows held out, the next classes make up for it.
    """
    label_array = np.asarray(labels, dtype=np.int64)  # N
    group = np.arange(len(label_array)) if groups is None else groups  # N
    _, first_rows, group_index, sizes = np.unique(group, return_index=True, return_inverse=True, return_counts=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(first_rows))
    group_labels = label_array[first_rows]
    share = n / max(len(label_array), 1)
    is_held_out = np.zeros(len(first_rows), dtype=bool)  # by group
    missing = 0  # how many more rows the classes so far should have held out
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
    """Raise DataError if there are fewer than two classes, or one has too few rows or texts to be in both splits."""
    if (n := len(set(labels))) < 2:
        raise DataError(f"{len(labels)} rows of {n} class: expected at least two classes")
    if too_small := [str(classes[label]) if classes else str(label) for label, n in sorted(counts.items()) if n < 2]:
        raise DataError(
            f"only one row of class {list_names(too_small, limit=5)}: every class needs at least two, one for training "
            "and one for validation; add rows or drop the class"
        )


TEST_SHARE, MAX_TEST = 0.2, 5000
"""Share of the texts held out for testing, and their maximum number; more would barely narrow the interval."""
VALIDATION_SHARE, FEW_VALIDATION, MAX_VALIDATION = 0.05, 50, 1000
"""Share of the remaining rows held out to fit the calibration (up to twice that share while fewer than
FEW_VALIDATION rows), and their maximum number."""


@dataclass(frozen=True, eq=False)
class Splits:
    """The rows of each split; no text is in more than one split.

    Attributes:
        test_rows: indices of the test rows among the given rows; None if test rows were given separately.
        notes: sentences about classes and repeated texts.
        n_unseen: number of given test rows that were left out because their classes have no training row.
    """

    training: LabelledTexts
    validation: LabelledTexts
    test: LabelledTexts
    test_rows: Indices | None
    notes: tuple[str, ...]
    n_unseen: int = 0

    @property
    def fitted(self) -> LabelledTexts:
        """All rows except the test rows, to which the linear model is fitted."""
        return join_rows((self.training, self.validation))


def split_rows(rows: LabelledTexts, test: LabelledTexts | None, *, seed: int) -> Splits:
    """Split a user's rows; if `test` is None, hold out test rows too.

    Raises:
        DataError: no test rows are left, or most of those given repeat training rows.
    """
    notes: list[str] = []
    test_rows, copies = None, first_copies(rows.texts)
    if test is None:
        near = near_copies(rows.texts, copies)
        of_text = near[np.unique(copies)]  # of each different text
        groups = np.where(np.isin(near, of_text[in_large_group(of_text)]), copies, near)
        n_repeated, n_alike = len(rows) - len(of_text), len(of_text) - len(np.unique(of_text))
        if n_repeated or n_alike:
            copied = f"{n_repeated:,} repeated texts, {n_alike:,} nearly the same"
            notes.append(Note(f"Copies stay in one split: {copied}.", "detail"))
        other_rows, test_rows = _hold_out_once(rows.labels, copies, groups, size=_n_test, seed=seed)
        test_part = rows.subset(test_rows)
    else:
        groups, other_rows = copies, np.arange(len(rows))
        test_part, _ = rows_in_classes(test, rows.classes, match_normalised=True)
        notes += _notes_on_given_test(rows, test, test_part)
    if not len(test_part):
        raise DataError("no test rows are left; give more rows, or test rows of the same classes")
    others = rows.subset(other_rows)
    training, validation = _hold_out_once(
        others.labels, copies[other_rows], groups[other_rows], size=_n_validation, seed=seed + 1
    )
    if not len(validation):  # every class has a single row or copies of one text
        validation, training = training[:1], training[1:]
    notes += _note_on_untested_classes(rows, test_part)
    n_copies = len(rows) - len(training) - len(validation) - (0 if test_rows is None else len(test_rows))
    sizes = f"{len(training):,} training rows, {len(validation):,} validation, {len(test_part):,} test"
    copied = f", {n_copies:,} copies dropped" if n_copies > 0 else ""
    notes.append(f"{sizes}{copied}.")
    n_unseen = 0 if test is None else len(test) - len(test_part)
    parts = others.subset(training), others.subset(validation), test_part
    return Splits(*parts, test_rows, tuple(notes), n_unseen)


def _n_test(n: int) -> int:
    return min(round(TEST_SHARE * n), MAX_TEST)


def _n_validation(n: int) -> int:
    return min(
        max(round(VALIDATION_SHARE * n), min(FEW_VALIDATION, round(2 * VALIDATION_SHARE * n)), 2), MAX_VALIDATION
    )


def _hold_out_once(
    labels: Sequence[int], copies: Indices, groups: Indices, *, size: Callable[[int], int], seed: int
) -> tuple[Indices, Indices]:
    """Hold out `size(n)` of the n different texts: sorted row indices (others, held out); no group is in both.

    Rows with the same text have the same number in `copies` (N,); of those that also have the same label, only the
    first is held out and the rest are in neither part, since they say nothing new.
    """
    once = np.sort(np.unique(np.stack([copies, labels]), axis=1, return_index=True)[1])
    held_out = once[hold_out([labels[row] for row in once], n=size(len(once)), seed=seed, groups=groups[once])[1]]
    return np.flatnonzero(~np.isin(groups, groups[held_out])), held_out


def _notes_on_given_test(rows: LabelledTexts, test: LabelledTexts, used: LabelledTexts) -> Iterator[str]:
    names = sorted({test.classes[label] for label in test.labels} - set(rows.classes))
    spelled = {label_name(name).casefold(): name for name in rows.classes}
    pairs = [
        f"'{sanitize(name)}' as '{sanitize(spelled[key])}'"
        for name in names
        if (key := label_name(name).casefold()) in spelled
    ]
    if pairs:
        more = ", …" if len(pairs) > 3 else ""
        yield f"Labels of the test rows are written differently; read {', '.join(pairs[:3])}{more}."
    if n_left_out := len(test) - len(used):
        unknown = [name for name in names if label_name(name).casefold() not in spelled]
        labels = list_names(unknown, limit=3)
        yield f"{n_left_out:,} test rows have labels that no training row has ({labels}); they are left out."
    if n_repeated := int(repeats(used.texts, rows.texts).sum()):
        share = percentage(n_repeated / len(used), 0)
        if n_repeated > max(len(used) / 2, 1):  # txcls.sklearn gives one row, which it does not measure
            raise DataError(
                f"{n_repeated:,} of {len(used):,} test rows ({share}) repeat the text of a training row, so they would "
                "say nothing about new texts; give other test rows, or none: then a fifth of the rows is held out"
            )
        yield f"{n_repeated:,} test rows ({share}) repeat the text of a training row."


def _note_on_untested_classes(rows: LabelledTexts, test: LabelledTexts) -> Iterator[str]:
    if names := [rows.classes[label] for label in sorted(set(rows.labels) - set(test.labels))]:
        counted = f"Not in macro-F1, without test rows: {len(names):,} of {len(set(rows.labels)):,} classes"
        such = ": " if len(names) == 1 else ", such as "
        yield Note(f"{counted} ({list_names(names)}).", brief=f"{counted}{such}{quote(names[0])}.")
