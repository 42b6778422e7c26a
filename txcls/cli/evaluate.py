"""`txcls evaluate` and `txcls report`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.cli.shared import (
    CheckpointArgument,
    DataOption,
    DeviceOption,
    JsonOption,
    LabelColumnOption,
    ModelOption,
    SheetOption,
    TextColumnOption,
    VerboseOption,
    WriteOption,
    console,
    join_columns,
    note,
    print_json,
    print_rows,
    rows_progress,
)
from txcls.data.datasets import open_dataset
from txcls.data.hashes import MIN_KNOWN
from txcls.data.table import has_table_suffix
from txcls.errors import DataError, sanitize
from txcls.evaluation import evaluate as measuring
from txcls.evaluation.evaluate_file import FileRows, far_below, missing_file_error, rows_of_file
from txcls.evaluation.label_errors import doubtful_labels
from txcls.evaluation.linear import model_to_use
from txcls.evaluation.predict_logits import in_classes_of
from txcls.evaluation.report import Report, report_on, sample_indices, stored_report
from txcls.evaluation.sections import Section, cell_as_text, report_object, sections_of
from txcls.inference.predictor import Predictor

LISTED = 20
"""Maximum number of rows of each table of a report."""


def evaluate(
    checkpoint: CheckpointArgument,
    data: DataOption = None,
    text_column: TextColumnOption = None,
    label_column: LabelColumnOption = None,
    sheet: SheetOption = None,
    split: Annotated[
        str, typer.Option("--split", metavar="SPLIT", help="test, validation, or new if the data set has this split.")
    ] = "test",
    model: ModelOption = None,
    write: WriteOption = False,
    device: DeviceOption = None,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a checkpoint on the test (or other) rows of its data set, or on all rows of your own file.

    If it is the file that the checkpoint was trained on, only the rows held out from training are used.
    """
    loaded = load_checkpoint(checkpoint)
    if write or split != "test":
        if model == "linear":
            raise DataError("--write and --split are for the Transformer; leave out --model linear")
        model = "transformer"
    linear, reason = model_to_use(loaded, model)
    named = {"text_column": join_columns(text_column), "label_column": label_column, "sheet": sheet}
    is_linear = linear is not None
    rows = None if split != "test" else read_file_rows(loaded, named, data, is_linear=is_linear, verbose=verbose)
    note(reason)
    if rows is not None and write and "comparison" in loaded.metrics and loaded.config.data.dataset == "table":
        raise DataError("--write: would replace the metrics of the rows held out from training; leave it out")
    if linear is not None:
        labelled = open_dataset(loaded.config.data, path=data).load("test") if rows is None else rows.labelled
        result = replace(report_on(Predictor(loaded), labelled, rows_description="", linear=linear), predictions=None)
    else:
        with rows_progress() as bar:
            task = bar.add_task("measuring", total=None)

            def show(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            if rows is not None:
                options: dict[str, Any] = {"measure_without_order": write, "device": device, "on_rows": show}
                evaluation = measuring.evaluate_rows(loaded, rows.labelled, **options)
            else:
                evaluation = measuring.evaluate(loaded, split=split, data_path=data, device=device, on_rows=show)
        if write:
            save_checkpoint(measuring.with_evaluation(loaded, split=split, evaluation=evaluation))
        scope = {} if evaluation.scope is None else {"scope": dict(evaluation.scope)}
        metrics = {**evaluation.to_dict(), **scope}
        result = replace(stored_report(loaded), metrics=metrics, comparison=None)
    result = replace(result, rows_description=f"{result.metrics['n']:,} {split} rows")
    if rows is not None:
        result = with_file_remarks(loaded, result, rows, is_linear=is_linear)
    if as_json:
        where = split if rows is None or data is None else data.name
        warnings = {"warnings": result.warnings} if result.warnings else {}
        print_json({"checkpoint": result.name, "split": where, **result.metrics, **warnings})
    else:
        print_sections(result, sections_of(result), verbose=verbose)


def report(
    checkpoint: CheckpointArgument,
    data: DataOption = None,
    text_column: TextColumnOption = None,
    label_column: LabelColumnOption = None,
    sheet: SheetOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Also write the report as an HTML file.")
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", min=10, help="Maximum number of rows to classify, drawn at random.")
    ] = 5000,
    doubts: Annotated[
        int,
        typer.Option("--doubts", metavar="N", min=0, help="List the N rows with the most doubtful labels."),
    ] = 50,
    model: ModelOption = None,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Report a checkpoint's quality and failures: classes, confusions, thresholds, mistakes, doubtful labels."""
    classifier = Predictor.load(checkpoint)
    loaded = classifier.checkpoint
    linear, reason = model_to_use(loaded, model)
    if out is not None and (out.is_dir() or out.suffix.lower() not in (".html", ".htm") or not out.parent.is_dir()):
        raise DataError(f"--out {out}: expected an HTML file in an existing folder, for example report.html")
    result, file_rows, labelled, doubtful = stored_report(loaded), None, None, None
    named = {"text_column": join_columns(text_column), "label_column": label_column, "sheet": sheet}
    try:
        file_rows = read_file_rows(loaded, named, data, is_linear=linear is not None, verbose=verbose)
        if file_rows is None:
            labelled = in_classes_of(open_dataset(loaded.config.data, path=data).load("test"), loaded)
        else:
            labelled = file_rows.labelled
    except DataError as error:
        if data is not None or not result.metrics or model == "linear":
            raise
        note(f"only the Transformer's stored metrics are reported. {error}")
    if labelled is not None:
        note(reason)
        chosen = sample_indices(len(labelled), limit=rows)
        description = f"{len(labelled):,} test rows" if file_rows is None else file_rows.about
        if len(chosen) < len(labelled):
            description = f"{len(chosen):,} of {description}, drawn at random"
        note(f"classifying {len(chosen):,} rows …")
        result = report_on(classifier, labelled.subset(chosen), rows_description=description, linear=linear)
        if file_rows is None or file_rows.is_held_out:
            result = replace(result, comparison=loaded.metrics.get("comparison"))
        if file_rows is not None:
            result = with_file_remarks(loaded, result, file_rows, is_linear=linear is not None)
            numbers = [file_rows.numbers[row] for row in chosen]
            result = replace(result, rows_description=description, row_numbers=numbers)
        if doubts and result.predictions is not None:
            is_learned = file_rows is not None and file_rows.share_trained_on >= MIN_KNOWN
            own_probabilities = None if is_learned else result.predictions.probabilities
            note("fitting linear models to check the labels (not with --doubts 0) …")
            try:
                doubtful = doubtful_labels(result.predictions.rows, own_probabilities, n=doubts)
            except DataError as error:
                note(f"no label was checked: {error}")
    sections = sections_of(result, doubtful)
    if as_json:
        print_json(report_object(result, sections))
    else:
        print_sections(result, sections, verbose=verbose)
    if out is not None:
        from txcls.web.report import report_html  # imports Plotly

        out.write_text(report_html(result, sections), encoding="utf-8", errors="backslashreplace")
        note(f"wrote {out}")


def print_sections(report: Report, sections: Sequence[Section], *, verbose: bool) -> None:
    """Print a report: the summary of each section or, with `verbose`, its table and notes."""
    out = console()
    out.print(Text(f"{report.name}: {sanitize(report.rows_description)}", style="bold"), soft_wrap=True)
    summaries = [section.summary for section in sections if section.summary and not verbose]
    for line in (*report.warnings, *(f"{summary[:1].upper()}{summary[1:]}" for summary in summaries)):
        out.print(Text(sanitize(line, limit=2000)), soft_wrap=True)
    for section in sections if verbose else ():
        rows = [[cell_as_text(cell) for cell in row] for row in section.rows[:LISTED]]
        n = len(section.rows)
        title = section.title if n <= LISTED else f"{section.title} (the first {LISTED} of {n:,}; --json has all)"
        print_rows(section.head, rows, title=title, limit=100)
        for line in section.notes:
            out.print(Text(sanitize(line, limit=2000)), soft_wrap=True)


def with_file_remarks(checkpoint: Checkpoint, report: Report, rows: FileRows, *, is_linear: bool) -> Report:
    """A report on rows of the user's own file, with the remarks on these rows."""
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
    if data is None and loaded.config.data.dataset == "table":
        raise missing_file_error(loaded)
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
        note(f"read {sanitize(data.name)}", *rows.notes)
    return rows
