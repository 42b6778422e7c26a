"""Rows with the same or nearly the same text, and rows with the same text and different labels.

MinHash (Broder 1997) over words and word pairs, with banding (Leskovec, Rajaraman & Ullman, Mining of Massive Datasets,
chapter 3), proposes pairs of near duplicates, which are then compared exactly.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from txcls.data.hashes import normalised
from txcls.data.labels import label_key
from txcls.data.types import LabelledTexts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MIN_SIMILARITY = 0.8
"""Minimum Jaccard similarity of near duplicates, over their words and word pairs."""
MAX_COMPARED_CHARACTERS = 4000
"""Number of characters of each text that are compared, from its beginning."""
MAX_JOINED_CHARACTERS = 25_000_000
"""Maximum number of characters that `near_copies` compares: 8 seconds of CPU time for 20,000 film reviews."""
_BANDS, _HASHES_PER_BAND = 12, 4
"""A pair is proposed with probability 0.998 at similarity 0.8, and 0.09 at similarity 0.3."""
_MAX_BUCKET = 50
"""If more texts than this share a band, they are compared only with the first of them."""
_HASHED_ROWS = 4096
"""Number of rows hashed at a time, to limit memory."""
_WORD = r"(?u)[぀-ヿ㐀-鿿]|[^\W぀-ヿ㐀-鿿]+"
"""A word, or a single character of a script that is written without spaces."""


def near_copies(texts: Sequence[str], copies: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each row, the index of the first row with the same or nearly the same text, (N,).

    `copies` are the first rows with the same text (N,), from `first_copies`; they are returned unchanged if the texts
    are so long together that the comparison would take more than about ten seconds.
    """
    if sum(min(len(text), MAX_COMPARED_CHARACTERS) for text in texts) > MAX_JOINED_CHARACTERS:
        return copies
    first = np.arange(len(texts))
    for group in _near_duplicates(texts, np.unique(copies).tolist()):
        first[group] = group[0]
    return first[copies]


def same_text_other_label(rows: LabelledTexts) -> list[list[int]]:
    """Groups of rows with the same text and different labels, both compared without case and repeated spaces."""
    by_text: dict[str, list[int]] = defaultdict(list)
    for row, text in enumerate(rows.texts):
        by_text[normalised(text)].append(row)
    keys = [label_key(name) for name in rows.classes]
    return [group for group in by_text.values() if len({keys[rows.labels[row]] for row in group}) > 1]


def _near_duplicates(texts: Sequence[str], rows: Sequence[int]) -> Iterator[list[int]]:
    """Yield groups of near duplicates among these rows, which have different texts; their rows are in order."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if len(rows) < 2:
        return
    pairs = list(_similar_pairs(_shingles([texts[row][:MAX_COMPARED_CHARACTERS] for row in rows])))
    if not pairs:
        return
    left, right = np.array(pairs).T
    graph = csr_array((np.ones(len(pairs)), (left, right)), shape=(len(rows), len(rows)))
    _, group_index = connected_components(graph, directed=False)
    members: dict[int, list[int]] = defaultdict(list)
    for row, group in zip(rows, group_index.tolist(), strict=True):
        members[group].append(row)
    yield from (group for group in members.values() if len(group) > 1)


def _shingles(texts: Sequence[str]) -> "csr_matrix":
    """The words and pairs of adjacent words of each text, as ones in 2^22 hashed columns."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(
        ngram_range=(1, 2), n_features=2**22, binary=True, norm=None, alternate_sign=False, token_pattern=_WORD,
        dtype=np.float32,
    )  # fmt: skip
    return hashing.transform(texts)


def _similar_pairs(shingles: "csr_matrix") -> Iterator[tuple[int, int]]:
    """Yield each pair of near duplicates."""
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
                        yield row, other


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
