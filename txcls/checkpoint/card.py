"""A checkpoint's model card (README.md): purpose, data, metrics, settings and training (Mitchell et al. 2019).

The text is the template `card.md.jinja`; huggingface_hub makes the metadata block, so that the Hub lists the model.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from txcls.checkpoint.comparison import Comparison
from txcls.checkpoint.schema import MEASURED_SPLITS
from txcls.config import Calibration, RunConfig, ScopeRule
from txcls.wording import as_markdown, largest_margin, percentage

if TYPE_CHECKING:
    from huggingface_hub import ModelCardData
    from jinja2 import Template

FEW_CLASSES = 10
"""Maximum number of classes for which a card shows the whole confusion matrix."""
CURVE_ROWS = 12
"""Maximum number of validations shown of a pre-training run."""
WORD_ORDER_TESTS = {
    "words_shuffled": "words of each text in random order",
    "positions_permuted": "position vectors of each text in random order",
    "positions_mean": "every position vector replaced by their mean",
    "positions_removed": "every position vector replaced by zeros (an input unlike any in training)",
}
"""Descriptions of the accuracies under "order" in metrics.json."""
WORD_ORDER_NOTE = "If the accuracy hardly falls, the classifier hardly uses the order of the words."
AGREEMENT = {
    "transformer": "this model",
    "shuffled": "its words in random order",
    "last words": "only the last five words",
    "last word": "only the last word",
    "linear": "linear baseline",
    "encoder": "encoder, trained without labels",
}
"""The models, or the parts of the text, behind the accuracies under "agreement" in metrics.json."""
METHODS = {
    "attention": "Last-layer attention",
    "rollout": "Attention rollout",
    "pooling": "Pooling attention",
    "gradient": "Gradient × input",
    "integrated": "Integrated gradients",
    "leave_one_out": "Leave one out",
}
"""Names of the attribution methods of `txcls.inspection.attribution`. Pooling attention exists only in models that pool
by attention."""
GROUPS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "by_length": ("tokens read", "{:g}".format),
    "by_unknown": ("share of unknown words", partial(percentage, digits=0)),
}
"""The quantities by which rows are grouped, and the function that formats a group's bounds."""
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

MIN_COST = 0.005
"""A head's story is not tested if uniform weights cost less accuracy."""
CLEAR = 0.4
"""Minimum weight on the keys of every clause, averaged over its queries, for a pattern to look clear."""
MIN_CLEAR_RATIO = 3.0
"""Minimum ratio of this weight to that of uniform attention, for a pattern to look clear."""
_WEIGHTS = (
    ("their own", "accuracy"),
    ("uniform", "uniform"),
    ("for each head, a fixed weight for each word and each distance", "lists"),
    ("the control: these shuffled", "control"),
)

Table = tuple[str, Sequence[str], Iterable[Sequence[str]]]
"""The text above the table, its header and its rows."""


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
    history: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The card of a classifier or, without `classes`, of a language model.

    `metrics` is the content of metrics.json, `history` the rows of history.jsonl.
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
        curve=_evenly([row for row in history if row.get("tokens")], CURVE_ROWS),
        table=_table,
        circuit_table=_circuit_table(metrics["circuit"]) if "guess" in metrics.get("circuit", {}) else "",
        made=_TRAINING_FACTS,
        story_rows=map(_story_row, metrics.get("atlas", {}).get("heads", ())),
        weight_rows=_weight_rows(metrics["atlas"]) if "all_heads" in metrics.get("atlas", {}) else (),
        agreement_kinds=AGREEMENT,
        attribution_methods=METHODS,
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
        "decimals": _decimals,
        "percent": percentage,
        "log": math.log,
        "margin": largest_margin,
        "text": lambda value: as_markdown(str(value)),
    }
    return cards.get_template("card.md.jinja")


def _evenly(rows: Sequence[Mapping[str, Any]], n: int) -> list[Mapping[str, Any]]:
    """At most n of the rows, evenly spaced, including the first and the last."""
    if len(rows) <= n:
        return list(rows)
    return [rows[round(k * (len(rows) - 1) / (n - 1))] for k in range(n)]


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


def group_name(group: Mapping[str, Any], format_bound: Callable[[float], str]) -> str:
    """The bounds of a group of rows in words, each formatted by `format_bound`."""
    over, up_to = group["over"], group["up_to"]
    if over is None:
        return "all" if up_to is None else f"up to {format_bound(up_to)}" if up_to else format_bound(up_to)
    return (
        f"over {format_bound(over)}"
        if up_to is None
        else f"over {format_bound(over).removesuffix('%').strip()} to {format_bound(up_to)}"
    )


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
        f"The tables below are for the {split} rows.",
        ("class", "precision", "recall", "F1", "rows"),
        (
            (row["label"], *(f"{row[key]:.4f}" for key in ("precision", "recall", "f1")), f"{row['support']:,}")
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
        reliability_rows(measured["reliability"], digits=2),
    )
    for key, (quantity, format_bound) in GROUPS.items():
        if key in measured:
            groups = measured[key]
            yield (
                "",
                (quantity, "rows", "accuracy"),
                ((group_name(g, format_bound), f"{g['n']:,}", percentage(g["accuracy"], 2)) for g in groups),
            )
    if order := measured.get("order"):
        rows = [("unchanged", percentage(measured["accuracy"], 2))]
        rows += [(text, percentage(order[key], 2)) for key, text in WORD_ORDER_TESTS.items() if key in order]
        yield "Accuracy with word order removed:", ("", "accuracy"), rows


def _story_row(head: Mapping[str, Any]) -> tuple[str, ...]:
    """The cells for one head: its worth, its story, what the story and its control restore, and the verdict."""
    story, changed = head["story"], head.get("changed")
    interval = f" ({points_range(changed['low'], changed['high'])})" if changed else ""
    clauses = "; ".join(f"{clause['query']} → {clause['key']}" for clause in story["clauses"])
    names = [name for key, name in (("words", "word list"), ("distances", "distance")) if key in story.get("lists", ())]
    if len(names) > 1 and not story.get("is_minimal"):
        names[1] += " (not tested which of the two matters)"
    restored = control = "–"
    if story["share"] is not None and story["verdict"] != "idle" and not story.get("has_leak"):
        low, high = story["interval"]
        restored = _decimals(story["share"], 2)
        restored += "" if low is None else f" ({_decimals(low, 2)} to {_decimals(high, 2)})"
        control = _decimals(story["control_share"], 2)
        if ends := story.get("control_range"):
            shares = (_decimals((end - story["even"]) / (story["accuracy"] - story["even"]), 2) for end in ends)
            control += f" ({' to '.join(shares)})"
    return (
        f"layer {story['layer'] + 1}, head {story['head'] + 1}",
        f"{points_number(head['worth']['mean'])}{interval}",
        "not described" if story.get("has_leak") else clauses or " and ".join(names),
        restored,
        control,
        _verdict(head),
    )


def _verdict(head: Mapping[str, Any]) -> str:
    """The verdict on a head's story in words (as in `txcls.inspection.stories.wording`)."""
    story = head["story"]
    if story["verdict"] == "idle":
        cost = head["worth"]["uniform"]
        if cost < MIN_COST:
            return "not tested: uniform weights for these queries cost under 0.5 points"
        for_all, for_these = map(points_number, (cost, story["accuracy"] - story["even"]))
        weights = [(weight or 0.0, chance) for weight, chance in zip(story["attention"], story["chance"], strict=True)]
        is_clear = all(
            chance is not None and weight >= max(CLEAR, MIN_CLEAR_RATIO * chance) for weight, chance in weights
        )
        found = "looks clear, not tested for these queries" if is_clear else "no story found"
        return f"{found}: uniform weights for all queries cost {for_all} points, for these queries {for_these}"
    if story.get("has_leak"):
        return "not tested: its queries depend on the prediction"
    if story["verdict"] == "undecided":
        high = story["interval"][1]
        is_below_control = high is not None and story["control_share"] > high
        return "undecided" if is_below_control else "tested on too few texts to say"
    if story["verdict"] == "confirmed" and story.get("key_is_answer"):
        return "confirmed, but its key is the answer"
    return str(story["verdict"])


def _weight_rows(atlas: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """The accuracy with the attention weights of all heads replaced together."""
    together = atlas["all_heads"]
    for name, key in _WEIGHTS:
        draws = ""
        if key == "control":
            ends = together.get("control_range")
            draws = f" ({' to '.join(percentage(end, 2) for end in ends)} by draw)" if ends else " (one draw)"
        yield name, percentage(together[key], 2) + draws
    verdicts = [head["story"]["verdict"] for head in atlas["heads"]]
    if together["stories"] is not None and "confirmed" in verdicts:
        n_idle = verdicts.count("idle")
        n_tested = len(verdicts) - n_idle
        stories = f"the {'story' if n_tested == 1 else 'stories'} of {n_tested} head{'s' if n_tested > 1 else ''}"
        name = stories + (f", lists for the other {n_idle}" if n_idle else "")
        yield name, percentage(together["stories"], 2)


def _circuit_table(circuit: Mapping[str, Any]) -> str:
    """The table of accuracies by the attention rows that are kept."""
    splits = list(circuit["n"])
    dashes = ["–"] * len(splits)
    rows = [
        [name, *(percentage(circuit[key][split]) for split in splits), *dashes]
        for name, key in (("a guess among the classes that a text names", "guess"), ("none", "none"))
    ]
    for kept in circuit["kept"]:
        name = f"{kept['row']['layer'] + 1}.{kept['row']['head'] + 1} [{kept['row']['role']}]"
        controls = (
            f"{percentage(kept['control'][split])} ({percentage(kept['control_most'][split])})" for split in splits
        )
        prefix = "and " if len(rows) > 2 else ""
        rows.append([prefix + name, *(percentage(kept["accuracy"][split]) for split in splits), *controls])
    for name, key in (("all but these", "without"), ("all", "whole")):
        rows.append([name, *(percentage(circuit[key][split]) for split in splits), *dashes])
    return _table(("rows kept", *splits, *(f"control, {split}" for split in splits)), rows)


def reliability_rows(bins: Iterable[Mapping[str, Any]], *, digits: int = 1) -> list[tuple[str, str, str, str]]:
    """The non-empty bins as table cells: range of confidence, rows, mean confidence, accuracy."""
    return [
        (
            f"{percentage(part['low'], 0)} to {percentage(part['high'], 0)}",
            f"{part['n']:,}",
            percentage(part["confidence"], digits),
            percentage(part["accuracy"], digits),
        )
        for part in bins
        if part["n"]
    ]


def points_number(lost: float, *, digits: int | None = None) -> str:
    """An accuracy lost in percentage points: "15", "−0.4"; from ten points on without decimals if `digits` is None."""
    return _decimals(100 * lost, int(abs(round(100 * lost, 1)) < 9.95) if digits is None else digits)


def needs_two_decimals(low: float, high: float) -> bool:
    """Whether an end of this interval would be rounded to 0 or to MIN_COST, on which the verdict depends."""
    return bool({round(low, 3), round(high, 3)} & {0, MIN_COST})


def points_range(low: float, high: float, *, two_decimals: bool = False) -> str:
    """An interval in percentage points: "14 to 16".

    Both ends have two decimals if they need them, or, under ten points, with `two_decimals`.
    """
    digits = 2 if needs_two_decimals(low, high) or (two_decimals and abs(low) < 0.0995) else None
    return " to ".join(points_number(end, digits=digits) for end in (low, high))


def _decimals(value: float, digits: int = 4) -> str:
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # + 0.0 turns -0.0 into 0.0


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table followed by an empty line."""
    lines = [f"| {' | '.join(map(as_markdown, row))} |" for row in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:], ""])
