"""Confidence thresholds: what share of the rows is answered above each, and which one costs least.

python -m txcls report mine --data held_out.csv --cost-error 10 --cost-human 1
python -m txcls report mine --data held_out.csv --costs costs.csv --cost-human 1
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from txcls.data.tables.table import Table, cell_text
from txcls.errors import DataError
from txcls.evaluation.report import RowPredictions
from txcls.wording import listed, percentage, shown

Floats = NDArray[np.float64]

CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Confidence thresholds, below which rows are left to a human."""
MIN_ROWS = 20
"""The accuracy on fewer rows is not stated."""
COVERAGE_HEAD = ("answer only above", "rows answered", "of these, correct")
"""The head of the table whose rows are `Coverage.cells`."""


def accuracy_cell(accuracy: float, n: int) -> str:
    """The accuracy on n rows as a cell of a table or the number of a bar, unless there are too few rows."""
    return "–" if not n else "too few" if n < MIN_ROWS else percentage(accuracy)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The n rows predicted with at least this confidence, their share of all rows, and how many are correct."""

    confidence: float
    n: int
    share: float
    right: int

    @property
    def accuracy(self) -> float:
        """The share of correct predictions among these rows; NaN if there are no rows."""
        return self.right / self.n if self.n else float("nan")

    @property
    def cells(self) -> tuple[str, str, str]:
        """The cells of a table: confidence, share and accuracy, unless there are too few rows."""
        return percentage(self.confidence, 0), percentage(self.share), accuracy_cell(self.accuracy, self.n)

    def __str__(self) -> str:
        """The coverage in words."""
        if not self.n:
            return f"No row is predicted with {percentage(self.confidence, 0)} or more."
        right = f"and {percentage(self.accuracy)} of these correctly"
        if self.n < MIN_ROWS:
            right = f"too few to state an accuracy ({self.n:,})"
        return (
            f"If only predictions with {percentage(self.confidence, 0)} or more are used and all others are left to a "
            f"human, {percentage(self.share, 0)} of the rows are answered, {right}."
        )


def coverage_above(predictions: RowPredictions, confidence: float) -> Coverage:
    """The coverage if predictions below this confidence are left to a human."""
    is_used = predictions.probabilities.max(axis=1) >= confidence  # N
    n = int(is_used.sum())
    return Coverage(confidence, n, n / len(predictions), int((is_used & predictions.right).sum()))


def coverage_by_confidence(predictions: RowPredictions) -> list[Coverage]:
    """The coverage for each of CONFIDENCES."""
    return [coverage_above(predictions, confidence) for confidence in CONFIDENCES]


THRESHOLDS = (0.0, *np.arange(0.3, 0.96, 0.05).round(2).tolist(), 0.99, math.inf)
"""The thresholds that are tried: 0 answers every text, infinity answers none."""
COLUMNS = ("true", "predicted", "cost")
"""Columns of a table of costs; a row without `predicted` applies to all wrong predictions for a class."""


@dataclass(frozen=True, eq=False)
class Costs:
    """The costs of a decision on a text, in any unit.

    Attributes:
        wrong: cost of a text of class i predicted as class j, (C, C); 0 where i = j.
        human: cost of a text that is left to a human.
    """

    wrong: Floats
    human: float


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy: answer the texts predicted with at least `threshold`, and leave all others to a human.

    Attributes:
        answered: share of the rows that are answered.
        wrong: share of the rows that are answered wrongly.
        cost: mean cost of 100 texts.
    """

    threshold: float
    answered: float
    wrong: float
    cost: float

    @property
    def name(self) -> str:
        """The policy in words."""
        if self.threshold == 0:
            return "answer every text"
        if math.isinf(self.threshold):
            return "leave every text to a human"
        return f"answer above {percentage(self.threshold, 0)}"

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The cells of a table: policy, cost of 100 texts, share answered, share answered wrongly."""
        return self.name, f"{self.cost:,.1f}", percentage(self.answered), percentage(self.wrong)


POLICY_HEAD = ("policy", "cost of 100 texts", "rows answered", "answered wrongly")
"""Headings of `Policy.cells`."""


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The cheapest policy on some rows, compared with the two simplest ones.

    Attributes:
        best: the policy with the lowest cost; of equally cheap ones, the one that answers the most texts. A threshold
            that answers no row counts as leaving every text to a human.
        every, none: answering every text, and leaving every text to a human.
        checked: the cost of 100 texts if the threshold is chosen on one half of the rows and measured on the other,
            averaged over both directions; nan for a single row, or if the best policy has no threshold.
    """

    best: Policy
    every: Policy
    none: Policy
    checked: float

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The different policies, the best first."""
        return tuple(dict.fromkeys((self.best, self.every, self.none)))

    def __str__(self) -> str:
        """The comparison in words."""
        others = ", ".join(
            f"{policy.cost:,.1f} to {policy.name}" for policy in (self.every, self.none) if policy != self.best
        )
        note = ""
        if self.best == self.none:
            note = " No threshold pays."
        elif not math.isnan(self.checked):
            note = f" A threshold chosen on one half of the rows costs {self.checked:,.1f} on the other."
            if self.checked >= min(self.every.cost, self.none.cost):
                note += " So it is uncertain whether a threshold pays."
        return f"Cheapest: {self.best.name}, {self.best.cost:,.1f} for 100 texts; {others}.{note}"


def make_costs(
    classes: Sequence[str], *, error: float | None = None, human: float | None = None, file: Path | None = None
) -> Costs:
    """The cost of each kind of error between C classes: from the file, or `error` if the file lacks it.

    Raises:
        DataError: the human's cost is missing, a cost is not a number of at least 0, or the file lacks a column, names
            an unknown class, or lacks a kind of error while `error` is None.
    """
    if human is None:
        raise DataError("the cost of a text that is left to a human is missing: give --cost-human")
    for name, cost in (("--cost-error", error), ("--cost-human", human)):
        if cost is not None and not 0 <= cost < math.inf:
            raise DataError(f"{name}: got {cost:g}, expected a number of at least 0")
    wrong = np.full((len(classes), len(classes)), np.nan if error is None else error)
    if file is not None:
        _read_costs(file, classes, wrong)
    np.fill_diagonal(wrong, 0.0)
    if np.isnan(wrong).any():
        i, j = np.argwhere(np.isnan(wrong))[0]
        missing_cost_note = (
            ""
            if file is None
            else f"{file.name} has no cost of '{shown(classes[i])}' predicted as '{shown(classes[j])}': "
        )
        raise DataError(f"{missing_cost_note}give --cost-error, the cost of all other errors")
    return Costs(wrong, human)


def _read_costs(file: Path, classes: Sequence[str], wrong: Floats) -> None:
    """Write the costs in a table into the matrix `wrong` (C, C); a pair of classes takes precedence over one class."""
    table, class_index = Table(file), {name: number for number, name in enumerate(classes)}
    if missing := [name for name in (COLUMNS[0], COLUMNS[2]) if name not in table.columns]:
        raise DataError(f"{file.name}: no column {listed(missing)}; expected the columns {', '.join(COLUMNS)}")
    costs_of_pairs = []
    for row in table.rows():
        where = f"{file.name}, {table.unit} {row.number}"
        true, predicted, cost = (cell_text(row.values.get(name), where=where, column=name).strip() for name in COLUMNS)
        if unknown := [n for n in (true, predicted) if n and n not in class_index] or ([] if true else [""]):
            raise DataError(f"{where}: unknown class {listed(unknown)}; expected one of {listed(classes)}")
        try:
            value = float(cost)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise DataError(f"{where}: cost '{shown(cost, limit=40)}'; expected a number of at least 0")
        if predicted:
            costs_of_pairs.append((class_index[true], class_index[predicted], value))
        else:
            wrong[class_index[true]] = value
    for i, j, value in costs_of_pairs:
        wrong[i, j] = value


def cheapest_policy(predictions: RowPredictions, costs: Costs) -> Cheapest:
    """The cheapest of THRESHOLDS on at least one row, measured on the same rows.

    A threshold chosen on few rows looks cheaper than it is, so `checked` measures it on other rows.
    """
    confidence = predictions.probabilities.max(axis=1)  # N
    is_answered = confidence >= np.array(THRESHOLDS)[:, None]  # K N
    answer_cost = costs.wrong[predictions.labels, predictions.predicted]  # N
    cost = np.where(is_answered, answer_cost, costs.human)  # K N
    wrong = (is_answered & ~predictions.right).mean(axis=1)  # K
    policies = [
        Policy(threshold, float(is_answered[k].mean()), float(wrong[k]), 100 * float(cost[k].mean()))
        for k, threshold in enumerate(THRESHOLDS)
    ]
    every, none = policies[0], policies[-1]
    distinct = [policy for policy in policies if policy.answered or policy == none]
    best = min(distinct, key=lambda policy: round(policy.cost, 9))
    n = len(predictions)
    is_first_half = np.random.default_rng(0).permutation(n) < n // 2  # N
    checked = math.nan
    if n > 1 and best not in (every, none):
        halves = (is_first_half, ~is_first_half)
        sums = [cost[int(cost[:, half].mean(axis=1).round(9).argmin()), ~half].sum() for half in halves]
        checked = 100 * float(sum(sums)) / n
    return Cheapest(best, every, none, checked)
