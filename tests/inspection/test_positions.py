import numpy as np
import pytest

from tests.conftest import TEXTS, Untrained
from txcls.inference.predictor import Predictor
from txcls.inspection.positions import arrange_words, predict_shuffled


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
