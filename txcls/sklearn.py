"""A scikit-learn text classifier.

from txcls.sklearn import TransformerClassifier

model = TransformerClassifier().fit(texts, labels)
model.predict(["where is my parcel"])
cross_val_score(TransformerClassifier(), texts, labels)
"""

import numbers
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from txcls.classifier import Classifier
from txcls.data.labelled import rows_from_python
from txcls.data.labels import label_name
from txcls.text.checks import check_texts
from txcls.training.plan import plan_training
from txcls.training.run_plan import train_as_planned

MAX_REPEATS = 4
"""Maximum mean number of times that a row is read, if rows have weights."""


class TransformerClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The Transformer that `txcls train FILE` trains, with all settings chosen from the texts.

    It is trained on all rows except a few for the calibration; use `score` or `cross_val_score` on other rows to
    measure it. The same rows and seed give the same model, unless `minutes` is given.

    Args:
        minutes: the time budget of `fit`, to which the settings are fitted; None for a number of epochs that depends on
            the rows alone.
        random_state: seed of the initial weights, the order of the rows and dropout; None or a RandomState to draw one.

    Attributes:
        classes_: the sorted labels, (C,), of the type given to `fit`.
        class_prior_: the share of each class in the total weight of the training rows, (C,).
        classifier_: the `txcls.Classifier`, which can be inspected and saved.
    """

    def __init__(self, *, minutes: float | None = None, random_state: int | np.random.RandomState | None = 0) -> None:
        self.minutes = minutes
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.non_deterministic = self.minutes is not None  # the settings depend on the machine's speed
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on N texts (a list, array or Series of strings) and their labels.

        A row with twice the `sample_weight` (N,) is read twice as often: rows are repeated in proportion to their
        weights, on average at most MAX_REPEATS times, with fractions rounded at random.

        Raises:
            TypeError: a text is not a string.
            ValueError: the numbers of texts, labels and weights differ, a weight is negative, or two labels have the
                same name, such as 1 and "1".
            DataError: a text is empty, or there are too few rows or classes.
        """
        check_classification_targets(y)
        labels = column_or_1d(y)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        names = [label_name(label) for label in self.classes_.tolist()]
        if len(set(names)) < len(names) or "" in names:
            raise ValueError(f"labels: got the class names {names}; expected different names that are not empty")
        rows = rows_from_python(X, [names[code] for code in codes])  # type: ignore[arg-type]  # checked by rows_from_python
        seed = self.random_state
        if not isinstance(seed, numbers.Integral):
            seed = check_random_state(seed).randint(2**31)
        weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weights.shape != (len(rows),) or not (weights >= 0).all() or not weights.any():
            raise ValueError(f"sample_weight: got shape {weights.shape}; expected {len(rows)} numbers of at least 0")
        repeated = rows.subset(np.repeat(np.arange(len(rows)), _repeats(weights, seed=int(seed))))
        plan = plan_training(repeated, test=rows.subset([0]), minutes=self.minutes, seed=int(seed), name="own")
        self.classifier_ = Classifier(train_as_planned(plan))
        self.class_prior_ = np.bincount(codes, weights) / weights.sum()
        self._column = [self.classifier_.classes.index(name) for name in names]
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Calibrated probabilities (N, C) in the order of `classes_`; `class_prior_` for a text without words."""
        check_is_fitted(self)
        rows = self.classifier_.tokenizer.encode_ids(check_texts(X))
        probabilities = self.classifier_.probabilities_of_ids(rows, precision="float32")[:, self._column]
        return np.where(np.isnan(probabilities), self.class_prior_, probabilities)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable label of each text, (N,), of the type given to `fit`."""
        probabilities = self.predict_proba(X)
        best: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return best


def _repeats(weights: NDArray[np.float64], *, seed: int) -> NDArray[np.int64]:
    """How often each of N rows is read, (N,): in proportion to its weight, at most MAX_REPEATS times on average."""
    scaled = weights * min(1 / weights[weights > 0].min(), MAX_REPEATS * len(weights) / weights.sum())
    below = np.floor(scaled + 1e-9)
    is_above = np.random.default_rng(seed).random(len(weights)) < scaled - below
    repeats: NDArray[np.int64] = (below + is_above).astype(np.int64)
    return repeats
