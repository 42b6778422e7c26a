"""`txcls train FILE`: train a classifier on the user's own table, with all settings chosen by `txcls.training.auto`."""

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from rich.text import Text

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.comparison import Comparison, with_interval
from txcls.checkpoint.folders import checkpoint_name, checkpoint_root
from txcls.checkpoint.load import load_checkpoint
from txcls.cli.app_address import lines_on_the_app
from txcls.cli.output import command, console, note, print_rows
from txcls.data.columns import Guess, text_columns
from txcls.data.near_copies import same_text_other_label
from txcls.data.tables.labelled import guess_table, labelled_rows, notes_before_training, read_labelled
from txcls.data.tables.table import Table, has_table_suffix
from txcls.data.types import LabelledTexts
from txcls.errors import ConfigError
from txcls.evaluation.baseline import fit_linear_baseline
from txcls.evaluation.intervals import wilson
from txcls.evaluation.learning_curve import CURVE_HEAD
from txcls.evaluation.linear import save_linear
from txcls.evaluation.report import classes_with_rows
from txcls.training.auto.plan import TrainingPlan, plan_training
from txcls.training.auto.run import TrainingResult, run_plan
from txcls.training.auto.split_rows import check_rows, split_rows
from txcls.training.display import TrainingDisplay
from txcls.training.run_folder import folder_to_resume, refuse_existing, refuse_saved_state
from txcls.wording import shown

FILE_ONLY = (
    *("test", "minutes", "text_column", "label_column", "sheet", "merge_labels", "strip_headers", "code_book"),
    *("learning_curve", "model"),
)
"""Options that apply only to training on a file."""
NOT_LINEAR = ("minutes", "init", "resume", "learning_curve")
"""Options that do not apply to the linear baseline."""
PRESET_ONLY = ("data", "settings", "max_steps", "snapshots", "device")
"""Options that apply only to training a preset."""


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
    strip_headers: bool,
    code_book: str | None,
    out: Path | None,
    seed: int | None,
    init: str | None,
    resume: bool,
    overwrite: bool,
    learning_curve: bool,
    is_linear: bool,
) -> None:
    """Guess the columns, choose the settings, train, compare and save, and print a note on each choice.

    The time budget begins at `started` (`time.monotonic`).
    """
    folder = out_folder(out, checkpoint_name(file.name), resume=resume)
    if is_linear:
        folder = folder.with_name(f"{folder.name.removesuffix('.skops')}.skops")
    refuse_existing(folder, overwrite=overwrite)
    refuse_saved_state(folder, resume=resume, overwrite=overwrite)  # before minutes of reading
    try:
        start: Checkpoint | Literal["encoder"] = "encoder" if init is None else load_checkpoint(init)
        table = Table(file, sheet=sheet)
        guess = guess_table(
            table,
            text_column=text_column,
            label_column=label_column,
            strip_headers=strip_headers,
            merge_labels=merge,
            code_book=code_book,
        )
        rows = _read(table, guess)
        test_rows = None if test is None else _read_test(test, guess)
        if is_linear:
            joined = text_columns(guess.text_column, table.columns)
            _train_linear(rows, test_rows, folder, joined=joined, seed=seed or 0)
            return
        if not resume:
            note("counting tokens and measuring how fast this machine trains: a few seconds, more on a busy machine")
        plan: TrainingPlan = plan_training(
            rows,
            test=test_rows,
            minutes=5.0 if minutes is None else minutes,
            seed=seed or 0,
            init=start,
            name=folder.name,
            source=file.name,
            data=guess.config.model_copy(update={"test_file": None if test is None else test.name}),
            started=started,
            resume=folder if resume else None,
        )
    except KeyboardInterrupt:
        note("stopped by Ctrl-C while reading; nothing was written")
        sys.exit(130)
    note(*plan.notes)
    words = [Path(word).name if word == str(file) else word for word in sys.argv[1:]]  # without a local path
    with TrainingDisplay(shown=True) as display:
        result = run_plan(
            plan,
            out=folder,
            resume=resume,
            overwrite=overwrite,
            learning_curve=learning_curve,
            command=f"python -m {shlex.join(['txcls', *words])}",
            **display.plan_callbacks,
        )
    if learning_curve and result.curve is None:
        note("too few rows for a learning curve")
    where = {"out": folder} if resume else {}
    longer_command = ""
    if result.longer is not None:
        longer_command = command(**where, resume=False, minutes=result.longer.minutes, overwrite=True)
    linear_command = command_for_linear(sys.argv[1:], **where)
    _print_result(result, folder, linear_command=linear_command, longer_command=longer_command)


def command_for_linear(given: Iterable[str], **options: object) -> str:
    """The command that saves the linear baseline of a run, which was started with the words `given`."""
    left_out = {"resume": False, "overwrite": False, "learning_curve": False, "minutes": None, "init": None}
    return command(given, **left_out, **options, model="linear")


def command_for_linear_of(checkpoint: Checkpoint, data: Path | None, named: Mapping[str, str | None]) -> str:
    """The command that saves the linear baseline of the run that made a checkpoint, on the file where it is now.

    `named` are the columns and the sheet with which the file was read now, if given.
    """
    words: list[str] = []
    with suppress(ValueError):  # unbalanced quotes
        words = shlex.split(str(checkpoint.metrics.get("training", {}).get("command", "")))[3:]
    config = checkpoint.config
    options: dict[str, object] = {name: value for name, value in named.items() if value}
    is_own = config.data.dataset == "table"
    if words[:1] != ["train"] or not any(map(has_table_suffix, words[1:2])):
        words = ["train", "FILE"]
        if is_own:  # trained from Python, or by an earlier version of the app
            names = ("text_column", "label_column", "sheet", "merge_labels", "strip_headers", "code_book")
            options = {name: getattr(config.data, name) for name in names} | options
            options |= {"test": config.data.test_file, "seed": config.train.seed or None}
    if is_own and data is not None:
        words[1] = str(data)
    return command_for_linear(words, **options)


def out_folder(out: Path | None, name: str, *, resume: bool) -> Path:
    """The checkpoint folder to write: the given one, or else that of the run to resume or the default for the name."""
    if out is not None:
        return out
    default = checkpoint_root() / name
    folder = folder_to_resume(default) if resume else default
    if folder != default:
        note(f"continuing the interrupted run in {folder}")
    return folder


def _train_linear(
    rows: LabelledTexts, test: LabelledTexts | None, file: Path, *, joined: Sequence[str], seed: int
) -> None:
    """Fit the linear baseline to all rows except the test rows, save it, and print its accuracy and how to use it.

    The texts are those of the columns `joined`.
    """
    check_rows(rows)
    splits = split_rows(rows, test, seed=seed)
    note(*splits.notes, "fitting the linear model")
    fitted_rows = splits.fitted
    baseline = fit_linear_baseline(fitted_rows.texts, fitted_rows.labels, seed=seed)
    n_right = int((baseline.predict(splits.test.texts) == splits.test.labels).sum())
    save_linear(baseline, file, rows.classes)
    columns = " and ".join(map(repr, joined))
    for line in (
        f"linear SVM, {baseline.settings}: {len(fitted_rows):,} rows fitted",
        f"accuracy {with_interval(wilson(n_right, len(splits.test)))} on {len(splits.test):,} test rows",
        f"saved {shown(str(file), limit=200)}; to use it in Python, with scikit-learn and skops:",
        f"  import skops.io; model = skops.io.load({str(file)!r})",
        "  print(model.predict(['your text']))",
        *([f"a text is the cells of {columns}, joined by line breaks"] if len(joined) > 1 else []),
    ):
        console().print(Text(line), soft_wrap=True)


def _read(table: Table, guess: Guess) -> LabelledTexts:
    rows = labelled_rows(table, guess)
    note(f"{table.name}: {table.n_rows:,} rows, {len(table.columns)} columns, {len(rows.labelled.classes):,} classes")
    note(*guess.sentences, *rows.notes, *notes_before_training(rows.labelled, merged=guess.merge_labels))
    if conflicts := same_text_other_label(rows.labelled):
        first = conflicts[0]
        numbers = ", ".join(f"{rows.numbers[row]:,}" for row in first[:10])
        more = f" and {len(first) - 10:,} more" if len(first) > 10 else ""
        note(
            f"Texts with different labels: {len(conflicts):,}. At most one label of each can be right; the first is in "
            f"{table.unit}s {numbers}{more}."
        )
    return rows.labelled


def _read_test(file: Path, guess: Guess) -> LabelledTexts:
    """The rows of the test file, from columns with the same names or, if there are none, guessed columns."""
    rows, test_guess = read_labelled(file, guess.config)
    sentences = (*rows.notes, *(test_guess.sentences if test_guess.is_guessed else test_guess.hints))
    note(*(f"{file.name}: {sentence}" for sentence in sentences))
    return rows.labelled


def _print_result(result: TrainingResult, folder: Path, *, linear_command: str, longer_command: str) -> None:
    out = console()
    tested = classes_with_rows(result.checkpoint.metrics["test"])
    print_comparison(result.comparison, tested=tested, linear_command=linear_command)
    if result.longer is not None:
        minutes, missed = result.longer.minutes, result.longer.missed
        needed = f"At the speed of this run, {missed} take about {minutes} minute{'s' * (minutes != 1)}:"
        out.print(Text(f"{result.longer.reason} {needed} {longer_command}"), soft_wrap=True)
    if result.curve is not None:
        points = [point.cells for point in result.curve.points]
        print_rows(CURVE_HEAD, points, title=f"linear baseline, {result.curve.n_test:,} test rows")
        out.print(Text(result.curve.verdict))
    minutes, seconds = divmod(round(result.seconds), 60)
    out.print(f"took {minutes} min {seconds} s. {result.done}")
    for line in (
        f"saved {shown(str(folder), limit=200)}",
        *lines_on_the_app(folder),
        "to classify a text here:",
        f"  python -m txcls predict {shlex.quote(str(folder))} 'your text'",
    ):
        out.print(Text(line), soft_wrap=True)


def print_comparison(comparison: Comparison, *, tested: str = "", linear_command: str) -> None:
    """Print the results of the majority-class baseline, the linear baseline and the Transformer, and a verdict.

    `tested` are the classes over which macro-F1 is the mean, if they are not all (`classes_with_rows`).
    If the linear baseline is better in accuracy or macro-F1, `linear_command` is named, which saves it.
    """
    title = f"{comparison.n:,} test rows, with 95 % confidence intervals"
    print_rows(("", "accuracy", "macro-F1"), comparison.table, title=title)
    if tested:
        console().print(f"Macro-F1: mean F1 of {tested}.")
    console().print(Text(shown(f"{comparison.verdict} {comparison.settings}", limit=2000)))
    if comparison.linear_is_better_in_one and comparison.baseline is not None:
        console().print(Text(f"To save the linear baseline for scikit-learn: {linear_command}"), soft_wrap=True)


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
