"""Start vectors: counted by hand on a small text, and alike where words keep the same company."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from txcls.bigrams_and_phrases import FrequentBigrams
from txcls.checkpoint import load_checkpoint
from txcls.config import load_preset
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.training import train
from txcls.training.start_vectors import (
    SPREAD,
    WINDOW,
    _pair_counts,
    _ppmi,
    cooccurrence_vectors,
    frequent_pairs,
)


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


def test_the_most_frequent_pairs_are_those_that_a_loop_counts() -> None:
    random = np.random.default_rng(4)
    rows = [random.integers(1, 9, size=random.integers(1, 30)).tolist() for _ in range(80)]
    counts = Counter(pair for row in rows for pair in pairwise([0, *row]) if 1 not in pair)
    found = [(int(left), int(right)) for left, right in frequent_pairs(texts(*rows), 25)]
    assert len(set(found)) == 25
    kept = sorted(counts[pair] for pair in found)
    assert kept[::-1] == sorted(counts.values())[::-1][:25]
    assert len(frequent_pairs(texts(*rows), 10_000)) == len(counts)
    assert frequent_pairs(texts([1]), 5).shape == (0, 2), "the unknown token makes no pair"


def test_a_classifier_knows_the_pairs_of_its_training_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path))
    settings = load_preset("sample").with_settings(
        ["model.ngram_buckets=50", "model.ngrams=frequent", "model.d_ngram=4", "train.epochs=1"]
    )
    train(settings, out=tmp_path / "made", max_steps=3)
    made = load_checkpoint(tmp_path / "made")
    rows, _ = training_and_validation(open_dataset(settings.data), settings.data)
    expected = frequent_pairs(TokenisedTexts.encode(made.encoder, rows), 49)
    bigrams = made.model.embeddings.ngram
    assert isinstance(bigrams, FrequentBigrams)
    assert bigrams.known.tolist() == sorted(left * made.encoder.vocab_size + right for left, right in expected.tolist())
    assert not bigrams.table.weight[-1].any() and bigrams.table.weight[:-1].any(-1).all()
    assert "50 frequent bigram vectors of width 4" in (tmp_path / "made" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("rows", [[[1]], [[5], [6]], [[5, 6, 7]]])
def test_too_little_text_gives_zeros(rows: list[list[int]]) -> None:
    assert not cooccurrence_vectors(texts(*rows), vocab_size=10, d_model=8).any()
