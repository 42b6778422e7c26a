from pathlib import Path

import numpy as np
import pytest

from tests.conftest import TEXTS, make_language_model
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.label_errors import (
    doubtful_labels,
    encoder_vectors,
    held_out_probabilities,
    most_doubtful,
    out_of_fold_probabilities,
)
from txcls.evaluation.report import RowPredictions
from txcls.text.formatting import percentage

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


def test_rows_are_ranked_by_how_much_more_probable_another_class_is() -> None:
    probabilities = np.array([[0.5, 0.3, 0.2], [0.6, 0.1, 0.3], [0.45, 0.05, 0.5], [0.02, 0.9, 0.08]])
    predictions = RowPredictions(LabelledTexts(["text"] * 4, [0, 1, 2, 0], ("a", "b", "c")), probabilities)
    assert most_doubtful(predictions).tolist() == [3, 1, 2, 0]


def test_the_reader_chooses_how_many_and_is_told_how_good_the_models_are() -> None:
    rows, wrong = planted(made_rows(200), 0.05)
    found = doubtful_labels(rows, n=12)
    everything = doubtful_labels(rows)
    assert len(found.rows) == 12 and len(everything.rows) == 200 and found.rows == everything.rows[:12]
    assert len(wrong.intersection(row.row for row in found.rows)) >= 2 / 3 * len(wrong)
    assert f"right on {percentage(found.accuracy)} of 200" in str(found)


def test_models_that_only_guess_rank_nothing() -> None:
    labels = (np.random.default_rng(0).random(200) < 0.1).astype(int).tolist()
    rows = LabelledTexts([f"word{n}" for n in range(200)], labels, ("a", "rare"))
    withheld = doubtful_labels(rows)
    assert not withheld.rows and "not clearly better than guessing" in str(withheld)


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
