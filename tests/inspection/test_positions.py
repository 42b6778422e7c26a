"""Position vectors, linear maps that shift them, and reordered words."""

import numpy as np
import pytest

from tests.conftest import TEXTS, Untrained
from txcls.inference.predictor import Predictor
from txcls.inspection.positions import arrange_words, fit_shift, predict_shuffled, shift_map
from txcls.model import sinusoidal_encoding


@pytest.mark.parametrize("k", [1, 3, 40])
def test_one_rotation_shifts_every_sinusoidal_position(k: int) -> None:
    values = sinusoidal_encoding(200, 32).double().numpy()
    rotation = shift_map(32, k)
    np.testing.assert_allclose(values[:-k] @ rotation.T, values[k:], atol=1e-5)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(32), atol=1e-12)
    np.testing.assert_allclose(np.linalg.matrix_power(shift_map(32, 1), k), rotation, atol=1e-9)


def test_a_fitted_shift_is_exact_for_sinusoids_but_not_for_random_vectors() -> None:
    for k in (1, 7):
        fitted = fit_shift(sinusoidal_encoding(128, 16).numpy(), k)
        assert fitted.fitted < 1e-4 and fitted.held_out < 1e-3
        noise = fit_shift(np.random.default_rng(0).normal(size=(128, 16)).astype(np.float32), k)
        assert noise.held_out > 0.9 > noise.fitted > 0.5
    for k in (0, 4):
        with pytest.raises(ValueError, match="expected k from 1"):
            fit_shift(sinusoidal_encoding(6, 8).numpy(), k)


def test_words_are_rearranged() -> None:
    text = "the bank  raised its\nrates"
    assert arrange_words(text, range(5)) == "the bank raised its rates"
    assert arrange_words(text, (4, 0, 3, 1, 2)) == "rates the its bank raised"
    assert arrange_words(" ", ()) == ""
    for order in ((0, 1, 2, 3), (0, 1, 2, 3, 3), (0, 1, 2, 3, 5), (-1, 0, 1, 2, 3)):
        with pytest.raises(ValueError, match="each of 0 to 4 once"):
            arrange_words(text, order)


def test_shuffling_keeps_the_words_and_is_reproducible(classifier: Predictor) -> None:
    text = TEXTS[3]
    result = predict_shuffled(classifier, text, n=7, seed=3)
    assert all(sorted(order.split()) == sorted(text.split()) for order in result.texts)
    np.testing.assert_allclose(result.probabilities.sum(1), 1.0)
    assert result.texts == predict_shuffled(classifier, text, n=7, seed=3).texts
    predicted = [classifier.classes[row.argmax()] for row in result.probabilities]
    assert result.share_unchanged == pytest.approx(np.mean([label == result.original.label for label in predicted]))
    assert predict_shuffled(classifier, "bank", n=2).share_unchanged == 1.0
    with pytest.raises(ValueError, match="got n = 0"):
        predict_shuffled(classifier, text, n=0)


def test_word_order_does_not_matter_without_positions(untrained: Untrained) -> None:
    classifier = untrained(positions="none")
    result = predict_shuffled(classifier, TEXTS[0], n=5)
    expected = {ranked.label: ranked.probability for ranked in result.original.ranked}
    for row in result.probabilities:
        assert dict(zip(classifier.classes, row, strict=True)) == pytest.approx(expected, abs=1e-5)
