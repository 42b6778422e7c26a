"""The parts of a user's own rows: to learn from, to fit the calibration, to test on."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.schema import labels_problem
from txcls.data.classes import in_classes
from txcls.data.hashes import normalised
from txcls.data.splits import copies, hold_out
from txcls.data.types import LabelledTexts
from txcls.errors import DataError, listed, shown

Indices = NDArray[np.int64]

LEAST_ROWS = 4
"""Fewest rows that are trained on."""
TEST_SHARE, MOST_TEST = 0.2, 5000
"""Share of the rows held out for testing, and most of them: more would hardly narrow the interval."""
VALIDATION_SHARE, FEW_VALIDATION, MOST_VALIDATION = 0.05, 50, 1000
"""Share of the remaining rows held out to fit the calibration, which has two parameters; fewer than FEW_VALIDATION are
too few for it, so that of small sets up to twice the share is taken; and most of them."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of the data and which rows they are; `test_rows` is empty if the test rows were given."""

    training: LabelledTexts
    validation: LabelledTexts
    test: LabelledTexts
    training_rows: Indices
    validation_rows: Indices
    test_rows: Indices
    notes: tuple[str, ...]


def check_rows(rows: LabelledTexts) -> None:
    """Fail early if these rows cannot be learned.

    Raises:
        DataError: fewer than two classes, too few rows, or labels that do not repeat.
    """
    counts = Counter(rows.labels)
    if len(counts) < 2:
        only = shown(rows.classes[next(iter(counts))], limit=40) if counts else ""
        raise DataError(f"all {len(rows):,} rows have the label '{only}'; wanted at least two classes")
    if len(rows) < LEAST_ROWS:
        raise DataError(f"{len(rows)} rows with text and label; wanted at least {LEAST_ROWS}, better some hundred")
    if len(counts) > max(2, len(rows) // 2):
        raise DataError(
            f"{len(counts):,} different labels in {len(rows):,} rows, so hardly any repeats; is it the right label "
            "column, or are the two columns swapped? Name them with --text-column and --label-column"
        )
    if problem := labels_problem(rows.classes):
        raise DataError(f"{problem}; is it the right label column?")


def parted(rows: LabelledTexts, test: LabelledTexts | None, *, seed: int) -> Parts:
    """Training, validation and test rows, with notes on classes and copies."""
    notes = []
    everything = np.arange(len(rows))
    test_rows = np.zeros(0, dtype=np.int64)
    if test is None:
        groups = copies(rows.texts)
        if repeated := len(rows) - len(np.unique(groups)):
            notes.append(f"{repeated:,} rows repeat the text of another; copies are kept in the same part.")
        n = min(round(TEST_SHARE * len(rows)), MOST_TEST)
        kept, test_rows = hold_out(rows.labels, n=n, seed=seed, groups=groups)
        tested = rows.subset(test_rows)
    else:
        kept = everything
        tested, _ = in_classes(test, rows.classes)
        notes += _on_given_test(rows, test, tested)
    if not len(tested):
        raise DataError("no test rows are left; give more rows, or test rows of the same classes")
    known = rows.subset(kept)
    share = VALIDATION_SHARE * len(known)
    n = min(max(round(share), min(FEW_VALIDATION, round(2 * share)), 2), MOST_VALIDATION)
    inner, validated = hold_out(known.labels, n=n, seed=seed + 1, groups=copies(known.texts))
    if not len(validated):  # every class has a single row or copies of one text
        validated, inner = inner[:1], inner[1:]
    notes += _on_small_classes(rows, tested)
    how = "given" if test is not None else "held out by chance, every class in proportion"
    notes.append(
        f"{len(inner):,} rows to learn from, {len(validated):,} to fit the calibration, {len(tested):,} to test on "
        f"({how})."
    )
    training = kept[inner]
    return Parts(
        rows.subset(training), rows.subset(kept[validated]), tested, training, kept[validated], test_rows, tuple(notes)
    )


def _on_given_test(rows: LabelledTexts, test: LabelledTexts, tested: LabelledTexts) -> Iterator[str]:
    if left := len(test) - len(tested):
        unknown = sorted({test.classes[label] for label in test.labels} - set(rows.classes))
        yield f"{left:,} test rows have labels that no training row has ({listed(unknown)}); they are left out."
    seen = {normalised(text) for text in rows.texts}
    if both := sum(normalised(text) in seen for text in tested.texts):
        yield f"{both:,} test rows repeat the text of a training row, which makes the test a little easier."


def _on_small_classes(rows: LabelledTexts, tested: LabelledTexts) -> Iterator[str]:
    counts = Counter(rows.labels)
    if single := [rows.classes[label] for label, n in sorted(counts.items()) if n == 1]:
        one = len(single) == 1
        yield (
            f"{len(single):,} class{'' if one else 'es'} with a single row ({listed(single)}): "
            f"{'it is' if one else 'they are'} learned, but cannot be measured."
        )
    measured = set(tested.labels)
    if rare := [rows.classes[label] for label, n in sorted(counts.items()) if n > 1 and label not in measured]:
        yield f"{len(rare):,} further classes with few rows have no test row ({listed(rare)})."
