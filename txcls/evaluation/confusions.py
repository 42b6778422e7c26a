"""The words behind each confusion of a report, and what is notable about its classes."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from txcls.data.splits import first_copies
from txcls.evaluation.baseline import MAX_CHARACTERS, WORD
from txcls.evaluation.intervals import wilson
from txcls.evaluation.report import Report, RowPredictions, class_counts_of, most_confused_pairs
from txcls.wording import percentage, shown

LEVEL = 0.05
"""Maximum probability that a report names any word if the errors are random."""
MIN_ERRORS, MIN_SHARE_OF_CLASS = 5, 0.1
"""Minimum number of errors for words to be named; a pair of classes needs as many, and this share of the rows of each,
to be called confused in both directions."""
MIN_ROWS, MAX_WORDS = 3, 5
"""A word is tested if at least this many rows contain it; at most this many words are named per confusion."""
MAX_CONFUSIONS = 20
"""Maximum number of confusions for which words are compared."""
FEW_TRAINING_ROWS = 50
"""A class with fewer training rows and a low recall is named."""

WORDS_HEAD = ("label", "predicted", "word", "in these errors", "in correct rows of the label")


@dataclass(frozen=True, slots=True)
class ConfusionWord:
    """A word, and the numbers of errors and of correctly classified rows that contain it."""

    word: str
    errors: int
    right: int


@dataclass(frozen=True, slots=True)
class Confusion:
    """Rows of class `label` predicted as `predicted`: numbers of errors and of the class's correctly classified rows.

    A text is counted once. `words` are significantly more frequent in the errors, most significant first.
    """

    label: str
    predicted: str
    errors: int
    right: int
    words: Sequence[ConfusionWord] = ()


@lru_cache(maxsize=1)  # the command line and the HTML show the same report
def confusion_words(predictions: RowPredictions) -> tuple[Confusion, ...]:
    """The most frequent confusions, each with up to MAX_WORDS words that are more frequent in its errors.

    Words are those of the linear baseline that have letters or digits, in lower case and once per text. In confusions
    of at least MIN_ERRORS errors, each word of at least MIN_ROWS texts is tested (one-sided Fisher exact test), both as
    a share of the texts and of all their words: in longer texts, any word is in a larger share of the texts, and in
    shorter ones, a frequent word can be a larger share of the words. Bonferroni's correction is for all tests together.
    """
    from scipy.stats import hypergeom

    texts, classes = predictions.rows.texts, predictions.rows.classes
    outcomes = list(zip(predictions.labels.tolist(), predictions.predicted.tolist(), strict=True))

    def words_of(text: str) -> set[str]:
        return {word for word in re.findall(WORD, text) if any(map(str.isalnum, word))}

    @cache
    def texts_of(outcome: tuple[int, int]) -> tuple[int, Counter[str]]:
        """The number of texts with this label and prediction, and of those with each word."""
        rows = [text[:MAX_CHARACTERS].lower() for text, other in zip(texts, outcomes, strict=True) if other == outcome]
        distinct = np.unique(first_copies(rows))
        return len(distinct), Counter(word for row in distinct for word in words_of(rows[row]))

    confusions, n_tests = [], 0
    for (label, predicted), _ in Counter((a, b) for a, b in outcomes if a != b).most_common(MAX_CONFUSIONS):
        (n_errors, errors), (n_right, right) = texts_of((label, predicted)), texts_of((label, label))
        together = errors + right
        words = [word for word in sorted(together) if n_errors >= MIN_ERRORS and together[word] >= MIN_ROWS]
        in_errors, in_all = (np.array([counts[word] for word in words]) for counts in (errors, together))
        totals = ((n_errors + n_right, n_errors), (together.total(), errors.total()))  # of texts, of words
        p = np.max([hypergeom.sf(in_errors - 1, n, in_all, n_drawn) for n, n_drawn in totals], axis=0)
        best = [
            (p[k], ConfusionWord(words[k], errors[words[k]], right[words[k]]))
            for k in np.argsort(p, kind="stable")[:MAX_WORDS]
        ]
        confusions.append((Confusion(classes[label], classes[predicted], n_errors, n_right), best))
        n_tests += len(words)
    return tuple(
        replace(confusion, words=[word for p, word in best if p <= LEVEL / n_tests]) for confusion, best in confusions
    )


def words_table(predictions: RowPredictions) -> tuple[list[tuple[str, str, str, str, str]], str]:
    """The words of `confusion_words` as lines of a table with the columns WORDS_HEAD, and a caption."""
    confusions = confusion_words(predictions)
    lines = [
        (row.label, row.predicted, word.word, _of(word.errors, row.errors), _of(word.right, row.right))
        for row in confusions
        for word in row.words
    ]
    few = sum(confusion.errors < MIN_ERRORS for confusion in confusions)
    too_few = f"fewer than {MIN_ERRORS} errors, too few to compare words"
    if few == len(confusions):
        return lines, f"Each confusion has {too_few}."
    found = "Words that are significantly more frequent in these errors"
    if not lines:
        found = "No word is significantly more frequent in a confusion's errors"
    return lines, (
        f"{found} than in the label's correctly classified rows, both as a share of the texts and of all their words, "
        "so that the length of the texts does not matter (one-sided Fisher exact test, 5 % level, Bonferroni "
        "correction for all words and confusions). Repeated texts count once."
        + (f" Of the {len(confusions)} most frequent confusions, {few} had {too_few}." if few else "")
    )


def _of(n: int, total: int) -> str:
    return f"{n:,} of {total:,} ({percentage(n / total)})"


def _never_predicted(report: Report) -> list[str]:
    """A sentence about the classes that have rows but are never predicted."""
    counts = class_counts_of(report).values()
    never = [f"'{shown(count.label)}'" for count in counts if count.n and not count.n_predicted]
    always = [f"'{shown(count.label)}'" for count in counts if count.n_predicted]
    if len(always) == 1 and never:
        return [f"{always[0]} is predicted for every row."]
    named = never if len(never) <= MAX_WORDS else [*never[:MAX_WORDS], f"{len(never) - MAX_WORDS} more"]
    return [f"Never predicted: {', '.join(named)}."] if never else []


def class_advice(report: Report) -> list[str]:
    """Sentences about classes never predicted, pairs confused in both directions, and classes with few rows."""
    counts, confusion = class_counts_of(report), report.confusion
    lines = _never_predicted(report)
    # Two classes cannot be merged, and all errors are between them.
    has_others = sum(count.n > 0 for count in counts.values()) > 2
    for pair in most_confused_pairs(report.classes, confusion) if confusion is not None and has_others else ():
        directions = ((pair.first, pair.first_as_second), (pair.second, pair.second_as_first))
        if all(n >= max(MIN_ERRORS, MIN_SHARE_OF_CLASS * counts[label].n) for label, n in directions):
            rows = f"{pair.first_as_second:,} and {pair.second_as_first:,} rows"
            lines.append(f"'{shown(pair.first)}' and '{shown(pair.second)}' are confused in both directions ({rows}).")
    for n, label in sorted(zip(report.training_rows, report.classes, strict=False)):
        count = counts.get(label)
        if count is None or not count.n or n >= FEW_TRAINING_ROWS:
            continue
        if wilson(count.right, count.n).high < report.metrics["accuracy"]:
            lines.append(f"{shown(label)}: only {n:,} training rows, and a recall below the accuracy.")
    return lines
