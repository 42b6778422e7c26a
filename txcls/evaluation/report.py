"""A report on a classifier: its predictions for labelled rows, its metrics, and the classes that it confuses.

python -m txcls report ag_news                      # on the test rows of its data set
python -m txcls report ag_news --data mine.csv --out report.html
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.card import group_name
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.probabilities import Floats
from txcls.data.types import LabelledTexts
from txcls.evaluation.evaluate import Evaluation, evaluate_rows
from txcls.evaluation.linear import LinearModel
from txcls.evaluation.metrics import evaluate_probabilities, wilson
from txcls.evaluation.predict_logits import in_classes_of
from txcls.inference.predictor import Predictor
from txcls.text.formatting import percentage

Counts = NDArray[np.integer[Any]]

RELIABILITY_CAPTION = (
    "On the dashed line, predictions with 80 % confidence are right in 80 % of cases. Below it, the classifier is "
    "overconfident; above it, underconfident. Larger dots represent more texts; bins with too few have no dot."
)


@dataclass(frozen=True, slots=True)
class RowPrediction:
    """The prediction for one row, with calibrated probabilities; `row` counts from 0."""

    row: int
    text: str
    label: str
    predicted: str
    probability: float
    label_probability: float


@dataclass(frozen=True, eq=False)
class RowPredictions:
    """A classifier's predictions for N rows.

    Attributes:
        rows: texts and labels; labels are indices into the classifier's classes.
        probabilities: calibrated, (N, C).
    """

    rows: LabelledTexts
    probabilities: Floats

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """The given class of each row, (N,)."""
        return np.asarray(self.rows.labels, dtype=np.int64)

    @cached_property
    def predicted(self) -> NDArray[np.int64]:
        """The most probable class of each row, (N,)."""
        best: NDArray[np.int64] = self.probabilities.argmax(axis=1).astype(np.int64)
        return best

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """Whether the prediction equals the given class, (N,)."""
        right: NDArray[np.bool_] = self.predicted == self.labels
        return right

    def row(self, n: int) -> RowPrediction:
        """The prediction for the row with this index."""
        classes, probabilities, label = self.rows.classes, self.probabilities[n], self.rows.labels[n]
        predicted = int(probabilities.argmax())
        return RowPrediction(
            row=n,
            text=self.rows.texts[n],
            label=classes[label],
            predicted=classes[predicted],
            probability=round(float(probabilities[predicted]), 6),
            label_probability=round(float(probabilities[label]), 6),
        )

    def mistakes(self) -> list[RowPrediction]:
        """The wrong predictions, most confident first."""
        wrong = np.flatnonzero(~self.right)
        confidence = self.probabilities[wrong].max(axis=1)
        return [self.row(int(row)) for row in wrong[np.argsort(-confidence, kind="stable")]]

    def above(self, confidence: float) -> tuple[int, int]:
        """The number of rows predicted with at least this confidence, and how many of these are correct."""
        is_used = self.probabilities.max(axis=1) >= confidence  # N
        return int(is_used.sum()), int((is_used & self.right).sum())


@dataclass(frozen=True, eq=False)
class Report:
    """The metrics of a classifier of C classes, and its predictions row by row.

    Attributes:
        rows_description: description of the evaluated rows, such as `7,600 test rows`.
        metrics: as returned by `Evaluation.to_dict`; empty if nothing was measured.
        comparison: metrics["comparison"], if there is one.
        predictions: None if the texts are not on this machine.
        training_rows: number of training rows of each class, (C,); empty if not stored.
        row_numbers: number of each predicted row in the user's file, (N,); empty if the rows are not from a file.
        max_length: maximum number of tokens that are read from a text.
        warnings: sentences on why the figures may mean little.
    """

    name: str
    classes: tuple[str, ...]
    rows_description: str
    metrics: Mapping[str, Any]
    comparison: Mapping[str, Any] | None = None
    predictions: RowPredictions | None = None
    training_rows: Sequence[int] = ()
    row_numbers: Sequence[int] = ()
    max_length: int | None = None
    warnings: Sequence[str] = ()

    @property
    def confusion(self) -> NDArray[np.int64] | None:
        """Number of rows of class i predicted as j, (C, C); None if it was not stored, for very many classes."""
        counts = self.metrics.get("confusion")
        return np.asarray(counts, dtype=np.int64) if counts else None


def classes_with_rows(metrics: Mapping[str, Any]) -> str:
    """`the 3 of 5 classes with rows`, over which macro-F1 is the mean; "" if all classes have rows."""
    supports = [row["support"] for row in metrics.get("per_class", ())]
    n = len(supports) - supports.count(0)
    return f"the {n:,} of {len(supports):,} classes with rows" if n < len(supports) else ""


def headline_metrics(metrics: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The name, value and meaning of each of the main metrics, as text."""
    n = metrics["n"]
    interval = wilson(round(metrics["accuracy"] * n), n)
    right = f"Share of rows predicted as labelled; 95 %: {100 * interval.low:.1f} to {100 * interval.high:.1f} %."
    mean = f"Mean F1 of {classes_with_rows(metrics) or 'the classes'}; each class counts equally."
    rows = [
        ("Accuracy", percentage(metrics["accuracy"]), right),
        ("Macro-F1", percentage(metrics["macro_f1"]), mean),
        ("Calibration error", percentage(metrics["ece"]), "Mean difference of confidence and accuracy, in 15 bins."),
        ("Log loss", f"{metrics['log_loss']:.3f}", "Mean negative logarithm of the label's probability; 0 is perfect."),
    ]
    if (share := metrics.get("accuracy_with_unknown")) is not None:
        meaning = "Accuracy if rows of classes that the classifier does not know count as errors."
        rows.insert(1, ("Unknown as errors", percentage(share), meaning))
    return rows


def majority_sentence(report: Report) -> str | None:
    """A sentence on how often always guessing one class is right on these rows; None without a confusion matrix.

    It is the most frequent class of the training rows, as in a `Comparison`, or of these rows if that is not known.
    """
    if report.confusion is None:
        return None
    support = report.confusion.sum(axis=1)  # C
    most = int(np.argmax(report.training_rows or support))
    of_training = " of the training rows" if report.training_rows else ""
    guess, share = report.classes[most], percentage(support[most] / support.sum())
    return f"Always guessing the most frequent class{of_training}, {guess}, is right on {share} of these rows."


def group_accuracies(report: Report) -> list[tuple[str, float, int]]:
    """The name, accuracy and number of rows of each group of texts by length; no bound exceeds `max_length`."""
    groups = report.metrics.get("by_length", ())
    if (longest := report.max_length) is not None:
        groups = [{**group, "up_to": min(group["up_to"] or longest, longest)} for group in groups]

    def name(group: Mapping[str, Any]) -> str:
        over, up_to = group["over"], group["up_to"]
        return f"{over + 1:g} to {up_to:g}" if over and up_to else group_name(group)

    return [(name(group), group["accuracy"], group["n"]) for group in groups]


def stored_report(checkpoint: Checkpoint) -> Report:
    """The report from a checkpoint's files, without texts: metrics on test rows or, if missing, on validation rows."""
    split = next((split for split in ("test", "validation", "new") if split in checkpoint.metrics), "")
    metrics: Mapping[str, Any] = checkpoint.metrics.get(split, {})
    return Report(
        name=f"{checkpoint.name}, Transformer" if checkpoint.linear else checkpoint.name,
        classes=checkpoint.classes,
        rows_description=f"{metrics['n']:,} {split} rows" if metrics else "",
        metrics=metrics,
        comparison=checkpoint.metrics.get("comparison"),
        training_rows=checkpoint.metrics.get("data", {}).get("train_rows_by_class", ()),
        max_length=checkpoint.tokenizer.max_length,
    )


def sample_indices(n: int, *, limit: int) -> list[int]:
    """The sorted indices of `limit` of n rows, drawn at random, or of all if there are no more."""
    return list(range(n)) if n <= limit else sorted(np.random.default_rng(0).permutation(n)[:limit].tolist())


def report_on(
    classifier: Predictor, rows: LabelledTexts, *, rows_description: str, linear: LinearModel | None = None
) -> Report:
    """The report, with predictions, on at least one labelled row; a text without words is read as one unknown word.

    `linear` is the linear model beside the checkpoint, to report on instead; it finds all classes equally probable for
    a text without words.

    Raises:
        DataError: some classes are unknown to the classifier.
    """
    checkpoint = classifier.checkpoint
    rows = in_classes_of(rows, checkpoint)
    if linear is not None:
        found = linear.probabilities_of(checkpoint.classes, rows.texts)
        found = np.where(np.isnan(found), 1 / len(rows.classes), found)
        measured = evaluate_probabilities(found, np.asarray(rows.labels), classes=rows.classes)
        evaluation = Evaluation(measured, found)
    else:
        evaluation = evaluate_rows(checkpoint, rows, device="cpu", measure_without_order=False)
    stored = stored_report(checkpoint)
    return replace(
        stored,
        name=f"{classifier.name}, linear model" if linear else stored.name,
        rows_description=rows_description,
        metrics=evaluation.to_dict(),
        comparison=None,
        predictions=RowPredictions(rows, evaluation.probabilities),
    )


class ClassRow(NamedTuple):
    """The figures of a class with `n` rows; recall and F1 are None without rows, precision without predictions.

    `recall_cell` has the number of correct predictions and the 95 % interval of the recall: `16 of 30 (36 to 70 %)`.
    The false positives are None without a confusion matrix, which is not stored for very many classes.
    """

    label: str
    n: int
    recall_cell: str
    false_positives: int | None
    precision: float | None
    recall: float | None
    f1: float | None


def class_rows(report: Report) -> list[ClassRow]:
    """The figures of each class, lowest F1 first; classes without rows come last."""
    counts, rows = report.confusion, []
    for c, row in enumerate(report.metrics.get("per_class", ())):
        n, right = row["support"], round(row["recall"] * row["support"])
        n_predicted = None if counts is None else int(counts[:, c].sum())
        recall, cell = wilson(right, max(n, 1)), "no rows"
        if n:
            cell = f"{right:,} of {n:,} ({100 * recall.low:.0f} to {100 * recall.high:.0f} %)"
        false_positives = None if n_predicted is None else n_predicted - right
        shares = [row[name] if n else None for name in ("recall", "f1")]
        rows.append(
            ClassRow(row["label"], n, cell, false_positives, None if n_predicted == 0 else row["precision"], *shares)
        )
    return sorted(rows, key=lambda row: (not row.n, row.f1 or 0.0))


@dataclass(frozen=True, slots=True)
class ConfusedPair:
    """Two classes, the number of each class's rows predicted as the other, and the share of their rows confused."""

    first: str
    second: str
    first_as_second: int
    second_as_first: int
    share: float

    @property
    def n(self) -> int:
        """Number of rows confused, in both directions."""
        return self.first_as_second + self.second_as_first


def most_confused_pairs(
    classes: Sequence[str], confusion: Sequence[Sequence[int]] | Counts, *, n: int = 20
) -> list[ConfusedPair]:
    """The n pairs of classes with the most rows confused, in both directions together."""
    counts = np.asarray(confusion)  # C C
    support = counts.sum(axis=1)  # C
    pair_counts = np.triu(counts + counts.T, k=1)  # C C
    pairs: list[ConfusedPair] = []
    for flat_index in np.argsort(-pair_counts, axis=None, kind="stable")[:n]:
        i, j = divmod(int(flat_index), len(classes))
        if pair_counts[i, j]:
            share = float(pair_counts[i, j] / (support[i] + support[j]))
            pairs.append(ConfusedPair(classes[i], classes[j], int(counts[i, j]), int(counts[j, i]), share))
    return pairs


def cluster_order(confusion: Sequence[Sequence[int]] | Counts) -> NDArray[np.intp]:
    """An order of the classes (C,) that places confused classes next to each other; classes without errors come last.

    Average-linkage clustering with optimal leaf order (Bar-Joseph et al. 2001); the distance is 1 - share of rows
    confused, averaged over both directions of the matrix `confusion` (C, C).
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    counts = np.asarray(confusion, dtype=np.float64)  # C C
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)  # C C
    similarity = (shares + shares.T) / 2  # C C
    np.fill_diagonal(similarity, 0.0)
    is_confused = similarity.sum(axis=1) > 0
    confused, others = np.flatnonzero(is_confused), np.flatnonzero(~is_confused)
    if len(confused) < 3:
        return np.concatenate([confused, others])
    distances = 1 - similarity[np.ix_(confused, confused)]
    np.fill_diagonal(distances, 0.0)
    tree = linkage(squareform(distances, checks=False), method="average", optimal_ordering=True)
    return np.concatenate([confused[leaves_list(tree)], others])
