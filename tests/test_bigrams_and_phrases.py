"""Bigram vectors and votes of phrases."""

import math

import pytest
import torch

from tests.test_model import CLASSES, PHRASES, build, padded, small
from txcls.bigrams_and_phrases import FrequentBigrams, Phrases


def test_bigrams_see_the_left_neighbour_and_nothing_else() -> None:
    model = build(small(ngram_buckets=4096))
    assert model.embeddings.ngram is not None
    rows = model.embeddings.ngram.rows(torch.tensor([[5, 6, 7, 6, 7]]))[0]
    assert rows[2] == rows[4], "the same pair has the same row"
    assert len({int(row) for row in rows}) == 4, "other pairs have others"
    assert rows.min() >= 0 and rows.max() < 4096


def test_bigrams_that_are_not_known_add_nothing() -> None:
    torch.manual_seed(0)
    model = build(small(ngram_buckets=6, ngrams="frequent"))
    bigrams = model.embeddings.ngram
    assert isinstance(bigrams, FrequentBigrams)
    ids = torch.tensor([[5, 6, 7, 6, 7, 5], [6, 7, 0, 0, 0, 0]])
    assert (bigrams.rows(ids) == 5).all(), "none is known before they are counted"
    bigrams.table.weight.data[-1] = 0.0  # `build` moves all weights
    bigrams.learn(torch.tensor([[7, 6], [6, 7], [0, 5]]))
    own = {pair: row for row, pair in enumerate([(0, 5), (6, 7), (7, 6)])}  # in the order of their keys
    pairs = [[(int(a), int(b)) for a, b in zip([0, *row], row, strict=False)] for row in ids]
    expected = torch.tensor([[own.get(pair, 5) for pair in row] for row in pairs])
    torch.testing.assert_close(bigrams.rows(ids), expected)
    vectors = bigrams.eval()(ids)
    assert torch.equal(vectors.any(-1), expected < 5)
    bigrams.train()(ids).square().sum().backward()
    assert not bigrams.table.weight.grad[3:].any() and bigrams.table.weight.grad[:3].any(-1).all()
    with pytest.raises(ValueError, match="6 pairs for 5 rows"):
        bigrams.learn(torch.arange(12).view(6, 2))


@pytest.mark.parametrize("vocab_size", [2, 46_340, 46_341, 200_000])
def test_bigrams_of_the_largest_ids_are_told_apart(vocab_size: int) -> None:
    bigrams = FrequentBigrams(small(ngram_buckets=4, ngrams="frequent", d_ngram=2), vocab_size)
    last = vocab_size - 1
    bigrams.learn(torch.tensor([[last, last], [last, last - 1]]))
    assert bigrams.rows(torch.tensor([[last, last, last - 1, last]]))[0].tolist() == [3, 1, 0, 3]


def test_phrases_vote_wherever_they_stand_whole() -> None:
    model = build(small(phrases=9))
    phrases = model.phrases
    assert phrases is not None
    torch.manual_seed(1)
    votes = torch.randn(len(PHRASES), CLASSES)
    phrases.learn(PHRASES, votes, fewest=4)
    known = {tuple(one for one in phrase.tolist() if one): vote for phrase, vote in zip(PHRASES, votes, strict=True)}
    rows = [[5, 6, 5, 5, 7], [6, 5, 5], [49, 49, 49, 49, 1], [7, 8]]
    found = phrases.by_token(padded(rows))
    for row, said in zip(rows, found, strict=True):
        expected, n = torch.zeros(5, CLASSES), 0
        for end in range(len(row)):
            for length in (1, 2, 3):
                vote = known.get(tuple(row[end - length + 1 : end + 1])) if end >= length - 1 else None
                if vote is not None:
                    expected[end] += vote
                    n += 1
        torch.testing.assert_close(said, expected / math.sqrt(max(n, 4)))
    assert not found[3].any(), "a text without a known phrase gets no vote"
    with pytest.raises(ValueError, match="10 phrases for 9 rows"):
        phrases.learn(torch.ones(10, 3, dtype=torch.int64), torch.ones(10, CLASSES))


def test_votes_are_added_to_the_logits() -> None:
    model = build(small(phrases=len(PHRASES)))
    assert model.phrases is not None
    ids = torch.tensor([[5, 6, 5, 5, 49, 49]])
    with torch.no_grad():
        both, votes = model(ids), model.phrases(ids)
        model.phrases.table.zero_()
        model.phrases.bias.zero_()
        alone = model(ids)
    assert votes.abs().min() > 0
    torch.testing.assert_close(both, alone + votes)
    assert not model.phrases.table.requires_grad


@pytest.mark.parametrize("vocab_size, longest", [(2, 8), (100, 8), (2_000_000, 3), (3_000_000_000, 2)])
def test_phrases_of_the_largest_ids_are_told_apart(vocab_size: int, longest: int) -> None:
    phrases = Phrases(small(phrases=3, phrase_length=longest), vocab_size=vocab_size, n_classes=1)
    last = vocab_size - 1
    phrases.learn(torch.tensor([[last] * longest, [0] * (longest - 1) + [last]]), torch.tensor([[1.0], [2.0]]))
    rows = phrases.rows(torch.tensor([[last] * longest]))[0]
    assert rows[:, 0].tolist() == [0] * longest, "alone"
    assert rows[-1, -1] == 1 and (rows[:-1, -1] == -1).all(), "all of them"
    with pytest.raises(ValueError, match=r"a vocabulary of at most"):
        Phrases(small(phrases=3, phrase_length=longest), vocab_size=2 ** (64 // longest), n_classes=1)
