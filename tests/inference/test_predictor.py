from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch

from tests.conftest import CLASSES, FITTED, TEXTS
from txcls.classifier import Classifier
from txcls.config import ScopeRule, ScopeScore
from txcls.inference.predictor import Predictor


def calibrated(logits: torch.Tensor) -> torch.Tensor:
    """The probabilities that `Calibration` gives for logits (C,)."""
    surprise = -torch.log_softmax(logits.double(), -1)
    return torch.softmax(-((surprise / FITTED.temperature) ** FITTED.power), -1)


def test_probabilities_are_a_full_softmax_ranked(classifier: Predictor) -> None:
    [prediction] = classifier.predict([TEXTS[0]])
    values = [score.probability for score in prediction.ranked]
    assert list(prediction.probabilities.items()) == [(score.label, score.probability) for score in prediction.ranked]
    assert {score.label for score in prediction.ranked} == set(CLASSES)
    assert values == sorted(values, reverse=True) and sum(values) == pytest.approx(1.0) and prediction.other == 0.0
    ids = torch.tensor([classifier.tokenizer.encode(TEXTS[0]).ids])
    expected = calibrated(classifier.checkpoint.model(ids)[0])
    assert values == pytest.approx(sorted(expected.tolist(), reverse=True), abs=1e-6)
    assert prediction.label == CLASSES[int(expected.argmax())]
    [two] = classifier.predict([TEXTS[0]], top_k=2)
    assert two.ranked == prediction.ranked[:2] and two.other == pytest.approx(sum(values[2:]))


def test_many_texts_get_the_probabilities_of_predict(classifier: Predictor) -> None:
    texts = [*TEXTS, "", "bank " * 40, TEXTS[2] + " zzz"]
    probabilities = classifier.probabilities(texts, batch_size=4, precision="float32")
    for row, prediction in zip(probabilities, classifier.predict(texts), strict=True):
        if prediction.label is None:
            assert (prediction.ranked, prediction.other) == ((), 0.0)
            assert row.tolist() == [0.25] * 4, "no word: equal shares of the classes"
        else:
            expected = {score.label: score.probability for score in prediction.ranked}
            assert dict(zip(CLASSES, row.tolist(), strict=True)) == pytest.approx(expected, abs=1e-6)
    rounded = classifier.probabilities(texts, precision="bfloat16")
    assert np.abs(rounded - probabilities).max() < 0.05
    assert classifier.probabilities([]).shape == (0, 4)


def test_a_text_without_words_gets_the_shares_of_the_classes(classifier: Predictor) -> None:
    predictor = Predictor(classifier.checkpoint.with_metrics(data={"train_rows_by_class": [1, 2, 3, 4]}))
    [row] = predictor.probabilities([""])
    assert row.tolist() == [0.1, 0.2, 0.3, 0.4]


def test_texts_are_reduced_like_those_of_the_table_trained_on(classifier: Predictor) -> None:
    config = classifier.checkpoint.config
    data = config.data.model_copy(update={"strip_html": True})
    checkpoint = replace(classifier.checkpoint, config=config.model_copy(update={"data": data}))
    raw = f"<style>p {{margin: 0}}</style><p>banks<p>{TEXTS[0]}</p>"
    assert Predictor(checkpoint).predict([raw])[0].text == f"banks\n{TEXTS[0]}"
    [row], [expected] = (Predictor(checkpoint).probabilities([text]) for text in (raw, f"banks\n{TEXTS[0]}"))
    np.testing.assert_array_equal(row, expected)
    traced = Classifier(checkpoint).trace(raw)
    assert traced.tokens == classifier.encode(f"banks\n{TEXTS[0]}").tokens
    assert classifier.predict([raw])[0].text == raw


@pytest.mark.parametrize("score", get_args(ScopeScore))
def test_texts_below_the_threshold_are_out_of_scope(classifier: Predictor, score: ScopeScore) -> None:
    assert classifier.predict([TEXTS[0]])[0].is_out_of_scope is None, "this checkpoint has no rule"
    logits = classifier.logits(torch.tensor([classifier.tokenizer.encode(TEXTS[0]).ids]))
    if score == "energy":
        value = float(torch.logsumexp(logits, -1))
    elif score == "standard_score":
        value = float((logits.max() - logits.mean()) / logits.std(correction=0))
    else:
        value = float(calibrated(logits[0]).max())
    for threshold, expected in ((value - 0.01, False), (value + 0.01, True)):
        scoped = replace(classifier.checkpoint, scope=ScopeRule(score=score, threshold=threshold))
        [prediction] = Predictor(scoped).predict([TEXTS[0]])
        assert prediction.is_out_of_scope is expected
        assert prediction.ranked == classifier.predict([TEXTS[0]])[0].ranked, "the ranking stays"


def test_threads_share_one_classifier(classifier: Predictor) -> None:
    expected = [prediction.probabilities for prediction in classifier.predict(TEXTS)]

    def ask(number: int) -> bool:
        [prediction] = classifier.predict([TEXTS[number % len(TEXTS)]])
        return prediction.probabilities == pytest.approx(expected[number % len(TEXTS)], abs=1e-6)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(100)))
