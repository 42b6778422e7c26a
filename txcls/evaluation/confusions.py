"""The words behind each confusion of a report, and what is notable about its classes."""

import re
from collections import Counter
from functools import cache
from typing import NamedTuple

import numpy as np

from txcls.data.splits import first_copies
from txcls.evaluation.intervals import wilson
from txcls.evaluation.linear import MAX_CHARACTERS, WORD
from txcls.evaluation.report import Report, RowPredictions, class_counts_of
from txcls.wording import shown

LEVEL = 0.05
"""Maximum probability that a report names any word if the errors are random."""
MIN_ERRORS, MIN_ROWS = 5, 3
"""Minimum number of errors for words to be compared, and of rows with a word for it to be tested."""
MAX_CONFUSIONS, MAX_WORDS = 20, 5
"""Maximum number of confusions for which words are compared, and of words or classes that are named."""
FEW_TRAINING_ROWS = 50
"""A class with fewer training rows and a low recall is named."""


class ConfusionWord(NamedTuple):
    """A word that is significantly more frequent in the rows of class `label` predicted as `predicted` (the errors)
    than in those predicted correctly; `in_errors` of the `errors` contain it, and `in_right` of the `right`."""

    label: str
    predicted: str
    word: str
    in_errors: int
    errors: int
    in_right: int
    right: int


def confusion_words(predictions: RowPredictions) -> tuple[list[ConfusionWord], int, int]:
    """Up to MAX_WORDS words of each of the most frequent confusions; the number of these, and of those with few errors.

    Words are those of the linear model that have letters or digits, in lower case and once per text; a repeated text is
    counted once. In confusions of at least MIN_ERRORS errors, each word of at least MIN_ROWS texts is tested (one-sided
    Fisher exact test), both as a share of the texts and of all their words: in longer texts, any word is in a larger
    share of the texts, and in shorter ones, a frequent word can be a larger share of the words. Bonferroni's correction
    is for all tests together.
    """
    from scipy.stats import hypergeom

    texts, classes = predictions.rows.texts, predictions.rows.classes
    outcomes = list(zip(predictions.labels.tolist(), predictions.predicted.tolist(), strict=True))

    @cache
    def texts_of(outcome: tuple[int, int]) -> tuple[int, Counter[str]]:
        """The number of texts with this label and prediction, and of those with each word."""
        rows = [text[:MAX_CHARACTERS].lower() for text, other in zip(texts, outcomes, strict=True) if other == outcome]
        distinct = np.unique(first_copies(rows))
        words = (word for row in distinct for word in set(re.findall(WORD, rows[row])) if any(map(str.isalnum, word)))
        return len(distinct), Counter(words)

    found: list[tuple[float, ConfusionWord]] = []
    confusions = Counter((a, b) for a, b in outcomes if a != b).most_common(MAX_CONFUSIONS)
    n_tests = n_few = 0
    for (label, predicted), _ in confusions:
        (n_errors, errors), (n_right, right) = texts_of((label, predicted)), texts_of((label, label))
        if n_errors < MIN_ERRORS:
            n_few += 1
            continue
        together = errors + right
        words = [word for word in sorted(together) if together[word] >= MIN_ROWS]
        in_errors, in_all = (np.array([counts[word] for word in words]) for counts in (errors, together))
        totals = ((n_errors + n_right, n_errors), (together.total(), errors.total()))  # of texts, of words
        p = np.max([hypergeom.sf(in_errors - 1, n, in_all, n_drawn) for n, n_drawn in totals], axis=0)
        n_tests += len(words)
        for k in np.argsort(p, kind="stable")[:MAX_WORDS]:
            counts = (errors[words[k]], n_errors, right[words[k]], n_right)
            found.append((float(p[k]), ConfusionWord(classes[label], classes[predicted], words[k], *counts)))
    return [word for p, word in found if p <= LEVEL / n_tests], len(confusions), n_few


def class_advice(report: Report) -> list[str]:
    """Sentences about classes that are never predicted, and about classes with few training rows and a low recall."""
    counts, lines = class_counts_of(report), []
    never = [f"'{shown(count.label)}'" for count in counts.values() if count.n and not count.n_predicted]
    predicted = [f"'{shown(count.label)}'" for count in counts.values() if count.n_predicted]
    if len(predicted) == 1 and never:
        lines.append(f"{predicted[0]} is predicted for every row.")
    elif never:
        more = [f"{len(never) - MAX_WORDS} more"] if len(never) > MAX_WORDS else []
        lines.append(f"Never predicted: {', '.join([*never[:MAX_WORDS], *more])}.")
    for n, label in sorted(zip(report.training_rows, report.classes, strict=False)):
        count = counts.get(label)
        if count is None or not count.n or n >= FEW_TRAINING_ROWS:
            continue
        if wilson(count.right, count.n).high < report.metrics["accuracy"]:
            lines.append(f"{shown(label)}: only {n:,} training rows, and a recall below the accuracy.")
    return lines
