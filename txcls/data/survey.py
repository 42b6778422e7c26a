"""A survey of a labelled table before training: classes, lengths, and rows to check.

MinHash (Broder 1997) over words and word pairs, with banding (Leskovec, Rajaraman & Ullman, Mining of Massive Datasets,
chapter 3), proposes pairs of near duplicates, which are then compared exactly.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from txcls.data.hashes import normalised
from txcls.data.labels import label_key
from txcls.data.types import LabelledTexts
from txcls.text.words import have_spaces

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MIN_SIMILARITY = 0.8
"""Minimum Jaccard similarity of near duplicates, over their words and word pairs."""
MAX_COMPARED_CHARACTERS = 4000
"""Number of characters of each text that are compared, from its beginning."""
MAX_JOINED_CHARACTERS = 25_000_000
"""Maximum number of characters that `near_copies` compares: 8 seconds of CPU time for 20,000 film reviews."""
FEW_ROWS_OF_CLASS = 5
"""Classes with fewer rows are listed, since a tenth of their rows cannot be held out."""
MAX_GROUPS = 1000
"""Maximum number of groups of each kind that are listed, in row order; the rows of all groups are counted."""
_BANDS, _HASHES_PER_BAND = 12, 4
"""A pair is proposed with probability 0.998 at similarity 0.8, and 0.09 at similarity 0.3."""
_MAX_BUCKET = 50
"""If more texts than this share a band, they are compared only with the first of them."""
_HASHED_ROWS = 4096
"""Number of rows hashed at a time, to limit memory."""
_WORD = r"(?u)[぀-ヿ㐀-鿿]|[^\W぀-ヿ㐀-鿿]+"
"""A word, or a single character of a script that is written without spaces."""


@dataclass(frozen=True, slots=True)
class Group:
    """Two or more equal or similar rows: their indices, ascending, and labels."""

    rows: tuple[int, ...]
    labels: tuple[str, ...]
    similarity: float = 1.0
    """The lowest similarity of its pairs of near duplicates."""


@dataclass(frozen=True)
class DataSurvey:
    """The survey of N rows.

    Attributes:
        rows: N.
        classes: the number of rows of each class, in descending order.
        lengths: the length of each row with a text and a label, in `unit`.
        unit: "words", or "characters" if words are not separated by spaces.
        no_text: rows without a text.
        no_label: rows with a text but without a label.
        duplicates: groups of rows with the same text and the same label, both compared without case and whitespace.
        conflicts: groups of rows with the same text and different labels.
        near: groups of rows with similar texts, whatever their labels.
        n_duplicates, n_conflicts, n_near: the number of rows in such groups, of which at most `MAX_GROUPS` are listed,
            without the first row of each group: rows that repeat another one.
    """

    rows: int
    classes: Mapping[str, int]
    lengths: tuple[int, ...]
    unit: Literal["words", "characters"]
    no_text: tuple[int, ...]
    no_label: tuple[int, ...]
    duplicates: tuple[Group, ...]
    conflicts: tuple[Group, ...]
    near: tuple[Group, ...]
    n_duplicates: int
    n_conflicts: int
    n_near: int

    @property
    def small_classes(self) -> tuple[str, ...]:
        """The classes with fewer than `FEW_ROWS_OF_CLASS` rows, the smallest first."""
        return tuple(name for n, name in sorted((n, name) for name, n in self.classes.items()) if n < FEW_ROWS_OF_CLASS)


def survey(texts: Sequence[str | None], labels: Sequence[str | None]) -> DataSurvey:
    """Survey N rows; a missing text or label is None or blank."""
    stripped = [(text or "").strip() for text in texts]
    names = [(name or "").strip() for name in labels]
    with_text = [row for row, text in enumerate(stripped) if text]
    usable = [row for row in with_text if names[row]]
    counts, has_words = Counter(names[row] for row in usable), have_spaces(stripped[row] for row in usable)
    same_texts = _same_texts(stripped, usable)
    groups = [_group(rows, names) for rows in same_texts]
    duplicates = [group for group in groups if not _is_conflict(group.labels)]
    conflicts = [group for group in groups if _is_conflict(group.labels)]
    repeated = {row for rows in same_texts for row in rows[1:]}
    near = list(_near_duplicates(stripped, names, [row for row in usable if row not in repeated]))
    return DataSurvey(
        rows=len(stripped),
        classes=dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        lengths=tuple(len(stripped[row].split() if has_words else stripped[row]) for row in usable),
        unit="words" if has_words else "characters",
        no_text=tuple(row for row, text in enumerate(stripped) if not text),
        no_label=tuple(row for row in with_text if not names[row]),
        duplicates=tuple(duplicates[:MAX_GROUPS]),
        conflicts=tuple(conflicts[:MAX_GROUPS]),
        near=tuple(near[:MAX_GROUPS]),
        n_duplicates=_n_repeating(duplicates),
        n_conflicts=_n_repeating(conflicts),
        n_near=_n_repeating(near),
    )


def near_copies(texts: Sequence[str], copies: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each row, the index of the first row with the same or nearly the same text, (N,).

    `copies` are the first rows with the same text (N,), from `first_copies`; they are returned unchanged if the texts
    are so long together that the comparison would take more than about ten seconds.
    """
    if sum(min(len(text), MAX_COMPARED_CHARACTERS) for text in texts) > MAX_JOINED_CHARACTERS:
        return copies
    first = np.arange(len(texts))
    for group in _near_duplicates(texts, [""] * len(texts), np.unique(copies).tolist()):
        first[list(group.rows)] = group.rows[0]
    return first[copies]


def _same_texts(texts: Sequence[str], rows: Iterable[int]) -> list[list[int]]:
    """Groups of rows with the same text, ignoring case and whitespace."""
    by_text: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        by_text[normalised(texts[row])].append(row)
    return [group for group in by_text.values() if len(group) > 1]


def same_text_other_label(rows: LabelledTexts) -> list[list[int]]:
    """Groups of rows with the same text and different labels, both compared without case and repeated spaces."""
    groups = _same_texts(rows.texts, range(len(rows)))
    return [group for group in groups if _is_conflict(rows.classes[rows.labels[row]] for row in group)]


def _is_conflict(labels: Iterable[str]) -> bool:
    """Whether the labels are more than variants of one label."""
    return len(set(map(label_key, labels))) > 1


def _n_repeating(groups: Iterable[Group]) -> int:
    """The number of rows in the groups without the first row of each."""
    return sum(len(group.rows) - 1 for group in groups)


def _group(rows: Sequence[int], names: Sequence[str], similarity: float = 1.0) -> Group:
    return Group(tuple(rows), tuple(names[row] for row in rows), round(similarity, 4))


def _near_duplicates(texts: Sequence[str], names: Sequence[str], rows: Sequence[int]) -> Iterator[Group]:
    """Yield groups of near duplicates among these rows, which have different texts."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if len(rows) < 2:
        return
    pairs = list(_similar_pairs(_shingles([texts[row][:MAX_COMPARED_CHARACTERS] for row in rows])))
    if not pairs:
        return
    left, right, similarity = (np.array(values) for values in zip(*pairs, strict=True))
    graph = csr_array((similarity, (left, right)), shape=(len(rows), len(rows)))
    n_groups, group_index = connected_components(graph, directed=False)
    lowest = np.ones(n_groups)
    np.minimum.at(lowest, group_index[left], similarity)
    members: dict[int, list[int]] = defaultdict(list)
    for row, group in zip(rows, group_index.tolist(), strict=True):
        members[group].append(row)
    for group, group_rows in members.items():
        if len(group_rows) > 1:
            yield _group(group_rows, names, float(lowest[group]))


def _shingles(texts: Sequence[str]) -> "csr_matrix":
    """The words and pairs of adjacent words of each text, as ones in 2^22 hashed columns."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(
        ngram_range=(1, 2), n_features=2**22, binary=True, norm=None, alternate_sign=False, token_pattern=_WORD,
        dtype=np.float32,
    )  # fmt: skip
    return hashing.transform(texts)


def _similar_pairs(shingles: "csr_matrix") -> Iterator[tuple[int, int, float]]:
    """Yield (row, row, similarity) for each pair of near duplicates."""
    nonempty = np.flatnonzero(np.diff(shingles.indptr))
    if len(nonempty) < 2:
        return
    signatures = _min_hashes(shingles, nonempty)  # rows, bands × hashes
    seen: set[tuple[int, int]] = set()
    for band in range(_BANDS):
        part = np.ascontiguousarray(signatures[:, band * _HASHES_PER_BAND : (band + 1) * _HASHES_PER_BAND])
        keys = part.view(np.dtype((np.void, part.dtype.itemsize * _HASHES_PER_BAND))).ravel()
        _, bucket, counts = np.unique(keys, return_inverse=True, return_counts=True)
        order = np.argsort(bucket, kind="stable")
        ends = np.cumsum(counts)
        for end, n in zip(ends[counts > 1], counts[counts > 1], strict=True):
            rows = nonempty[np.sort(order[end - n : end])].tolist()
            for index, row in enumerate(rows if n <= _MAX_BUCKET else rows[:1]):
                others = [other for other in rows[index + 1 :] if (row, other) not in seen]
                seen.update((row, other) for other in others)
                for other, similarity in zip(others, _similarities(shingles, row, others), strict=True):
                    if similarity >= MIN_SIMILARITY:
                        yield row, other, similarity


def _similarities(shingles: "csr_matrix", row: int, others: Sequence[int]) -> list[float]:
    """The Jaccard similarity of a row to each of the other rows; 0 if their sizes alone exclude a near duplicate."""
    columns = shingles.indices[shingles.indptr[row] : shingles.indptr[row + 1]]
    similarities = []
    for other in others:
        other_columns = shingles.indices[shingles.indptr[other] : shingles.indptr[other + 1]]
        small, large = sorted((len(columns), len(other_columns)))
        if small < MIN_SIMILARITY * large:
            similarities.append(0.0)
            continue
        shared = len(np.intersect1d(columns, other_columns, assume_unique=True))
        similarities.append(shared / (small + large - shared))
    return similarities


def _min_hashes(shingles: "csr_matrix", nonempty: NDArray[np.int64]) -> NDArray[np.uint32]:
    """The minimum of each random hash over each non-empty row: (rows, bands × hashes)."""
    numbers = np.random.default_rng(0).integers(1, 2**63, size=(_BANDS * _HASHES_PER_BAND, 2), dtype=np.uint64)
    minima = np.empty((len(nonempty), len(numbers)), dtype=np.uint32)
    for first in range(0, len(nonempty), _HASHED_ROWS):
        rows = nonempty[first : first + _HASHED_ROWS]
        start, end = shingles.indptr[rows[0]], shingles.indptr[rows[-1] + 1]
        columns = shingles.indices[start:end].astype(np.uint64)
        starts = shingles.indptr[rows] - start
        for index, (factor, summand) in enumerate(numbers):
            # Multiply-shift hashing (Dietzfelbinger et al. 1997).
            hashes = (columns * (factor | np.uint64(1)) + summand) >> np.uint64(32)
            minima[first : first + len(rows), index] = np.minimum.reduceat(hashes, starts)
    return minima
