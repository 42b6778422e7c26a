"""The sections of a report: built once, and rendered as HTML (`web/report.py`), as JSON, and for the terminal."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from txcls.checkpoint.card import WORD_ORDER_NOTE, WORD_ORDER_TESTS, reliability_rows
from txcls.checkpoint.comparison import Comparison
from txcls.data.splits import first_copies
from txcls.errors import quote
from txcls.evaluation.label_errors import DoubtfulLabels
from txcls.evaluation.linear import MAX_CHARACTERS, WORD
from txcls.evaluation.metrics import accuracy_cell, wilson
from txcls.evaluation.report import (
    Report,
    RowPrediction,
    RowPredictions,
    class_rows,
    classes_with_rows,
    group_accuracies,
    headline_metrics,
    majority_sentence,
    most_confused_pairs,
)
from txcls.text.formatting import percentage

NAMED = 3
"""Maximum number of classes, pairs or rows that a summary names."""
THRESHOLDS, THRESHOLD = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99), 0.9
"""Confidence thresholds, below which rows are left to a human, and the one that the summary states."""
LEVEL = 0.05
"""Maximum probability that a report names any word if the errors are random."""
MIN_ERRORS, MIN_ROWS = 5, 3
"""Minimum number of errors for words to be compared, and of rows with a word for it to be tested."""
MAX_CONFUSIONS, MAX_WORDS = 20, 5
"""Maximum number of confusions for which words are compared, and of words or classes that are named."""
Cell = str | int | float | None


@dataclass(frozen=True)
class Section:
    """One section of a report.

    Attributes:
        name: the section's key in the JSON object; HTML adds the chart of this name.
        summary: what a short report says instead of the section; "" if it leaves the section out.
        rows: the rows of a table with the headings `head`; a float is a share, and None is shown as a dash.
        notes: sentences below the table.
    """

    name: str
    title: str
    head: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    notes: Sequence[str] = ()
    summary: str = ""


def cell_as_text(cell: Cell) -> str:
    """A cell as HTML and the terminal show it."""
    if cell is None:
        return "–"
    return percentage(cell) if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell


def report_object(report: Report, sections: Sequence[Section]) -> dict[str, Any]:
    """The report as plain JSON values: the main metrics, and the rows and notes of every section."""
    main = ("n", "accuracy", "accuracy_with_unknown", "macro_f1", "ece", "log_loss")
    return {
        "checkpoint": report.name,
        "rows": report.rows_description,
        "warnings": list(report.warnings),
        **{name: report.metrics[name] for name in main if name in report.metrics},
        "sections": {
            section.name: {
                "rows": [dict(zip(section.head, row, strict=True)) for row in section.rows],
                "notes": list(section.notes),
            }
            for section in sections
        },
    }


def sections_of(report: Report, doubtful: DoubtfulLabels | None = None) -> list[Section]:
    """The sections of a report, with the rows whose labels are most doubtful, if given."""
    return [*_metric_sections(report), *_row_sections(report, doubtful)] if report.metrics else []


def _metric_sections(report: Report) -> Iterator[Section]:
    """Yield the sections that need only the metrics."""
    metrics = report.metrics
    headline = headline_metrics(metrics)
    majority = majority_sentence(report) if not report.comparison else None
    notes = [*([majority] if majority else []), *([scope] if (scope := _scope_sentence(report)) else [])]
    mean = f" (mean of {which})" if (which := classes_with_rows(metrics)) else ""
    accuracy = wilson(round(metrics["accuracy"] * metrics["n"]), metrics["n"])
    more = {"Accuracy": f" ({100 * accuracy.low:.1f} to {100 * accuracy.high:.1f}, 95 % interval)", "Macro-F1": mean}
    values = [f"{name[:1].lower()}{name[1:]} {value}{more.get(name, '')}" for name, value, _ in headline]
    yield Section("metrics", "Metrics", ("metric", "value", "meaning"), headline, notes, ", ".join(values))
    if report.comparison:
        comparison = Comparison.from_dict(report.comparison)
        yield Section(
            "comparison",
            "Transformer or linear model?",
            ("on the held-out rows", "accuracy", "macro-F1"),
            comparison.table,
            [comparison.verdict, comparison.settings],
            comparison.verdict,
        )
    if report.confusion is not None:
        pairs = most_confused_pairs(report.classes, report.confusion)
        named = [
            f"{quote(pair.first)} and {quote(pair.second)} ({pair.n:,} row{'s' * (pair.n > 1)})"
            for pair in pairs[:NAMED]
        ]
        yield Section(
            "confusion",
            "What is confused with what?",
            ("class", "other class", "class → other", "other → class", "share of both"),
            [(pair.first, pair.second, pair.first_as_second, pair.second_as_first, pair.share) for pair in pairs],
            class_advice(report),
            f"most confused: {', '.join(named)}" if named else "",
        )
    if classes := class_rows(report):
        imperfect = [row for row in classes if row.recall is not None and row.recall < 1]
        worst = sorted(imperfect, key=lambda row: row.recall or 0)[:NAMED]
        intervals = ", ".join(f"{quote(row.label)} {row.recall_cell}" for row in worst)
        yield Section(
            "classes",
            "Class by class",
            ("class", "rows", "recall (95 % CI)", "false positives", "precision", "recall", "F1"),
            classes,
            [
                "Recall: share of the class's rows that are predicted as this class. False positives: rows of other "
                "classes predicted as this class. Precision: share of the rows predicted as this class that are of it; "
                "– if there are none. F1: the harmonic mean of precision and recall; – for a class without rows."
            ],
            f"lowest recall (95 % interval): {intervals}" if intervals else "",
        )
    if metrics.get("reliability"):
        yield Section(
            "reliability",
            "Can its confidence be trusted?",
            ("confidence", "rows", "mean confidence", "accuracy"),
            reliability_rows(metrics["reliability"]),
            ["Where the accuracy is below the mean confidence, the classifier is overconfident."],
        )
    if groups := group_accuracies(report):
        groups_rows = [(name, n, accuracy_cell(accuracy, n)) for name, accuracy, n in groups]
        head, longest = ("tokens read", "rows", "accuracy"), report.max_length
        notes = [f"The Transformer reads the first {longest:,} tokens of a text."] if longest else []
        yield Section("by_length", "Accuracy by tokens read", head, groups_rows, notes)
    if order := metrics.get("order"):
        lines = [("as typed", metrics["accuracy"]), *((WORD_ORDER_TESTS[name], order[name]) for name in order)]
        yield Section("order", "Without word order", ("the text", "accuracy"), lines, [WORD_ORDER_NOTE])


def _scope_sentence(report: Report) -> str:
    if not (scope := report.metrics.get("scope")):
        return ""
    return (
        f"Out of scope: AUROC {scope['auroc']:.4f}, accuracy on all {scope['n_in'] + scope['n_out']:,} queries "
        f"{percentage(scope['accuracy'], 2)} ({percentage(scope['recall_out'], 2)} of the out-of-scope queries "
        f"recognised; {scope['accepted_out']:,} of {scope['n_out']:,} accepted, {scope['confident_out']:,} with a "
        "confidence above 90 %)."
    )


def _row_sections(report: Report, doubtful: DoubtfulLabels | None) -> Iterator[Section]:
    """Yield the sections that need the rows."""
    predictions = report.predictions
    if predictions is None:
        return
    if not predictions.right.all():
        yield _words_section(predictions)
    yield _thresholds_section(predictions)
    numbers = report.row_numbers

    def cells(row: RowPrediction, probability: float) -> tuple[Cell, ...]:
        own = (row.text, row.label, row.predicted, probability)
        return (numbers[row.row], *own) if numbers else own

    head = ("row",) if numbers else ()
    mistakes = predictions.mistakes()
    of_each_text = np.unique(first_copies([row.text for row in mistakes]))
    yield Section(
        "mistakes",
        "The most confident mistakes",
        (*head, "text", "label", "predicted", "probability"),
        [cells(mistakes[n], mistakes[n].probability) for n in of_each_text],
    )
    if doubtful is not None:
        counted = " (row 1 is the first in the file, usually the heading)"
        disputed = [row for row in doubtful.rows[:NAMED] if row.predicted != row.label]
        first = [f"{numbers[row.row]:,}" if numbers else quote(row.text) for row in disputed]
        yield Section(
            "doubtful",
            "Doubtful labels",
            (*head, "text", "label", "suggested", "probability of the label"),
            [cells(row, row.label_probability) for row in doubtful.rows],
            [str(doubtful)],
            f"labels to check first: {'rows ' * bool(numbers)}{', '.join(first)}{counted * bool(numbers)}"
            if first
            else "no label is doubted: the models that check predict all of them"
            if doubtful.rows
            else "no label is called doubtful: the models that check hardly beat guessing",
        )


def _words_section(predictions: RowPredictions) -> Section:
    def of(n: int, total: int) -> str:
        return f"{n:,} of {total:,} ({percentage(n / total)})"

    words, n_compared = confusion_words(predictions)
    rows = [
        (word.label, word.predicted, word.word, of(word.in_errors, word.errors), of(word.in_right, word.right))
        for word in words
    ]
    note = (
        f"{'Words' if words else 'No word'} significantly more frequent in these errors than in the label's correctly "
        "classified rows, both as a share of the texts and of all their words (one-sided Fisher exact test, 5 % level, "
        "Bonferroni correction for all words and confusions). Repeated texts count once."
    )
    if not n_compared:
        note = f"Each confusion has fewer than {MIN_ERRORS} errors in different texts, too few to compare words."
    head = ("label", "predicted", "word", "in these errors", "in correct rows of the label")
    return Section("words", "The words behind each confusion", head, rows, [note])


def _thresholds_section(predictions: RowPredictions) -> Section:
    rows = {}
    for threshold in THRESHOLDS:
        n, right = predictions.above(threshold)
        rows[threshold] = percentage(n / len(predictions)), accuracy_cell(right / max(n, 1), n)
    share, accuracy = rows[THRESHOLD]
    return Section(
        "thresholds",
        "What should be left to a human?",
        ("answer only above", "rows answered", "of these, correct"),
        [(percentage(threshold, 0), *cells) for threshold, cells in rows.items()],
        summary=f"above {percentage(THRESHOLD, 0)} confidence: {share} of the rows, {accuracy} of them right",
    )


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


def confusion_words(predictions: RowPredictions) -> tuple[list[ConfusionWord], int]:
    """Up to MAX_WORDS words per frequent confusion, and the number of confusions with enough errors.

    In confusions of at least MIN_ERRORS errors, each word of at least MIN_ROWS texts is tested (one-sided Fisher exact
    test), both as a share of the texts and of all their words: in longer texts, any word is in a larger share of the
    texts, and in shorter ones, a frequent word can be a larger share of the words. Bonferroni's correction is for all
    tests together. Repeated texts count once.
    """
    from scipy.stats import hypergeom

    texts, classes = predictions.rows.texts, predictions.rows.classes
    outcomes = list(zip(predictions.labels.tolist(), predictions.predicted.tolist(), strict=True))

    @cache
    def word_counts_of(outcome: tuple[int, int]) -> tuple[int, Counter[str]]:
        """The number of texts with this label and prediction, and how many of them contain each word."""
        rows = [text[:MAX_CHARACTERS].lower() for text, other in zip(texts, outcomes, strict=True) if other == outcome]
        distinct = np.unique(first_copies(rows))
        words = (word for row in distinct for word in set(re.findall(WORD, rows[row])) if any(map(str.isalnum, word)))
        return len(distinct), Counter(words)

    found: list[tuple[float, ConfusionWord]] = []
    confusions = Counter((a, b) for a, b in outcomes if a != b).most_common(MAX_CONFUSIONS)
    n_tests = n_compared = 0
    for (label, predicted), _ in confusions:
        (n_errors, errors), (n_right, right) = word_counts_of((label, predicted)), word_counts_of((label, label))
        if n_errors < MIN_ERRORS:
            continue
        n_compared += 1
        together = errors + right
        words = [word for word in sorted(together) if together[word] >= MIN_ROWS]
        in_errors, in_all = (np.array([counts[word] for word in words]) for counts in (errors, together))
        totals = ((n_errors + n_right, n_errors), (together.total(), errors.total()))  # of texts, of words
        p = np.max([hypergeom.sf(in_errors - 1, n, in_all, n_drawn) for n, n_drawn in totals], axis=0)
        n_tests += len(words)
        for k in np.argsort(p, kind="stable")[:MAX_WORDS]:
            counts = (errors[words[k]], n_errors, right[words[k]], n_right)
            found.append((float(p[k]), ConfusionWord(classes[label], classes[predicted], words[k], *counts)))
    return [word for p, word in found if p <= LEVEL / n_tests], n_compared


def class_advice(report: Report) -> list[str]:
    """Sentences about classes that are never predicted."""
    rows = class_rows(report)
    never = [quote(row.label) for row in rows if row.n and row.precision is None]
    predicted = [quote(row.label) for row in rows if row.precision is not None]
    if len(predicted) == 1 and never:
        return [f"{predicted[0]} is predicted for every row."]
    more = [f"{len(never) - MAX_WORDS} more"] if len(never) > MAX_WORDS else []
    return [f"Never predicted: {', '.join([*never[:MAX_WORDS], *more])}."] if never else []
