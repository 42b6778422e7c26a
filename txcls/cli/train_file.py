"""`txcls train FILE`: train a classifier on the user's own table, with all settings chosen by `txcls.training.auto`."""

import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from rich.text import Text

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.comparison import Comparison
from txcls.checkpoint.load import load_checkpoint
from txcls.cli.import_model import lines_on_the_app
from txcls.cli.output import console, note, print_rows
from txcls.data.columns import guess_columns
from txcls.data.hashes import normalised
from txcls.data.splits import same_text_other_label
from txcls.data.tables.labelled import TableRows, labelled_rows, notes_before_training, read_labelled
from txcls.data.tables.table import Table
from txcls.training.auto.plan import plan_training
from txcls.training.auto.run import TrainingResult, run_plan
from txcls.training.display import TrainingDisplay
from txcls.wording import listed, percentage, quoted, shown

MAX_WORDS, RESULT_WORDS, REFIT_WORDS, MIN_LEFT = 150, 95, 13, 12
"""Without --verbose: the maximum number of words printed; the words kept for the result and for the line on training
again; and how many must be left for another note to be begun; a cut note still has its advice, which comes first."""

MANY_COPIES = 0.1
"""The number of copies is printed if they are more than this share of the rows."""


def train_file(
    file: Path,
    folder: Path,
    *,
    columns: Mapping[str, Any],
    test: Path | None,
    init: str | None,
    refit: bool,
    verbose: bool,
    **planning: Any,
) -> None:
    """Guess the columns, choose the settings, train, compare and save, and print what was done.

    `columns` are options of `guess_columns`, `planning` of `plan_training`.
    """
    try:
        start: Checkpoint | Literal["encoder"] = "encoder" if init is None else load_checkpoint(init)
        table = Table(file, sheet=columns["sheet"])
        guess = guess_columns(table.sample, file=table.name, **columns)
        rows = labelled_rows(table, guess)
        first: list[str] = []
        if guess.rests_on_contents:
            named = (hint for hint in guess.hints if "label_column" in getattr(hint, "options", {}))
            first += map(_with_options, (guess.label_reason, *named))
        n_classes = len(rows.labelled.classes)
        read = f"texts from '{shown(guess.text_column, limit=60)}', labels from {quoted(guess.label_column)}"
        n_copies = len(rows.labelled) - len(set(map(normalised, rows.labelled.texts)))
        copies = f" ({n_copies:,} of them copies)" if n_copies > MANY_COPIES * len(rows.labelled) else ""
        first.append(
            f"{file.name}: {table.n_rows:,} rows{copies}, {read} ({n_classes:,} class{'es' * (n_classes != 1)})"
        )
        note(*first)
        notes = [*rows.notes, *notes_before_training(rows.labelled, merged=columns["merge"]), *_conflicts(rows, table)]
        test_rows = None
        if test is not None:
            test_table, test_guess = read_labelled(test, rows.config)
            sentences = test_guess.sentences if test_guess.is_guessed else test_guess.hints
            test_rows = test_table.labelled
            notes += [f"{test.name}: {sentence}" for sentence in (*test_table.notes, *sentences)]
        plan = plan_training(
            rows.labelled,
            test=test_rows,
            init=start,
            name=folder.name,
            source=file.name,
            data=rows.config.model_copy(update={"test_file": None if test is None else test.name}),
            **planning,
        )
    except KeyboardInterrupt:
        note("stopped by Ctrl-C while reading; nothing was written")
        sys.exit(130)
    *others, split = plan.splits.notes
    n_words = len(" ".join([*first, split]).split()) + RESULT_WORDS + REFIT_WORDS * refit
    _print_notes([*notes, *others], guess.sentences, left=MAX_WORDS - n_words, verbose=verbose)
    note(split, *([plan.sentence] if verbose else []))
    words = [Path(word).name if word == str(file) else word for word in sys.argv[1:]]  # without a local path
    with TrainingDisplay(shown=verbose or sys.stderr.isatty()) as display:
        callbacks = display.callbacks if verbose else {"on_step": display.callbacks["on_step"]}
        card_command = f"python -m {shlex.join(['txcls', *words])}"
        result = run_plan(plan, out=folder, command=card_command, refit=refit, **callbacks)
    _print_result(result, folder, verbose=verbose)


def _with_options(message: str) -> str:
    """The message, with the options that act on it."""
    options = (
        f"(--{name.replace('_', '-')}{f' {shlex.quote(value)}' if isinstance(value, str) else ''})"
        for name, value in getattr(message, "options", {}).items()
    )
    return " ".join([message, *options])


def _print_notes(first: Iterable[str], then: Iterable[str], *, left: int, verbose: bool) -> None:
    """Print all notes or, without `verbose`, as many of the first ones as have `left` words in all."""
    messages = [*map(_with_options, first)]
    if verbose:
        note(*map(_with_options, then), *messages)
        return
    for number, message in enumerate(messages):
        words = message.split()
        if left < MIN_LEFT:
            note(f"{len(messages) - number} more with --verbose.")
            return
        note(message if len(words) <= left else " ".join([*words[:left], "…"]))
        left -= len(words)


def _conflicts(rows: TableRows, table: Table) -> Iterable[str]:
    if conflicts := same_text_other_label(rows.labelled):
        first = conflicts[0]
        numbers = ", ".join(f"{rows.numbers[row]:,}" for row in first[:10])
        more = f" and {len(first) - 10:,} more" if len(first) > 10 else ""
        yield f"Texts with different labels: {len(conflicts):,}; the first is in {table.unit}s {numbers}{more}."


def _print_result(result: TrainingResult, folder: Path, *, verbose: bool) -> None:
    print_comparison(result.comparison, verbose=verbose)
    minutes, seconds = divmod(round(result.seconds), 60)
    beside = ", with linear.skops beside it" if result.saves_linear else ""
    option = " --model linear" if result.comparison.to_use == "linear" else ""
    lines = [
        *_refit_line(result.checkpoint),
        f"{minutes} min {seconds} s; saved {shown(str(folder), limit=200)}{beside}:",
        f"  python -m txcls predict {shlex.quote(str(folder))}{option} 'your text'",
    ]
    if result.never_found:
        lines.insert(0, f"Never recognised among the test rows: {listed(result.never_found, limit=2)}.")
    for line in [f"{result.done}.", *lines, *lines_on_the_app(folder)] if verbose else lines:
        console().print(Text(line), soft_wrap=True)


def _refit_line(checkpoint: Checkpoint) -> Iterable[str]:
    if refit := checkpoint.metrics.get("refit"):
        again = f"on all {refit['rows']:,} rows ({refit['seconds']:.0f} s)"
        yield f"Then trained again {again}; the figures are from before."


def print_comparison(comparison: Comparison, *, verbose: bool) -> None:
    """Print which model to use, and the results of both and of the majority-class baseline.

    Without `verbose`, some intervals, the settings of the linear model and most remarks are left out.
    """
    verdict, table = f"{comparison.verdict} {comparison.settings}", comparison.table
    if not verbose:
        verdict = comparison.advice(brief=True)  # the table has intervals
        rows = zip(table[:3], (comparison.majority, comparison.linear, comparison.transformer), strict=True)
        table = [
            (name, accuracy.replace(" to ", "–"), percentage(measured.macro_f1.value))
            for (name, accuracy, _), measured in rows
        ]
        table[0] = (table[0][0], percentage(comparison.majority.accuracy.value), table[0][2])
    console().print(Text(shown(verdict, limit=2000)), soft_wrap=True)
    print_rows((f"{comparison.n:,} test rows", "accuracy (95 %)" if not verbose else "accuracy", "macro-F1"), table)
