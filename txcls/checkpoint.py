"""A trained classifier as a folder of plain files: saved all at once or not at all, loaded with everything checked.

model.safetensors   weights, see stored.py    config.json    every setting of the run, and the calibration
tokenizer.json      text to ids               labels.json    class names in the order of the logits
metrics.json        figures, and how they came about         history.jsonl  one row per validation while training
README.md           the model card, written from the rest
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from txcls.config import Calibration, RunConfig, ScopeRule
from txcls.errors import CheckpointError
from txcls.folders import FILES, checkpoint_root, fingerprint, new_folder, reading, reason, settle
from txcls.listing import FORMAT_VERSION, Listing, Summary, checked_config, checkpoint_names, list_checkpoints
from txcls.record import (
    MOST_CLASSES_OF_A_MATRIX,
    one_line,
    read_history,
    read_json,
    read_labels,
    read_metrics,
)
from txcls.stored import described, restored, stored
from txcls.text.encoder import TextEncoder

if TYPE_CHECKING:
    import torch

    from txcls.model import Encoder

__all__ = [
    "FILES",
    "FORMAT_VERSION",
    "Checkpoint",
    "Listing",
    "Summary",
    "checkpoint_names",
    "checkpoint_root",
    "find_checkpoint",
    "fingerprint",
    "group_name",
    "list_checkpoints",
    "load_checkpoint",
    "model_card",
    "most_confused",
    "save_checkpoint",
    "write_json",
]


@dataclass(frozen=True)
class Checkpoint:
    """Everything needed to classify (or, for a language model, to go on), and the record of how it was made.

    `model` is a `TextClassifier` where the config's objective is to classify. Without classes it is a `LanguageModel`,
    or a `ReplacedTokenDetector` where the objective is replaced tokens.
    """

    path: Path
    config: RunConfig
    encoder: TextEncoder
    classes: tuple[str, ...]
    model: "Encoder"
    calibration: Calibration = field(default_factory=Calibration)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()
    scope: ScopeRule | None = None

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.name

    @property
    def n_parameters(self) -> int:
        """Trained numbers in the model."""
        return sum(parameter.numel() for parameter in self.model.parameters())


def find_checkpoint(path_or_name: str | Path) -> Path:
    """The folder that a path or a name under `checkpoint_root()` means.

    Raises:
        CheckpointError: neither is a folder.
    """
    candidates = (Path(path_or_name), checkpoint_root() / path_or_name)
    for attempt in range(2):
        for candidate in candidates:
            with suppress(OSError, ValueError):  # a name too long, or with a NUL byte
                if candidate.is_dir():
                    return candidate
                if not attempt:
                    settle(candidate.parent)  # it may be being replaced now, or a kill may have left it half replaced
    known = ", ".join(checkpoint_names()) or "none yet: `python -m txcls train sample` makes one"
    raise CheckpointError(one_line(f"no checkpoint folder {str(path_or_name)!r:.200}; known names: {known}"))


def save_checkpoint(checkpoint: Checkpoint) -> None:
    """Write the folder `checkpoint.path`, replacing an older one only once the new one is complete on disk.

    Weights are stored as float16, or wide tables as int8 where the config says so, which makes the files half or a
    quarter as large (`txcls.stored`); `load_checkpoint` gives float32 again.

    Raises:
        CheckpointError: the folder cannot be written, or the disk is full; what was there before is still there.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    target = checkpoint.path
    try:
        with new_folder(target) as temporary:
            weights = stored(checkpoint.model.state_dict(), checkpoint.config.stored_tables)
            if worst := [name for name, tensor in weights.items() if not torch.isfinite(tensor).all()]:
                raise CheckpointError(f"weights {', '.join(worst)} are not finite in float16; nothing was saved")
            save_file(weights, temporary / "model.safetensors", metadata={"format": "txcls"})
            write_json(
                temporary / "config.json",
                {
                    "format_version": FORMAT_VERSION,
                    "calibration": checkpoint.calibration.model_dump(mode="json"),
                    "scope": None if checkpoint.scope is None else checkpoint.scope.model_dump(mode="json"),
                    **checkpoint.config.model_dump(mode="json"),
                },
            )
            write_json(temporary / "tokenizer.json", checkpoint.encoder.to_dict(), indent=None)
            write_json(temporary / "labels.json", list(checkpoint.classes))
            write_json(temporary / "metrics.json", _written(checkpoint.metrics))
            rows = "".join(json.dumps(row) + "\n" for row in checkpoint.history)
            (temporary / "history.jsonl").write_text(rows, encoding="utf-8")
            (temporary / "README.md").write_text(model_card(checkpoint), encoding="utf-8")
            for file in temporary.iterdir():
                file.chmod(0o644)  # safetensors lets nobody else read its files; a server may run as another user
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"cannot save checkpoint {target}: {reason(error):.200}; an older one there is untouched. "
            "Free some space or choose another folder"
        ) from error


def _written(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The record without confusion matrices of so many classes that metrics.json would be too large to read back."""
    written = dict(metrics)
    for split in ("validation", "test"):
        if len(metrics.get(split, {}).get("confusion", ())) > MOST_CLASSES_OF_A_MATRIX:
            written[split] = {key: value for key, value in metrics[split].items() if key != "confusion"}
    return written


def write_json(path: Path, value: object, *, indent: int | None = 2) -> None:
    """Write a value as UTF-8 JSON with a final newline; a list of numbers, such as a matrix's row, takes one line."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if indent is not None:  # a line break stands for itself only outside strings, so that no string is touched
        text = re.sub(r"\[\n[\d\s,.eE+-]+\]", lambda found: "[" + " ".join(found[0][1:-1].split()) + "]", text)
    path.write_text(text + "\n", encoding="utf-8")


def load_checkpoint(path_or_name: str | Path) -> Checkpoint:
    """Read a checkpoint folder onto the CPU, model in evaluation mode; nothing in it is executed or unpickled.

    A checkpoint that is being replaced is read as it was before or as it is after.

    Raises:
        CheckpointError: a file is missing, damaged or does not fit the others; the message names file and field.
    """
    path = find_checkpoint(path_or_name)
    try:
        with reading(path.absolute().parent):
            return _load(path)
    except CheckpointError as error:
        raise CheckpointError(one_line(str(error))) from None


def _load(path: Path) -> Checkpoint:
    if missing := [name for name in FILES if not (path / name).is_file()]:
        raise CheckpointError(f"checkpoint {path} lacks {', '.join(missing)}; copy the whole folder, or train it again")
    source = path / "config.json"
    config, calibration, scope = checked_config(read_json(source, dict), source=str(source))
    classes = read_labels(path / "labels.json") if config.objective == "classify" else ()
    metrics = read_metrics(path / "metrics.json")
    history = read_history(path / "history.jsonl")
    for split in ("validation", "test"):
        n = len(metrics.get(split, {}).get("confusion", classes))
        if n != len(classes):
            raise CheckpointError(
                f"{path / 'metrics.json'}: {split}.confusion is of {n} classes; labels.json names {len(classes)}"
            )
    tokenizer = read_json(path / "tokenizer.json", dict)
    wanted = (config.model.max_length, config.reads_class_token)
    if (came := (tokenizer.get("max_length"), tokenizer.get("class_token"))) != wanted:
        raise CheckpointError(
            f"{path / 'tokenizer.json'}: max_length {came[0]!r:.50} and class_token {came[1]!r:.50} "
            f"do not fit config.json, which wants {wanted[0]} and {wanted[1]}"
        )
    tokens = tokenizer.get("tokens")
    if not isinstance(tokens, list) or not tokens:
        raise CheckpointError(f"{path / 'tokenizer.json'}: tokens: wanted the list of all tokens, got {tokens!r:.50}")
    model = _on_paper(path, config, vocab_size=len(tokens), n_classes=len(classes))
    encoder = _encoder(path / "tokenizer.json", tokenizer)
    _fill(model, path / "model.safetensors")
    return Checkpoint(path, config, encoder, classes, model, calibration, metrics, history, scope)


def _encoder(path: Path, values: dict[str, Any]) -> TextEncoder:
    try:
        return TextEncoder.from_dict(values)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None


def _on_paper(path: Path, config: RunConfig, *, vocab_size: int, n_classes: int) -> "Encoder":
    """The model that a folder's small files describe, on the meta device, checked to have the shapes of its weights.

    So nothing is allocated for a model that its file does not hold.
    """
    import torch

    from txcls.model import LanguageModel, ReplacedTokenDetector, TextClassifier

    file = path / "model.safetensors"
    weights = restored(described(file))
    model: Encoder
    try:
        with torch.device("meta"):
            if config.objective == "classify":
                model = TextClassifier(config.model, vocab_size=vocab_size, n_classes=n_classes)
            else:
                kind = ReplacedTokenDetector if config.objective == "replaced" else LanguageModel
                model = kind(config.model, vocab_size=vocab_size)
    except (ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: no model can be made of its settings ({error!s:.200})") from None
    wanted = model.state_dict()
    problems = [f"lacks {name}" for name in wanted if name not in weights]
    problems += [f"holds unknown {name:.200}" for name in weights if name not in wanted]
    problems += [
        f"{name} is {tuple(weights[name].shape)}, wanted {tuple(tensor.shape)}"
        for name, tensor in wanted.items()
        if name in weights and weights[name].shape != tensor.shape
    ]
    problems += [
        f"{name} is {weights[name].dtype}, wanted {'floating point' if tensor.is_floating_point() else tensor.dtype}"
        for name, tensor in wanted.items()
        if name in weights and not _may_become(weights[name].dtype, tensor.dtype)
    ]
    _refuse(file, problems)
    return model


def _fill(model: "Encoder", file: Path) -> None:
    """Give a model on the meta device the weights of a file that fits it."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from txcls.model import sinusoidal_encoding

    try:
        weights = restored(load_file(file))
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{file}: not a whole safetensors file ({error!s:.200})") from None
    odd = [name for name, one in weights.items() if one.is_floating_point() and not torch.isfinite(one).all()]
    _refuse(file, [f"{name} holds values that are not finite" for name in odd])
    wanted = model.state_dict()
    model.load_state_dict({name: tensor.to(wanted[name].dtype) for name, tensor in weights.items()}, assign=True)
    if model.config.positions == "sinusoidal":  # not in the file, since they follow from the settings
        model.embeddings.positional = sinusoidal_encoding(model.config.max_length, model.config.d_model)
    model.eval()


def _refuse(file: Path, problems: Sequence[str]) -> None:
    if problems:
        shown = "; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" if len(problems) > 5 else "")
        raise CheckpointError(f"{file} does not fit config.json, tokenizer.json and labels.json: {shown}")


def _may_become(stored: "torch.dtype", wanted: "torch.dtype") -> bool:
    """Weights are stored in half precision; what is counted, as it is."""
    return bool(stored.is_floating_point if wanted.is_floating_point else stored == wanted)


def model_card(checkpoint: Checkpoint) -> str:
    """The checkpoint's README.md: purpose, data, settings, figures, the command that made it (Mitchell et al. 2019)."""
    if checkpoint.config.objective != "classify":
        return _language_model_card(checkpoint)
    config, metrics = checkpoint.config, checkpoint.metrics
    data = metrics.get("data", {})
    rows = [f"| {what} | {value:,} |" for what, value in _counts(data) if value is not None]
    lines = [
        f"# {checkpoint.name}: {config.title or config.data.dataset}",
        "",
        f"A Transformer classifier trained from scratch with txcls into {len(checkpoint.classes)} classes: "
        f"{', '.join(checkpoint.classes)}.",
        "",
        "## Data",
        "",
        *(line for line in (data.get("title"), data.get("note"), data.get("terms")) if line),
        "",
        "| rows | |",
        "|---|---|",
        *rows,
        "",
        f"{_validation_rows(checkpoint)} The test rows were read by `evaluate` alone."
        " Weights, calibration and threshold were chosen on validation rows.",
        "",
        "## Results",
        "",
        "| split | rows | accuracy | macro-F1 | calibration error (15 bins) | log loss |",
        "|---|---|---|---|---|---|",
        *(_result_row(split, metrics[split]) for split in ("validation", "test") if split in metrics),
        "",
        _calibration_line(checkpoint.calibration),
        "",
        *_scope_lines(checkpoint),
        *_details(checkpoint),
        *_head_lines(metrics.get("heads")),
        *_model_lines(checkpoint),
        "## Limits",
        "",
        "It knows only the classes above and the kind of text it was trained on, and puts any other text into one of "
        "them. Attention maps show where it looked, which is not by itself a reason for its answer.",
        "",
    ]
    return "\n".join(lines)


def _head_lines(measured: Mapping[str, Any] | None) -> list[str]:
    if not measured:
        return []
    zero, mean = (measured[off] for off in ("zero", "mean"))
    lines = [
        "## What each part is worth",
        "",
        f"Accuracy on {measured['n']:,} {measured['split']} rows with one part alone switched off, by zeros or by what "
        f"it writes on average, as `evaluate --heads` measured it; {measured['accuracy']:.2%} with all of them.",
        "",
        "| part | zero | mean |",
        "|---|---|---|",
    ]
    for layer, row in enumerate(zero["heads"]):
        for head, accuracy in enumerate(row):
            lines.append(f"| layer {layer + 1}, head {head + 1} | {accuracy:.2%} | {mean['heads'][layer][head]:.2%} |")
        both = (one["feed_forward"][layer] for one in (zero, mean))
        lines.append(f"| layer {layer + 1}, feed-forward | {' | '.join(f'{accuracy:.2%}' for accuracy in both)} |")
    return [*lines, ""]


def _language_model_card(checkpoint: Checkpoint) -> str:
    config, metrics = checkpoint.config, checkpoint.metrics
    data, language = metrics.get("data", {}), metrics.get("language", {})
    made = {
        "masked": "A language model trained from scratch with txcls to say masked tokens",
        "causal": "A language model trained from scratch with txcls to say the next token",
        "replaced": "An encoder pre-trained from scratch with txcls to find replaced tokens (ELECTRA)",
    }[config.objective]
    lines = [
        f"# {checkpoint.name}: {config.title or config.data.dataset}",
        "",
        f"{made}; it has no classes. Classifiers can start from it: `python -m txcls train PRESET --init "
        f"{checkpoint.name}`.",
        "",
        "## Data",
        "",
        *(line for line in (data.get("title"), data.get("terms")) if line),
        "",
        "| texts | |",
        "|---|---|",
        *(f"| {what} | {value:,} |" for what, value in _counts(data) if value is not None),
        "",
        "## Results",
        "",
        *(f"- {what}: {language[key]:.4f}" for what, key in _RESULTS[config.objective] if key in language),
        "",
        *_model_lines(checkpoint),
    ]
    return "\n".join(lines)


_LANGUAGE = (
    ("validation loss per token that is asked for, in nats", "loss"),
    ("perplexity, its exponential", "perplexity"),
    ("share of these tokens guessed right", "accuracy"),
)
_DETECTION = (
    ("validation loss, generator and detector", "loss"),
    ("share of tokens rightly judged original or replaced", "accuracy"),
)
_RESULTS = {"masked": _LANGUAGE, "causal": _LANGUAGE, "replaced": _DETECTION}


def _model_lines(checkpoint: Checkpoint) -> list[str]:
    model, text = checkpoint.config.model, checkpoint.config.text
    training = checkpoint.metrics.get("training", {})
    pooled = f" {model.pooling} pooling," if checkpoint.classes else ""
    bigrams = (
        f", {model.ngram_buckets:,} {model.ngrams} bigram vectors of width {model.d_ngram}"
        if model.ngram_buckets
        else ""
    )
    phrases = (
        f", {model.phrases:,} phrases of up to {model.phrase_length} tokens, whose votes are added to the logits"
        if model.phrases and checkpoint.classes
        else ""
    )
    return [
        "## Model",
        "",
        f"{model.n_layers} layer{'s' * (model.n_layers != 1)}, {model.n_heads} heads, d_model {model.d_model}, "
        f"d_ff {model.d_ff}, {model.norm}-norm, {model.activation}, {model.positions} positions,{pooled} "
        f"at most {model.max_length} tokens; {text.tokenizer} tokens, vocabulary of {checkpoint.encoder.vocab_size:,}"
        f"{bigrams}{phrases}; {checkpoint.n_parameters:,} parameters, stored as float16"
        f"{_EIGHT_BITS[checkpoint.config.stored_tables]}.",
        "",
        "## How it was made",
        "",
        *(f"- {what}: {training[key]}" for what, key in _HOW if key in training),
        *_phrase_lines(checkpoint.metrics.get("phrases")),
        "",
    ]


_EIGHT_BITS = {"float16": "", "int8": ", wide tables as eight-bit integers with a scale for each row"}


def _phrase_lines(measured: Mapping[str, Any] | None) -> list[str]:
    if not measured:
        return []
    return [
        f"- votes of phrases: a linear model of {measured['n']:,} phrases, fitted to the same training texts by "
        f"itself; log loss of validation rows {measured['log_loss_without']:.4f} without them, "
        f"{measured['log_loss_with']:.4f} with them, each at its best temperature"
    ]


_HOW = (
    ("command", "command"),
    ("seed", "seed"),
    ("training time in seconds", "seconds"),
    ("epochs run", "epochs"),
    ("best validation in epoch", "best_epoch"),
    ("machine", "machine"),
    ("software", "software"),
)


def _counts(data: Mapping[str, Any]) -> Iterable[tuple[str, int | None]]:
    for split in ("train", "validation", "test"):
        yield split, data.get(f"{split}_rows")


def _scope_lines(checkpoint: Checkpoint) -> list[str]:
    figures = checkpoint.metrics.get("scope", {})
    if checkpoint.scope is None or not figures:
        return []
    lines = [
        f"A text is called out of scope where its {checkpoint.scope.score.replace('_', ' ')} is below "
        f"{checkpoint.scope.threshold:.4f}, a threshold fitted on validation queries:",
        "",
        "| split | of no class | AUROC | accuracy, all | accuracy, of a class | turned away, of no class |",
        "|---|---|---|---|---|---|",
    ]
    for split, one in figures.items():
        lines.append(
            f"| {split} | {one['n_out']:,} | {one['auroc']:.4f} | {one['accuracy']:.2%} | {one['accuracy_in']:.2%} "
            f"| {one['recall_out']:.2%} |"
        )
    return [*lines, ""]


def _calibration_line(calibration: Calibration) -> str:
    if calibration.power == 1.0:
        return (
            f"Probabilities are softmax(logits / {calibration.temperature:.3f}), a temperature fitted on validation "
            "rows."
        )
    return (
        f"Where softmax gives p, probabilities go as exp(-((-log p) / {calibration.temperature:.3f}) ^ "
        f"{calibration.power:.3f}), two numbers fitted on validation rows; the order of the classes stays as it is."
    )


def _validation_rows(checkpoint: Checkpoint) -> str:
    if checkpoint.metrics.get("data", {}).get("validation") == "published with the set":
        return "Validation rows are those that were published with the set."
    data = checkpoint.config.data
    share = f"{data.validation_fraction:.0%} of the training rows of every class"
    return f"Validation rows are {share} (split seed {data.split_seed})."


def _result_row(split: str, figures: Mapping[str, Any]) -> str:
    return (
        f"| {split} | {figures['n']:,} | {figures['accuracy']:.2%} | {figures['macro_f1']:.4f} "
        f"| {figures['ece']:.4f} | {figures['log_loss']:.4f} |"
    )


def _details(checkpoint: Checkpoint) -> list[str]:
    """The tables of the test rows, or of the validation rows as long as the test rows were not read."""
    split = "test" if "test" in checkpoint.metrics else "validation"
    figures = checkpoint.metrics.get(split)
    if not figures:
        return []
    groups = {"tokens read": ("by_length", "{:g}"), "share of unknown tokens": ("by_unknown", "{:.0%}")}
    return [
        f"The tables below are of the {split} rows.",
        "",
        *_table(
            ("class", "precision", "recall", "F1", "rows"),
            (
                (one["label"], *(f"{one[key]:.4f}" for key in ("precision", "recall", "f1")), f"{one['support']:,}")
                for one in figures["per_class"]
            ),
        ),
        *(_confusion_table(checkpoint.classes, figures["confusion"]) if "confusion" in figures else ()),
        "How often it is right, beside how sure it is:",
        "",
        *_table(
            ("confidence", "rows", "mean confidence", "accuracy"),
            (
                (
                    f"{one['low']:.0%} to {one['high']:.0%}",
                    f"{one['n']:,}",
                    f"{one['confidence']:.2%}",
                    f"{one['accuracy']:.2%}",
                )
                for one in figures["reliability"]
                if one["n"]
            ),
        ),
        *(
            line
            for what, (key, form) in groups.items()
            if key in figures
            for line in _table(
                (what, "rows", "accuracy"),
                ((group_name(one, form), f"{one['n']:,}", f"{one['accuracy']:.2%}") for one in figures[key]),
            )
        ),
        *_order_table(figures),
    ]


def _confusion_table(classes: Sequence[str], confusion: Sequence[Sequence[int]]) -> list[str]:
    """The whole matrix for few classes, the most frequent confusions for many."""
    if len(classes) <= FEW_CLASSES:
        rows = ((name, *(f"{n:,}" for n in row)) for name, row in zip(classes, confusion, strict=True))
        return [
            "Rows by true class (down) and class given (across):",
            "",
            *_table(("", *classes), rows),
        ]
    found = most_confused(classes, confusion)
    return [
        f"The {len(found)} most frequent confusions"
        + ("; metrics.json has the whole matrix:" if len(classes) <= MOST_CLASSES_OF_A_MATRIX else ":"),
        "",
        *_table(
            ("true class", "class given", "rows", "share of the true class"),
            ((true, given, f"{n:,}", f"{share:.1%}") for true, given, n, share in found),
        ),
    ]


def most_confused(
    classes: Sequence[str], confusion: Sequence[Sequence[int]], *, n: int = 15
) -> list[tuple[str, str, int, float]]:
    """The most frequent mistakes: true class, class given, rows, and their share of the true class's rows."""
    mistakes = [
        (true, given, count, count / sum(row))
        for true, row in zip(classes, confusion, strict=True)
        for given, count in zip(classes, row, strict=True)
        if count and given != true
    ]
    return sorted(mistakes, key=lambda one: -one[2])[:n]


def _order_table(figures: Mapping[str, Any]) -> list[str]:
    order = figures.get("order", {})
    rows = [(text, f"{order[key]:.2%}") for key, text in ORDER.items() if key in order]
    if not rows:
        return []
    return [
        "What it draws from the order of words, and from phrases:"
        if "phrases_removed" in order
        else "What it draws from the order of words:",
        "",
        *_table(("", "accuracy"), (("as it is", f"{figures['accuracy']:.2%}"), *rows)),
    ]


FEW_CLASSES = 10
"""Up to so many classes a card shows the whole confusion matrix."""
ORDER = {
    "words_shuffled": "words of each text in random order",
    "positions_removed": "position vectors removed (bigram vectors and phrases, if there are any, still tell of "
    "neighbours)",
    "positions_and_bigrams_removed": "position and bigram vectors removed",
    "phrases_removed": "votes of phrases removed: the Transformer alone",
}
"""What the figures under "order" in metrics.json are, in words."""


def group_name(one: Mapping[str, Any], form: str) -> str:
    """The bounds of a group under "by_length" or "by_unknown" in words, each number written as `form` says."""
    over, up_to = one["over"], one["up_to"]
    if over is None:
        return form.format(up_to) if not up_to else f"up to {form.format(up_to)}"
    return f"over {form.format(over)}" + (f" to {form.format(up_to)}" if up_to is not None else "")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table and the empty line after it."""
    cells = [tuple(cell.replace("|", "\\|") for cell in row) for row in (head, *rows)]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return [lines[0], "|---" * len(head) + "|", *lines[1:], ""]
