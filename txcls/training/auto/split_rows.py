"""Split a user's rows into training, validation and test rows."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.schema import labels_problem
from txcls.data.hashes import normalised
from txcls.data.near_copies import near_copies
from txcls.data.rows_in_classes import joined, rows_in_classes
from txcls.data.splits import first_copies, hold_out, in_large_group
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.wording import listed, percentage, shown

Indices = NDArray[np.int64]

MIN_ROWS = 4
"""Minimum number of labelled rows."""
TEST_SHARE, MAX_TEST = 0.2, 5000
"""Share of the rows held out for testing, and their maximum number; more would barely narrow the interval."""
VALIDATION_SHARE, FEW_VALIDATION, MAX_VALIDATION = 0.05, 50, 1000
"""Share of the remaining rows held out to fit the calibration (up to twice that share while fewer than
FEW_VALIDATION rows), and their maximum number."""


@dataclass(frozen=True, eq=False)
class Splits:
    """The rows of each split; no text is in more than one split.

    Attributes:
        unused: training rows for which there is not enough time.
        fitted: all rows except the test rows, to which the linear baseline is fitted; their order, on which its result
            depends, does not depend on `unused`.
        training_rows, validation_rows, test_rows: indices of each split's rows among the given rows; `test_rows` is
            None if test rows were given separately.
        notes: sentences about classes and repeated texts.
    """

    training: LabelledTexts
    validation: LabelledTexts
    test: LabelledTexts
    unused: LabelledTexts
    fitted: LabelledTexts
    training_rows: Indices
    validation_rows: Indices
    test_rows: Indices | None
    notes: tuple[str, ...]
    n_unseen: int = 0
    """Number of given test rows that were left out because their classes have no training row."""

    def limited_to(self, n: int, *, seed: int) -> "Splits":
        """The same splits with at most n training rows, drawn in proportion to the classes; the others become unused.

        If n is at least the number of classes, each keeps a row.
        """
        if n >= len(self.training):
            return self
        labels, rng = np.asarray(self.training.labels), np.random.default_rng(seed)
        place = np.zeros(len(labels))  # among the rows of the class, from 0 to 1
        for label in np.unique(labels):
            rows = rng.permutation(np.flatnonzero(labels == label))
            place[rows[1:]] = (np.arange(1, len(rows)) + rng.random()) / len(rows)
        used, unused = map(np.sort, np.split(np.argsort(place, kind="stable"), [n]))
        return replace(
            self,
            training=self.training.subset(used),
            unused=self.training.subset(unused),
            training_rows=self.training_rows[used],
        )


def check_rows(rows: LabelledTexts) -> None:
    """Raise DataError if there are fewer than two classes, too few rows, or almost no repeated label."""
    counts = Counter(rows.labels)
    if len(counts) < 2:
        only_class = shown(rows.classes[next(iter(counts))], limit=40) if counts else ""
        raise DataError(f"all {len(rows):,} rows have the label '{only_class}'; expected at least two classes")
    if len(rows) < MIN_ROWS:
        raise DataError(f"{len(rows)} rows with text and label; expected at least {MIN_ROWS}, preferably a few hundred")
    if len(counts) > max(2, len(rows) // 2):
        raise DataError(
            f"{len(counts):,} different labels in {len(rows):,} rows: almost no label occurs twice; is it the right "
            f"label column, or are the two columns swapped? Name them.",
            text_column="COLUMN",
            label_column="COLUMN",
        )
    if problem := labels_problem(rows.classes):
        raise DataError(f"{problem}; is it the right label column?")


def split_rows(rows: LabelledTexts, test: LabelledTexts | None, *, seed: int) -> Splits:
    """Split the rows; if `test` is None, hold out test rows too.

    Raises:
        DataError: no test rows are left.
    """
    notes: list[str] = []
    test_rows = None
    if test is None:
        copies = first_copies(rows.texts)
        near = near_copies(rows.texts, copies)
        groups = np.where(in_large_group(near), copies, near)
        notes += _notes_on_copies(len(rows), n_distinct=len(np.unique(copies)), n_unlike=len(np.unique(near)))
        n = min(round(TEST_SHARE * len(rows)), MAX_TEST)
        other_rows, test_rows = hold_out(rows.labels, n=n, seed=seed, groups=groups)
        test_part = rows.subset(test_rows)
    else:
        groups, other_rows = first_copies(rows.texts), np.arange(len(rows))
        test_part, _ = rows_in_classes(test, rows.classes)
        notes += _notes_on_given_test(rows, test, test_part)
    if not len(test_part):
        raise DataError("no test rows are left; give more rows, or test rows of the same classes")
    others = rows.subset(other_rows)
    share = VALIDATION_SHARE * len(others)
    n = min(max(round(share), min(FEW_VALIDATION, round(2 * share)), 2), MAX_VALIDATION)
    _, first, which = np.unique(groups[other_rows], return_index=True, return_inverse=True)
    training, validation = hold_out(others.labels, n=n, seed=seed + 1, groups=first[which])
    if not len(validation):  # every class has a single row or copies of one text
        validation, training = training[:1], training[1:]
    notes += _notes_on_small_classes(rows, test_part)
    origin = "given" if test is not None else "held out at random, in proportion to the classes"
    notes.append(
        f"{len(training):,} rows to train on, {len(validation):,} to fit the calibration, {len(test_part):,} to test "
        f"on ({origin})."
    )
    training_part, validation_part = others.subset(training), others.subset(validation)
    return Splits(
        training=training_part,
        validation=validation_part,
        test=test_part,
        unused=others.subset([]),
        fitted=joined((training_part, validation_part)),
        training_rows=other_rows[training],
        validation_rows=other_rows[validation],
        test_rows=test_rows,
        notes=tuple(notes),
        n_unseen=0 if test is None else len(test) - len(test_part),
    )


def _notes_on_copies(n: int, *, n_distinct: int, n_unlike: int) -> Iterator[str]:
    """A sentence on repeated texts among n rows, which have `n_distinct` texts, `n_unlike` without near duplicates."""
    n_repeated, n_near = n - n_distinct, n_distinct - n_unlike
    parts = [f"{n_repeated:,} {'repeats' if n_repeated == 1 else 'repeat'} the text of another"] if n_repeated else []
    parts += [f"{n_near:,} {'is' if n_near == 1 else 'are'} nearly the same as another"] if n_near else []
    if parts:
        rows = ", and ".join(parts)
        yield (
            f"Of the rows, {rows}; all copies of a text are in the same split, "
            "except of texts so frequent that new data will contain them too."
        )


def _notes_on_given_test(rows: LabelledTexts, test: LabelledTexts, used: LabelledTexts) -> Iterator[str]:
    if n_left_out := len(test) - len(used):
        unknown = sorted({test.classes[label] for label in test.labels} - set(rows.classes))
        yield f"{n_left_out:,} test rows have labels that no training row has ({listed(unknown)}); they are left out."
    training_texts = {normalised(text) for text in rows.texts}
    if n_repeated := sum(normalised(text) in training_texts for text in used.texts):
        share = percentage(n_repeated / len(used), 0)
        yield f"{n_repeated:,} test rows ({share}) repeat the text of a training row."


def _notes_on_small_classes(rows: LabelledTexts, test: LabelledTexts) -> Iterator[str]:
    counts = sorted(Counter(rows.labels).items())
    if single := [rows.classes[label] for label, n in counts if n == 1]:
        classes, are = ("class", "it is") if len(single) == 1 else ("classes", "they are")
        yield f"{len(single):,} {classes} with a single row ({listed(single)}): {are} trained on, but not tested."
    in_test = set(test.labels)
    if rare := [rows.classes[label] for label, n in counts if n > 1 and label not in in_test]:
        classes, have = ("class", "has") if len(rare) == 1 else ("classes", "have")
        yield f"{len(rare):,} further {classes} with few rows {have} no test row ({listed(rare)})."
