"""Rank rows by how doubtful their labels are, with held-out probabilities (as in Northcutt et al. 2021).

The models were not trained on the row's own label: two linear models fitted to the other folds of the same rows (on
TF-IDF, and on the encoder's states), and the classifier itself unless these are its training rows.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.folders import encoder_folder
from txcls.checkpoint.load import load_checkpoint
from txcls.checkpoint.probabilities import Floats
from txcls.data.batches import TokenisedTexts
from txcls.data.splits import first_copies, in_large_group
from txcls.data.types import LabelledTexts
from txcls.errors import CheckpointError, DataError
from txcls.evaluation.linear import WORD
from txcls.evaluation.metrics import accuracy_difference
from txcls.evaluation.predict_logits import mean_states
from txcls.evaluation.report import RowPrediction, RowPredictions
from txcls.model import LanguageModel
from txcls.text.formatting import percentage

FOLDS = 5


def out_of_fold_probabilities(rows: LabelledTexts, *, vectors: Floats | None = None) -> Floats:
    """Class probabilities (N, C) of each row from a logistic regression fitted to the other folds.

    Features are `vectors` (N, D), or TF-IDF of the texts. A class that does not occur in the other folds gets a tiny
    probability. Copies of a text are in the same fold, except of very frequent texts (`in_large_group`): a wrong label
    that is repeated would otherwise confirm itself.

    Raises:
        DataError: there are too few rows, or only one class.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    labels, copies = np.asarray(rows.labels, dtype=np.int64), first_copies(rows.texts)
    groups = np.where(in_large_group(copies), np.arange(len(rows)), copies)
    classes, n_texts = np.unique(labels[np.unique(groups)], return_counts=True)
    if n_texts.sum() < 2 * FOLDS or len(classes) < 2 or np.bincount(labels).max() < FOLDS:
        raise DataError(
            f"{n_texts.sum()} different texts of {len(classes)} class{'es' * (len(classes) != 1)}; expected at least "
            f"{2 * FOLDS} texts of two classes, and {FOLDS} rows of one of them, to check their labels"
        )
    model, features = LogisticRegression(max_iter=200), vectors
    if vectors is None:
        tf_idf = TfidfVectorizer(token_pattern=WORD, ngram_range=(1, 2), sublinear_tf=True, dtype=np.float32)
        texts = [text.strip() or "?" for text in rows.texts]  # scikit-learn refuses texts without any word
        model, features = make_pipeline(tf_idf, LogisticRegression(C=10.0, max_iter=200)), np.asarray(texts, object)
    with warnings.catch_warnings(action="ignore"):  # it warns about classes with fewer rows than folds
        folds = [*StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0).split(labels, labels, groups)]
        if any(len(np.unique(labels[fitted])) < 2 for fitted, _ in folds):
            raise DataError(f"almost all {len(rows):,} rows have one label; nothing to check them against")
        found = cross_val_predict(model, features, labels, cv=folds, method="predict_proba")  # N K
    probabilities = np.full((len(rows), len(rows.classes)), 1e-9)  # N C
    probabilities[:, np.unique(labels)] = np.maximum(found, 1e-9)
    normalised: Floats = probabilities / probabilities.sum(axis=1, keepdims=True)
    return normalised


def encoder_vectors(texts: Sequence[str], *, encoder: str | Path | None = None) -> Floats | None:
    """Each text's final states in a pre-trained model, averaged over its tokens, (N, D); None without such a model.

    Each dimension is standardised, and each vector is scaled to norm 2.
    """
    folder = encoder or encoder_folder()
    try:
        checkpoint = None if folder is None else load_checkpoint(folder)
    except CheckpointError:
        return None
    if checkpoint is None or not isinstance(checkpoint.model, LanguageModel):
        return None
    tokens = TokenisedTexts.encode(checkpoint.tokenizer, LabelledTexts(texts, [0] * len(texts), ("any",)))
    vectors = mean_states(checkpoint.model, tokens)
    vectors = (vectors - vectors.mean(axis=0)) / np.maximum(vectors.std(axis=0), 1e-9)
    scaled: Floats = 2 * vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return scaled


def combine(labels: Sequence[int] | NDArray[np.int64], *sources: Floats) -> Floats:
    """The weighted geometric mean of several models' probabilities (N, C), normalised.

    The weights, from 0 to 3, minimise the log loss on the labels; they are too few to fit wrong labels.
    """
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    if len(sources) == 1:
        return sources[0]
    log_probabilities = np.log(np.maximum(np.stack(sources), 1e-9))  # S N C
    rows, given = np.arange(log_probabilities.shape[1]), np.asarray(labels, dtype=np.int64)

    def loss(weights: Floats) -> float:
        return -float(log_softmax(np.tensordot(weights, log_probabilities, 1), axis=1)[rows, given].mean())

    start = np.full(len(sources), 1 / len(sources))
    weights = minimize(loss, start, method="L-BFGS-B", bounds=[(0.0, 3.0)] * len(sources)).x
    mean: Floats = np.exp(log_softmax(np.tensordot(weights, log_probabilities, 1), axis=1))
    return mean


def held_out_probabilities(
    rows: LabelledTexts, classifier_probabilities: Floats | None = None, *, encoder: str | Path | None = None
) -> Floats:
    """Class probabilities (N, C) of rows from models that were not trained on the row's own label.

    `classifier_probabilities` are those of a classifier that was not trained on these rows. For errors see
    `out_of_fold_probabilities`.
    """
    vectors = encoder_vectors(rows.texts, encoder=encoder)
    sources = [out_of_fold_probabilities(rows)]
    if vectors is not None:
        sources.append(out_of_fold_probabilities(rows, vectors=vectors))
    if classifier_probabilities is not None:
        sources.append(classifier_probabilities)
    return combine(rows.labels, *sources)


@dataclass(frozen=True, eq=False)
class DoubtfulLabels:
    """Rows ranked by how doubtful their label is.

    Attributes:
        rows: the most doubtful label first; empty if the models cannot tell which labels are wrong.
        accuracy: share of the `n_checked` labels that the models predict.
    """

    rows: Sequence[RowPrediction]
    n_checked: int
    accuracy: float

    def __str__(self) -> str:
        """Which models doubt the labels, and how good they are, as sentences."""
        right = f"are right on {percentage(self.accuracy)} of {self.n_checked:,} rows"
        sentence = f"Models that were not trained on the row that they predict {right}"
        if not self.rows:
            return f"{sentence}, not clearly better than guessing, so they cannot tell which labels are wrong."
        return f"{sentence}. The labels that they find least probable come first; read the texts before you change any."


def doubtful_labels(
    rows: LabelledTexts, classifier_probabilities: Floats | None = None, *, n: int | None = None
) -> DoubtfulLabels:
    """The n rows with the most doubtful labels, most doubtful first; all rows if n is None.

    They are ranked by how much more probable the best other class is than the label. No row is listed if the models
    are not clearly more often right than always guessing the most frequent class (95 % interval of the paired
    difference). For the arguments and errors see `held_out_probabilities`.
    """
    predictions = RowPredictions(rows, held_out_probabilities(rows, classifier_probabilities))
    labels, right = predictions.labels, predictions.right
    order = most_doubtful(predictions)[:n]
    if accuracy_difference(right, labels == np.bincount(labels).argmax()).low <= 0:
        order = order[:0]
    return DoubtfulLabels([predictions.row(int(row)) for row in order], len(rows), float(right.mean()))


def most_doubtful(predictions: RowPredictions) -> NDArray[np.intp]:
    """The indices of all rows, (N,), first those whose label is least probable compared with the best other class."""
    others = predictions.probabilities.copy()  # N C
    rows = np.arange(len(predictions))
    given = others[rows, predictions.labels]  # N
    others[rows, predictions.labels] = 0.0
    return np.argsort(given / np.maximum(others.max(axis=1), 1e-12), kind="stable")
