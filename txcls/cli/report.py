"""`txcls report`."""

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from txcls.checkpoint.comparison import Comparison
from txcls.cli.options import (
    CheckpointArgument,
    DataOption,
    JsonOption,
    LabelColumnOption,
    TextColumnOption,
    UsualSheetOption,
    joined_columns,
)
from txcls.cli.output import console, note, print_json, print_rows
from txcls.cli.train_file import print_comparison
from txcls.data.datasets import open_dataset
from txcls.data.hashes import MIN_KNOWN
from txcls.data.tables.table import has_table_suffix
from txcls.errors import DataError, reason_of
from txcls.evaluation.compare_with_baseline import BaselinePredictions, predict_with_baseline, rows_to_fit
from txcls.evaluation.confusions import WORDS_HEAD, class_advice, confusion_words, label_advice, words_table
from txcls.evaluation.evaluate_file import FileRows, require_fitted_rows, rows_of_file, which_file
from txcls.evaluation.label_errors import DoubtfulLabels, DoubtfulRow, doubtful_labels, held_out_probabilities
from txcls.evaluation.predict_logits import in_classes_of
from txcls.evaluation.report import (
    Report,
    RowPrediction,
    class_counts_of,
    headline_metrics,
    majority_sentence,
    most_confused_pairs,
    report_on,
    sample_indices,
    sample_rows,
    stored_report,
)
from txcls.evaluation.thresholds import (
    COVERAGE_HEAD,
    POLICY_HEAD,
    Cheapest,
    cheapest_policy,
    coverage_by_confidence,
    make_costs,
)
from txcls.evaluation.unlike_validation import rows_unlike_validation
from txcls.inference.predictor import Predictor
from txcls.web.report import report_html
from txcls.wording import percentage, shown

LISTED = 10
"""Maximum number of rows in each table on the terminal."""


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
    linear: Annotated[
        bool, typer.Option("--linear", help="Also fit the linear baseline to all rows but the test rows.")
    ] = False,
    cost_error: Annotated[
        float | None, typer.Option("--cost-error", metavar="X", help="Cost of a wrong prediction, in any unit.")
    ] = None,
    cost_human: Annotated[
        float | None, typer.Option("--cost-human", metavar="X", help="Cost of a text that is left to a human.")
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option("--costs", metavar="FILE", help="Table of costs, with the columns true, predicted and cost."),
    ] = None,
    labels: Annotated[bool, typer.Option("--labels/--no-labels", help="Find doubtful labels.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Report a checkpoint's quality and failures: mistakes, confusions, doubtful labels, the linear baseline."""
    classifier = Predictor.load(checkpoint)
    has_costs = any(option is not None for option in (cost_error, cost_human, costs))
    table = make_costs(classifier.classes, error=cost_error, human=cost_human, file=costs) if has_costs else None
    if out is not None and out.is_dir():
        raise DataError(f"{out} is a folder; give a file, for example {out / 'report.html'}")
    result = stored_report(classifier.checkpoint)
    file_rows = labelled = None
    named = {"text_column": joined_columns(text_column), "label_column": label_column, "sheet": sheet}
    try:
        file_rows = _read_file_rows(classifier, data, named)
        if linear and file_rows is not None:
            require_fitted_rows(classifier.checkpoint, file_rows, data)
        if file_rows is None:
            test = open_dataset(classifier.checkpoint.config.data, path=data).load("test")
            labelled = in_classes_of(test, classifier.checkpoint)
        else:
            labelled = file_rows.labelled
    except DataError as error:
        if data is not None or not result.metrics:
            raise
        is_own = classifier.checkpoint.config.data.dataset == "table"
        reason = which_file(classifier.checkpoint) if is_own else f"{error}, or use your own table with --data FILE"
        note(f"the report uses only stored metrics: {reason}")
    baseline, doubtful = None, None
    if labelled is not None:
        sample = sample_rows(labelled, limit=rows)
        description = f"{len(labelled):,} test rows" if file_rows is None else file_rows.about
        if len(sample) < len(labelled):
            description = f"{len(sample):,} of {description}, drawn at random"
        with console(error=True).status(f"classifying {len(sample):,} rows"):
            result = report_on(classifier, sample, rows_description=description)
        baseline, doubtful = _fit_linear_models(classifier, result, data, file_rows, linear=linear, labels=labels)
        if file_rows is not None:
            note(*filter(None, [rows_unlike_validation(classifier.checkpoint, result.metrics)]))
            chosen = sample_indices(len(labelled), limit=rows)
            result = replace(
                result,
                metrics={**result.metrics, **file_rows.metrics(result.metrics["accuracy"])},
                row_numbers=[file_rows.numbers[row] for row in chosen],
            )
        if file_rows is None or file_rows.is_held_out:
            result = replace(result, comparison=classifier.checkpoint.metrics.get("comparison"))
    elif linear or table is not None:
        raise DataError(f"{'--linear' if linear else 'the costs'}: cannot be computed without the texts; see above")
    cheapest = None
    if table is not None and result.predictions is not None:
        cheapest = cheapest_policy(result.predictions, table)
    if as_json:
        print_json(_report_object(result, baseline, doubtful, cheapest))
    else:
        _print_report(result, baseline, doubtful, cheapest, linear_command=linear_command)
    if out is not None:
        page = report_html(result, baseline=baseline, doubtful=doubtful, cheapest=cheapest)
        try:
            out.write_text(page, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise DataError(f"cannot write {out}: {reason_of(error)}; choose another file") from None
        note(f"wrote {out}")


def _read_file_rows(classifier: Predictor, data: Path | None, named: Mapping[str, str | None]) -> FileRows | None:
    """The rows of the user's own table, read from the named columns and sheet; None if `data` is not a table."""
    if data is None or not (data.is_file() and has_table_suffix(data.name)):
        return None
    note(f"reading {shown(data.name)}")
    rows = rows_of_file(classifier.checkpoint, data, **named)
    note(*rows.notes)
    return rows


def _fit_linear_models(
    classifier: Predictor, result: Report, data: Path | None, file_rows: FileRows | None, *, linear: bool, labels: bool
) -> tuple[BaselinePredictions | None, DoubtfulLabels | None]:
    """The predictions of the linear baseline, and the rows with doubtful labels, if they were requested."""
    predictions = result.predictions
    assert predictions is not None
    baseline, doubtful = None, None
    with console(error=True).status("fitting linear models"):
        if linear:
            checkpoint = classifier.checkpoint
            seed = 0
            if file_rows is not None and file_rows.fitted is not None:  # fitted as after training
                fitted, seed = file_rows.fitted, checkpoint.config.train.seed
            else:
                path = None if data is not None and data.is_file() else data
                fitted = rows_to_fit(checkpoint, open_dataset(checkpoint.config.data, path=path))
            baseline = predict_with_baseline(predictions, fitted, seed=seed)
        if labels:
            try:
                is_learned = file_rows is not None and file_rows.learned >= MIN_KNOWN
                own_probabilities = None if is_learned else predictions.probabilities
                probabilities = held_out_probabilities(predictions.rows, own_probabilities)
            except DataError as error:
                note(f"no label was checked: {error}")
            else:
                which = "test rows" if file_rows is None or file_rows.is_held_out else "rows of this file"
                doubtful = doubtful_labels(predictions.rows, probabilities, with_classifier=not is_learned, which=which)
    return baseline, doubtful


def _number(result: Report, row: int) -> tuple[str, ...]:
    """The cell with the number of a classified row in the user's file; none if the rows are not from a file."""
    return (f"{result.row_numbers[row]:,}",) if result.row_numbers else ()


def _report_object(
    result: Report,
    baseline: BaselinePredictions | None,
    doubtful: DoubtfulLabels | None,
    cheapest: Cheapest | None,
) -> dict[str, Any]:
    """The report as printed by `--json`.

    If a threshold is null, every text is left to a human; if `doubtful` is null, the labels could not be checked.

    Rows have their numbers in the user's file; if they are not from a file, they are counted from 0.
    """

    def plain_row(row: RowPrediction | DoubtfulRow) -> dict[str, Any]:
        return asdict(row) | ({"row": result.row_numbers[row.row]} if result.row_numbers else {})

    values = {"checkpoint": result.name, "rows": result.rows_description, **result.metrics}
    if result.comparison:
        values["comparison"] = result.comparison
    if result.predictions is not None:
        values["answered"] = [
            {name: getattr(coverage, name) for name in ("confidence", "share", "right", "n")}
            for coverage in coverage_by_confidence(result.predictions)
        ]
        values["confusions"] = [asdict(confusion) for confusion in confusion_words(result.predictions)]
        values["mistakes"] = [plain_row(row) for row in result.predictions.mistakes()]
    if cheapest is not None:
        best = cheapest.best
        values["costs"] = {
            "threshold": None if math.isinf(best.threshold) else best.threshold,
            "cost_of_100": best.cost,
            "checked": None if math.isnan(cheapest.checked) else cheapest.checked,
            "every_answered": cheapest.every.cost,
            "none_answered": cheapest.none.cost,
        }
    if baseline is not None:
        values["linear"] = baseline.accuracy
    if doubtful is not None:
        values["doubtful"] = None if doubtful.is_withheld else [plain_row(row) for row in doubtful.rows]
        values["checking_accuracy"] = round(doubtful.accuracy, 6)
        values["guessing_accuracy"] = round(doubtful.guessing, 6)
    return values


def _print_report(
    result: Report,
    baseline: BaselinePredictions | None,
    doubtful: DoubtfulLabels | None,
    cheapest: Cheapest | None,
    *,
    linear_command: str,
) -> None:
    """Print the report as text and tables."""
    out, number_head = console(), ("row",) if result.row_numbers else ()
    out.print(Text(f"{result.name}: {shown(result.rows_description)}", style="bold"))
    if result.metrics:
        for name, value, meaning in headline_metrics(result.metrics):
            out.print(Text(f"{name:<18}{value:>8}  {meaning}"))
        if result.comparison:
            print_comparison(Comparison.from_dict(result.comparison), linear_command=linear_command)
        elif sentence := majority_sentence(result):
            out.print(Text(sentence))
    if baseline is not None:
        out.print(Text(baseline.verdict()))
        out.print(
            f"the Transformer alone is right on {len(baseline.only_transformer_right()):,} rows; "
            f"the linear baseline alone on {len(baseline.only_baseline_right()):,}"
        )
    counts = result.confusion
    if counts is not None:
        classes = sorted(class_counts_of(result).values(), key=lambda row: row.right / max(row.n, 1))
        lines = [(row.label, row.recall_cell, f"{row.false_positives:,}") for row in classes[: 2 * LISTED] if row.n]
        print_rows(("class", "recall (95 % CI)", "false positives"), lines, title="by class", limit=100)
        pairs = most_confused_pairs(result.classes, counts, n=LISTED)
        pair_lines = [(pair.first, pair.second, f"{pair.n:,}", percentage(pair.share)) for pair in pairs]
        print_rows(("class", "other class", "rows", "share of both"), pair_lines, title="most confused", limit=100)
        for line in class_advice(result):
            out.print(Text(line))
    if result.predictions is not None:
        if not result.predictions.right.all():
            words, caption = words_table(result.predictions)
            if words:
                print_rows(WORDS_HEAD, words, title="words behind each confusion", limit=100)
            out.print(Text(caption))
        coverages = [coverage.cells for coverage in coverage_by_confidence(result.predictions)]
        print_rows(COVERAGE_HEAD, coverages, title="if less confident predictions are left to a human")
        if cheapest is not None:
            policies = [policy.cells for policy in cheapest.policies]
            print_rows(POLICY_HEAD, policies, title=f"costs on {result.rows_description}")
            out.print(Text(str(cheapest)))
        mistakes = [
            (*_number(result, row.row), row.text, row.label, row.predicted, percentage(row.probability))
            for row in result.predictions.mistakes(n=LISTED)
        ]
        print_rows(
            (*number_head, "text", "label", "predicted", "probability"),
            mistakes,
            title="most confident mistakes",
            limit=100,
        )
    if doubtful is not None:
        assert result.predictions is not None  # the doubtful rows are among these
        out.print(Text(str(doubtful)))
        doubtful_lines = [
            (*_number(result, row.row), row.text, row.label, row.suggested, percentage(row.label_probability))
            for row in doubtful.rows[:LISTED]
        ]
        if doubtful_lines:
            print_rows(
                (*number_head, "text", "label", "suggested", "probability of the label"),
                doubtful_lines,
                title="doubtful labels, most doubtful first; they need not be wrong",
                limit=100,
            )
        for line in label_advice(doubtful.rows, result.predictions.rows):
            out.print(Text(line))
