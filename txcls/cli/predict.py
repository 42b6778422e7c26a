"""`txcls predict`: classify texts from the command line, or the rows of a file; `txcls generate`: continue a text."""

import math
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from txcls.cli.shared import (
    CheckpointArgument,
    JsonOption,
    ModelOption,
    SheetOption,
    TextColumnOption,
    console,
    join_columns,
    note,
    print_json,
    rows_progress,
)
from txcls.data.table import has_table_suffix
from txcls.errors import DataError, sanitize
from txcls.evaluation.linear import LinearModel, model_to_use
from txcls.evaluation.predict_file import predict_file
from txcls.inference.generation import Sampling, TextModel
from txcls.inference.generation import generate as generate_tokens
from txcls.inference.predictor import Prediction, Predictor
from txcls.text.formatting import UNUSUAL, percentage
from txcls.text.tokens import Encoding

MIN_SHOWN = 0.001
"""Classes with a lower probability are only counted."""


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
    sheet: SheetOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Write the rows with their predicted label and its probability to this file: .csv, .tsv, .jsonl, "
            ".parquet or .xlsx (in which no text runs as a formula).",
        ),
    ] = None,
    model: ModelOption = None,
    top_k: Annotated[
        int | None,
        typer.Option(
            "--top-k",
            metavar="K",
            min=1,
            help="Show only the K most probable classes; with --input, add columns for each  [default: 1]",
        ),
    ] = None,
    review_below: Annotated[
        float | None,
        typer.Option(
            "--review-below",
            metavar="P",
            min=0.0,
            max=1.0,
            help="For --input: add a column needs_review with yes for rows with a predicted probability below P.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Classify texts, or the rows of a file of any size.

    The columns of the file are kept: where one has the name of a new column, the new one gets another name. The column
    `unusual` marks rows unlike the training texts.
    """
    if input_file is not None and texts:
        raise DataError("got both TEXT and --input; give one of them")
    if file := next((text for text in texts or () if has_table_suffix(text) and os.path.isfile(text)), None):  # noqa: PTH113  # a text may be too long for a path
        raise DataError(f"{file} is a file; to classify its rows, give it with --input")
    if output is not None and as_json:
        raise DataError("got both --output and --json; give one of them")
    if input_file is not None and output is None and not as_json:
        raise DataError("--input needs --output FILE (or --json, to print one object per row)", output="scored.csv")
    for option, value in (("--output", output), ("--review-below", review_below)):
        if value is not None and input_file is None:
            raise DataError(f"got {option} without --input FILE")
    classifier = Predictor.load(checkpoint)
    linear, reason = model_to_use(classifier.checkpoint, model)
    note(reason)
    if input_file is None:
        _print_texts(classifier, texts, linear, top_k=top_k, as_json=as_json)
        return
    replaced = ", in place of the older file" * (output is not None and output.exists())
    with rows_progress() as bar:
        task = bar.add_task("classifying", total=None)
        n_rows = predict_file(
            classifier,
            input_file,
            print_json if output is None else output,
            linear=linear,
            text_column=join_columns(text_column),
            sheet=sheet,
            precision="auto",
            top_k=top_k or 1,
            review_below=review_below,
            on_note=lambda message: note(message, brief=True),
            on_rows=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if output is not None:
        note(f"wrote {n_rows:,} rows to {output}{replaced}")


def _print_texts(
    classifier: Predictor, texts: list[str] | None, linear: LinearModel | None, *, top_k: int | None, as_json: bool
) -> None:
    """Print the predictions for texts or, if there are none, for the lines of standard input."""
    if not texts:
        if sys.stdin.isatty():
            raise DataError("no text given; add it in quotes, pipe lines to the command, or give a file with --input")
        texts = [line.rstrip("\n") for line in sys.stdin]
    if linear is None:
        predictions = classifier.predict(texts, top_k=top_k)
    else:
        predictions = _by_linear(classifier, linear, texts, top_k=top_k)
    if all(prediction.label is None for prediction in predictions):
        raise DataError("the input contains no words to classify; add at least one")
    for prediction in predictions:
        if as_json:
            print_json(_prediction_object(prediction))
        else:
            print_prediction(prediction)


def _by_linear(
    classifier: Predictor, linear: LinearModel, texts: Sequence[str], *, top_k: int | None
) -> list[Prediction]:
    """The predictions of a checkpoint's linear model, which have no tokens."""
    reduced = [classifier.visible_text(text) for text in texts]
    rows = linear.probabilities_of(classifier.classes, reduced)  # N C
    predictions = []
    for text, ids, row in zip(texts, classifier.tokenizer.encode_ids(reduced), rows.tolist(), strict=True):
        encoding = Encoding(text, (), None)
        if math.isnan(row[0]):
            predictions.append(Prediction(text, None, (), 0.0, (), (), None))
        else:
            ranked = classifier.prediction_of(encoding, row, top_k=top_k)
            predictions.append(replace(ranked, is_unusual=classifier.is_unusual(text, ids)))
    return predictions


def _prediction_object(prediction: Prediction) -> dict[str, Any]:
    """A prediction as printed by `--json`."""
    return {
        "text": prediction.text,
        "label": prediction.label,
        "ranked": [{"label": score.label, "probability": score.probability} for score in prediction.ranked],
        "tokens": [token.text for token in prediction.tokens],
        "unknown": [token.text for token in prediction.unknown],
        "truncated": prediction.truncated_at is not None,
        "unusual": prediction.is_unusual,
        **({} if prediction.is_out_of_scope is None else {"out_of_scope": prediction.is_out_of_scope}),
    }


def print_prediction(prediction: Prediction) -> None:
    """Print a prediction as ranked bars."""
    out = console()
    out.print(Text(sanitize(prediction.text), style="bold"))
    if prediction.label is None:
        out.print("  no words to classify")
        return
    labels = [sanitize(score.label) for score in prediction.ranked]
    width = max(map(len, labels))
    bar_width = min(40, max(out.width - width - 13, 0))
    n_shown = sum(score.probability >= MIN_SHOWN for score in prediction.ranked) or 1
    for label, score in zip(labels[:n_shown], prediction.ranked, strict=False):
        bar = "█" * round(score.probability * bar_width)
        out.print(Text(f"  {label:<{width}}  {percentage(score.probability):>7}  {bar}"))
    if n_hidden := len(labels[n_shown:]):
        out.print(f"  {n_hidden:,} more below {percentage(MIN_SHOWN)}; --json has all")
    if prediction.other > 0:
        out.print(Text(f"  {'other':<{width}}  {percentage(prediction.other):>7}"))
    if prediction.is_out_of_scope:
        out.print("  probably out of scope: unlike the training texts of any class")
    if prediction.is_unusual:
        out.print(f"  {UNUSUAL}")
    if prediction.unknown:
        words = ", ".join(dict.fromkeys(sanitize(token.text) for token in prediction.unknown))
        out.print(Text("  unknown words: " + words))
    if prediction.truncated_at is not None:
        out.print(f"  truncated at character {prediction.truncated_at:,}; the rest was not read")


def generate(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="A causal language model, or a folder with a published GPT-2.")
    ],
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="The text to continue.")],
    tokens: Annotated[int, typer.Option("--tokens", metavar="N", min=1, help="Maximum number of tokens to add.")] = 40,
    temperature: Annotated[
        float, typer.Option("--temperature", min=0.0, help="With 0, always take the most probable token.")
    ] = 1.0,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="K", min=1, help="Sample from the K most probable tokens.")
    ] = None,
    top_p: Annotated[
        float, typer.Option("--top-p", help="Sample from the most probable tokens that together have this probability.")
    ] = 1.0,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same text.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Continue a text with a causal language model, token by token."""
    text_model = TextModel.load(checkpoint)
    try:
        sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
        ids = text_model.encode(prompt)
        steps = list(generate_tokens(text_model.model, ids, n=tokens, sampling=sampling))
    except ValueError as error:
        raise DataError(str(error)) from None
    continuation = text_model.appended_text(ids, [step.id for step in steps])
    if as_json:
        probabilities = [step.probability for step in steps]
        print_json({"prompt": prompt, "continuation": continuation, "probabilities": probabilities})
    else:
        print(prompt + continuation)
