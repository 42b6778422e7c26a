"""A checkpoint's model card (README.md): purpose, data, figures, settings and how it was made (Mitchell et al. 2019).

The text is Markdown; its metadata block is huggingface_hub's, so that the Hub lists the model with its results.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from txcls.checkpoint.comparison import Comparison
from txcls.checkpoint.schema import MEASURED_SPLITS
from txcls.config import Calibration, RunConfig, ScopeRule
from txcls.wording import as_markdown, percentage

if TYPE_CHECKING:
    from huggingface_hub import ModelCardData

FEW_CLASSES = 10
"""Up to this many classes, a card shows the whole confusion matrix."""
ORDER = {
    "words_shuffled": "words of each text in random order",
    "positions_permuted": "position vectors of each text in random order",
    "positions_mean": "every position vector replaced by their mean",
    "positions_removed": "every position vector replaced by zeros (an input unlike any in training)",
}
"""What the figures under "order" in metrics.json are, in words."""


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
    """The card of a model.

    Args:
        name: the checkpoint's name.
        config: all settings of the run.
        classes: a classifier's classes, in the order of the logits; empty for pre-trained models.
        vocab_size: number of tokens.
        n_parameters: number of trained parameters.
        calibration: a classifier's.
        scope: its out-of-scope rule, if it has one.
        metrics: the contents of metrics.json.
    """
    from huggingface_hub import ModelCard

    if classes:
        lines = _classifier_lines(name, config, classes, calibration or Calibration(), scope, metrics)
        limits = [
            "## Limits",
            "",
            "It knows only the classes above and the kind of text it was trained on, and assigns any other text to one "
            "of them. Attention patterns are not by themselves an explanation of a prediction.",
            "",
        ]
    else:
        lines, limits = _pretrained_lines(name, config, metrics), []
    lines += [*_model_lines(config, metrics, vocab_size, n_parameters, is_classifier=bool(classes)), *limits]
    metadata = _metadata(name, config, metrics, is_classifier=bool(classes))
    return str(ModelCard("\n".join(["---", metadata.to_yaml(), "---", "", *lines])))


def most_confused(
    classes: Sequence[str], confusion: Sequence[Sequence[int]], *, n: int = 15
) -> list[tuple[str, str, int, float]]:
    """The most frequent errors: true class, predicted class, rows, and their share of the true class's rows."""
    errors = [
        (true, predicted, count, count / sum(row))
        for true, row in zip(classes, confusion, strict=True)
        for predicted, count in zip(classes, row, strict=True)
        if count and predicted != true
    ]
    return sorted(errors, key=lambda one: -one[2])[:n]


GROUPS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "by_length": ("tokens read", "{:g}".format),
    "by_unknown": ("share of unknown tokens", partial(percentage, digits=0)),
}
"""What rows are grouped by in the figures of a split, and how the bounds of a group are written."""


def group_name(group: Mapping[str, Any], bound: Callable[[float], str]) -> str:
    """The bounds of a group of rows in words, each written by `bound`."""
    over, up_to = group["over"], group["up_to"]
    if over is None:
        return f"up to {bound(up_to)}" if up_to else bound(up_to)
    return f"over {bound(over)}" if up_to is None else f"over {bound(over).removesuffix(' %')} to {bound(up_to)}"


_TASKS = {"classify": "text-classification", "masked": "fill-mask", "causal": "text-generation"}


def _metadata(name: str, config: RunConfig, metrics: Mapping[str, Any], *, is_classifier: bool) -> "ModelCardData":
    from huggingface_hub import EvalResult, ModelCardData

    data = metrics.get("data", {})
    results = [
        EvalResult(
            task_type="text-classification",
            dataset_type=config.data.dataset,
            dataset_name=data.get("title") or config.data.dataset,
            dataset_split=split,
            metric_type=kind,
            metric_value=metrics[split][key],
        )
        for split in MEASURED_SPLITS
        if is_classifier and split in metrics
        for kind, key in (("accuracy", "accuracy"), ("f1", "macro_f1"))
    ]
    return ModelCardData(
        model_name=name,
        library_name="txcls",
        pipeline_tag=_TASKS[config.objective],
        datasets=[name for name in config.data.sources or (config.data.dataset,) if name not in ("table", "text")],
        eval_results=results or None,
    )


def _classifier_lines(
    name: str,
    config: RunConfig,
    classes: Sequence[str],
    calibration: Calibration,
    scope: ScopeRule | None,
    metrics: Mapping[str, Any],
) -> list[str]:
    data = metrics.get("data", {})
    return [
        f"# {as_markdown(f'{name}: {config.title or config.data.dataset}')}",
        "",
        f"A Transformer classifier trained from scratch with txcls into {len(classes)} classes: "
        f"{', '.join(map(as_markdown, classes))}.",
        "",
        *_data_lines(data, ("title", "note", "terms"), counted="rows"),
        _how_rows_were_used(config, data, held_out=config.data.dataset == "table" and "comparison" in metrics),
        "",
        "## Results",
        "",
        "| split | rows | accuracy | macro-F1 | calibration error (15 bins) | log loss |",
        "|---|---|---|---|---|---|",
        *(_result_row(split, metrics[split]) for split in MEASURED_SPLITS if split in metrics),
        "",
        *_new_lines(name, metrics),
        *_comparison_lines(metrics.get("comparison")),
        _calibration_line(calibration),
        "",
        *_scope_lines(scope, metrics.get("scope", {})),
        *_detail_lines(classes, metrics),
        *_head_lines(metrics.get("heads")),
        *_story_lines(metrics.get("atlas")),
        *_circuit_lines(metrics.get("circuit")),
    ]


def _pretrained_lines(name: str, config: RunConfig, metrics: Mapping[str, Any]) -> list[str]:
    figures = metrics.get("language", {})
    kind = {
        "masked": "A masked language model trained from scratch with txcls",
        "causal": "A causal language model trained from scratch with txcls",
    }[config.objective]
    return [
        f"# {as_markdown(f'{name}: {config.title or config.data.dataset}')}",
        "",
        f"{kind}; it has no classes. Classifiers can start from it: `python -m txcls train PRESET --init {name}`.",
        "",
        *_data_lines(metrics.get("data", {}), ("title", "terms"), counted="texts"),
        "## Results",
        "",
        *(f"- {what}: {figures[key]:.4f}" for what, key in _LANGUAGE if key in figures),
        "",
    ]


_LANGUAGE = (
    ("validation loss per predicted token, in nats", "loss"),
    ("perplexity, its exponential", "perplexity"),
    ("token accuracy", "accuracy"),
)


def _data_lines(data: Mapping[str, Any], texts: Sequence[str], *, counted: str) -> list[str]:
    counts = ((split, data.get(f"{split}_rows")) for split in ("train", *MEASURED_SPLITS))
    return [
        "## Data",
        "",
        *(as_markdown(str(data[key])) for key in texts if data.get(key)),
        "",
        f"| {counted} | |",
        "|---|---|",
        *(f"| {split} | {n:,} |" for split, n in counts if n is not None),
        "",
    ]


def _validation_rows(config: RunConfig, data: Mapping[str, Any]) -> str:
    if data.get("validation") == "published with the set":
        return "Validation rows are those published with the set."
    if data.get("validation") == "given beside the training rows":
        return "Validation rows were given beside the training rows."
    share, seed = f"{percentage(config.data.validation_fraction, 0)} of the training rows", config.data.split_seed
    if config.data.validation == "hash":
        return f"Validation rows are about {share}, chosen by a hash of their texts (split seed {seed})."
    return f"Validation rows are {share} of every class (split seed {seed})."


def _how_rows_were_used(config: RunConfig, data: Mapping[str, Any], *, held_out: bool) -> str:
    if held_out:
        return "The calibration was fitted on the validation rows; the test rows were read once, after training."
    return (
        f"{_validation_rows(config, data)} The test rows were read by `evaluate` alone. Weights, calibration and "
        "threshold were chosen on validation rows."
    )


def _result_row(split: str, figures: Mapping[str, Any]) -> str:
    return (
        f"| {split} | {figures['n']:,} | {percentage(figures['accuracy'], 2)} | {figures['macro_f1']:.4f} "
        f"| {figures['ece']:.4f} | {figures['log_loss']:.4f} |"
    )


def _new_lines(name: str, metrics: Mapping[str, Any]) -> list[str]:
    """The commands that measure the test rows and the "new" rows again; empty without a "new" split."""
    if "new" not in metrics:
        return []
    again = f"`txcls evaluate {name}` measures the test rows again, `txcls evaluate {name} --split new` the new ones."
    return [again, ""]


def _comparison_lines(found: Mapping[str, Any] | None) -> list[str]:
    """Beside a majority guess and the linear baseline on the same test rows."""
    if not found:
        return []
    comparison = Comparison.from_dict(found)
    return [
        "Comparison with the linear baseline on the same test rows (95 % intervals in brackets; that of the difference "
        "in accuracy is paired):",
        "",
        *_table(("", "accuracy", "macro-F1"), comparison.table),
        f"{comparison.verdict} Only the Transformer is right on {comparison.only_transformer:,} rows, only the linear "
        f"baseline on {comparison.only_linear:,}. {as_markdown(comparison.settings)}",
        "",
    ]


def _calibration_line(calibration: Calibration) -> str:
    if calibration.power == 1.0:
        return (
            f"Probabilities are softmax(logits / {calibration.temperature:.3f}); the temperature is fitted on "
            "validation rows."
        )
    return (
        f"If softmax gives p, the calibrated probability is proportional to exp(-((-log p) / "
        f"{calibration.temperature:.3f}) ^ {calibration.power:.3f}); both numbers are fitted on validation rows. The "
        "ranking of classes is unchanged."
    )


def _scope_lines(scope: ScopeRule | None, figures: Mapping[str, Any]) -> list[str]:
    if scope is None or not figures:
        return []
    lines = [
        f"A text is called out of scope if its {scope.score.replace('_', ' ')} is below {scope.threshold:.4f}, a "
        "threshold fitted on validation queries:",
        "",
        "| split | out-of-scope queries | AUROC | accuracy, all | accuracy, in scope | recall, out of scope |",
        "|---|---|---|---|---|---|",
    ]
    for split, scope_figures in figures.items():
        shares = (percentage(scope_figures[name], 2) for name in ("accuracy", "accuracy_in", "recall_out"))
        lines.append(f"| {split} | {scope_figures['n_out']:,} | {scope_figures['auroc']:.4f} | {' | '.join(shares)} |")
    return [*lines, ""]


def _detail_lines(classes: Sequence[str], metrics: Mapping[str, Any]) -> list[str]:
    """The tables of the test rows, or of the validation rows where the test rows were not evaluated."""
    split = "test" if "test" in metrics else "validation"
    figures = metrics.get(split)
    if not figures:
        return []
    per_class = (
        (one["label"], *(f"{one[key]:.4f}" for key in ("precision", "recall", "f1")), f"{one['support']:,}")
        for one in figures["per_class"]
    )
    reliability = (
        (
            f"{percentage(one['low'], 0)} to {percentage(one['high'], 0)}",
            f"{one['n']:,}",
            percentage(one["confidence"], 2),
            percentage(one["accuracy"], 2),
        )
        for one in figures["reliability"]
        if one["n"]
    )
    return [
        f"The tables below are of the {split} rows.",
        "",
        *_table(("class", "precision", "recall", "F1", "rows"), per_class),
        *(_confusion_table(classes, figures["confusion"]) if "confusion" in figures else ()),
        "Reliability, accuracy by confidence:",
        "",
        *_table(("confidence", "rows", "mean confidence", "accuracy"), reliability),
        *(
            line
            for key, (name, bound) in GROUPS.items()
            if key in figures
            for line in _table(
                (name, "rows", "accuracy"),
                (
                    (group_name(group, bound), f"{group['n']:,}", percentage(group["accuracy"], 2))
                    for group in figures[key]
                ),
            )
        ),
        *_order_table(figures),
    ]


def _confusion_table(classes: Sequence[str], confusion: Sequence[Sequence[int]]) -> list[str]:
    """The whole matrix for few classes, the most frequent confusions for many."""
    if len(classes) <= FEW_CLASSES:
        rows = ((name, *(f"{n:,}" for n in row)) for name, row in zip(classes, confusion, strict=True))
        return ["Rows by true class (down) and predicted class (across):", "", *_table(("", *classes), rows)]
    found = most_confused(classes, confusion)
    return [
        f"The {len(found)} most frequent confusions:",
        "",
        *_table(
            ("true class", "predicted class", "rows", "share of the true class"),
            ((true, predicted, f"{n:,}", percentage(share)) for true, predicted, n, share in found),
        ),
    ]


def _order_table(figures: Mapping[str, Any]) -> list[str]:
    order = figures.get("order", {})
    rows = [(text, percentage(order[key], 2)) for key, text in ORDER.items() if key in order]
    if not rows:
        return []
    unchanged = ("unchanged", percentage(figures["accuracy"], 2))
    return ["Accuracy with word order removed:", "", *_table(("", "accuracy"), (unchanged, *rows))]


def _head_lines(measured: Mapping[str, Any] | None) -> list[str]:
    if not measured:
        return []
    zero, mean = (measured[off] for off in ("zero", "mean"))
    lines = [
        "## Ablation of heads and feed-forward blocks",
        "",
        f"Accuracy on {measured['n']:,} {measured['split']} rows with one part's output replaced by zeros or by its "
        f"mean (`evaluate --heads`); {percentage(measured['accuracy'], 2)} with none replaced.",
        "",
        "| part | zero | mean |",
        "|---|---|---|",
    ]
    for layer, row in enumerate(zero["heads"]):
        for head, accuracy in enumerate(row):
            mean_accuracy = mean["heads"][layer][head]
            shares = f"{percentage(accuracy, 2)} | {percentage(mean_accuracy, 2)}"
            lines.append(f"| layer {layer + 1}, head {head + 1} | {shares} |")
        shares = " | ".join(percentage(one["feed_forward"][layer], 2) for one in (zero, mean))
        lines.append(f"| layer {layer + 1}, feed-forward | {shares} |")
    if "all_heads" in zero:
        lines.append(f"| all heads | {percentage(zero['all_heads'], 2)} | {percentage(mean['all_heads'], 2)} |")
    if "all_uniform" in measured:
        lines += ["", f"With uniform attention in all heads: {percentage(measured['all_uniform'], 2)}."]
    return [*lines, ""]


VERDICTS = {"wrong": "refuted", "idle": "uniform attention does as well"}
"""What the verdicts of metrics.json are in words, where these are others."""


def _story_lines(atlas: Mapping[str, Any] | None) -> list[str]:
    if not atlas:
        return []
    lines = [
        "## Stories of heads",
        "",
        f"For each head a hypothesis on which keys its queries attend to: found on {atlas['n_found']:,} validation "
        f"texts, tested on {atlas['n_told']:,} {atlas['split']} texts (`evaluate --heads`). Worth: percentage points "
        "of accuracy lost with the head's output replaced by its mean. Brought back: the share of the accuracy lost "
        "with uniform attention that the story's weights bring back, and that the control does: as many other keys, or "
        "the list shuffled among words of like frequency.",
        "",
        "| head | worth | story | brought back | by the control | verdict |",
        "|---|---|---|---|---|---|",
    ]
    for head in atlas["heads"]:
        story = head["story"]
        shares = ("–" if story[name] is None else f"{story[name]:.2f}" for name in ("share", "control_share"))
        place = f"layer {story['layer'] + 1}, head {story['head'] + 1}"
        worth = f"{100 * head['worth']['mean']:.1f}"
        verdict = VERDICTS.get(story["verdict"], story["verdict"])
        lines.append(f"| {' | '.join((place, worth, as_markdown(_story(story)), *shares, as_markdown(verdict)))} |")
    return [*lines, "", *_all_head_lines(atlas)]


def _story(values: Mapping[str, Any]) -> str:
    lists = values.get("lists", {})
    names = (("words", "word list"), ("distances", "distance"))
    clauses = "; ".join(f"{clause['query']} → {clause['key']}" for clause in values["clauses"])
    return clauses or " and ".join(name for key, name in names if key in lists)


def _all_head_lines(atlas: Mapping[str, Any]) -> list[str]:
    if "all_heads" not in atlas:
        return []
    together = atlas["all_heads"]
    rows = (
        ("their own", "accuracy"),
        ("uniform", "uniform"),
        ("a fixed weight for each word and each distance, without queries", "lists"),
        ("the control: these shuffled", "control"),
        ("the stories", "stories"),
    )
    return [
        f"All heads together, on the same {together['n']:,} texts:",
        "",
        *_table(
            ("attention weights", "accuracy"),
            ((name, percentage(together[key], 2)) for name, key in rows if together[key] is not None),
        ),
    ]


def _circuit_lines(circuit: Mapping[str, Any] | None) -> list[str]:
    if not circuit:
        return []
    splits = list(circuit["n"])
    rows = [("none", *(percentage(circuit["none"][split], 1) for split in splits), *["–"] * len(splits))]
    for one in circuit["kept"]:
        row = f"{'and ' * (one is not circuit['kept'][0])}{one['row']['layer'] + 1}.{one['row']['head'] + 1}"
        controls = (
            f"{percentage(one['control'][split], 1)} ({percentage(one['control_most'][split], 1)})" for split in splits
        )
        rows.append(
            (f"{row} [{one['row']['role']}]", *(percentage(one["accuracy"][split], 1) for split in splits), *controls)
        )
    rows.append(("all", *(percentage(circuit["whole"][split], 1) for split in splits), *["–"] * len(splits)))
    lines = [
        "## The circuit",
        "",
        f"Accuracy with every attention row even but those kept (`evaluate --circuit`). A row is one head's attention "
        f"from the tokens of one role: layer.head [role], {circuit['n_rows']} in all. They were chosen one after "
        f"another on {circuit['n_search']:,} validation texts. Control: as many other rows, mean over "
        f"{circuit['n_controls']} random choices (best choice in brackets).",
        "",
        *_table(("rows kept", *splits, *(f"control, {split}" for split in splits)), rows),
    ]
    for one in circuit["pointed"]:
        heads = " and ".join(str(head + 1) for head in one["heads"])
        lines.append(
            f"- With the class token's row of head{'s' * (len(one['heads']) > 1)} {heads} of the last layer put on a "
            f"team, that team is the answer in {percentage(one['share'], 1)} of {one['n']:,} cases (every team of "
            "every test text)."
        )
    return [*lines, ""]


def _model_lines(
    config: RunConfig, metrics: Mapping[str, Any], vocab_size: int, n_parameters: int, *, is_classifier: bool
) -> list[str]:
    model, training = config.model, metrics.get("training", {})
    pooled = f" {model.pooling} pooling," if is_classifier else ""
    return [
        "## Model",
        "",
        f"{model.n_layers} layer{'s' * (model.n_layers != 1)}, {model.n_heads} heads, d_model {model.d_model}, "
        f"d_ff {model.d_ff}, {model.norm}-norm, {model.activation}, {model.positions} positions,{pooled} "
        f"at most {model.max_length} tokens; {config.text.tokenizer} tokens, vocabulary of {vocab_size:,}; "
        f"{n_parameters:,} parameters, stored as float16.",
        "",
        "## How it was made",
        "",
        *(f"- {what}: {as_markdown(str(training[key]))}" for what, key in _HOW if key in training),
        "",
    ]


_HOW = (
    ("command", "command"),
    ("seed", "seed"),
    ("training time in seconds", "seconds"),
    ("epochs run", "epochs"),
    ("best validation in epoch", "best_epoch"),
    ("runs from the same start, of whose weights this is the mean; epochs and steps are of each", "runs"),
    ("machine", "machine"),
    ("software", "software"),
)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table and the empty line after it."""
    lines = [f"| {' | '.join(map(as_markdown, row))} |" for row in (head, *rows)]
    return [lines[0], "|---" * len(head) + "|", *lines[1:], ""]
