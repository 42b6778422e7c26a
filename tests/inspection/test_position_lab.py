"""Words in other orders, and what a linear map needs to move positions."""

import numpy as np
import pytest

from txcls.config import load_preset
from txcls.inspection import fit_shift, move_word, reorder_words, shift_map, sinusoids


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


def test_words_are_reordered_and_none_is_lost() -> None:
    text = "the bank  raised its\nrates"
    assert reorder_words(text, "as typed") == "the bank raised its rates"
    assert reorder_words(text, "reversed") == "rates its raised bank the"
    shuffled = reorder_words(text, "shuffled", seed=3)
    assert sorted(shuffled.split()) == sorted(text.split()) and shuffled == reorder_words(text, "shuffled", seed=3)
    assert len({reorder_words(text, "shuffled", seed=seed) for seed in range(20)}) > 5


def test_a_word_is_moved() -> None:
    assert move_word("a b c d", 0, 2) == "b c a d"
    assert move_word("a b c d", 3, 0) == "d a b c"
    assert move_word("a", 0, 0) == "a"
    for place, to in ((4, 0), (0, 4), (-1, 0)):
        with pytest.raises(IndexError, match="4 words"):
            move_word("a b c d", place, to)


def test_in_the_presets_models_order_can_enter_through_positions_alone() -> None:
    model = load_preset("positions").model
    assert not model.ngram_buckets and not model.causal and model.pooling in ("attention", "mean")
