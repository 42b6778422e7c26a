"""Find rows with doubtful labels: confident learning (Northcutt et al. 2021) with held-out probabilities.

The probabilities come from models that were not trained on the row's own label: two linear models fitted to the other
folds of the same rows (on TF-IDF, and on the states of the shipped pre-trained encoder), and the classifier itself
unless these are its training rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.checkpoint.folders import encoder_folder
from txcls.checkpoint.load import load_checkpoint
from txcls.data.batches import TokenisedTexts, batches_by_length, pad_batch
from txcls.data.splits import first_copies, in_large_group
from txcls.data.types import LabelledTexts
from txcls.errors import CheckpointError, DataError
from txcls.evaluation.baseline import WORD
from txcls.evaluation.intervals import paired_difference
from txcls.model import LanguageModel
from txcls.runtime.pause import may_pause
from txcls.text.vocabulary import PAD
from txcls.wording import listed, percentage

Floats = NDArray[np.float64]

FOLDS = 5
MIN_RATIO = 10
"""A label is doubtful only if another class is at least this many times as probable, as it is and after division by how
frequent the classes are: otherwise models that mostly predict the frequent class doubt every label of a rare class.
`benchmarks.label_errors` says how many changed labels are still flagged: most, but a third of those of two classes."""
HARDLY_RECOGNISED = 0.2
"""Wrong labels of a class are likely to be missed if the models predict at most this share of its labels."""


@dataclass(frozen=True, slots=True)
class DoubtfulRow:
    """A row, counted from 0, with a doubtful label; `suggested` is the most probable class."""

    row: int
    text: str
    label: str
    suggested: str
    label_probability: float
    suggested_probability: float


def out_of_fold_probabilities(
    rows: LabelledTexts,
    *,
    vectors: Floats | None = None,
) -> Floats:
    """Class probabilities (N, C) of each row from a logistic regression fitted to the other folds.

    Features are `vectors` (N, D), or TF-IDF of the texts. A class that does not occur in the other folds gets a tiny
    probability. Copies of a text are in the same fold, except of very frequent texts (`in_large_group`): a wrong label
    that is repeated would otherwise confirm itself.

    Raises:
        DataError: there are too few rows, or only one class.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.pipeline import make_pipeline

    labels, texts = np.asarray(rows.labels, dtype=np.int64), np.asarray(rows.texts, dtype=object)
    copies = first_copies(rows.texts)
    groups = np.where(in_large_group(copies), np.arange(len(rows)), copies)
    firsts, group = np.unique(groups, return_inverse=True)
    counts = np.bincount(labels[firsts], minlength=len(rows.classes))
    n_classes = int((counts > 0).sum())
    if len(firsts) < 2 * FOLDS or n_classes < 2:
        raise DataError(
            f"{len(firsts)} different texts of {n_classes} class{'es' * (n_classes != 1)}; expected at least "
            f"{2 * FOLDS} texts of two classes, to check their labels"
        )
    splitter = (StratifiedKFold if counts[counts > 0].min() >= FOLDS else KFold)(FOLDS, shuffle=True, random_state=0)
    probabilities = np.full((len(rows), len(rows.classes)), 1e-9)  # N C
    for _, fold in splitter.split(firsts, labels[firsts]):
        may_pause()
        is_held_out = np.isin(group, fold)
        other_folds, held_out = np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
        classes = np.unique(labels[other_folds])
        if len(classes) < 2:
            probabilities[held_out, classes[0]] = 1.0
            continue
        if vectors is None:
            tf_idf = TfidfVectorizer(token_pattern=WORD, ngram_range=(1, 2), sublinear_tf=True, dtype=np.float32)
            model = make_pipeline(tf_idf, LogisticRegression(C=10.0, max_iter=200))
            features: Any = texts
        else:
            model, features = LogisticRegression(max_iter=200), vectors
        model.fit(features[other_folds], labels[other_folds])
        probabilities[np.ix_(held_out, model.classes_)] = model.predict_proba(features[held_out])
    normalised: Floats = probabilities / probabilities.sum(axis=1, keepdims=True)
    return normalised


def encoder_vectors(texts: Sequence[str], *, encoder: str | Path | None = None) -> Floats | None:
    """The mean of each text's final states in a pre-trained model, (N, D); None if there is no such model.

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
    vectors = np.zeros((len(texts), checkpoint.config.model.d_model))
    with torch.inference_mode():
        for rows in batches_by_length(tokens.lengths, batch_size=64):
            may_pause()
            ids = torch.from_numpy(pad_batch(tokens, rows)[0])  # B T
            is_real = (ids != PAD).unsqueeze(-1)  # B T 1
            states = checkpoint.model.read(ids)[:, : ids.shape[1]]  # B T D
            vectors[rows] = ((states * is_real).sum(1) / is_real.sum(1)).double().numpy()
    vectors = (vectors - vectors.mean(axis=0)) / np.maximum(vectors.std(axis=0), 1e-9)
    scaled: Floats = 2 * vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return scaled


def combined(labels: Sequence[int] | NDArray[np.int64], *sources: Floats) -> Floats:
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
    rows: LabelledTexts,
    classifier_probabilities: Floats | None = None,
    *,
    encoder: str | Path | None = None,
) -> Floats:
    """Class probabilities (N, C) of rows from models that were not trained on the row's own label.

    `classifier_probabilities` are a classifier's, if these rows are not its training rows.

    Raises:
        DataError: there are too few rows, or only one class.
    """
    vectors = encoder_vectors(rows.texts, encoder=encoder)
    sources = [out_of_fold_probabilities(rows)]
    if vectors is not None:
        sources.append(out_of_fold_probabilities(rows, vectors=vectors))
    if classifier_probabilities is not None:
        sources.append(classifier_probabilities)
    return combined(rows.labels, *sources)


@dataclass(frozen=True, slots=True)
class DoubtfulLabels:
    """The rows with doubtful labels, least probable label first.

    Attributes:
        rows: the doubtful rows, of `n_checked`.
        accuracy: share of all labels that the models, which were not trained on them, predict.
        guessing: share of the labels of the most frequent class.
        with_classifier: whether the models are the classifier and linear models, or only linear models.
        which: the kind of the rows, such as "test rows".
        is_withheld: whether no row is listed because the models are not clearly better than guessing.
        hardly_recognised: the classes of whose labels the models predict at most HARDLY_RECOGNISED.
    """

    rows: Sequence[DoubtfulRow]
    n_checked: int
    accuracy: float
    guessing: float
    with_classifier: bool = False
    which: str = "rows"
    is_withheld: bool = False
    hardly_recognised: Sequence[str] = ()

    def __str__(self) -> str:
        """Which models were used on which rows, how good they are, and how many labels they doubt."""
        guessing = percentage(self.guessing)
        how_good = (
            f"{'This classifier and linear' if self.with_classifier else 'Linear'} models, none trained on the row "
            f"that it predicts, have an accuracy of {percentage(self.accuracy)} on {self.n_checked:,} {self.which}"
        )
        if self.is_withheld:
            return (
                f"No labels are listed as doubtful. {how_good}, not clearly better than always guessing the most "
                f"frequent class ({guessing}), so they cannot tell which labels are wrong."
            )
        missed = ""
        if self.hardly_recognised:
            missed = (
                f" They predict at most {percentage(HARDLY_RECOGNISED, 0)} of the labels of "
                f"{listed(self.hardly_recognised, limit=5)}, so wrong labels of this kind may be missed."
            )
        return (
            f"{how_good} (always guessing the most frequent class: {guessing}). They disagree with "
            f"{f'{len(self.rows):,}' if self.rows else 'none'} of {self.n_checked:,} labels with high confidence "
            f"(another class is at least {MIN_RATIO} times as probable, also if all classes were equally "
            f"frequent).{missed}"
        )


def doubtful_labels(
    rows: LabelledTexts, probabilities: Floats, *, with_classifier: bool = False, which: str = "rows"
) -> DoubtfulLabels:
    """The rows whose labels models contradict with high confidence.

    Uses cleanlab's `find_label_issues` with its default rule, "prune by noise rate" (Northcutt et al. 2021, section
    3.2); of the rows that it flags, those with a class `MIN_RATIO` times as probable are kept. No row is listed if the
    models are not clearly more often right than always guessing the most frequent class (95 % interval of the paired
    difference). `probabilities` (N, C) must come from models that were not trained on the row's own label;
    `with_classifier` and `which` describe models and rows as in `DoubtfulLabels`.
    """
    from cleanlab.filter import find_label_issues

    labels = np.asarray(rows.labels, dtype=np.int64)
    right = probabilities.argmax(axis=1) == labels  # N
    present_classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    by_guess = codes == counts.argmax()  # N
    accuracy, guessing = float(right.mean()), float(by_guess.mean())
    if paired_difference(int((right & ~by_guess).sum()), int((by_guess & ~right).sum()), len(rows)).low <= 0:
        return DoubtfulLabels((), len(rows), accuracy, guessing, with_classifier, which, is_withheld=True)
    values = probabilities[:, present_classes]  # cleanlab needs rows of every class
    values = values / values.sum(axis=1, keepdims=True)
    if_even = values / counts  # proportional to the probabilities if all classes were equally frequent
    order = find_label_issues(
        codes, values, return_indices_ranked_by="self_confidence", min_examples_per_class=0, n_jobs=1
    )
    found = []
    for n in order:
        best = int(values[n].argmax())
        if any(shares[n, best] < MIN_RATIO * shares[n, codes[n]] for shares in (values, if_even)):
            continue
        found.append(
            DoubtfulRow(
                row=int(n),
                text=rows.texts[n],
                label=rows.classes[labels[n]],
                suggested=rows.classes[int(present_classes[best])],
                label_probability=round(float(values[n, codes[n]]), 6),
                suggested_probability=round(float(values[n, best]), 6),
            )
        )
    recall = np.bincount(codes, right) / counts
    hardly = [rows.classes[present_classes[c]] for c in np.flatnonzero(recall <= HARDLY_RECOGNISED)]
    return DoubtfulLabels(found, len(rows), accuracy, guessing, with_classifier, which, hardly_recognised=hardly)
