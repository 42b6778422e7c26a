"""`txcls evaluate` and `txcls calibrate`."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.cli.options import (
    CheckpointArgument,
    DataOption,
    DeviceOption,
    JsonOption,
    LabelColumnOption,
    ModelOption,
    TextColumnOption,
    UsualSheetOption,
    VerboseOption,
    WriteOption,
    joined_columns,
)
from txcls.cli.output import console, note, print_json, print_rows, rows_progress
from txcls.data.datasets import open_dataset
from txcls.data.tables.table import has_table_suffix
from txcls.errors import DataError
from txcls.evaluation import evaluate as measuring
from txcls.evaluation import fit_calibration
from txcls.evaluation.evaluate_file import FileRows, far_below, rows_of_file, which_file
from txcls.evaluation.linear import advice_on_model, linear_of
from txcls.evaluation.report import Report, report_on, stored_report
from txcls.evaluation.sections import Section, cell_as_text, sections_of
from txcls.inference.predictor import Predictor
from txcls.wording import shown

LISTED = 20
"""Maximum number of rows of each table of a report."""


def evaluate(
    checkpoint: CheckpointArgument,
    data: DataOption = None,
    text_column: TextColumnOption = None,
    label_column: LabelColumnOption = None,
    sheet: UsualSheetOption = None,
    split: Annotated[
        str, typer.Option("--split", metavar="SPLIT", help="test, validation, or new if the data set has this split.")
    ] = "test",
    model: ModelOption = "transformer",
    write: WriteOption = False,
    device: DeviceOption = None,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a checkpoint on the test (or other) rows of its data set, or on all rows of your own file.

    Of the file that it was trained on, only the rows held out from training are used.
    """
    loaded = load_checkpoint(checkpoint)
    linear = linear_of(loaded) if model == "linear" else None
    is_own = loaded.config.data.dataset == "table"
    if data is None and is_own:
        raise which_file(loaded)
    if write and linear is not None:
        raise DataError("--write: the checkpoint's metrics are those of the Transformer; leave out --model linear")
    named = {"text_column": joined_columns(text_column), "label_column": label_column, "sheet": sheet}
    is_linear = linear is not None
    if not is_linear:
        note(*advice_on_model(loaded))
    rows = None if split != "test" else read_file_rows(loaded, named, data, is_linear=is_linear, verbose=verbose)
    if rows is not None and write and is_own and "comparison" in loaded.metrics:
        raise DataError("--write: would replace the metrics of the rows held out from training; leave it out")
    if linear is not None:
        if rows is None and split != "test":
            raise DataError(f"got --split {split}; the linear model is only for test rows or your own file")
        labelled = open_dataset(loaded.config.data, path=data).load("test") if rows is None else rows.labelled
        result = replace(report_on(Predictor(loaded), labelled, rows_description="", linear=linear), predictions=None)
    else:
        with rows_progress() as bar:
            task = bar.add_task("measuring", total=None)

            def show(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            if rows is not None:
                evaluation = measuring.evaluate_rows(loaded, rows.labelled, device=device, on_rows=show)
            else:
                evaluation = measuring.evaluate(loaded, split=split, data_path=data, device=device, on_rows=show)
        if write:
            save_checkpoint(measuring.with_evaluation(loaded, split=split, evaluation=evaluation))
        scope = {} if evaluation.scope is None else {"scope": dict(evaluation.scope)}
        metrics = {**evaluation.to_dict(), **scope}
        result = replace(stored_report(loaded), metrics=metrics, comparison=None, history=())
    result = replace(result, rows_description=f"{result.metrics['n']:,} {split} rows")
    if rows is not None:
        result = about_file(loaded, result, rows, is_linear=is_linear)
    if as_json:
        where = split if rows is None or data is None else data.name
        warnings = {"warnings": result.warnings} if result.warnings else {}
        print_json({"checkpoint": result.name, "split": where, **result.metrics, **warnings})
    else:
        print_sections(result, sections_of(result), verbose=verbose)


def print_sections(report: Report, sections: Sequence[Section], *, verbose: bool) -> None:
    """Print a report: the summary of each section or, with `verbose`, its table and notes."""
    out = console()
    out.print(Text(f"{report.name}: {shown(report.rows_description)}", style="bold"))
    summaries = [section.summary for section in sections if section.summary and not verbose]
    for line in (*report.warnings, *(f"{summary[:1].upper()}{summary[1:]}" for summary in summaries)):
        out.print(Text(shown(line, limit=2000)), soft_wrap=True)
    for section in sections if verbose else ():
        rows = [[cell_as_text(cell) for cell in row] for row in section.rows[:LISTED]]
        n = len(section.rows)
        title = section.title if n <= LISTED else f"{section.title} (the first {LISTED} of {n:,}; --json has all)"
        print_rows(section.head, rows, title=title, limit=100)
        for line in section.notes:
            out.print(Text(shown(line, limit=2000)), soft_wrap=True)


def about_file(checkpoint: Checkpoint, report: Report, rows: FileRows, *, is_linear: bool) -> Report:
    """A report on rows of the user's own file, with what is to be said about these rows."""
    metrics = report.metrics
    right = round(metrics["accuracy"] * metrics["n"])
    warning = "" if rows.is_held_out else far_below(checkpoint, right, metrics["n"], is_linear=is_linear)
    return replace(
        report,
        rows_description=rows.about,
        metrics={**metrics, **rows.metrics(metrics["accuracy"])},
        warnings=[*rows.remarks, *([warning] if warning else [])],
    )


def read_file_rows(
    loaded: Checkpoint, named: Mapping[str, str | None], data: Path | None, *, is_linear: bool, verbose: bool
) -> FileRows | None:
    """The rows of the user's own file, read from the named columns and sheet; None for data in the published format."""
    if data is None or not (data.is_file() and has_table_suffix(data.name)):
        return None
    in_published_format = ""
    if loaded.config.data.dataset != "table" and not any(named.values()):
        try:
            open_dataset(loaded.config.data, path=data).load("test")
        except DataError as error:  # not in the published format, so possibly the user's own table
            in_published_format = f". In the published format of {loaded.config.data.dataset}: {error}"
        else:
            return None
    try:
        rows = rows_of_file(loaded, data, is_linear=is_linear, **named)
    except DataError as error:
        raise DataError(f"{error}{in_published_format}", **error.options) from None
    if verbose:
        note(f"read {shown(data.name)}", *rows.notes)
    return rows


def calibrate(checkpoint: CheckpointArgument, data: DataOption = None, device: DeviceOption = None) -> None:
    """Refit a checkpoint's calibration on its data set's validation rows; the ranking of classes does not change."""
    loaded = load_checkpoint(checkpoint)
    calibrated = fit_calibration.calibrate(loaded, data_path=data, device=device)
    save_checkpoint(calibrated)
    metrics, calibration = calibrated.metrics["validation"], calibrated.calibration
    note(
        f"saved {calibrated.path}: temperature {calibration.temperature:.4f}, power {calibration.power:.4f}, "
        f"calibration error {metrics['ece']:.4f} and log loss {metrics['log_loss']:.4f} on {metrics['n']:,} validation "
        f"rows; measure it on test rows with `txcls evaluate {shlex.quote(checkpoint)} --write`"
    )
