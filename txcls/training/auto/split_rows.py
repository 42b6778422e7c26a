"""Split a user's rows into training, validation and test rows."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.schema import labels_problem
from txcls.data.hashes import normalised
from txcls.data.labels import label_name
from txcls.data.splits import first_copies, hold_out, in_large_group, near_copies
from txcls.data.types import LabelledTexts, joined, rows_in_classes
from txcls.errors import DataError, list_names, sanitize
from txcls.text.formatting import percentage

MIN_ROWS = 4
"""Minimum number of labelled rows."""
TEST_SHARE, MAX_TEST = 0.2, 5000
"""Share of the texts held out for testing, and their maximum number; more would barely narrow the interval."""
VALIDATION_SHARE, FEW_VALIDATION, MAX_VALIDATION = 0.05, 50, 1000
"""Share of the remaining rows held out to fit the calibration (up to twice that share while fewer than
FEW_VALIDATION rows), and their maximum number."""


@dataclass(frozen=True, eq=False)
class Splits:
    """The rows of each split; no text is in more than one split.

    Attributes:
        test_rows: indices of the test rows among the given rows; None if test rows were given separately.
        notes: sentences about classes and repeated texts.
        n_unseen: number of given test rows that were left out because their classes have no training row.
    """

    training: LabelledTexts
    validation: LabelledTexts
    test: LabelledTexts
    test_rows: NDArray[np.int64] | None
    notes: tuple[str, ...]
    n_unseen: int = 0

    @property
    def fitted(self) -> LabelledTexts:
        """All rows except the test rows, to which the linear model is fitted."""
        return joined((self.training, self.validation))


def check_rows(rows: LabelledTexts) -> None:
    """Raise DataError if there are fewer than two classes, too few rows, or almost no repeated label."""
    counts = Counter(rows.labels)
    if len(counts) < 2:
        only_class = sanitize(rows.classes[next(iter(counts))], limit=40) if counts else ""
        raise DataError(f"all {len(rows):,} rows have the label '{only_class}'; expected at least two classes")
    if len(rows) < MIN_ROWS:
        raise DataError(f"{len(rows)} rows with text and label; expected at least {MIN_ROWS}, preferably a few hundred")
    if len(counts) > max(2, len(rows) // 2):
        raise DataError(
            f"{len(counts):,} different labels in {len(rows):,} rows: almost no label occurs twice; is it the right "
            "label column, or are the two columns swapped?",
            text_column="COLUMN",
            label_column="COLUMN",
        )
    if problem := labels_problem(rows.classes):
        raise DataError(f"{problem}; is it the right label column?")


def split_rows(rows: LabelledTexts, test: LabelledTexts | None, *, seed: int) -> Splits:
    """Split the rows; if `test` is None, hold out test rows too.

    Raises:
        DataError: there are fewer than two classes, too few rows, almost no repeated label, no test rows
            left, or most of those given repeat training rows.
    """
    check_rows(rows)
    notes: list[str] = []
    test_rows, copies = None, first_copies(rows.texts)
    if test is None:
        near = near_copies(rows.texts, copies)
        of_text = near[np.unique(copies)]  # of each different text
        groups = np.where(np.isin(near, of_text[in_large_group(of_text)]), copies, near)
        n_repeated, n_alike = len(rows) - len(of_text), len(of_text) - len(np.unique(of_text))
        if n_repeated or n_alike:
            notes.append(f"Copies stay in one split: {n_repeated:,} repeated texts, {n_alike:,} nearly the same.")
        other_rows, test_rows = _hold_out_once(rows.labels, copies, groups, size=_n_test, seed=seed)
        test_part = rows.subset(test_rows)
    else:
        groups, other_rows = copies, np.arange(len(rows))
        test_part, _ = rows_in_classes(test, rows.classes, match_normalised=True)
        notes += _notes_on_given_test(rows, test, test_part)
    if not len(test_part):
        raise DataError("no test rows are left; give more rows, or test rows of the same classes")
    others = rows.subset(other_rows)
    training, validation = _hold_out_once(
        others.labels, copies[other_rows], groups[other_rows], size=_n_validation, seed=seed + 1
    )
    if not len(validation):  # every class has a single row or copies of one text
        validation, training = training[:1], training[1:]
    notes += _notes_on_small_classes(rows, test_part)
    origin, n_used = "given" if test is not None else "held out", len(training) + len(validation)
    n_copies = len(rows) - n_used - (0 if test_rows is None else len(test_rows))
    left_out = f"; {n_copies:,} more cop{'ies' if n_copies > 1 else 'y'} of held-out texts left out" * (n_copies > 0)
    sizes = f"{len(training):,} rows to train on, {len(validation):,} to calibrate, {len(test_part):,} to test"
    notes.append(f"{sizes} ({origin}){left_out}.")
    n_unseen = 0 if test is None else len(test) - len(test_part)
    parts = others.subset(training), others.subset(validation), test_part
    return Splits(*parts, test_rows, tuple(notes), n_unseen)


def _n_test(n: int) -> int:
    return min(round(TEST_SHARE * n), MAX_TEST)


def _n_validation(n: int) -> int:
    return min(
        max(round(VALIDATION_SHARE * n), min(FEW_VALIDATION, round(2 * VALIDATION_SHARE * n)), 2), MAX_VALIDATION
    )


def _hold_out_once(
    labels: Sequence[int],
    copies: NDArray[np.int64],
    groups: NDArray[np.int64],
    *,
    size: Callable[[int], int],
    seed: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hold out `size(n)` of the n different texts: sorted rows (others, held out), of which no group is in both.

    Rows with the same text have the same number in `copies` (N,); of those that also have the same label, only the
    first is held out and the rest are in neither part, since they say nothing new.
    """
    once = np.sort(np.unique(np.stack([copies, labels]), axis=1, return_index=True)[1])
    held_out = once[hold_out([labels[row] for row in once], n=size(len(once)), seed=seed, groups=groups[once])[1]]
    return np.flatnonzero(~np.isin(groups, groups[held_out])), held_out


def _notes_on_given_test(rows: LabelledTexts, test: LabelledTexts, used: LabelledTexts) -> Iterator[str]:
    names = sorted({test.classes[label] for label in test.labels} - set(rows.classes))
    spelled = {label_name(name).casefold(): name for name in rows.classes}
    pairs = [
        f"'{sanitize(name)}' as '{sanitize(spelled[key])}'"
        for name in names
        if (key := label_name(name).casefold()) in spelled
    ]
    if pairs:
        more = ", …" if len(pairs) > 3 else ""
        yield f"Labels of the test rows are written differently; read {', '.join(pairs[:3])}{more}."
    if n_left_out := len(test) - len(used):
        unknown = [name for name in names if label_name(name).casefold() not in spelled]
        labels = list_names(unknown)
        yield f"{n_left_out:,} test rows have labels that no training row has ({labels}); they are left out."
    training_texts = {normalised(text) for text in rows.texts}
    if n_repeated := sum(normalised(text) in training_texts for text in used.texts):
        share = percentage(n_repeated / len(used), 0)
        if n_repeated > max(len(used) / 2, 1):  # txcls.sklearn gives one row, which it does not measure
            raise DataError(
                f"{n_repeated:,} of {len(used):,} test rows ({share}) repeat the text of a training row, so they would "
                "say nothing about new texts; give other test rows, or none: then a fifth of the rows is held out"
            )
        yield f"{n_repeated:,} test rows ({share}) repeat the text of a training row."


def _notes_on_small_classes(rows: LabelledTexts, test: LabelledTexts) -> Iterator[str]:
    counts, in_test = sorted(Counter(rows.labels).items()), set(test.labels)
    if single := [rows.classes[label] for label, n in counts if n == 1 and label not in in_test]:
        yield f"Classes with a single row, trained on but not tested: {list_names(single)}."
    if rare := [rows.classes[label] for label, n in counts if n > 1 and label not in in_test]:
        yield f"Classes with few rows, none of them among the test rows: {list_names(rare)}."
