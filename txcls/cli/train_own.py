"""`txcls train FILE`: a classifier of one's own from a table, with nothing to choose."""

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from rich.table import Table
from rich.text import Text

from txcls.checkpoint.checkpoint import Checkpoint, load_checkpoint
from txcls.checkpoint.comparison import Comparison
from txcls.checkpoint.files import checkpoint_root
from txcls.cli.output import console, note
from txcls.data.columns import Guess, guess_columns
from txcls.data.tables.labelled import labelled_rows, read_labelled
from txcls.data.tables.table import is_table, open_table
from txcls.data.types import LabelledTexts
from txcls.errors import ConfigError, TrainingError, TxclsError, shown
from txcls.training.auto import OwnPlan, OwnResult, plan_own, resumed_plan, train_own
from txcls.training.auto.display import OwnDisplay
from txcls.training.auto.plan import checkpoint_name
from txcls.training.run_folder import refuse_saved_state

OWN_ONLY = ("test", "minutes", "text_column", "label_column")
"""Options that only training on a file has."""
PRESET_ONLY = ("data", "settings", "max_steps", "snapshots", "device")
"""Options that only training a preset has."""


def train_file(
    file: Path,
    *,
    test: Path | None,
    minutes: float | None,
    text_column: str | None,
    label_column: str | None,
    out: Path | None,
    seed: int | None,
    init: str | None,
    resume: bool,
    overwrite: bool,
) -> None:
    """Guess, choose, train, compare, save, and say all of it."""
    with _stops_while("reading; nothing was written"):
        folder = out or checkpoint_root() / checkpoint_name(file.name)
        _refuse_existing(folder, resume=resume, overwrite=overwrite)
        columns = text_column, label_column
        plan = _planned(file, test, columns, folder.name, minutes=minutes, seed=seed, init=init)
        if resume:
            plan = resumed_plan(plan, folder)
    for sentence in plan.notes:
        note(sentence)
    words = [Path(one).name if one == str(file) else one for one in sys.argv[1:]]  # without this machine's path
    with OwnDisplay(shown=True) as display:
        result = train_own(
            plan,
            out=folder,
            resume=resume,
            overwrite=overwrite,
            command=f"python -m {shlex.join(['txcls', *words])}",
            **display.callbacks,
        )
    _print_result(result, folder)


def _planned(
    file: Path,
    test: Path | None,
    columns: tuple[str | None, str | None],
    name: str,
    *,
    minutes: float | None,
    seed: int | None,
    init: str | None,
) -> OwnPlan:
    """What is guessed and chosen, said as it is known."""
    start: Checkpoint | Literal["encoder"] = "encoder" if init is None else load_checkpoint(init)
    rows, guess = _read(file, text_column=columns[0], label_column=columns[1])
    tests = None if test is None else _read_test(test, guess)
    note("measuring how fast this machine trains")
    return plan_own(
        rows,
        test=tests,
        minutes=5.0 if minutes is None else minutes,
        seed=seed or 0,
        init=start,
        name=name,
        source=file.name,
        columns=(guess.text_column, guess.label_column),
    )


def _refuse_existing(folder: Path, *, resume: bool, overwrite: bool) -> None:
    if folder.exists() and not overwrite:
        raise TrainingError(
            f"{folder} already exists; choose another folder with --out DIR, or replace it with --overwrite"
        )
    refuse_saved_state(folder, resume=resume, overwrite=overwrite)  # before minutes of reading, not after


def _read(file: Path, *, text_column: str | None, label_column: str | None) -> tuple[LabelledTexts, Guess]:
    table = open_table(file)
    guess = guess_columns(table.sample, file=table.name, text_column=text_column, label_column=label_column)
    rows = labelled_rows(table, text_column=guess.text_column, label_column=guess.label_column)
    note(f"{file.name}: {table.n_rows:,} rows, {len(table.columns)} columns, {len(rows.labelled.classes):,} classes")
    for sentence in (*guess.sentences, *rows.notes):
        note(sentence)
    return rows.labelled, guess


def _read_test(file: Path, guess: Guess) -> LabelledTexts:
    """The rows of the test file: its columns of the same names where it has them, else guessed."""
    rows, found = read_labelled(file, text_column=guess.text_column, label_column=guess.label_column)
    for sentence in (*rows.notes, *(found.sentences if found.guessed else found.hints)):
        note(f"{file.name}: {sentence}")
    return rows.labelled


@contextmanager
def _stops_while(doing: str) -> Iterator[None]:
    """On Ctrl-C inside the block, end with a sentence that says what was being done."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"stopped by Ctrl-C while {doing}")
        sys.exit(130)


def _print_result(result: OwnResult, folder: Path) -> None:
    out = console()
    out.print(comparison_table(result.comparison))
    out.print(Text(shown(result.comparison.verdict, limit=500)))
    minutes, seconds = divmod(round(result.seconds), 60)
    out.print(f"took {minutes} min {seconds} s" + (", ended early as asked" if result.stopped_early else ""))
    out.print(Text(f"saved {shown(str(folder), limit=200)}"))
    out.print("open it in the app:")
    out.print(Text("  " + _open_command(folder)), soft_wrap=True)
    out.print("or ask it here:")
    out.print(
        Text(f"  python -m txcls predict {shlex.quote(str(folder))} {shlex.quote('a text of yours')}"), soft_wrap=True
    )


def _open_command(folder: Path) -> str:
    """The command that opens the app on a checkpoint, wherever it lies."""
    root = folder.resolve().parent
    where = "" if root == checkpoint_root().resolve() else f"TXCLS_CHECKPOINTS={shlex.quote(str(folder.parent))} "
    return f"{where}streamlit run streamlit_app.py   # then open /?checkpoint={quote(folder.name)}, or choose it there"


def comparison_table(comparison: Comparison) -> Any:
    """A table with a row for each: majority guess, linear baseline, Transformer, and the difference of the last two."""
    table = Table(title=f"{comparison.n:,} test rows, with 95 % intervals")
    table.add_column("")
    for heading in ("accuracy", "macro-F1"):
        table.add_column(heading, justify="right")
    *players, difference = comparison.table
    for row in players:
        table.add_row(*row)
    table.add_section()
    table.add_row(*difference)
    return table


def refuse_mixed(options: Mapping[str, object], *, is_file: bool) -> None:
    """Refuse options that belong to the other kind of training.

    Raises:
        ConfigError: one was given.
    """
    wrong = PRESET_ONLY if is_file else OWN_ONLY
    given = [name for name in wrong if options.get(name) not in (None, [])]
    if not given:
        return
    names = ", ".join("--set" if name == "settings" else "--" + name.replace("_", "-") for name in given)
    if is_file:
        raise ConfigError(
            f"{names}: not with a file of your own, for which everything is chosen; use a preset for that: "
            "`python -m txcls train own --data FILE --init encoder`"
        )
    raise ConfigError(f"{names}: only with a file of your own, as in `python -m txcls train mine.csv`")


def hint_at_own_file(error: TxclsError, data: Path) -> TxclsError:
    """The error of a preset that could not read this file, with the command that trains on it."""
    if not is_table(data.name):
        return error
    return type(error)(f"{error}. To train on your own file: `python -m txcls train {shlex.quote(str(data))}`")
