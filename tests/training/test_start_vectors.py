"""Start vectors: counted by hand on a small text, and alike where words keep the same company."""

import numpy as np
import pytest

from txcls.data.batches import TokenisedTexts
from txcls.training.start_vectors import SPREAD, WINDOW, _pair_counts, _ppmi, cooccurrence_vectors


def texts(*rows: list[int]) -> TokenisedTexts:
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    ids = np.array([token for row in rows for token in row], dtype=np.int32)
    return TokenisedTexts(ids, offsets, np.zeros(len(rows), dtype=np.int64))


def test_mutual_information_equals_a_loop_over_all_pairs() -> None:
    random = np.random.default_rng(0)
    rows = [random.integers(1, 12, size=random.integers(1, 20)).tolist() for _ in range(40)]
    counts = np.zeros((12, 12))
    for row in rows:
        for i, left in enumerate(row):
            for j, right in enumerate(row):
                if i != j and abs(i - j) <= WINDOW and left >= 4 and right >= 4:
                    counts[left, right] += 1 / abs(i - j)
    token = counts.sum(1)
    neighbour = token**0.75 / (token**0.75).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.nan_to_num(np.maximum(0, np.log(counts / (token[:, None] * neighbour[None]))), neginf=0.0)
    np.testing.assert_allclose(_ppmi(_pair_counts(texts(*rows), 12)).toarray(), expected, atol=1e-5)


def test_words_that_keep_the_same_company_start_alike() -> None:
    random = np.random.default_rng(1)
    rows = []
    for _ in range(600):  # tokens 10 and 11 stand among 12 to 15, token 20 among 21 to 24
        near, word = (12, int(random.integers(10, 12))) if random.random() < 0.5 else (21, 20)
        rows.append([*random.integers(near, near + 4, size=2), word, *random.integers(near, near + 4, size=2)])
    vectors = cooccurrence_vectors(texts(*rows), vocab_size=30, d_model=4)
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    assert unit[10] @ unit[11] > 0.9 > 0.5 > unit[10] @ unit[20]
    assert not vectors[:4].any() and vectors[4:].std() == pytest.approx(SPREAD, rel=1e-3)
    np.testing.assert_array_equal(vectors, cooccurrence_vectors(texts(*rows), vocab_size=30, d_model=4))


@pytest.mark.parametrize("rows", [[[1]], [[5], [6]], [[5, 6, 7]]])
def test_too_little_text_gives_zeros(rows: list[list[int]]) -> None:
    assert not cooccurrence_vectors(texts(*rows), vocab_size=10, d_model=8).any()
