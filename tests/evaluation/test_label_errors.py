"""Planted wrong labels are found; probabilities come from models that have not seen the label."""

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import TEXTS, make_language_model
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.label_errors import (
    MIN_RATIO,
    doubtful_labels,
    encoder_vectors,
    held_out_probabilities,
    out_of_fold_probabilities,
)
from txcls.wording import percentage

SUBJECTS = {
    "kitchen": "oven dough flour butter recipe pan simmer",
    "garden": "soil seeds tulip rake lawn compost hedge",
    "bicycle": "pedal chain brake saddle tyre gears spoke",
    "library": "shelf novel borrow author chapter loan reader",
}


def made_rows(n: int, seed: int = 0) -> LabelledTexts:
    """Texts with five words of their class and three arbitrary words."""
    random = np.random.default_rng(seed)
    words = [subject_words.split() for subject_words in SUBJECTS.values()]
    everything = [word for subject_words in words for word in subject_words]
    labels = random.integers(0, 4, n)
    texts = [" ".join([*random.choice(words[label], 4), *random.choice(everything, 3)]) for label in labels]
    return LabelledTexts(texts, labels.tolist(), tuple(SUBJECTS))


def planted(rows: LabelledTexts, share: float, seed: int = 1) -> tuple[LabelledTexts, set[int]]:
    """The rows with a share of wrong labels, and the indices of those rows."""
    random = np.random.default_rng(seed)
    wrong = random.choice(len(rows), round(share * len(rows)), replace=False)
    labels = np.array(rows.labels)
    labels[wrong] = (labels[wrong] + random.integers(1, len(rows.classes), len(wrong))) % len(rows.classes)
    return LabelledTexts(rows.texts, labels.tolist(), rows.classes), set(wrong.tolist())


@pytest.mark.parametrize("seed", range(2))
def test_two_thirds_of_the_first_flagged_were_planted(seed: int) -> None:
    rows, wrong = planted(made_rows(600, seed), 0.05, seed)
    flagged = doubtful_labels(rows, out_of_fold_probabilities(rows))
    first = {row.row for row in flagged.rows[: len(wrong)]}
    assert len(first & wrong) >= 2 / 3 * len(wrong)


def test_only_confident_disagreement_counts_and_the_accuracy_of_the_models_is_said() -> None:
    """A model that is right on 60 % of the rows and rarely sure disagrees with two fifths of right labels."""
    random = np.random.default_rng(0)
    labels = [n % 2 for n in range(400)]
    confidence = np.where(np.arange(400) < 380, random.uniform(0.5, 0.75, 400), 0.95)
    predicted = np.where(random.random(400) < 0.6, labels, 1 - np.array(labels))
    probabilities = np.where(np.arange(2) == predicted[:, None], confidence[:, None], 1 - confidence[:, None])
    rows = LabelledTexts(["text"] * 400, labels, ("a", "b"))
    found = doubtful_labels(rows, probabilities)
    n_wrong = int((predicted != labels)[380:].sum())
    assert 0 < n_wrong == len(found.rows) and all(
        row.suggested_probability >= MIN_RATIO * row.label_probability for row in found.rows
    )
    accuracy = percentage(float((predicted == labels).mean()))
    sentence = "Linear models, none trained on the row that it predicts, have an accuracy of"
    assert str(found).startswith(f"{sentence} {accuracy} on 400 rows (always guessing")
    assert f"disagree with {n_wrong} of 400 labels" in str(found)
    named = str(doubtful_labels(rows, probabilities, with_classifier=True, which="test rows"))
    assert named.startswith("This classifier and linear models, none") and f"{accuracy} on 400 test rows" in named
    sure = np.eye(2)[labels] * 0.98 + 0.01
    assert "disagree with none of 400 labels" in str(doubtful_labels(rows, sure))


def test_labels_of_a_rare_class_are_not_doubtful_because_it_is_rare() -> None:
    labels = np.array([0] * 180 + [1] * 20)
    by_frequency = np.tile([0.95, 0.05], (200, 1))
    withheld = doubtful_labels(LabelledTexts(["text"] * 200, labels.tolist(), ("a", "rare")), by_frequency)
    assert withheld.is_withheld and not withheld.rows
    assert "not clearly better than always guessing the most frequent class (90.0\u00a0%)" in str(withheld)

    # These models know two classes, but not the rare one; its last row is clearly of class b.
    labels = np.array([0] * 100 + [1] * 90 + [2] * 10)
    probabilities = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.92, 0.04, 0.04]])[labels]
    probabilities[-1] = [0.009, 0.99, 0.001]
    found = doubtful_labels(LabelledTexts(["text"] * 200, labels.tolist(), ("a", "b", "rare")), probabilities)
    assert [(row.row, row.suggested) for row in found.rows] == [(199, "b")]
    assert "at most 20\u00a0% of the labels of 'rare', so wrong labels of this kind may be missed" in str(found)


def test_no_row_is_judged_by_a_model_that_was_trained_on_it() -> None:
    # Each text is a single unique word, so nothing in the other rows predicts its label.
    rows = LabelledTexts([f"word{n}" for n in range(100)], [n % 2 for n in range(100)], ("a", "b"))
    label_probabilities = out_of_fold_probabilities(rows)[np.arange(100), rows.labels]
    assert label_probabilities.max() < 0.6


def test_a_pre_trained_encoder_adds_its_vectors(tmp_path: Path) -> None:
    model = make_language_model(tmp_path / "lm", objective="masked")
    vectors = encoder_vectors(TEXTS, encoder=tmp_path / "lm")
    assert vectors is not None and vectors.shape == (len(TEXTS), model.config.model.d_model)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 2)
    assert encoder_vectors(TEXTS, encoder=tmp_path / "missing") is None
    rows = made_rows(60)
    probabilities = held_out_probabilities(rows, encoder=tmp_path / "lm")
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert not np.allclose(probabilities, held_out_probabilities(rows, encoder=tmp_path / "missing"))


def test_copies_of_a_text_do_not_confirm_its_label() -> None:
    rng = np.random.default_rng(0)
    words = rng.integers(0, 300, size=(600, 4))
    texts = [" ".join(f"word{n}" for n in row) for row in words for _ in range(3)]
    labels = np.repeat(rng.integers(0, 2, size=600), 3)
    copied = [text.upper() if n % 3 else text for n, text in enumerate(texts)]
    probabilities = out_of_fold_probabilities(LabelledTexts(copied, labels.tolist(), ("a", "b")))
    assert 0.4 < np.mean(probabilities.argmax(axis=1) == labels) < 0.6, "random labels cannot be predicted"
    with pytest.raises(DataError, match="1 different texts of 1 class"):
        out_of_fold_probabilities(LabelledTexts(["a"] * 5, [0, 1] * 2 + [1], ("x", "y")))


@pytest.mark.parametrize("labels, classes", [([0, 1], "2 classes"), ([0, 0], "1 class")])
def test_too_few_rows_to_check_are_counted_in_the_message(labels: list[int], classes: str) -> None:
    with pytest.raises(DataError, match=f"2 different texts of {classes}; expected at least 10 texts of two classes"):
        held_out_probabilities(LabelledTexts(["a", "b"], labels, ("x", "y")))
