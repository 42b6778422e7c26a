"""Rows whose label looks wrong: confident learning (Northcutt et al. 2021) over probabilities of rows held out.

A probability tells something of a row's label only if its model has not learned from that label. So there are two
sources: a linear model over TF-IDF, fitted to the other folds of the same rows; and, where the rows are none of its
training rows, the classifier itself. Their geometric mean is used where both exist.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.baseline import word_features
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.pause import may_pause

Floats = NDArray[np.float64]

FOLDS = 5
STRENGTH = 10.0
"""C of the logistic regression, the inverse strength of regularisation."""
MOST_ROWS = 5_000
"""Rows of which the app asks at once."""


@dataclass(frozen=True, slots=True)
class SuspectRow:
    """A row whose label looks wrong.

    Attributes:
        row: from 0.
        text: the row's.
        label: its label.
        suggested: the most probable class.
        label_probability, suggested_probability: of both classes, by a model that has not learned from this row.
    """

    row: int
    text: str
    label: str
    suggested: str
    label_probability: float
    suggested_probability: float


def out_of_fold_probabilities(
    rows: LabelledTexts, *, folds: int = FOLDS, seed: int = 0, on_fold: Callable[[int, int], None] | None = None
) -> Floats:
    """Class probabilities (N, C) of each row by a model fitted to the other folds: logistic regression over TF-IDF.

    Classes with fewer rows than folds stay in the folds as chance has it; a class that a fold does not know gets the
    smallest probability there is.

    Args:
        rows: at least `folds` of them, of at least two classes.
        folds: number of folds.
        seed: of the folds.
        on_fold: called with folds done and folds in all.

    Raises:
        DataError: there are too few rows, or only one class.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.pipeline import make_pipeline

    labels, texts = np.asarray(rows.labels, dtype=np.int64), np.asarray(rows.texts, dtype=object)
    counts = np.bincount(labels, minlength=len(rows.classes))
    if len(rows) < 2 * folds or (counts > 0).sum() < 2:
        raise DataError(
            f"{len(rows)} rows of {int((counts > 0).sum())} class(es); to check labels, give at least {2 * folds} rows "
            "of two classes"
        )
    splitter = (StratifiedKFold if counts[counts > 0].min() >= folds else KFold)(folds, shuffle=True, random_state=seed)
    found = np.full((len(rows), len(rows.classes)), 1e-9)  # N C
    for done, (known, asked) in enumerate(splitter.split(texts, labels), start=1):
        may_pause()
        present = np.unique(labels[known])
        if len(present) < 2:
            found[asked, present[0]] = 1.0
            continue
        model = make_pipeline(
            word_features(token_pattern=r"(?u)\w+|[^\w\s]"), LogisticRegression(C=STRENGTH, max_iter=200)
        )
        model.fit(texts[known], labels[known])
        found[np.ix_(asked, model.classes_)] = model.predict_proba(texts[asked])
        if on_fold is not None:
            on_fold(done, folds)
    return found / found.sum(axis=1, keepdims=True)


def together(first: Floats, second: Floats) -> Floats:
    """The normalised geometric mean of two models' probabilities, (N, C)."""
    product = np.sqrt(np.maximum(first, 1e-12) * np.maximum(second, 1e-12))
    mean: Floats = product / product.sum(axis=1, keepdims=True)
    return mean


def suspect_rows(rows: LabelledTexts, probabilities: Floats) -> list[SuspectRow]:
    """The rows whose label looks wrong, the likeliest first.

    Which: cleanlab's `find_label_issues` with its default rule, "prune by noise rate" (Northcutt et al. 2021, section
    3.2); how many rows of class i have label j is estimated by the confident joint. Order: the label's own probability,
    smallest first ("self-confidence").

    Args:
        rows: N labelled rows.
        probabilities: (N, C) by models that have not learned from the row's own label.

    Raises:
        ValueError: the shapes do not fit.
    """
    from cleanlab.filter import find_label_issues

    labels = np.asarray(rows.labels, dtype=np.int64)
    if probabilities.shape != (len(rows), len(rows.classes)):
        raise ValueError(f"got probabilities {probabilities.shape}; wanted ({len(rows)}, {len(rows.classes)})")
    present = np.unique(labels)  # cleanlab wants every class to have rows
    if len(present) < 2:
        return []
    place = np.searchsorted(present, labels)
    values = probabilities[:, present]
    values = values / values.sum(axis=1, keepdims=True)
    order = find_label_issues(
        place, values, return_indices_ranked_by="self_confidence", min_examples_per_class=0, n_jobs=1
    )
    found = []
    for n in order:
        best = int(values[n].argmax())
        names = rows.classes[labels[n]], rows.classes[int(present[best])]
        shares = round(float(values[n, place[n]]), 6), round(float(values[n, best]), 6)
        found.append(SuspectRow(int(n), rows.texts[n], *names, *shares))
    return found


def corrected_csv(rows: LabelledTexts, corrections: Mapping[int, str], *, plain: Callable[[str], str]) -> str:
    """All rows as CSV with the columns text and label, some labels replaced.

    Args:
        rows: the rows.
        corrections: the new label of some rows, by their number from 0; "" drops the row.
        plain: what is applied to every cell, to keep a spreadsheet from running it.
    """
    out = io.StringIO(newline="")
    table = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    table.writerow(("text", "label"))
    for number, (text, label) in enumerate(zip(rows.texts, rows.labels, strict=True)):
        name = corrections.get(number, rows.classes[label])
        if name:
            table.writerow((plain(text), plain(name)))
    return out.getvalue()


def table_csv(head: Sequence[str], lines: Sequence[Sequence[object]], *, plain: Callable[[str], str]) -> str:
    """A table as CSV; `plain` is applied to every cell that is a text."""
    out = io.StringIO(newline="")
    table = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    table.writerow(head)
    table.writerows([plain(cell) if isinstance(cell, str) else cell for cell in line] for line in lines)
    return out.getvalue()
