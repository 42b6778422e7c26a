"""Position vectors, linear maps that shift them, and words in other orders."""

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import TEXTS, make_checkpoint
from txcls.config import load_preset
from txcls.errors import TraceError
from txcls.inspection.positions import (
    arrange_words,
    fit_shift,
    position_encoding,
    position_products,
    shift_map,
    shuffle_words,
    sinusoids,
)
from txcls.inspection.tracing import trace_text
from txcls.predictor import Predictor


@pytest.mark.parametrize("k", [1, 3, 40])
def test_one_rotation_moves_every_sinusoid(k: int) -> None:
    values = sinusoids(200, 32).astype(np.float64)
    rotation = shift_map(32, k)
    np.testing.assert_allclose(values[:-k] @ rotation.T, values[k:], atol=1e-5)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(32), atol=1e-12)
    np.testing.assert_allclose(np.linalg.matrix_power(shift_map(32, 1), k), rotation, atol=1e-9)


def test_a_fitted_map_is_exact_for_sinusoids_and_not_for_random_vectors() -> None:
    for k in (1, 7):
        fitted = fit_shift(sinusoids(128, 16), k)
        assert fitted.fitted < 1e-4 and fitted.held_out < 1e-3
        noise = fit_shift(np.random.default_rng(0).normal(size=(128, 16)).astype(np.float32), k)
        assert noise.held_out > 0.9 > noise.fitted > 0.5
    with pytest.raises(ValueError, match="wanted k from 1"):
        fit_shift(sinusoids(6, 8), 4)
    with pytest.raises(ValueError, match="wanted k from 1"):
        fit_shift(sinusoids(6, 8), 0)
    with pytest.raises(ValueError, match="positive even number"):
        shift_map(7, 1)


def test_words_are_put_in_another_order() -> None:
    text = "the bank  raised its\nrates"
    assert arrange_words(text, range(5)) == "the bank raised its rates"
    assert arrange_words(text, (4, 0, 3, 1, 2)) == "rates the its bank raised"
    assert arrange_words(" ", ()) == ""
    for places in ((0, 1, 2, 3), (0, 1, 2, 3, 3), (0, 1, 2, 3, 5), (-1, 0, 1, 2, 3)):
        with pytest.raises(ValueError, match="each of the 5 words' once"):
            arrange_words(text, places)


def test_in_the_presets_models_order_can_enter_through_positions_alone() -> None:
    model = load_preset("who_won").model
    assert not model.causal and model.pooling in ("attention", "mean", "class_token")


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "none"])
def test_the_position_encoding_is_what_the_model_adds(tmp_path: Path, kind: str) -> None:
    classifier = Predictor(make_checkpoint(tmp_path / "tiny", positions=kind))
    encoding = position_encoding(classifier, 5)
    assert encoding.kind == kind and encoding.values.shape == (5, 16)
    assert position_encoding(classifier).values.shape == (12, 16)
    if kind == "none":
        assert not encoding.values.any()
    else:
        text = "the bank raised its rates"
        np.testing.assert_allclose(encoding.values, trace_text(classifier, text).values["embeddings.positions"])
    for length in (0, 13):
        with pytest.raises(ValueError, match="this model has 1 to 12 positions"):
            position_encoding(classifier, length)


def test_the_product_of_sinusoids_depends_on_their_distance_only() -> None:
    products = position_products(sinusoids(30, 16))
    for distance in range(30):
        np.testing.assert_allclose(np.diag(products, distance), products[0, distance], atol=1e-4)
    assert products[0, 0] == pytest.approx(8.0)
    for wrong in ((0, 16), (5, 15), (5, 0)):
        with pytest.raises(ValueError, match="wanted at least 1 and a positive even number"):
            sinusoids(*wrong)


def test_shuffling_keeps_the_words_and_repeats_itself(classifier: Predictor) -> None:
    text = TEXTS[3]
    result = shuffle_words(classifier, text, n=7, seed=3)
    assert all(sorted(one.split()) == sorted(text.split()) for one in result.texts)
    np.testing.assert_allclose(result.probabilities.sum(1), 1.0)
    assert result.texts == shuffle_words(classifier, text, n=7, seed=3).texts
    winners = [classifier.classes[row.argmax()] for row in result.probabilities]
    assert result.label_kept == pytest.approx(np.mean([winner == result.original.label for winner in winners]))
    one = shuffle_words(classifier, "bank", n=2)
    assert one.label_kept == 1.0
    with pytest.raises(ValueError, match="got n = 0"):
        shuffle_words(classifier, text, n=0)


def test_without_positions_the_order_of_words_does_not_matter(tmp_path: Path) -> None:
    classifier = Predictor(make_checkpoint(tmp_path / "tiny", positions="none"))
    result = shuffle_words(classifier, TEXTS[0], n=5)
    expected = {one.label: one.probability for one in result.original.ranked}
    for row in result.probabilities:
        assert dict(zip(classifier.classes, row, strict=True)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("text", ["", "  \n "])
def test_a_text_without_words_cannot_be_shuffled(classifier: Predictor, text: str) -> None:
    with pytest.raises(TraceError, match="no word in this text"):
        shuffle_words(classifier, text)
