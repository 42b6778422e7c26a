"""`txcls report`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from txcls.cli.options import CheckpointArgument, DataOption, JsonOption
from txcls.cli.output import console, note, print_json
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.tables.table import is_table
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.baseline import BaselineAnswers, answer_with_baseline
from txcls.evaluation.evaluate import in_classes_of
from txcls.evaluation.label_errors import SuspectRow, held_out_probabilities, suspect_rows
from txcls.evaluation.on_file import rows_of_file
from txcls.evaluation.report import Report, report_on, some_rows, stored_report, worst_pairs
from txcls.predictor import Predictor
from txcls.web.report import report_html
from txcls.wording import percentage, shown

LISTED = 10
"""Rows of each list on the terminal."""


def report(
    checkpoint: CheckpointArgument,
    data: DataOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Also write the report as an HTML file of its own.")
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", min=10, help="Rows to answer at most, drawn at random.")
    ] = 5000,
    linear: Annotated[
        bool, typer.Option("--linear", help="Also fit the linear baseline to the training rows.")
    ] = False,
    labels: Annotated[bool, typer.Option("--labels/--no-labels", help="Look for rows whose label looks wrong.")] = True,
    as_json: JsonOption = False,
) -> None:
    """How good a checkpoint is and where it fails: mistakes, confusions, doubtful labels, the linear baseline."""
    classifier = Predictor.load(checkpoint)
    if out is not None and out.is_dir():
        raise DataError(f"{out} is a folder; give a file, for example {out / 'report.html'}")
    found = stored_report(classifier.checkpoint)
    try:
        given = _rows(classifier, data)
    except DataError as error:
        if data is not None or not found.figures:
            raise
        note(f"{error}; the report is of stored figures alone. A table of your own works too: --data FILE")
        given = None
    baseline, suspects = None, None
    if given is not None:
        few = some_rows(given, most=rows)
        what = "test rows" if data is None else f"rows of {data.name}"
        are = f"{len(few):,} {what}" if len(few) == len(given) else f"{len(few):,} of {len(given):,} {what}, at random"
        with console(error=True).status(f"answering {len(few):,} rows"):
            found = report_on(classifier, few, rows_are=are)
        baseline, suspects = _more(classifier, found, data, linear=linear, labels=labels)
    elif linear:
        raise DataError("--linear needs the texts; see above")
    _show(found, baseline, suspects, as_json=as_json)
    if out is not None:
        _write(out, found, baseline, suspects)


def _rows(classifier: Predictor, data: Path | None) -> LabelledTexts:
    """The rows of a table of one's own, or the test rows of the checkpoint's data set."""
    if data is not None and data.is_file() and is_table(data.name):
        found = rows_of_file(classifier.checkpoint, data)
        for sentence in found.notes:
            note(sentence)
        return found.rows
    dataset = open_dataset(classifier.checkpoint.config.data, path=data)
    return in_classes_of(dataset.load("test"), classifier.checkpoint)


def _more(
    classifier: Predictor, found: Report, data: Path | None, *, linear: bool, labels: bool
) -> tuple[BaselineAnswers | None, list[SuspectRow] | None]:
    answers = found.answers
    assert answers is not None
    baseline, suspects = None, None
    with console(error=True).status("fitting linear models"):
        if linear:
            config = classifier.checkpoint.config.data
            own_file = data is not None and data.is_file()
            training = training_and_validation(open_dataset(config, path=None if own_file else data), config)[0]
            baseline = answer_with_baseline(answers, training)
        if labels:
            try:
                learned = data is not None and data.name == classifier.checkpoint.metrics.get("data", {}).get("title")
                found_out = held_out_probabilities(answers.rows, None if learned else answers.probabilities)
            except DataError as error:
                note(str(error))
            else:
                suspects = suspect_rows(answers.rows, found_out)
    return baseline, suspects


def _show(found: Report, baseline: BaselineAnswers | None, suspects: list[SuspectRow] | None, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "checkpoint": found.name,
                "rows": found.rows_are,
                **found.figures,
                **({} if baseline is None else {"linear": baseline.accuracy}),
                **({} if found.answers is None else {"mistakes": [asdict(one) for one in found.answers.mistakes()]}),
                **({} if suspects is None else {"doubtful": [asdict(one) for one in suspects]}),
            }
        )
        return
    out = console()
    out.print(Text(f"{found.name}: {shown(found.rows_are)}", style="bold"))
    if found.figures:
        out.print(
            f"accuracy {percentage(found.figures['accuracy'], 2)}   macro-F1 {found.figures['macro_f1']:.4f}   "
            f"calibration error {found.figures['ece']:.4f}"
        )
    if baseline is not None:
        out.print(Text(baseline.verdict()))
        out.print(
            f"only the Transformer is right: {len(baseline.only_transformer_right()):,} rows; "
            f"only the linear baseline: {len(baseline.only_baseline_right()):,} rows"
        )
    counts = found.confusion
    if counts is not None:
        pairs = worst_pairs(found.classes, counts, n=LISTED)
        lines = [(one.first, one.second, f"{one.n:,}", percentage(one.share)) for one in pairs]
        _table("most confused", ("class", "other class", "rows", "share of both"), lines)
    if found.answers is not None:
        rows = found.answers.mistakes(n=LISTED)
        lines = [(one.text, one.label, one.predicted, percentage(one.probability)) for one in rows]
        _table("the most confident mistakes", ("text", "label", "predicted", "probability"), lines)
    if suspects is not None:
        lines = [(one.text, one.label, one.suggested, percentage(one.label_probability)) for one in suspects[:LISTED]]
        title = f"{len(suspects):,} rows whose label looks wrong, the likeliest first"
        _table(title, ("text", "label", "suggested", "label's probability"), lines)


def _table(title: str, head: tuple[str, ...], lines: "list[tuple[str, str, str, str]]") -> None:
    if not lines:
        return
    table = Table(*head, title=title)
    for line in lines:
        table.add_row(*(Text(shown(cell, limit=100)) for cell in line))
    console().print(table)


def _write(out: Path, found: Report, baseline: BaselineAnswers | None, suspects: list[SuspectRow] | None) -> None:
    try:
        out.write_text(
            report_html(found, baseline=baseline, suspects=suspects), encoding="utf-8", errors="backslashreplace"
        )
    except OSError as error:
        raise DataError(f"cannot write {out}: {error.strerror or error}; choose another file") from None
    note(f"wrote {out}")
