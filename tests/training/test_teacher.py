"""The linear model as a teacher: it answers about texts that it has not seen, and has its share of the loss."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.training.test_loop import TRAIN, VALIDATION, config, model
from txcls.config import RunConfig, TextConfig, load_preset
from txcls.errors import ConfigError, TrainingError
from txcls.training import fit, teacher, train
from txcls.training.objectives import Classify
from txcls.training.teacher import linear_probabilities

CLEANING = TextConfig(cleaning=("lowercase",))


def test_a_text_that_was_not_seen_says_nothing_where_labels_are_chance() -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 300).tolist()
    texts = [f"Word{n} twice word{n}" for n in range(300)]  # a model that saw a text would know its label by its word
    found = linear_probabilities(texts, labels, CLEANING)
    assert found.shape == (300, 2) and found.dtype == np.float32
    assert abs(found[:, 1] - np.mean(labels)).max() < 0.1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_words_that_tell_the_class_are_found(n_classes: int) -> None:
    random = np.random.default_rng(1)
    labels = random.integers(0, n_classes, 240)
    texts = [f"{' '.join(random.choice(list('abcdefgh'), 5))} SIGN{label}" for label in labels]
    found = linear_probabilities(texts, labels.tolist(), CLEANING)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)
    assert (found.argmax(axis=1) == labels).all()
    np.testing.assert_array_equal(found, linear_probabilities(texts, labels.tolist(), CLEANING))


@pytest.mark.parametrize("labels", [[0] * 40, [0] * 20 + [1] * 9])
def test_too_few_texts_of_a_class_are_refused(labels: list[int]) -> None:
    with pytest.raises(TrainingError, match="two classes of 10 training texts each"):
        linear_probabilities([f"text {n}" for n in range(len(labels))], labels, CLEANING)


def test_answers_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, labels = [f"text {n} sign{n % 2}" for n in range(40)], [n % 2 for n in range(40)]
    asked: list[int] = []
    likely = teacher.Fold.likely
    monkeypatch.setattr(teacher.Fold, "likely", lambda *given: asked.append(1) or likely(*given))
    first = linear_probabilities(texts, labels, CLEANING, cache=tmp_path)
    often = len(asked)
    np.testing.assert_array_equal(linear_probabilities(texts, labels, CLEANING, cache=tmp_path), first)
    assert often and len(asked) == often
    linear_probabilities(["another", *texts[1:]], labels, CLEANING, cache=tmp_path)
    assert len(asked) == 2 * often
    linear_probabilities(texts, labels, TextConfig(cleaning=()), cache=tmp_path)
    assert len(asked) == 3 * often


def test_a_cache_that_cannot_be_written_costs_time_alone(tmp_path: Path) -> None:
    texts, labels = [f"text {n} sign{n % 2}" for n in range(40)], [n % 2 for n in range(40)]
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    found = linear_probabilities(texts, labels, CLEANING, cache=tmp_path / "file" / "teacher")
    np.testing.assert_array_equal(found, linear_probabilities(texts, labels, CLEANING))


def test_it_is_as_regularised_as_the_texts_want() -> None:
    random = np.random.default_rng(2)
    labels = random.integers(0, 2, 400)
    other = "abcdefghijklmnop"
    clear = [f"{' '.join(random.choice(list(other), 3))} sign{label}" for label in labels]
    chance = [" ".join(random.choice(list(other), 6)) for _ in labels]
    sure, doubtful = (linear_probabilities(texts, labels.tolist(), CLEANING) for texts in (clear, chance))
    assert sure.max(axis=1).mean() > 0.95
    assert abs(doubtful[:, 1] - labels.mean()).mean() < 0.2


def test_it_knows_neighbours() -> None:
    random = np.random.default_rng(3)
    words = np.array([random.permutation(["not", "very", "good", "bad"]) for _ in range(600)])
    labels = [int("not good" in " ".join(row)) for row in words]  # every text has the same words
    found = linear_probabilities([" ".join(row) for row in words], labels, CLEANING)
    assert (found.argmax(axis=1) == labels).mean() > 0.99


def test_the_loss_is_shared_between_labels_and_teacher() -> None:
    torch.manual_seed(0)
    settings = config(teacher="linear", teacher_weight=0.3, label_smoothing=0.1, token_dropout=0.0)
    network = model(dropout=0.0).eval()
    n_classes = network.head.out_features
    answers = torch.rand(50, n_classes).softmax(-1)
    ids, labels, rows = torch.randint(4, 30, (3, 6)), torch.tensor([0, 1, 0]), torch.tensor([49, 0, 7])
    found = Classify(settings, torch.ones(n_classes), answers).batch(network, ids, labels, rows)
    logits = network(ids)
    soft = -(answers[rows] * logits.log_softmax(-1)).sum(-1).mean()
    hard = F.cross_entropy(logits, labels, label_smoothing=0.1)
    torch.testing.assert_close(found.loss, 0.7 * hard + 0.3 * soft)
    alone = Classify(settings, torch.ones(n_classes)).batch(network, ids, labels, rows)
    torch.testing.assert_close(alone.loss, hard)


def test_a_teacher_that_knows_better_is_followed() -> None:
    classes = int(TRAIN.labels.max()) + 1
    right = torch.from_numpy(TRAIN.labels)
    swapped = F.one_hot((right + 1) % classes, classes).float()  # says the next class of every text
    settings = config(teacher="linear", teacher_weight=0.9, epochs=4)
    network = model()
    result = fit(network, TRAIN, VALIDATION, settings, objective=Classify(settings, torch.ones(classes), swapped))
    assert result.history[-1].validation_accuracy < 0.1, "each text is answered by the class that the teacher said"


def test_training_asks_the_teacher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path))
    settings = load_preset("sample").with_settings(["train.teacher=linear"])
    told: list[str] = []
    made = train(settings, out=tmp_path / "taught", max_steps=2, on_stage=told.append)
    assert any("linear models" in message for message in told)
    assert made.config.train.teacher == "linear"
    card = (tmp_path / "taught" / "README.md").read_text(encoding="utf-8")
    assert "- teacher: linear models of the same training texts" in card and "50% of the loss" in card


@pytest.mark.parametrize("wrong", [{"class_weights": "inverse"}, {}])
def test_a_teacher_where_it_cannot_help_is_refused(wrong: dict[str, str]) -> None:
    values = {"name": "x", "train": {"teacher": "linear", **wrong}}
    if not wrong:
        values["objective"] = "masked"
    with pytest.raises(ConfigError, match=r"train\.teacher"):
        RunConfig.from_mapping(values, source="here")
