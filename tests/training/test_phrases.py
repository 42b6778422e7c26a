"""Votes of phrases: counted by hand, fitted to texts that say their class, as loud as validation texts want them."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.training.test_start_vectors import texts
from txcls.checkpoint import load_checkpoint
from txcls.config import RunConfig, load_preset
from txcls.data.batches import TokenisedTexts
from txcls.errors import ConfigError
from txcls.model import TextClassifier
from txcls.training import train
from txcls.training.phrases import PhraseVotes, _counts, _fit, _most_frequent, _occurrences, fit_votes

VOCAB = 30


def labelled(rows: list[list[int]], labels: list[int]) -> TokenisedTexts:
    read = texts(*rows)
    return TokenisedTexts(read.ids, read.offsets, np.array(labels, dtype=np.int64))


def random_rows(n: int, *, seed: int, most: int = 12) -> list[list[int]]:
    random = np.random.default_rng(seed)
    return [random.integers(1, VOCAB, random.integers(1, most)).tolist() for _ in range(n)]


def votes_of(
    rows: list[list[int]], labels: list[int], *, n: int = 200, deep: np.ndarray | None = None
) -> tuple[PhraseVotes, np.ndarray]:
    """Votes fitted to the first two thirds, and what they say of the other texts, (M, C)."""
    split = 2 * len(rows) // 3
    if deep is None:
        deep = np.zeros((len(rows) - split, max(labels) + 1))
    known, asked = labelled(rows[:split], labels[:split]), labelled(rows[split:], labels[split:])
    fitted = fit_votes(known, asked, deep, n=n, longest=3, vocab_size=VOCAB)
    return fitted, said_of(rows[split:], fitted)


def said_of(rows: list[list[int]], fitted: PhraseVotes) -> np.ndarray:
    of = {tuple(one for one in p if one): v for p, v in zip(fitted.phrases.tolist(), fitted.votes, strict=True)}
    said = np.zeros((len(rows), fitted.votes.shape[1]))
    for place, row in enumerate(rows):
        held = [of[phrase] for phrase in phrases_in(row) if phrase in of]
        said[place] = fitted.bias + (sum(held) / math.sqrt(max(len(held), fitted.fewest)) if held else 0.0)
    return said


def phrases_in(row: list[int]) -> list[tuple[int, ...]]:
    whole = [tuple(row[end - n : end]) for n in (1, 2, 3) for end in range(n, len(row) + 1)]
    return [phrase for phrase in whole if min(phrase) >= 4]


def test_the_most_frequent_phrases_are_known_and_counted_as_by_hand() -> None:
    rows = random_rows(60, seed=0)
    in_texts = Counter(phrase for row in rows for phrase in set(phrases_in(row)))
    keys, number = _occurrences(texts(*rows), longest=3, vocab_size=VOCAB)
    known = _most_frequent(keys, number, n=40, n_texts=len(rows))
    found = [tuple(int(one) for one in key // VOCAB ** np.arange(2, -1, -1) % VOCAB if one) for key in known]
    assert len(set(found)) == 40 and (np.diff(known) > 0).all()
    rest = [n for phrase, n in in_texts.items() if phrase not in found]
    assert min(in_texts[phrase] for phrase in found) >= max(rest)
    assert in_texts.total() and min(in_texts[phrase] for phrase in found) >= 2
    counts = _counts(keys, number, known, n_texts=len(rows)).toarray()
    for row, given in zip(rows, counts, strict=True):
        held = Counter(phrase for phrase in phrases_in(row) if phrase in found)
        np.testing.assert_allclose(given, [held[phrase] for phrase in found])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_model_says_what_was_fitted(n_classes: int) -> None:
    rows = random_rows(90, seed=1)
    labels = [(row[0] + len(row)) % n_classes for row in rows]
    fitted, _ = votes_of(rows, labels, n=100)
    settings = load_preset("sample").with_settings(["model.phrases=100", "model.max_length=16"]).model
    network = TextClassifier(settings, vocab_size=VOCAB, n_classes=n_classes).eval()
    before = [network(torch.tensor([row]))[0].detach() for row in rows]
    fitted.teach(network)
    for row, said, alone in zip(rows, said_of(rows, fitted), before, strict=True):
        together = network(torch.tensor([row]))[0].detach()
        np.testing.assert_allclose(together, alone.numpy() + said, atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_phrases_that_tell_the_class_are_found(n_classes: int) -> None:
    random = np.random.default_rng(2)
    labels = random.integers(0, n_classes, 360).tolist()
    # All texts hold the same pairs but for what stands after 10 + label: two neighbours tell the class.
    rows = []
    for label in labels:
        pairs = [[10 + c, 20 if c == label else 21] for c in range(n_classes)]
        rows.append([one for pair in random.permutation(pairs).tolist() for one in (*pair, random.integers(22, 30))])
    fitted, said = votes_of(rows, labels)
    assert (said.argmax(axis=1) == labels[240:]).mean() > 0.98
    of = {tuple(phrase): vote for phrase, vote in zip(fitted.phrases.tolist(), fitted.votes, strict=True)}
    assert all(of[0, 10 + c, 20].argmax() == c for c in range(n_classes))
    assert fitted.log_loss[1] < 0.2 < fitted.log_loss[0]


def test_votes_are_as_loud_as_validation_texts_want_them() -> None:
    random = np.random.default_rng(3)
    labels = random.integers(0, 2, 300).tolist()
    rows = [[*random.integers(10, VOCAB, 6).tolist(), 4 + (label if random.random() < 0.8 else 1 - label)]
            for label in labels]  # fmt: skip
    right = np.array(labels[200:])
    sure = np.stack([1 - right, right], axis=1) * 40.0
    quiet, _ = votes_of(rows, labels, deep=sure)
    assert quiet.scale == 0 and not quiet.votes.any() and not quiet.bias.any(), "nothing is left to say"
    loud, said = votes_of(rows, labels)
    assert loud.scale > 0 and (said.argmax(axis=1) == right).mean() > 0.7
    half = np.stack([1 - right, right], axis=1) * 2.0 + random.normal(0, 2, (100, 2))
    helped, said = votes_of(rows, labels, deep=half)
    for temperature in (0.5, 1.0, 2.0):
        logits = torch.from_numpy((half + said) / temperature)
        assert F.cross_entropy(logits, torch.tensor(right)).item() > helped.log_loss[1] - 1e-9
    assert helped.log_loss[1] < helped.log_loss[0]
    assert ((half + said).argmax(axis=1) == right).mean() > (half.argmax(axis=1) == right).mean()


def test_votes_say_nothing_where_labels_are_chance() -> None:
    random = np.random.default_rng(4)
    labels = random.integers(0, 2, 600).tolist()
    rows = [[int(one) for one in random.integers(4, VOCAB, 8)] for _ in labels]
    fitted, said = votes_of(rows, labels, n=5000)
    likely = torch.from_numpy(said).softmax(-1)[:, 1].numpy()
    assert abs(likely - np.mean(labels)).mean() < 0.1
    assert fitted.log_loss[0] == pytest.approx(math.log(2), abs=1e-3)


def test_unbalanced_classes_leave_their_share_to_the_bias() -> None:
    fitted, said = votes_of(random_rows(300, seed=5), ([0] * 9 + [1]) * 30)
    assert fitted.bias[0] > fitted.bias[1]
    assert (said.argmax(axis=1) == 0).mean() > 0.9


def test_two_classes_are_one_model_and_more_are_one_each() -> None:
    rows, labels = random_rows(60, seed=5), np.arange(60) % 2
    keys, number = _occurrences(texts(*rows), longest=2, vocab_size=VOCAB)
    counts = _counts(keys, number, _most_frequent(keys, number, n=50, n_texts=60), n_texts=60)
    votes, bias = _fit(counts, labels, 2, 10.0)
    np.testing.assert_allclose(votes[:, 0], -votes[:, 1])
    three = np.where(labels == 1, 1, np.arange(60) % 4)  # 0, 1 and 2: class 1 has the same texts
    each, each_bias = _fit(counts, three, 3, 10.0)
    np.testing.assert_allclose(each[:, 1], 2 * votes[:, 1], atol=1e-6)
    assert each_bias[1] == pytest.approx(2 * bias[1]) and each_bias[0] != each_bias[2]


def test_few_phrases_are_no_louder_than_those_of_a_short_training_text() -> None:
    rows = [row for n in range(10, 40) for row in random_rows(10, seed=n, most=n)]
    fitted, _ = votes_of(rows, [n % 2 for n in range(len(rows))])
    of = {tuple(one for one in phrase if one) for phrase in fitted.phrases.tolist()}
    held = np.array([sum(phrase in of for phrase in phrases_in(row)) for row in rows[:200]])
    assert fitted.fewest == int(np.quantile(held, 0.1)) > 1


def test_a_class_of_no_text_or_of_all_of_them_gets_no_vote() -> None:
    rows = random_rows(30, seed=6)
    keys, number = _occurrences(texts(*rows), longest=2, vocab_size=VOCAB)
    counts = _counts(keys, number, _most_frequent(keys, number, n=50, n_texts=30), n_texts=30)
    for labels in (np.zeros(30, dtype=np.int64), np.ones(30, dtype=np.int64)):
        votes, bias = _fit(counts, labels, 2, 10.0)
        assert not votes.any() and not bias.any()
    votes, _ = _fit(counts, np.arange(30) % 2, 3, 10.0)
    assert votes[:, :2].any() and not votes[:, 2].any()


def test_texts_without_a_phrase_twice_have_none() -> None:
    alone = [[4 + n] for n in range(20)]
    fitted, said = votes_of(alone, [n % 2 for n in range(20)])
    assert fitted.phrases.shape == (0, 3) and fitted.votes.shape == (0, 2) and not said.any()


def test_a_preset_with_phrases_trains_and_its_card_says_so(tmp_path: Path) -> None:
    settings = load_preset("sample").with_settings(["model.phrases=500", "model.phrase_length=2"])
    told: list[str] = []
    made = train(settings, out=tmp_path / "wide", max_steps=2, on_stage=told.append)
    assert "fitting the votes of 500 phrases" in told
    network = made.model
    assert isinstance(network, TextClassifier) and network.phrases is not None
    record = made.metrics["phrases"]
    assert record["n"] <= 500 and record["log_loss_with"] < record["log_loss_without"]
    assert (
        network.phrases.table.any() and made.metrics["validation"]["accuracy"] > made.history[-1]["validation_accuracy"]
    )
    card = (tmp_path / "wide" / "README.md").read_text(encoding="utf-8")
    assert "500 phrases of up to 2 tokens, whose votes are added to the logits" in card
    assert f"log loss of validation rows {record['log_loss_without']:.4f} without them" in card
    again = load_checkpoint(tmp_path / "wide").model
    ids = torch.randint(4, 40, (3, 9))
    torch.testing.assert_close(again(ids), network(ids))


def test_phrases_without_keys_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"model\.phrase_length: 5 out of 30,000 tokens"):
        RunConfig.from_mapping({"name": "x", "model": {"phrases": 10, "phrase_length": 5}}, source="here")
