"""`txcls report`."""

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from txcls.cli.evaluate import figures_of_file
from txcls.cli.options import CheckpointArgument, DataOption, JsonOption, SheetOption
from txcls.cli.output import console, note, print_json, print_rows
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.tables.table import is_table
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.baseline import BaselinePredictions, predict_with_baseline
from txcls.evaluation.costs import POLICY_HEAD, Cheapest, cheapest_policy, make_costs
from txcls.evaluation.evaluate import in_classes_of
from txcls.evaluation.evaluate_file import MIN_LEARNED, FileRows, rows_of_file
from txcls.evaluation.label_errors import SuspectRow, held_out_probabilities, suspect_rows
from txcls.evaluation.report import (
    Report,
    RowPredictions,
    class_counts_of,
    coverage_by_confidence,
    report_on,
    sample_rows,
    stored_report,
    worst_pairs,
)
from txcls.predictor import Predictor
from txcls.web.report import report_html
from txcls.wording import percentage, shown

LISTED = 10
"""Maximum number of rows in each list on the terminal."""


def report(
    checkpoint: CheckpointArgument,
    data: DataOption = None,
    sheet: SheetOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Also write the report as an HTML file of its own.")
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", min=10, help="Rows to answer at most, drawn at random.")
    ] = 5000,
    linear: Annotated[
        bool, typer.Option("--linear", help="Also fit the linear baseline to the training rows.")
    ] = False,
    cost_error: Annotated[
        float | None, typer.Option("--cost-error", metavar="X", help="What a wrong answer costs, in any unit.")
    ] = None,
    cost_human: Annotated[
        float | None, typer.Option("--cost-human", metavar="X", help="What a text costs that is left to a human.")
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option("--costs", metavar="FILE", help="Table of costs by kind of error: true, predicted, cost."),
    ] = None,
    labels: Annotated[bool, typer.Option("--labels/--no-labels", help="Look for rows whose label looks wrong.")] = True,
    as_json: JsonOption = False,
) -> None:
    """How good a checkpoint is and where it fails: mistakes, confusions, doubtful labels, the linear baseline."""
    classifier = Predictor.load(checkpoint)
    has_costs = any(option is not None for option in (cost_error, cost_human, costs))
    chosen = make_costs(classifier.classes, error=cost_error, human=cost_human, file=costs) if has_costs else None
    if out is not None and out.is_dir():
        raise DataError(f"{out} is a folder; give a file, for example {out / 'report.html'}")
    measured = stored_report(classifier.checkpoint)
    try:
        own = _own_rows(classifier, data, sheet)
        given = own.labelled if own is not None else _test_rows(classifier, data)
    except DataError as error:
        if data is not None or not measured.metrics:
            raise
        note(f"{error}; the report uses only stored metrics. A table of your own works too: --data FILE")
        own = given = None
    baseline, suspects = None, None
    if given is not None:
        few = sample_rows(given, limit=rows)
        are = own.about if own is not None else f"{len(given):,} test rows"
        if len(few) < len(given):
            are = f"{len(few):,} of {are}, drawn at random"
        with console(error=True).status(f"answering {len(few):,} rows"):
            measured = report_on(classifier, few, rows_description=are)
        baseline, suspects = _more(classifier, measured, data, own, linear=linear, labels=labels)
        if own is not None:
            measured = replace(
                measured, metrics={**measured.metrics, **figures_of_file(own, measured.metrics["accuracy"])}
            )
    elif linear or chosen is not None:
        raise DataError(f"{'--linear' if linear else 'the costs'}: cannot be computed without the texts; see above")
    cheapest = None
    if chosen is not None and measured.predictions is not None:
        cheapest = cheapest_policy(measured.predictions, chosen)
    _show(measured, baseline, suspects, cheapest, as_json=as_json)
    if out is not None:
        page = report_html(measured, baseline=baseline, suspects=suspects, cheapest=cheapest)
        try:
            out.write_text(page, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise DataError(f"cannot write {out}: {error.strerror or error}; choose another file") from None
        note(f"wrote {out}")


def _own_rows(classifier: Predictor, data: Path | None, sheet: str | None) -> FileRows | None:
    """The rows of the user's own table; None if `data` is not a table."""
    if data is None or not (data.is_file() and is_table(data.name)):
        return None
    rows = rows_of_file(classifier.checkpoint, data, sheet=sheet)
    for sentence in rows.notes:
        note(sentence)
    return rows


def _test_rows(classifier: Predictor, data: Path | None) -> LabelledTexts:
    """The test rows of the checkpoint's data set."""
    dataset = open_dataset(classifier.checkpoint.config.data, path=data)
    return in_classes_of(dataset.load("test"), classifier.checkpoint)


def _more(
    classifier: Predictor, measured: Report, data: Path | None, own: FileRows | None, *, linear: bool, labels: bool
) -> tuple[BaselinePredictions | None, list[SuspectRow] | None]:
    predictions = measured.predictions
    assert predictions is not None
    baseline, suspects = None, None
    with console(error=True).status("fitting linear models"):
        if linear:
            config = classifier.checkpoint.config.data
            own_file = data is not None and data.is_file()
            training = training_and_validation(open_dataset(config, path=None if own_file else data), config)[0]
            baseline = predict_with_baseline(predictions, training)
        if labels:
            try:
                learned = own is not None and own.learned >= MIN_LEARNED
                probabilities = held_out_probabilities(predictions.rows, None if learned else predictions.probabilities)
            except DataError as error:
                note(str(error))
            else:
                suspects = suspect_rows(predictions.rows, probabilities)
    return baseline, suspects


def _coverage_rows(predictions: RowPredictions) -> list[dict[str, float]]:
    return [
        {"confidence": used.confidence, "share": used.share, "right": used.right, "n": used.n}
        for used in coverage_by_confidence(predictions)
    ]


def _costs(cheapest: Cheapest) -> dict[str, float | None]:
    """JSON values; a threshold of None answers no text."""
    best = cheapest.best.threshold
    return {
        "threshold": None if math.isinf(best) else best,
        "cost_of_100": cheapest.best.cost,
        "checked": None if math.isnan(cheapest.checked) else cheapest.checked,
        "every_answered": cheapest.every.cost,
        "none_answered": cheapest.none.cost,
    }


def _show(
    measured: Report,
    baseline: BaselinePredictions | None,
    suspects: list[SuspectRow] | None,
    cheapest: Cheapest | None,
    *,
    as_json: bool,
) -> None:
    if as_json:
        print_json(
            {
                "checkpoint": measured.name,
                "rows": measured.rows_description,
                **measured.metrics,
                **({} if measured.predictions is None else {"answered": _coverage_rows(measured.predictions)}),
                **({} if cheapest is None else {"costs": _costs(cheapest)}),
                **({} if baseline is None else {"linear": baseline.accuracy}),
                **(
                    {}
                    if measured.predictions is None
                    else {"mistakes": [asdict(row) for row in measured.predictions.mistakes()]}
                ),
                **({} if suspects is None else {"doubtful": [asdict(row) for row in suspects]}),
            }
        )
        return
    out = console()
    out.print(Text(f"{measured.name}: {shown(measured.rows_description)}", style="bold"))
    if measured.metrics:
        out.print(
            f"accuracy {percentage(measured.metrics['accuracy'], 2)}   macro-F1 {measured.metrics['macro_f1']:.4f}   "
            f"calibration error {measured.metrics['ece']:.4f}"
        )
        if "accuracy_with_unknown" in measured.metrics:
            out.print(
                f"accuracy {percentage(measured.metrics['accuracy_with_unknown'], 2)} with unknown classes as errors"
            )
    if baseline is not None:
        out.print(Text(baseline.verdict()))
        out.print(
            f"only the Transformer is right: {len(baseline.only_transformer_right()):,} rows; "
            f"only the linear baseline: {len(baseline.only_baseline_right()):,} rows"
        )
    counts = measured.confusion
    if counts is not None:
        of_classes = sorted(class_counts_of(measured).values(), key=lambda one: one.right / max(one.n, 1))
        of_class = [(one.label, one.finds, f"{one.false_alarms:,}") for one in of_classes[: 2 * LISTED] if one.n]
        print_rows(("class", "finds", "false alarms"), of_class, title="by class, with 95 % intervals", limit=100)
        pairs = worst_pairs(measured.classes, counts, n=LISTED)
        lines = [(pair.first, pair.second, f"{pair.n:,}", percentage(pair.share)) for pair in pairs]
        print_rows(("class", "other class", "rows", "share of both"), lines, title="most confused", limit=100)
    if measured.predictions is not None:
        above = [used.cells for used in coverage_by_confidence(measured.predictions)]
        print_rows(("answer only above", "rows answered", "of them right"), above, title="what to leave to a human")
        if cheapest is not None:
            lines_of = [policy.cells for policy in cheapest.policies]
            print_rows(POLICY_HEAD, lines_of, title=f"costs on {measured.rows_description}")
            out.print(Text(str(cheapest)))
        rows = measured.predictions.mistakes(n=LISTED)
        lines = [(row.text, row.label, row.predicted, percentage(row.probability)) for row in rows]
        head = ("text", "label", "predicted", "probability")
        print_rows(head, lines, title="the most confident mistakes", limit=100)
    if suspects is not None:
        lines = [(row.text, row.label, row.suggested, percentage(row.label_probability)) for row in suspects[:LISTED]]
        title = f"{len(suspects):,} rows whose label looks wrong, most probable first"
        print_rows(("text", "label", "suggested", "label's probability"), lines, title=title, limit=100)
