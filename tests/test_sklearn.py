import pickle
from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks

from txcls.sklearn import MAX_REPEATS, TransformerClassifier, _repeats
from txcls.training import plan, speed

TEXTS = [f"{'good lovely nice' if n % 2 else 'bad awful poor'} thing number {n}" for n in range(60)]
LABELS = np.array([7 if n % 2 else -3 for n in range(60)])


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    """Measure the speed briefly and train for two epochs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speed, "SECONDS", 0.05)
        patch.setattr(plan, "epochs_for", lambda *_: 2)
        yield


@pytest.fixture(scope="module")
def fitted() -> TransformerClassifier:
    return TransformerClassifier().fit(np.array(TEXTS, dtype=object), LABELS)


def test_it_learns_labels_of_any_type_and_answers_any_text(fitted: TransformerClassifier) -> None:
    model = fitted
    assert model.classes_.tolist() == [-3, 7] and model.classifier_.classes == ("-3", "7")
    probabilities = model.predict_proba([*TEXTS, "", "?!"])
    assert probabilities.shape == (62, 2) and probabilities.sum(axis=1) == pytest.approx(np.ones(62))
    assert probabilities[60].tolist() == [0.5, 0.5], "no word: the share of each class"
    assert model.predict(TEXTS).dtype == LABELS.dtype and model.score(TEXTS, LABELS) > 0.8
    unpickled = pickle.loads(pickle.dumps(model)).predict_proba(TEXTS)
    np.testing.assert_allclose(unpickled, probabilities[:60], rtol=1e-5)
    assert ((model.classifier_.predict(TEXTS) == LABELS) == (model.predict(TEXTS) == LABELS)).all()


def test_the_same_rows_and_seed_give_the_same_model(fitted: TransformerClassifier) -> None:
    again = TransformerClassifier().fit(TEXTS, LABELS, sample_weight=np.full(60, 0.7))
    assert np.array_equal(again.predict_proba(TEXTS), fitted.predict_proba(TEXTS)), "equal weights change nothing"


def test_a_row_is_read_as_often_as_its_weight_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _repeats(np.array([1, 0, 2, 3.0]), seed=0).tolist() == [1, 0, 2, 3]
    assert _repeats(np.array([0.5, 1.5]), seed=0).tolist() == [1, 3]
    many = _repeats(np.r_[np.full(1000, 1e-6), np.full(1000, 2.0)], seed=0)
    assert many.sum() == pytest.approx(MAX_REPEATS * 2000, rel=0.01) and many[:1000].sum() < 10
    fractional = _repeats(np.r_[np.ones(1000), np.full(1000, 1.5)], seed=0)
    assert (fractional[:1000] == 1).all() and fractional[1000:].mean() == pytest.approx(1.5, abs=0.05)
    rows = []
    monkeypatch.setattr("txcls.sklearn.plan_training", lambda given, **_: rows.append(given))
    with pytest.raises(AttributeError):
        TransformerClassifier().fit(TEXTS, LABELS, sample_weight=np.arange(60) % 3)
    assert rows[0].texts == [TEXTS[n] for n in range(60) for _ in range(n % 3)]


@pytest.mark.parametrize("weights", [[1.0], np.zeros(60), np.r_[np.ones(59), -1], np.full(60, np.nan)])
def test_weights_that_cannot_be_used_are_refused(weights: np.ndarray) -> None:
    with pytest.raises(ValueError, match="sample_weight: got shape"):
        TransformerClassifier().fit(TEXTS, LABELS, sample_weight=weights)


@pytest.mark.slow
def test_it_works_in_pipelines_and_cross_validation() -> None:
    pipeline = make_pipeline(FunctionTransformer(), TransformerClassifier(minutes=0.05, random_state=3))
    assert clone(pipeline)[1].get_params() == {"minutes": 0.05, "random_state": 3}
    names = np.where(LABELS > 0, "up", "down")
    assert cross_val_score(pipeline, TEXTS, names, cv=2).mean() > 0.7


@pytest.mark.parametrize(
    "name",
    [
        "estimator_cloneable",
        "estimator_repr",
        "estimator_tags_renamed",
        "valid_tag_types",
        "no_attributes_set_in_init",
        "parameters_default_constructible",
        "get_params_invariance",
        "set_params",
        "do_not_raise_errors_in_init_or_set_params",
    ],
)
def test_it_passes_the_checks_of_scikit_learn_that_need_no_numbers(name: str) -> None:
    getattr(estimator_checks, f"check_{name}")("TransformerClassifier", TransformerClassifier())
