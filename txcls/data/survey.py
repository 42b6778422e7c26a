"""A survey of a labelled table before training: classes, lengths, and rows that need attention.

Near duplicates are found by MinHash (Broder 1997) over words and pairs of neighbouring words, with banding (Leskovec,
Rajaraman & Ullman, Mining of Massive Datasets, chapter 3); every pair that it proposes is then compared exactly.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MIN_SIMILARITY = 0.8
"""Minimum Jaccard similarity of the words and word pairs of near duplicates."""
MAX_COMPARED_CHARACTERS = 4000
"""Number of characters compared, from the beginning of each text."""
FEW_ROWS = 5
"""Classes with fewer rows are listed, since a tenth of them cannot be held out."""
MAX_GROUPS = 1000
"""Maximum number of groups of each kind that are listed, in row order; all are counted."""
_BANDS, _ROWS_OF_A_BAND = 12, 4
"""With these values, a pair is proposed with probability 0.998 at similarity 0.8, and 0.09 at similarity 0.3."""
_MAX_OF_A_BUCKET = 50
"""If more texts share a band, each is compared only with the first."""
_HASHED_AT_ONCE = 4096
"""Number of rows hashed at once, to bound memory."""
_WORD = r"(?u)[぀-ヿ㐀-鿿]|[^\W぀-ヿ㐀-鿿]+"
"""A word, or a single character of a script written without spaces."""


@dataclass(frozen=True, slots=True)
class Group:
    """Two or more rows that belong together (indices from 0, ascending), and the label of each."""

    rows: tuple[int, ...]
    labels: tuple[str, ...]
    similarity: float = 1.0
    """The smallest similarity among its pairs of near duplicates, from 0 to 1."""


@dataclass(frozen=True)
class DataSurvey:
    """The survey of N rows.

    Attributes:
        rows: N.
        classes: the number of rows with each label, the most frequent first.
        words: the number of words in each row that has a text.
        no_text: rows without a text.
        no_label: rows with a text but no label.
        duplicates: rows with the same text, ignoring case and whitespace, and the same label.
        conflicts: rows with the same text and different labels.
        near: rows that are almost the same, with the same label or with different ones.
        n_duplicates, n_conflicts, n_near: the number of such groups; at most `MAX_GROUPS` are listed.
    """

    rows: int
    classes: Mapping[str, int]
    words: tuple[int, ...]
    no_text: tuple[int, ...]
    no_label: tuple[int, ...]
    duplicates: tuple[Group, ...]
    conflicts: tuple[Group, ...]
    near: tuple[Group, ...]
    n_duplicates: int
    n_conflicts: int
    n_near: int

    @property
    def usable(self) -> int:
        """Number of rows that have both a text and a label."""
        return sum(self.classes.values())

    @property
    def small_classes(self) -> tuple[str, ...]:
        """The classes with fewer than `FEW_ROWS` rows, the smallest first."""
        few = [(n, name) for name, n in self.classes.items() if n < FEW_ROWS]
        return tuple(name for _, name in sorted(few))


def survey(texts: Sequence[str | None], labels: Sequence[str | None]) -> DataSurvey:
    """Survey N rows; a missing or blank text or label is None or ""."""
    stripped = [(text or "").strip() for text in texts]
    names = [(name or "").strip() for name in labels]
    with_text = [row for row, text in enumerate(stripped) if text]
    usable = [row for row in with_text if names[row]]
    counts = Counter(names[row] for row in usable)
    same = _same_texts(stripped, usable)
    groups = [_group(rows, names) for rows in same]
    duplicates = [group for group in groups if len(set(group.labels)) == 1]
    conflicts = [group for group in groups if len(set(group.labels)) > 1]
    near = list(_near(stripped, names, usable, {row for rows in same for row in rows[1:]}))
    return DataSurvey(
        rows=len(stripped),
        classes=dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        words=tuple(len(stripped[row].split()) for row in with_text),
        no_text=tuple(row for row, text in enumerate(stripped) if not text),
        no_label=tuple(row for row in with_text if not names[row]),
        duplicates=tuple(duplicates[:MAX_GROUPS]),
        conflicts=tuple(conflicts[:MAX_GROUPS]),
        near=tuple(near[:MAX_GROUPS]),
        n_duplicates=len(duplicates),
        n_conflicts=len(conflicts),
        n_near=len(near),
    )


def _same_texts(texts: Sequence[str], rows: Iterable[int]) -> list[list[int]]:
    """Groups of rows with the same text, ignoring case and whitespace."""
    by_text: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        by_text[" ".join(texts[row].casefold().split())].append(row)
    return [group for group in by_text.values() if len(group) > 1]


def _group(rows: Sequence[int], names: Sequence[str], similarity: float = 1.0) -> Group:
    return Group(tuple(rows), tuple(names[row] for row in rows), round(similarity, 4))


def _near(texts: Sequence[str], names: Sequence[str], rows: Sequence[int], repeated: set[int]) -> Iterator[Group]:
    """Yield groups of near duplicates; of rows with the same text, only the first is included."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    firsts = [row for row in rows if row not in repeated]
    if len(firsts) < 2:
        return
    pairs = list(_pairs(_shingles([texts[row][:MAX_COMPARED_CHARACTERS] for row in firsts])))
    if not pairs:
        return
    left, right, similarity = (np.array(values) for values in zip(*pairs, strict=True))
    graph = csr_array((similarity, (left, right)), shape=(len(firsts), len(firsts)))
    n_groups, group_of = connected_components(graph, directed=False)
    least = np.ones(n_groups)
    np.minimum.at(least, group_of[left], similarity)
    members: dict[int, list[int]] = defaultdict(list)
    for row, group in zip(firsts, group_of.tolist(), strict=True):
        members[group].append(row)
    for group, alike in members.items():
        if len(alike) > 1:
            yield _group(alike, names, float(least[group]))


def _shingles(texts: Sequence[str]) -> "csr_matrix":
    """The words and pairs of neighbouring words in each text, as ones in 2^22 hashed columns."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(
        ngram_range=(1, 2), n_features=2**22, binary=True, norm=None, alternate_sign=False, token_pattern=_WORD,
        dtype=np.float32,
    )  # fmt: skip
    return hashing.transform(texts)


def _pairs(shingles: "csr_matrix") -> Iterator[tuple[int, int, float]]:
    """Yield (row, row, similarity) for each pair of near duplicates."""
    sizes = np.diff(shingles.indptr)
    filled = np.flatnonzero(sizes)
    if len(filled) < 2:
        return
    signatures = _min_hashes(shingles, filled)  # rows, bands × rows of a band
    seen: set[tuple[int, int]] = set()
    for band in range(_BANDS):
        part = np.ascontiguousarray(signatures[:, band * _ROWS_OF_A_BAND : (band + 1) * _ROWS_OF_A_BAND])
        keys = part.view(np.dtype((np.void, part.dtype.itemsize * _ROWS_OF_A_BAND))).ravel()
        _, bucket, counts = np.unique(keys, return_inverse=True, return_counts=True)
        order = np.argsort(bucket, kind="stable")
        ends = np.cumsum(counts)
        for end, n in zip(ends[counts > 1], counts[counts > 1], strict=True):
            places = filled[np.sort(order[end - n : end])]
            compared = places if n <= _MAX_OF_A_BUCKET else places[:1]
            for at, row in enumerate(compared.tolist()):
                others = [other for other in places[at + 1 :].tolist() if (row, other) not in seen]
                seen.update((row, other) for other in others)
                for other, similarity in zip(others, _similarities(shingles, row, others), strict=True):
                    if similarity >= MIN_SIMILARITY:
                        yield row, other, similarity


def _similarities(shingles: "csr_matrix", row: int, others: Sequence[int]) -> list[float]:
    """The Jaccard similarity of a row to each of the others."""
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


def _min_hashes(shingles: "csr_matrix", filled: NDArray[np.int64]) -> NDArray[np.uint32]:
    """The minimum of each random hash over each non-empty row: (rows, bands × rows of a band)."""
    numbers = np.random.default_rng(0).integers(1, 2**63, size=(_BANDS * _ROWS_OF_A_BAND, 2), dtype=np.uint64)
    hashes = np.empty((len(filled), len(numbers)), dtype=np.uint32)
    for first in range(0, len(filled), _HASHED_AT_ONCE):
        rows = filled[first : first + _HASHED_AT_ONCE]
        start, end = shingles.indptr[rows[0]], shingles.indptr[rows[-1] + 1]
        columns = shingles.indices[start:end].astype(np.uint64)
        starts = shingles.indptr[rows] - start
        for place, (factor, shift) in enumerate(numbers):
            # Multiply-shift hashing (Dietzfelbinger et al. 1997).
            mixed = (columns * (factor | np.uint64(1)) + shift) >> np.uint64(32)
            hashes[first : first + len(rows), place] = np.minimum.reduceat(mixed, starts)
    return hashes
