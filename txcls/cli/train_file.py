"""`txcls train FILE`: train a classifier on the user's own table, with all settings chosen by `txcls.training.auto`."""

import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from rich.text import Text

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.comparison import Comparison, with_interval
from txcls.checkpoint.folders import checkpoint_name, checkpoint_root
from txcls.checkpoint.load import load_checkpoint
from txcls.cli.app_address import lines_on_the_app
from txcls.cli.output import console, note, print_rows
from txcls.data.columns import guess_columns
from txcls.data.near_copies import same_text_other_label
from txcls.data.tables.labelled import TableRows, labelled_rows, notes_before_training, read_labelled
from txcls.data.tables.table import Table
from txcls.data.types import LabelledTexts
from txcls.errors import ConfigError
from txcls.evaluation.baseline import fit_linear_baseline
from txcls.evaluation.intervals import wilson
from txcls.evaluation.linear import save_linear
from txcls.training.auto.plan import plan_training
from txcls.training.auto.run import TrainingResult, run_plan
from txcls.training.auto.split_rows import check_rows, split_rows
from txcls.training.display import TrainingDisplay
from txcls.training.run_folder import folder_to_resume, refuse_existing
from txcls.wording import Note, percentage, shown

FILE_ONLY = (
    *("test", "minutes", "text_column", "label_column", "sheet", "merge_labels", "model"),
    *("refit", "verbose"),
)
"""Options that apply only to training on a file."""
NOT_LINEAR = ("minutes", "init", "refit")
"""Options that do not apply to the linear model alone."""
PRESET_ONLY = ("data", "settings", "max_steps", "snapshots", "device", "resume")
"""Options that apply only to training a preset."""
MAX_WORDS = 20
"""Maximum number of words of the notes that are printed without --verbose."""


def train_file(
    file: Path,
    *,
    started: float,
    test: Path | None,
    minutes: float | None,
    text_column: str | None,
    label_column: str | None,
    sheet: str | None,
    merge: bool,
    out: Path | None,
    seed: int | None,
    init: str | None,
    overwrite: bool,
    is_linear: bool,
    refit: bool,
    verbose: bool,
) -> None:
    """Guess the columns, choose the settings, train, compare and save, and print what was done.

    The time budget begins at `started` (`time.monotonic`).
    """
    folder = out_folder(out, checkpoint_name(file.name), resume=False)
    if is_linear:
        folder = folder.with_name(f"{folder.name.removesuffix('.skops')}.skops")
    refuse_existing(folder, overwrite=overwrite)  # before minutes of reading
    try:
        start: Checkpoint | Literal["encoder"] = "encoder" if init is None else load_checkpoint(init)
        table = Table(file, sheet=sheet)
        guess = guess_columns(
            table.sample, file=table.name, text_column=text_column, label_column=label_column, sheet=sheet, merge=merge
        )
        rows = labelled_rows(table, guess)
        if guess.rests_on_contents:
            note(
                *_with_options(
                    [guess.label_reason, *(hint for hint in guess.hints if "label_column" in _options(hint))]
                )
            )
        classes = f"{len(rows.labelled.classes):,} class{'es' * (len(rows.labelled.classes) != 1)}"
        read = f"texts from '{shown(guess.text_column, limit=60)}', labels from '{shown(guess.label_column, limit=40)}'"
        note(f"{file.name}: {table.n_rows:,} rows, {read} ({classes})")
        notes = [*rows.notes, *notes_before_training(rows.labelled, merged=merge), *_conflicts(rows, table)]
        test_rows = None
        if test is not None:
            test_rows, test_notes = _read_test(test, rows)
            notes += test_notes
        if is_linear:
            _train_linear(rows.labelled, test_rows, folder, seed=seed or 0)
            _print_notes(notes, guess.sentences, verbose=verbose)
            return
        plan = plan_training(
            rows.labelled,
            test=test_rows,
            minutes=5.0 if minutes is None else minutes,
            seed=seed or 0,
            init=start,
            name=folder.name,
            source=file.name,
            data=rows.config.model_copy(update={"test_file": None if test is None else test.name}),
            started=started,
        )
    except KeyboardInterrupt:
        note("stopped by Ctrl-C while reading; nothing was written")
        sys.exit(130)
    *others, split = plan.splits.notes
    _print_notes([*notes, *others], guess.sentences, verbose=verbose)
    note(split, plan.sentence)
    words = [Path(word).name if word == str(file) else word for word in sys.argv[1:]]  # without a local path
    with TrainingDisplay(shown=verbose or sys.stderr.isatty()) as display:
        callbacks = display.callbacks if verbose else {"on_step": display.callbacks["on_step"]}
        card_command = f"python -m {shlex.join(['txcls', *words])}"
        result = run_plan(plan, out=folder, command=card_command, refit=refit, **callbacks)
    _print_result(result, folder, verbose=verbose)


def out_folder(out: Path | None, name: str, *, resume: bool) -> Path:
    """The checkpoint folder to write: the given one, or else that of the run to resume or the default for the name."""
    if out is not None:
        return out
    default = checkpoint_root() / name
    folder = folder_to_resume(default) if resume else default
    if folder != default:
        note(f"continuing the interrupted run in {folder}")
    return folder


def _options(message: str) -> dict[str, str | bool]:
    return message.options if isinstance(message, Note) else {}


def _with_options(messages: Iterable[str]) -> list[str]:
    """The messages, each with the options that act on it."""
    said = []
    for message in messages:
        options = (
            f"--{name.replace('_', '-')}" + (f" {shlex.quote(value)}" if isinstance(value, str) else "")
            for name, value in _options(message).items()
        )
        said.append(" ".join([message, *(f"({option})" for option in options)]))
    return said


def _print_notes(first: Iterable[str], then: Iterable[str], *, verbose: bool) -> None:
    """Print all notes or, without `verbose`, as many of the first ones as have MAX_WORDS in all."""
    messages, others = _with_options(first), _with_options(then)
    if verbose:
        note(*others, *messages)
        return
    left = MAX_WORDS
    for number, message in enumerate(messages):
        words = message.split()
        if left < 8:
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


def _read_test(file: Path, rows: TableRows) -> tuple[LabelledTexts, list[str]]:
    """The rows of the test file, from columns with the same names or, if there are none, guessed columns; and notes."""
    test, guess = read_labelled(file, rows.config)
    sentences = (*test.notes, *(guess.sentences if guess.is_guessed else guess.hints))
    return test.labelled, [f"{file.name}: {sentence}" for sentence in sentences]


def _train_linear(rows: LabelledTexts, test: LabelledTexts | None, file: Path, *, seed: int) -> None:
    """Fit the linear model to all rows except the test rows, save it, and print its accuracy and how to use it."""
    check_rows(rows)
    splits = split_rows(rows, test, seed=seed)
    note(splits.notes[-1])
    baseline = fit_linear_baseline(splits.fitted.texts, splits.fitted.labels, seed=seed)
    n_right = int((baseline.predict(splits.test.texts) == splits.test.labels).sum())
    save_linear(baseline, file, rows.classes)
    for line in (
        f"linear SVM, {baseline.settings}: {len(splits.fitted):,} rows fitted",
        f"accuracy {with_interval(wilson(n_right, len(splits.test)))} on {len(splits.test):,} test rows",
        f"saved {shown(str(file), limit=200)}; to use it in Python, with scikit-learn and skops:",
        f"  import skops.io; model = skops.io.load({str(file)!r}); print(model.predict(['your text']))",
    ):
        console().print(Text(line), soft_wrap=True)


def _print_result(result: TrainingResult, folder: Path, *, verbose: bool) -> None:
    out, comparison = console(), result.comparison
    print_comparison(comparison, verbose=verbose)
    minutes, seconds = divmod(round(result.seconds), 60)
    beside = ", with linear.skops beside it" if result.saves_linear else ""
    lines = [f"{minutes} min {seconds} s; saved {shown(str(folder), limit=200)}{beside}:"]
    option = " --model linear" if comparison.to_use == "linear" else ""
    lines.append(f"  python -m txcls predict {shlex.quote(str(folder))}{option} 'your text'")
    if verbose:
        lines = [f"{result.done}.", *lines, *lines_on_the_app(folder)]
    for line in lines:
        out.print(Text(line), soft_wrap=True)


def print_comparison(comparison: Comparison, *, verbose: bool) -> None:
    """Print which model to use, and the results of both and of the majority-class baseline.

    Without `verbose`, some intervals, the settings of the linear model and most remarks are left out.
    """
    verdict, table = f"{comparison.verdict} {comparison.settings}", comparison.table
    if not verbose:
        verdict = f"{comparison.verdict.split('. ')[0].removesuffix('.')}."
        rows = zip(table[:3], (comparison.majority, comparison.linear, comparison.transformer), strict=True)
        table = [(name, accuracy, percentage(measured.macro_f1.value)) for (name, accuracy, _), measured in rows]
        table[0] = (table[0][0], percentage(comparison.majority.accuracy.value), table[0][2])
    console().print(Text(shown(verdict, limit=2000)), soft_wrap=True)
    print_rows((f"{comparison.n:,} test rows", "accuracy (95 %)" if not verbose else "accuracy", "macro-F1"), table)


def refuse_other_options(options: Mapping[str, object], *, is_file: bool) -> None:
    """Refuse options that apply only to the other kind of training.

    Raises:
        ConfigError: such an option was given.
    """
    is_linear = is_file and options.get("model") == "linear"
    unsuitable = (*(PRESET_ONLY if is_file else FILE_ONLY), *(NOT_LINEAR if is_linear else ()))
    given = [name for name in unsuitable if options.get(name) not in (None, (), [], False)]
    if not given:
        return
    names = ", ".join("--set" if name == "settings" else "--" + name.replace("_", "-") for name in given)
    if is_linear:
        raise ConfigError(f"{names}: has no effect with --model linear; leave it out")
    if is_file:
        raise ConfigError(
            f"{names}: cannot be used with your own file, for which all settings are chosen automatically; use a "
            "preset instead: `python -m txcls train own --data FILE --init encoder`"
        )
    raise ConfigError(f"{names}: only with your own file, as in `python -m txcls train mine.csv`")
