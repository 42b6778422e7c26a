"""A checkpoint's model card (README.md): purpose, data, metrics, settings and training (Mitchell et al. 2019).

The text is the template `card.md.jinja`; huggingface_hub makes the metadata block, so that the Hub lists the model.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from txcls.checkpoint.comparison import Comparison
from txcls.checkpoint.schema import MEASURED_SPLITS
from txcls.config import Calibration, RunConfig, ScopeRule
from txcls.text.formatting import as_markdown, decimals, percentage

if TYPE_CHECKING:
    from huggingface_hub import ModelCardData
    from jinja2 import Template

FEW_CLASSES = 10
"""Maximum number of classes for which a card shows the whole confusion matrix."""
WORD_ORDER_TESTS = {
    "words_shuffled": "words of each text in random order",
    "positions_permuted": "position vectors of each text in random order",
    "positions_mean": "every position vector replaced by their mean",
    "positions_removed": "every position vector replaced by zeros (an input unlike any in training)",
}
"""Descriptions of the accuracies under "order" in metrics.json."""
WORD_ORDER_NOTE = "If the accuracy hardly falls, the classifier hardly uses the order of the words."
_SECTIONS = {
    "heads": "Heads",
    "explanations": "Attribution methods",
    "agreement": "By attractors and constructions",
    "route": "",
    "circuit": "The circuit",
}
"""The parts of metrics.json whose "card" (`card_part`) is printed, each with the heading above it."""
_TRAINING_FACTS = (
    ("command", "command"),
    ("seed", "seed"),
    ("choice of the seed", "seed_choice"),
    ("training time in seconds", "seconds"),
    ("training done", "done"),
    ("epochs run", "epochs"),
    ("best validation in epoch", "best_epoch"),
    ("machine", "machine"),
    ("software", "software"),
)

Table = tuple[str, Sequence[str], Iterable[Sequence[str]]]
"""The text above the table, its header and its rows."""


def card_part(text: str, head: Iterable[str] = (), rows: Iterable[Iterable[str]] = ()) -> dict[str, Any]:
    """A paragraph of a card and the table under it as JSON values, for the "card" of a part of metrics.json."""
    return {"text": text, "head": list(head), "rows": [list(row) for row in rows]}


def model_card(
    *,
    name: str,
    config: RunConfig,
    classes: Sequence[str] = (),
    vocab_size: int,
    n_parameters: int,
    calibration: Calibration | None = None,
    scope: ScopeRule | None = None,
    metrics: Mapping[str, Any],
) -> str:
    """The card of a classifier or, without `classes`, of a language model.

    `metrics` is the content of metrics.json.
    """
    from huggingface_hub import ModelCard

    text = _template().render(
        name=name,
        config=config,
        classes=classes,
        vocab_size=vocab_size,
        n_parameters=n_parameters,
        calibration=calibration or Calibration(),
        scope=scope,
        metrics=metrics,
        data=metrics.get("data", {}),
        training=metrics.get("training", {}),
        comparison=Comparison.from_dict(metrics["comparison"]) if "comparison" in metrics else None,
        validation_rows=_validation_rows(config, metrics.get("data", {})),
        tables=_tables(classes, metrics),
        table=_table,
        sections=_SECTIONS,
        made=_TRAINING_FACTS,
    )
    metadata = _metadata(name, config, metrics, is_classifier=bool(classes))
    return str(ModelCard(f"---\n{metadata.to_yaml()}\n---\n\n{text}")).replace("\u00a0", " ")  # easier to search


@cache  # compiling it takes longer than filling it in
def _template() -> "Template":
    from jinja2 import Environment, FileSystemLoader

    cards = Environment(
        loader=FileSystemLoader(Path(__file__).parent), trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    cards.filters |= {
        "thousands": "{:,}".format,
        "rows": lambda n: f"{n:,} row{'s' * (n != 1)}" if n else "none",
        "decimals": decimals,
        "percent": percentage,
        "text": lambda value: as_markdown(str(value)),
    }
    return cards.get_template("card.md.jinja")


def most_confused(
    classes: Sequence[str], confusion: Sequence[Sequence[int]], *, n: int = 15
) -> list[tuple[str, str, int, float]]:
    """The most frequent errors: true class, predicted class, rows, and their share of the true class's rows."""
    errors = [
        (true_class, predicted, count, count / sum(row))
        for true_class, row in zip(classes, confusion, strict=True)
        for predicted, count in zip(classes, row, strict=True)
        if count and predicted != true_class
    ]
    return sorted(errors, key=lambda error: -error[2])[:n]


def group_name(group: Mapping[str, Any]) -> str:
    """The bounds of a group of rows in words, such as "over 8 to 16"."""
    over, up_to = group["over"], group["up_to"]
    if over is None:
        return "all" if up_to is None else f"up to {up_to:g}"
    return f"over {over:g}" if up_to is None else f"over {over:g} to {up_to:g}"


def _metadata(name: str, config: RunConfig, metrics: Mapping[str, Any], *, is_classifier: bool) -> "ModelCardData":
    from huggingface_hub import EvalResult, ModelCardData

    results = [
        EvalResult(
            task_type="text-classification",
            dataset_type=config.data.dataset,
            dataset_name=metrics.get("data", {}).get("title") or config.data.dataset,
            dataset_split=split,
            metric_type=kind,
            metric_value=metrics[split][key],
        )
        for split in MEASURED_SPLITS
        if is_classifier and split in metrics
        for kind, key in (("accuracy", "accuracy"), ("f1", "macro_f1"))
    ]
    tasks = {"classify": "text-classification", "masked": "fill-mask", "causal": "text-generation"}
    return ModelCardData(
        model_name=name,
        library_name="txcls",
        pipeline_tag=tasks[config.objective],
        datasets=[name for name in config.data.sources or (config.data.dataset,) if name not in ("table", "text")],
        eval_results=results or None,
    )


def _validation_rows(config: RunConfig, data: Mapping[str, Any]) -> str:
    if data.get("validation") == "published with the set":
        return "Validation rows are those published with the set."
    if data.get("validation") == "given beside the training rows":
        return "Validation rows were given separately."
    share, seed = f"{percentage(config.data.validation_fraction, 0)} of the training rows", config.data.split_seed
    if config.data.validation == "hash":
        return f"Validation rows are about {share}, chosen by a hash of their texts (split seed {seed})."
    return f"Validation rows are {share} of every class (split seed {seed})."


def _tables(classes: Sequence[str], metrics: Mapping[str, Any]) -> Iterable[Table]:
    """The tables for the test rows, or for the validation rows if the test rows were not evaluated."""
    split = "test" if "test" in metrics else "validation"
    measured = metrics.get(split)
    if not measured:
        return
    yield (
        f"The tables below are for the Transformer on the {split} rows.",
        ("class", "precision", "recall", "F1", "rows"),
        (
            (row["label"], *(percentage(row[key]) for key in ("precision", "recall", "f1")), f"{row['support']:,}")
            for row in measured["per_class"]
        ),
    )
    confusion = measured.get("confusion")
    if confusion is not None and len(classes) <= FEW_CLASSES:
        yield (
            "Rows by true class (down) and predicted class (across):",
            ("", *classes),
            ((name, *(f"{n:,}" for n in row)) for name, row in zip(classes, confusion, strict=True)),
        )
    elif confusion is not None:
        errors = most_confused(classes, confusion)
        yield (
            f"The {len(errors)} most frequent confusions:",
            ("true class", "predicted class", "rows", "share of the true class"),
            ((true, predicted, f"{n:,}", percentage(share)) for true, predicted, n, share in errors),
        )
    yield (
        "Reliability, accuracy by confidence:",
        ("confidence", "rows", "mean confidence", "accuracy"),
        reliability_rows(measured["reliability"]),
    )
    if groups := measured.get("by_length"):
        lengths = [(group_name(group), f"{group['n']:,}", percentage(group["accuracy"])) for group in groups]
        yield "", ("tokens read", "rows", "accuracy"), lengths
    if order := measured.get("order"):
        rows = [("unchanged", percentage(measured["accuracy"]))]
        rows += [(text, percentage(order[key])) for key, text in WORD_ORDER_TESTS.items() if key in order]
        yield "Accuracy with word order removed:", ("", "accuracy"), rows


def reliability_rows(bins: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, str, str]]:
    """The non-empty bins as table cells: range of confidence, rows, mean confidence, accuracy."""
    return [
        (
            f"{percentage(part['low'], 0)} to {percentage(part['high'], 0)}",
            f"{part['n']:,}",
            percentage(part["confidence"]),
            percentage(part["accuracy"]),
        )
        for part in bins
        if part["n"]
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table followed by an empty line."""
    lines = [f"| {' | '.join(map(as_markdown, row))} |" for row in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:], ""])
