"""`txcls report`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from txcls.cli.evaluate import about_file, print_sections, read_file_rows
from txcls.cli.options import (
    CheckpointArgument,
    DataOption,
    JsonOption,
    LabelColumnOption,
    ModelOption,
    TextColumnOption,
    UsualSheetOption,
    VerboseOption,
    joined_columns,
)
from txcls.cli.output import console, note, print_json
from txcls.data.datasets import open_dataset
from txcls.data.hashes import MIN_KNOWN
from txcls.errors import DataError, reason_of
from txcls.evaluation.evaluate_file import which_file
from txcls.evaluation.label_errors import doubtful_labels
from txcls.evaluation.linear import linear_of
from txcls.evaluation.predict_logits import in_classes_of
from txcls.evaluation.report import report_on, sample_indices, stored_report
from txcls.evaluation.sections import report_object, sections_of
from txcls.inference.predictor import Predictor
from txcls.web.report import report_html


def report(
    checkpoint: CheckpointArgument,
    data: DataOption = None,
    text_column: TextColumnOption = None,
    label_column: LabelColumnOption = None,
    sheet: UsualSheetOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Also write the report as an HTML file.")
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", min=10, help="Maximum number of rows to classify, drawn at random.")
    ] = 5000,
    doubts: Annotated[
        int,
        typer.Option("--doubts", metavar="N", min=0, help="Number of rows to list with the most doubtful labels."),
    ] = 50,
    model: ModelOption = "transformer",
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Report a checkpoint's quality and failures: classes, confusions, thresholds, mistakes, doubtful labels."""
    classifier = Predictor.load(checkpoint)
    loaded = classifier.checkpoint
    linear = linear_of(loaded) if model == "linear" else None
    if out is not None and out.is_dir():
        raise DataError(f"{out} is a folder; give a file, for example {out / 'report.html'}")
    result, file_rows, labelled, doubtful = stored_report(loaded), None, None, None
    named = {"text_column": joined_columns(text_column), "label_column": label_column, "sheet": sheet}
    is_own = loaded.config.data.dataset == "table"
    try:
        if data is None and is_own:
            raise which_file(loaded)
        file_rows = read_file_rows(loaded, named, data, is_linear=linear is not None, verbose=verbose)
        if file_rows is None:
            labelled = in_classes_of(open_dataset(loaded.config.data, path=data).load("test"), loaded)
        else:
            labelled = file_rows.labelled
    except DataError as error:
        if data is not None or not result.metrics or linear is not None:
            raise
        advice = "" if is_own else ", or use your own table with --data FILE"
        note(f"the report uses only stored metrics: {error}{advice}")
    if labelled is not None:
        chosen = sample_indices(len(labelled), limit=rows)
        description = f"{len(labelled):,} test rows" if file_rows is None else file_rows.about
        if len(chosen) < len(labelled):
            description = f"{len(chosen):,} of {description}, drawn at random"
        with console(error=True).status(f"classifying {len(chosen):,} rows"):
            result = report_on(classifier, labelled.subset(chosen), rows_description=description, linear=linear)
        if file_rows is None or file_rows.is_held_out:
            result = replace(result, comparison=loaded.metrics.get("comparison"))
        if file_rows is not None:
            result = about_file(loaded, result, file_rows, is_linear=linear is not None)
            numbers = [file_rows.numbers[row] for row in chosen]
            result = replace(result, rows_description=description, row_numbers=numbers)
        if doubts and result.predictions is not None:
            is_learned = file_rows is not None and file_rows.learned >= MIN_KNOWN
            own_probabilities = None if is_learned else result.predictions.probabilities
            try:
                with console(error=True).status("fitting linear models to check the labels"):
                    doubtful = doubtful_labels(result.predictions.rows, own_probabilities, n=doubts)
            except DataError as error:
                note(f"no label was checked: {error}")
    sections = sections_of(result, doubtful)
    if as_json:
        print_json(report_object(result, sections))
    else:
        print_sections(result, sections, verbose=verbose)
    if out is not None:
        try:
            out.write_text(report_html(result, sections), encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise DataError(f"cannot write {out}: {reason_of(error)}; choose another file") from None
        note(f"wrote {out}")
