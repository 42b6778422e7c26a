"""Training rows that carry an answer: the estimate's arithmetic, and trainings without some rows."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from tests.conftest import CLASSES, TEXTS
from txcls.data.batches import TokenisedTexts, pad_batch
from txcls.data.datasets import open_dataset
from txcls.data.types import LabelledTexts
from txcls.inspection import retraining
from txcls.inspection.influence import RIDGE, InfluenceCheck, answer_margin, influential_rows, row_effects
from txcls.inspection.retraining import Lesson, class_probabilities, log_odds, random_others
from txcls.model import TextClassifier
from txcls.predictor import Predictor

ROWS = LabelledTexts(TEXTS, [1, 2, 3, 0, 1, 2, 3, 0], CLASSES)


def test_the_margin_is_the_log_odds() -> None:
    logits = torch.randn(5, 4, dtype=torch.float64)
    p = logits.softmax(-1)
    for c in range(4):
        torch.testing.assert_close(answer_margin(logits, c), torch.log(p[:, c] / (1 - p[:, c])))


def test_effects_are_those_of_ridge_regression_on_gradients(classifier: Predictor) -> None:
    model = classifier.checkpoint.model
    assert isinstance(model, TextClassifier)
    texts = TokenisedTexts.encode(classifier.encoder, ROWS)
    asked = texts.subset([2])
    found = row_effects([model], texts, asked, 1)

    def gradient(ids: np.ndarray, c: int) -> tuple[np.ndarray, float]:
        p = model(torch.from_numpy(ids)).softmax(-1)[0, c]
        model.zero_grad()
        torch.log(p / (1 - p)).backward()
        parts = [
            np.zeros(one.numel()) if one.grad is None else one.grad.flatten().numpy() for one in model.parameters()
        ]
        model.zero_grad()
        return np.concatenate(parts).astype(np.float64), 1 - float(p.detach())

    rows = [gradient(pad_batch(texts, [n])[0], int(texts.labels[n])) for n in range(len(texts))]
    features, missing = np.stack([one for one, _ in rows]), np.array([one for _, one in rows])
    wanted, _ = gradient(pad_batch(asked, [0])[0], 1)
    ridge = RIDGE * (features**2).sum() / len(texts)
    fitted = Ridge(alpha=ridge, fit_intercept=False).fit(features, np.diag(missing))
    np.testing.assert_allclose(found, fitted.predict(wanted[None])[0], rtol=1e-3, atol=1e-6)


def test_several_models_are_averaged_and_none_is_changed(classifier: Predictor) -> None:
    model = classifier.checkpoint.model
    assert isinstance(model, TextClassifier)
    before = {name: one.clone() for name, one in model.state_dict().items()}
    texts = TokenisedTexts.encode(classifier.encoder, ROWS)
    once, twice = (row_effects([model] * n, texts, texts.subset([0]), 1) for n in (1, 2))
    np.testing.assert_allclose(once, twice)
    assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())
    with pytest.raises(ValueError, match="0 models"):
        row_effects([], texts, texts.subset([0]), 1)


def test_named_rows_are_of_the_answers_class_largest_first() -> None:
    effects, labels = np.array([0.1, 5.0, 0.3, 0.2]), np.array([1, 0, 1, 1])
    assert influential_rows(effects, labels, 1, n=2).tolist() == [2, 3]


def test_the_control_has_as_many_rows_of_each_class_and_none_that_is_named() -> None:
    labels = np.repeat([0, 1], 20)
    named = np.array([0, 1, 2, 25])
    control = random_others(labels, named, seed=0)
    assert np.bincount(labels[control]).tolist() == [3, 1]
    assert not set(control.tolist()) & set(named.tolist())
    assert len(random_others(labels, np.arange(15), seed=0)) == 15  # of 20, only 5 others are there


@pytest.fixture(scope="module")
def lesson() -> Lesson:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retraining, "SETTINGS", (*retraining.SETTINGS[:-1], "train.epochs=2"))
        return Lesson.of_sample()


def test_the_same_seed_and_rows_give_the_same_model(lesson: Lesson) -> None:
    text = lesson.read("the coach praised the team after the match")
    one, again, without = lesson.learn(3), lesson.learn(3), lesson.learn(3, without=range(20))
    whole = class_probabilities([one], text)
    np.testing.assert_array_equal(whole, class_probabilities([again], text))
    assert not np.allclose(whole, class_probabilities([without], text))
    assert np.isclose(whole.sum(), 1) and whole.shape == (6,)
    assert log_odds([one], text, 2)[0] == pytest.approx(np.log(whole[2] / (1 - whole[2])), rel=1e-4)


def test_the_shipped_check_says_that_named_rows_carry_answers() -> None:
    check = InfluenceCheck.shipped()
    assert check is not None and check.passes
    assert check.difference == pytest.approx(check.named - check.control, abs=0.002)
    assert check.low <= check.difference <= check.high < 0
    assert 0 <= check.larger <= check.n_answers


@pytest.mark.slow
@pytest.mark.timeout(600)  # eighteen trainings
def test_leaving_named_rows_out_moves_answers_further_than_others_of_their_class() -> None:
    """A small form of `python -m benchmarks.influence`: answers differ, so that a mean over several is what counts."""
    lesson = Lesson.of_sample()
    tests = open_dataset(lesson.config.data).load("test").texts
    models = [lesson.learn(seed) for seed in range(2)]
    apart = []
    for number in np.random.default_rng(2).permutation(len(tests))[:4]:
        text = lesson.read(tests[number])
        c = int(class_probabilities(models, text).argmax())
        named = influential_rows(row_effects(models, lesson.texts, text, c), lesson.texts.labels, c, n=20)
        control = random_others(lesson.texts.labels, named, seed=int(number))
        without_named, without_control = (
            log_odds([lesson.learn(seed, without=rows.tolist()) for seed in (10, 11)], text, c).mean()
            for rows in (named, control)
        )
        apart.append(without_named - without_control)
    assert np.mean(apart) < 0
