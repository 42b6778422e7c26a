"""Words in other orders, and what a linear map needs to move positions."""

import numpy as np
import pytest

from txcls.config import load_preset
from txcls.inspection import arrange_words, fit_shift, shift_map, sinusoids


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
    model = load_preset("positions").model
    assert not model.ngram_buckets and not model.causal and model.pooling in ("attention", "mean")
