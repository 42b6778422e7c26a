"""How good a classifier is, row by row: its answers to labelled rows, its figures, and which classes it confuses.

python -m txcls report ag_news                      # on the test rows of its data set
python -m txcls report ag_news --data mine.csv --out report.html
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.probabilities import calibrated_probabilities
from txcls.checkpoint.schema import MEASURED_SPLITS
from txcls.data.batches import TokenisedTexts
from txcls.data.types import LabelledTexts
from txcls.evaluation.evaluate import accuracy_without_order, in_classes_of, measure, predict_logits
from txcls.predictor import Predictor
from txcls.runtime.pause import may_pause
from txcls.text.vocabulary import UNK

Floats = NDArray[np.float64]
Counts = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class RowAnswer:
    """One row and what the classifier says of it; `row` counts from 0, probabilities are calibrated."""

    row: int
    text: str
    label: str
    predicted: str
    probability: float
    label_probability: float


@dataclass(frozen=True, eq=False)
class Answers:
    """A classifier's answers to N rows.

    Attributes:
        rows: texts and labels, in the classifier's classes.
        probabilities: calibrated, (N, C).
        lengths: tokens read of each text, (N,).
        unknown: share of unknown tokens, (N,).
    """

    rows: LabelledTexts
    probabilities: Floats
    lengths: NDArray[np.int64]
    unknown: Floats

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def labels(self) -> NDArray[np.int64]:
        """The given class of each row, (N,)."""
        return np.asarray(self.rows.labels, dtype=np.int64)

    @property
    def predicted(self) -> NDArray[np.int64]:
        """The most probable class of each row, (N,)."""
        best: NDArray[np.int64] = self.probabilities.argmax(axis=1).astype(np.int64)
        return best

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether the prediction is the given class, (N,)."""
        found: NDArray[np.bool_] = self.predicted == self.labels
        return found

    def row(self, n: int) -> RowAnswer:
        """The row with this index."""
        label, predicted = self.rows.labels[n], int(self.predicted[n])
        classes, values = self.rows.classes, self.probabilities[n]
        return RowAnswer(
            n,
            self.rows.texts[n],
            classes[label],
            classes[predicted],
            round(float(values[predicted]), 6),
            round(float(values[label]), 6),
        )

    def mistakes(self, *, n: int | None = None) -> list[RowAnswer]:
        """The rows that are answered otherwise than their label, most confident first; at most n of them."""
        wrong = np.flatnonzero(~self.right)
        confidence = self.probabilities[wrong].max(axis=1)
        return [self.row(int(row)) for row in wrong[np.argsort(-confidence, kind="stable")][:n]]

    def confused(self, first: str, second: str) -> list[RowAnswer]:
        """The rows of class `first` that were taken for `second`, most confident first."""
        return [one for one in self.mistakes() if (one.label, one.predicted) == (first, second)]


@dataclass(frozen=True, eq=False)
class Report:
    """What is known of how a classifier does.

    Attributes:
        name: the checkpoint's.
        classes: C class names.
        rows_are: what was measured on, in words, for example `7,600 test rows`.
        figures: as `Evaluation.to_dict` gives them; empty where nothing was measured.
        history: one row per validation of the training (history.jsonl).
        comparison: metrics["comparison"], None where none was measured.
        answers: the answers row by row; None where the texts are not on this machine.
    """

    name: str
    classes: tuple[str, ...]
    rows_are: str
    figures: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]] = ()
    comparison: Mapping[str, Any] | None = None
    answers: Answers | None = None

    @property
    def confusion(self) -> NDArray[np.int64] | None:
        """Rows of class i predicted as j, (C, C); None where it was not kept (with very many classes)."""
        n = len(self.classes)
        counts = self.figures.get("confusion")
        if not counts or len(counts) != n or any(len(row) != n for row in counts):
            return None
        return np.asarray(counts, dtype=np.int64)


def stored_report(checkpoint: Checkpoint) -> Report:
    """The report from a checkpoint's own files: figures of its test rows, or else of its validation rows; no texts."""
    splits = [split for split in ("test", "validation", *MEASURED_SPLITS) if checkpoint.metrics.get(split)]
    figures: Mapping[str, Any] = checkpoint.metrics[splits[0]] if splits else {}
    return Report(
        name=checkpoint.name,
        classes=checkpoint.classes,
        rows_are=f"{figures['n']:,} {splits[0]} rows" if splits else "",
        figures=figures,
        history=checkpoint.history,
        comparison=checkpoint.metrics.get("comparison"),
    )


def some_rows(rows: LabelledTexts, *, most: int, seed: int = 0) -> LabelledTexts:
    """The rows, or `most` of them at random, in their order; the same ones for the same seed."""
    return rows if len(rows) <= most else rows.subset(chosen_rows(len(rows), most=most, seed=seed))


def chosen_rows(n: int, *, most: int, seed: int = 0) -> list[int]:
    """Which of n rows `some_rows` takes, from 0."""
    return list(range(n)) if n <= most else sorted(np.random.default_rng(seed).permutation(n)[:most].tolist())


def answer_rows(
    classifier: Predictor, rows: LabelledTexts, *, on_rows: Callable[[int, int], object] | None = None
) -> Answers:
    """The classifier's answers to labelled rows; a text without any word counts as one unknown word.

    Args:
        classifier: it is not changed.
        rows: at least one; their classes must be among the classifier's.
        on_rows: called with rows done and rows in all.

    Raises:
        DataError: some classes are unknown to the classifier.
    """
    return _answered(classifier, rows, on_rows)[0]


def report_on(
    classifier: Predictor,
    rows: LabelledTexts,
    *,
    rows_are: str,
    without_order: bool = True,
    on_rows: Callable[[int, int], object] | None = None,
) -> Report:
    """The report measured on labelled rows.

    Args:
        classifier: it is not changed.
        rows: at least one; their classes must be among the classifier's.
        rows_are: what they are, in words.
        without_order: also measure accuracy without word order, which takes two more passes.
        on_rows: called with rows done and rows in all, of the first pass.

    Raises:
        DataError: some classes are unknown to the classifier.
    """
    checkpoint = classifier.checkpoint
    answers, texts, logits = _answered(classifier, rows, on_rows)
    measured = measure(logits, texts, calibration=checkpoint.calibration, classes=checkpoint.classes)
    if without_order:
        order = accuracy_without_order(checkpoint.model, texts, encoder=checkpoint.encoder, on_batch=_pause)  # type: ignore[arg-type]  # a Predictor's model is a classifier
        measured = replace(measured, order=order)
    return Report(
        name=classifier.name,
        classes=classifier.classes,
        rows_are=rows_are,
        figures=measured.to_dict(),
        history=checkpoint.history,
        answers=answers,
    )


def _answered(
    classifier: Predictor, rows: LabelledTexts, on_rows: Callable[[int, int], object] | None
) -> tuple[Answers, TokenisedTexts, NDArray[np.float32]]:
    checkpoint = classifier.checkpoint
    own = in_classes_of(rows, checkpoint)
    texts = TokenisedTexts.encode(checkpoint.encoder, own)
    done = 0

    def count(n: int) -> None:
        nonlocal done
        done += n
        if on_rows is not None:
            on_rows(done, len(texts))
        may_pause()

    logits = predict_logits(checkpoint.model, texts, batch_size=128, on_batch=count).numpy()  # type: ignore[arg-type]  # N C
    probabilities = calibrated_probabilities(logits, checkpoint.calibration).astype(np.float64)  # N C
    unknown = np.add.reduceat(texts.ids == UNK, texts.offsets[:-1], dtype=np.int64) / texts.lengths  # N
    return Answers(own, probabilities, texts.lengths, unknown), texts, logits


def _pause(_: int) -> None:
    may_pause()


@dataclass(frozen=True, slots=True)
class WorstPair:
    """Two classes and how many rows of either were taken for the other.

    `share` is of the rows of both.
    """

    first: str
    second: str
    first_as_second: int
    second_as_first: int
    share: float

    @property
    def n(self) -> int:
        """Rows confused, both ways."""
        return self.first_as_second + self.second_as_first


def cluster_order(confusion: Sequence[Sequence[int]] | Counts) -> NDArray[np.intp]:
    """An order of the classes (C,) in which those that are confused with each other are neighbours.

    Average-linkage hierarchical clustering of classes by 1 - the share of rows confused, both ways, with the leaves in
    the order that keeps neighbours closest (Bar-Joseph et al. 2001), by SciPy. Classes without any error come last.

    Args:
        confusion: (C, C), rows of true class i predicted as j.

    Raises:
        ValueError: it is not square.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    counts = np.asarray(confusion, dtype=np.float64)  # C C
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ValueError(f"got a matrix of shape {counts.shape}; wanted as many rows as columns")
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)  # C C
    both = (shares + shares.T) / 2
    np.fill_diagonal(both, 0.0)
    confused = np.flatnonzero(both.sum(axis=1) > 0)
    others = np.flatnonzero(both.sum(axis=1) == 0)
    if len(confused) < 3:
        return np.concatenate([confused, others])
    distances = 1 - both[np.ix_(confused, confused)]
    np.fill_diagonal(distances, 0.0)
    tree = linkage(squareform(distances, checks=False), method="average", optimal_ordering=True)
    return np.concatenate([confused[leaves_list(tree)], others])


def worst_pairs(classes: Sequence[str], confusion: Sequence[Sequence[int]] | Counts, *, n: int = 20) -> list[WorstPair]:
    """The n pairs of classes with the most rows confused, both ways together; pairs without any are left out."""
    counts = np.asarray(confusion)  # C C
    support = counts.sum(axis=1)  # C
    both = np.triu(counts + counts.T, k=1)
    found = []
    for place in np.argsort(-both, axis=None, kind="stable")[:n]:
        i, j = divmod(int(place), len(classes))
        if not both[i, j]:
            break
        rows = int(support[i] + support[j])
        share = float(both[i, j] / rows) if rows else 0.0
        found.append(WorstPair(classes[i], classes[j], int(counts[i, j]), int(counts[j, i]), share))
    return found
