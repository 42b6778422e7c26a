"""Costs of errors and of a human's work, against sums over single rows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.report import RowPredictions
from txcls.evaluation.thresholds import THRESHOLDS, Coverage, Policy, cheapest_policy, make_costs

CLASSES = ("a", "b", "c")


def some_predictions(n: int) -> RowPredictions:
    random = np.random.default_rng(0)
    probabilities = random.dirichlet(np.full(3, 0.4), size=n)
    labels = [int(random.choice(3, p=row)) for row in probabilities]
    return RowPredictions(LabelledTexts(["text"] * n, labels, CLASSES), probabilities, np.ones(n, int), np.zeros(n))


def test_the_cheapest_threshold_equals_a_search_row_by_row(tmp_path: Path) -> None:
    file = tmp_path / "costs.csv"
    file.write_text("true,predicted,cost\na,b,1\na,,20\nc,a,0\n")
    prices = {("a", "b"): 1, ("a", "c"): 20, ("b", "a"): 6, ("b", "c"): 6, ("c", "a"): 0, ("c", "b"): 6}
    predictions = some_predictions(300)
    costs = cheapest_policy(predictions, make_costs(CLASSES, error=6, human=1.5, file=file))

    def cost(threshold: float) -> float:
        total = 0.0
        for values, label in zip(predictions.probabilities, predictions.rows.labels, strict=True):
            pair = CLASSES[label], CLASSES[max(range(3), key=lambda c: values[c])]
            total += 1.5 if max(values) < threshold else prices.get(pair, 0)
        return total / 3

    best = min(THRESHOLDS, key=cost)
    assert 0 < best < 1 and costs.best.threshold == best
    assert costs.best.cost == pytest.approx(cost(best)) and costs.best.cost <= costs.checked
    assert costs.every.cost == pytest.approx(cost(0)) and costs.none.cost == pytest.approx(150)
    assert costs.best.answered == np.mean(predictions.probabilities.max(axis=1) >= best)
    assert f"{cost(0):,.1f} to answer every text, 150.0 to leave every text to a human" in str(costs)


def test_the_accuracy_on_fewer_than_twenty_rows_is_not_stated() -> None:
    enough, too_few = Coverage(0.9, n=20, share=0.2, right=19), Coverage(0.9, n=19, share=0.19, right=19)
    assert enough.cells[2] == "95.0\u00a0%" and "95.0\u00a0% of these correctly." in str(enough)
    assert too_few.cells[2] == "too few" and str(too_few).endswith("answered, too few to state an accuracy (19).")
    assert Coverage(0.9, n=0, share=0.0, right=0).cells[2] == "–"


def test_plain_policies_can_be_the_cheapest() -> None:
    predictions = some_predictions(200)
    dear = cheapest_policy(predictions, make_costs(CLASSES, error=6, human=7))
    assert dear.best.name == "answer every text" and len(dear.policies) == 2
    labels = ((predictions.predicted + 1) % 3).tolist()  # always wrong
    wrong = replace(predictions, rows=LabelledTexts(predictions.rows.texts, labels, CLASSES))
    none = cheapest_policy(wrong, make_costs(CLASSES, error=600, human=1))
    assert none.best == none.none and str(none) == (
        "Cheapest: leave every text to a human, 100.0 for 100 texts; 60,000.0 to answer every text. No threshold pays."
    )
    doubtful = replace(none, best=Policy(0.9, 0.1, 0.0, 99.0), checked=112.7)
    assert str(doubtful).endswith("112.7 on the other. So it is uncertain whether a threshold pays.")
    # Nor is a threshold named that no row reaches.
    unsure = replace(wrong, probabilities=0.7 * wrong.probabilities + 0.1)
    assert cheapest_policy(unsure, make_costs(CLASSES, error=6, human=1)).best == none.none


@pytest.mark.parametrize(
    "lines, error, human, message",
    [
        ("", None, 1, "give --cost-error"),
        ("", 1, None, "is missing: give --cost-human"),
        ("", -1, 1, "--cost-error: got -1, expected a number of at least 0"),
        ("a,b,1", None, 1, "no cost of 'a' predicted as 'c': give --cost-error"),
        ("a,d,1", 1, 1, "unknown class 'd'"),
        ("a,b,dear", 1, 1, "cost 'dear'; expected a number"),
    ],
)
def test_costs_that_cannot_be_used_are_refused(
    tmp_path: Path, lines: str, error: float | None, human: float | None, message: str
) -> None:
    file = tmp_path / "costs.csv"
    file.write_text(f"true,predicted,cost\n{lines}\n")
    with pytest.raises(DataError, match=message):
        make_costs(CLASSES, error=error, human=human, file=file if lines else None)
