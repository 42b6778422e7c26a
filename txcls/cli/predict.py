"""`txcls predict`: classify texts from the command line, or the rows of a file."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.text import Text

from txcls.cli.options import CheckpointArgument, JsonOption, TextColumnOption, UsualSheetOption, joined_columns
from txcls.cli.output import console, note, print_json, rows_progress
from txcls.data.tables.table import Table, row_text
from txcls.errors import DataError
from txcls.evaluation.predict_file import CheckedTexts, checked_texts, predict_file
from txcls.evaluation.unlike_validation import (
    RowGroups,
    rows_unlike_validation,
    unlike_validation,
    why_meaningless,
)
from txcls.inference.predictor import Prediction, Predictor
from txcls.wording import percentage, shown


def predict(
    checkpoint: CheckpointArgument,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts  [default: lines of standard input]")
    ] = None,
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input",
            metavar="FILE",
            help="Classify the rows of a table: CSV, TSV, JSON Lines, Parquet or Excel. Needs --output or --json.",
        ),
    ] = None,
    text_column: TextColumnOption = None,
    sheet: UsualSheetOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Write the rows with their predicted label and its probability to this file: .csv, .tsv, .jsonl, "
            ".parquet or .xlsx.",
        ),
    ] = None,
    precision: Annotated[
        Literal["float32", "bfloat16", "auto"],
        typer.Option(
            help="For --output. bfloat16 is faster on some processors and changes probabilities by less than 0.01; "
            "auto uses it if it is faster on this processor."
        ),
    ] = "float32",
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            "--spreadsheet-safe",
            help="For --output as CSV or TSV: put an apostrophe before fields that spreadsheets read as formulas.",
        ),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run on a file.")] = False,
    top_k: Annotated[
        int | None,
        typer.Option(
            "--top-k",
            metavar="K",
            min=1,
            help="Show only the K most probable classes; with --output, write columns for each  [default: 1]",
        ),
    ] = None,
    review_below: Annotated[
        float | None,
        typer.Option(
            "--review-below",
            metavar="P",
            min=0.0,
            max=1.0,
            help="For --output: add a column needs_review with yes for rows with a predicted probability below P.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Classify texts, or the rows of a file of any size.

    Use --resume to continue an interrupted run on a file.
    """
    if input_file is not None and texts:
        raise DataError("got both TEXT and --input; give one of them")
    if output is not None and as_json:
        raise DataError("got both --output and --json; give one of them")
    if output is None:
        for option, is_given, reason in (
            ("--resume", resume, "only such runs can be resumed"),
            ("--spreadsheet-safe", spreadsheet_safe, "it applies only to output files"),
            ("--review-below", review_below is not None, "it adds a column to output files"),
            (f"--precision {precision}", precision != "float32", "it applies only to files"),
        ):
            if is_given:
                raise DataError(f"got {option} without --input FILE --output FILE; {reason}")
    if input_file is None:
        if output is not None:
            raise DataError(
                "got --output without --input FILE; to save results for typed texts, redirect standard output"
            )
        _print_texts(checkpoint, texts, top_k=top_k, as_json=as_json)
    elif output is not None:
        with rows_progress() as bar:
            task = bar.add_task(f"checking {input_file.name}", total=None)
            classifier = Predictor.load(checkpoint)
            classified = predict_file(
                classifier,
                input_file,
                output,
                text_column=joined_columns(text_column),
                sheet=sheet,
                precision=precision,
                top_k=top_k or 1,
                review_below=review_below,
                spreadsheet_safe=spreadsheet_safe,
                resume=resume,
                on_checked=_say_what_was_read,
                on_rows=lambda done, total: bar.update(task, description="classifying", completed=done, total=total),
            )
        note(f"wrote {classified.n_rows:,} rows to {output}", *filter(None, [classified.review, classified.unlike]))
    elif as_json:
        _print_file(checkpoint, input_file, text_column=joined_columns(text_column), sheet=sheet, top_k=top_k)
    else:
        raise DataError(f"--input needs --output FILE (or --json, to print one object per row)")


def _print_texts(checkpoint: str, texts: list[str] | None, *, top_k: int | None, as_json: bool) -> None:
    """Print the predictions for texts or, if there are none, for the lines of standard input."""
    if not texts:
        if sys.stdin.isatty():
            raise DataError("no text given; add it in quotes, pipe lines to the command, or give a file with --input")
        texts = [line.rstrip("\n") for line in sys.stdin]
    classifier = Predictor.load(checkpoint)
    predictions = classifier.predict(texts, top_k=top_k)
    if all(prediction.label is None for prediction in predictions):
        raise DataError("the input contains no words to classify; add at least one")
    for prediction in predictions:
        if as_json:
            print_json(_prediction_object(prediction))
        else:
            print_prediction(prediction)
            if prediction.label is not None:
                _print_doubts(classifier, prediction)


def _print_doubts(classifier: Predictor, prediction: Prediction) -> None:
    """Print why the prediction may mean little, as the app says it."""
    out = console()
    if reason := why_meaningless(classifier.checkpoint, prediction):
        out.print(Text(f"  this prediction means nothing: {reason}"))
    for sentence in unlike_validation(classifier.checkpoint, prediction.text, prediction.tokens):
        out.print(Text(f"  unlike the validation texts: {sentence}"))


def _print_file(checkpoint: str, path: Path, *, text_column: str | None, sheet: str | None, top_k: int | None) -> None:
    """Print one JSON object per row of a file."""
    classifier = Predictor.load(checkpoint)
    config = classifier.checkpoint.config.data
    table = Table(path, sheet=sheet, usual_sheet=config.sheet)
    with rows_progress() as bar:
        checked = checked_texts(classifier, table, text_column=text_column)
        _say_what_was_read(checked)
        task, groups = bar.add_task("classifying", total=checked.n_rows), RowGroups(classifier.tokenizer)
        for rows in table.chunks(1024):
            texts = [row_text(row.values, checked.text_column, where=str(path), config=config) for row in rows]
            predictions = classifier.predict_rows(texts, top_k=top_k)
            with_words = [prediction.tokens for prediction in predictions if prediction.label is not None]
            groups.add([np.array([token.id for token in tokens], dtype=np.int32) for tokens in with_words])
            for prediction in predictions:
                print_json(_prediction_object(prediction))
            bar.advance(task, len(rows))
    note(*filter(None, [rows_unlike_validation(classifier.checkpoint, groups.groups)]))


def _say_what_was_read(checked: CheckedTexts) -> None:
    note(*checked.notes, *filter(None, [checked.warning]))


def _prediction_object(prediction: Prediction) -> dict[str, Any]:
    """A prediction as printed by `--json`."""
    return {
        "text": prediction.text,
        "label": prediction.label,
        "ranked": [{"label": score.label, "probability": score.probability} for score in prediction.ranked],
        "tokens": [token.text for token in prediction.tokens],
        "unknown": [token.text for token in prediction.unknown],
        "truncated": prediction.truncated_at is not None,
        **({} if prediction.out_of_scope is None else {"out_of_scope": prediction.out_of_scope}),
    }


def print_prediction(prediction: Prediction) -> None:
    """Print a prediction as ranked bars."""
    out = console()
    out.print(Text(shown(prediction.text), style="bold"))
    if prediction.label is None:
        out.print("  no words to classify")
        return
    labels = [shown(score.label) for score in prediction.ranked]
    width = max(map(len, labels))
    for label, score in zip(labels, prediction.ranked, strict=True):
        bar = "█" * round(score.probability * 40)
        out.print(Text(f"  {label:<{width}}  {percentage(score.probability):>7}  {bar}"))
    if prediction.other > 0:
        out.print(Text(f"  {'other':<{width}}  {percentage(prediction.other):>7}"))
    if prediction.out_of_scope:
        out.print("  probably out of scope: unlike the training texts of every class")
    if prediction.unknown:
        words = ", ".join(dict.fromkeys(shown(token.text) for token in prediction.unknown))
        out.print(Text("  unknown words: " + words))
    if prediction.truncated_at is not None:
        out.print(f"  truncated at character {prediction.truncated_at:,}; the rest was not read")
