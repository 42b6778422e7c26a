"""Rows with the same or nearly the same text, and rows with the same text and different labels."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from txcls.data.hashes import normalised
from txcls.data.types import LabelledTexts

MIN_SIMILARITY = 0.8
"""Minimum Jaccard similarity of near copies, over their words and word pairs."""
MAX_COMPARED_CHARACTERS, MAX_JOINED_CHARACTERS = 4000, 25_000_000
"""Number of characters of each text that are compared, from its beginning, and their maximum number in all."""
_NEIGHBOURS = 50
"""Number of texts with an element in common that a text is compared with: all of them would take quadratic time."""
_PAIRS_AT_ONCE = 4096
"""Number of pairs compared at a time, to limit memory."""
_WORD = r"(?u)[぀-ヿ㐀-鿿]|[^\W぀-ヿ㐀-鿿]+"
"""A word, or a single character of a script that is written without spaces."""

Integers = NDArray[np.int64]


def near_copies(texts: Sequence[str], copies: Integers) -> Integers:
    """For each row, the index of the first row with the same or nearly the same text, (N,).

    `copies` are the first rows with the same text (N,), from `first_copies`; they are returned unchanged if the texts
    are so long together that the comparison would take more than about ten seconds.
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
        by_text[normalised(text)].append(row)
    keys = [normalised(name) for name in rows.classes]
    return [group for group in by_text.values() if len({keys[rows.labels[row]] for row in group}) > 1]


def _similar_pairs(texts: Sequence[str]) -> tuple[Integers, Integers]:
    """Pairs of texts that are near copies, (P,) and (P,), which connect all that are.

    Of two sets of words and word pairs with a Jaccard similarity of s, ordered from rare to frequent, the first 1 - s
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
