"""Read and validate config.json, labels.json, metrics.json and history.jsonl."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict

from txcls.checkpoint.comparison import Comparison
from txcls.checkpoint.json_files import (
    PLAIN,
    Count,
    Many,
    Number,
    Positive,
    Share,
    Text,
    is_valid_unicode,
    parse,
    read_json,
    read_limited,
    validate,
)
from txcls.config import Calibration, RunConfig, ScopeRule
from txcls.errors import CheckpointError, ConfigError

FORMAT_VERSION = 1
"""The version of config.json."""
MEASURED_SPLITS = ("validation", "test", "new")
"""Splits for which metrics.json may hold metrics."""
MAX_CLASSES = 10_000
MAX_LABEL_CHARACTERS = 1_000_000
"""Maximum number of characters in all class names together."""
MAX_MATRIX_CLASSES = 600
"""Maximum number of classes for which metrics.json keeps the whole confusion matrix."""
MAX_HISTORY_ROWS = 100_000


def parse_config(values: dict[str, Any], *, source: str) -> tuple[RunConfig, Calibration, ScopeRule | None]:
    """The settings, calibration and out-of-scope rule in the values of a config.json.

    Raises:
        CheckpointError: the format version is different, or a setting is unknown or invalid; the message names the
            field.
    """
    values = dict(values)
    version = values.pop("format_version", None)
    if version != FORMAT_VERSION:
        raise CheckpointError(
            f"{source}: format_version is {version!r:.100}; expected {FORMAT_VERSION}. Is it a txcls checkpoint?"
        )
    calibration, scope = values.pop("calibration", None), values.pop("scope", None)
    try:
        fitted = Calibration.from_mapping(calibration, source=f"{source}: calibration")
        rule = None if scope is None else ScopeRule.from_mapping(scope, source=f"{source}: scope")
        return RunConfig.from_mapping(values, source=source), fitted, rule
    except ConfigError as error:
        raise CheckpointError(str(error)) from None


@dataclass(frozen=True)
class CheckpointJson:
    """The contents of a checkpoint's JSON files, except the tokenizer; `classes` is empty for a language model."""

    config: RunConfig
    calibration: Calibration
    scope: ScopeRule | None
    classes: tuple[str, ...]
    metrics: dict[str, Any]
    history: list[dict[str, Any]]


def read_checkpoint_json(folder: Path) -> CheckpointJson:
    """Read config.json, labels.json, metrics.json and history.jsonl.

    Raises:
        CheckpointError: a file cannot be read, or a field is invalid or about other classes; the message names both.
    """
    path = folder / "config.json"
    settings = parse_config(read_json(path, dict), source=str(path))
    classes = read_labels(folder / "labels.json") if settings[0].objective == "classify" else ()
    metrics = read_metrics(folder / "metrics.json")
    if problem := classes_problem(metrics, classes):
        raise CheckpointError(f"{folder / 'metrics.json'}: {problem}")
    return CheckpointJson(*settings, classes, metrics, read_history(folder / "history.jsonl"))


def read_labels(path: Path) -> tuple[str, ...]:
    """The class names of labels.json, in the order of the logits.

    Raises:
        CheckpointError: it is not a list of at least two different class names.
    """
    return check_labels(read_json(path, list), where=str(path))


def check_labels(values: list[Any], *, where: str) -> tuple[str, ...]:
    """Check class names, and return them unchanged.

    Raises:
        CheckpointError: they are not at least two different class names; the message begins with `where`.
    """
    if len(values) < 2 or not all(isinstance(value, str) and value for value in values):
        raise CheckpointError(f"{where}: expected at least two class names, got {values[:20]!r:.200}")
    if problem := labels_problem(values):
        raise CheckpointError(f"{where}: {problem}")
    return tuple(values)


def labels_problem(labels: Sequence[str]) -> str | None:
    """Why these labels cannot be a checkpoint's class names; None if they can."""
    if len(labels) > MAX_CLASSES:
        return f"{len(labels):,} classes; expected at most {MAX_CLASSES:,}"
    if (length := sum(map(len, labels))) > MAX_LABEL_CHARACTERS:
        return f"class names of {length:,} characters in total; expected at most {MAX_LABEL_CHARACTERS:,}"
    if len(set(labels)) != len(labels):
        return "a class name occurs twice"
    if invalid := next((label for label in labels if not is_valid_unicode(label)), None):
        return f"the class name {invalid!r:.200} is not valid Unicode (it contains a lone surrogate)"
    return None


def read_metrics(path: Path) -> dict[str, Any]:
    """The validated contents of metrics.json, unchanged.

    Raises:
        CheckpointError: the file cannot be read, or a field is invalid; the message names the field.
    """
    values = read_json(path, dict)
    validate(_Metrics, values, where=str(path))
    return values


def read_history(path: Path) -> list[dict[str, Any]]:
    """The validated rows of history.jsonl, unchanged.

    Raises:
        CheckpointError: the file cannot be read, or a row is invalid; the message names the line.
    """
    lines = read_limited(path).removesuffix("\n").split("\n")
    if len(lines) > MAX_HISTORY_ROWS:
        raise CheckpointError(f"{path}: more than {MAX_HISTORY_ROWS:,} rows")
    rows = []
    for number, line in enumerate(lines if lines != [""] else [], start=1):
        where = f"{path}: line {number}"
        try:
            row = parse(line, dict, where=where)
        except CheckpointError as error:
            raise CheckpointError(f"{error}; expected one JSON object per line") from None
        validate(HistoryRow, row, where=where)
        rows.append(row)
    return rows


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A validation during training: training metrics since the previous validation, and validation metrics."""

    __pydantic_config__ = PLAIN
    epoch: Count = 0
    step: Count = 0
    train_loss: Number = 0.0
    train_accuracy: Share = 0.0
    validation_loss: Number = 0.0
    validation_accuracy: Share = 0.0
    learning_rate: Positive = 0.0
    seconds: Positive = 0.0
    tokens_per_second: Positive = 0.0
    best: Annotated[bool, Strict()] = False
    tokens: Count = 0
    """Tokens read so far, without padding."""


@dataclass(frozen=True, slots=True)
class ClassMetrics:
    """Metrics of one class against all others; `support` is its number of rows."""

    __pydantic_config__ = PLAIN
    label: Annotated[str, Field(strict=True, max_length=MAX_LABEL_CHARACTERS)]
    precision: Share
    recall: Share
    f1: Share
    support: Count


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Predictions with a confidence in (low, high]: their number, mean confidence and accuracy."""

    __pydantic_config__ = PLAIN
    low: Share
    high: Share
    n: Count
    confidence: Share
    accuracy: Share


@dataclass(frozen=True, slots=True)
class Slice:
    """The accuracy on the rows with a quantity above `over` and at most `up_to` (None for no bound)."""

    __pydantic_config__ = PLAIN
    over: Number | None
    up_to: Number | None
    n: Count
    accuracy: Share


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metrics on the n rows of a split.

    Attributes:
        ece: expected calibration error.
        confusion: `confusion[i][j]` is the number of rows of class i predicted as j; empty if there are very many
            classes.
        by_length: accuracy by number of tokens.
        order: accuracies without word order.
    """

    __pydantic_config__ = PLAIN
    n: Count
    accuracy: Share
    macro_f1: Share
    ece: Share
    log_loss: Positive
    per_class: Many[ClassMetrics]
    reliability: Many[ReliabilityBin]
    confusion: Many[Many[Count]] = ()
    by_length: Many[Slice] = ()
    order: dict[str, Share] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(len(row) != len(self.confusion) for row in self.confusion):
            raise ValueError("confusion: expected as many columns as rows")


class _Part(BaseModel):
    """A part of metrics.json, which is validated but not converted: the values remain plain JSON."""

    model_config = ConfigDict(frozen=True, protected_namespaces=(), **PLAIN)


class _Data(_Part):
    dataset: Text = ""
    title: Text = ""
    terms: Text = ""
    note: Text = ""
    validation: Text = ""
    train_rows: Count = 0
    train_rows_by_class: list[Count] = []
    sketch: Many[Any] = ()
    validation_rows: Count = 0
    test_rows: Count = 0
    new_rows: Count = 0


class _Refit(_Part):
    model: Literal["transformer", "linear"]
    rows: Count
    seconds: Positive
    sketch: Many[Any] = ()


class _Training(_Part):
    command: Text = ""
    seed: Count = 0
    seed_choice: Text = ""
    seconds: Positive = 0
    epochs: Count = 0
    steps: Count = 0
    done: Text = ""
    best_epoch: Count = 0
    runs: Count = 1
    machine: Text = ""
    software: Text = ""


_ABSENT: Any = None
"""Default of optional parts, which may be missing but not null."""


class _Scope(_Part):
    n_in: Count
    n_out: Count
    auroc: Share
    accuracy: Share
    accuracy_in: Share
    recall_out: Share
    accepted_out: Count = _ABSENT
    """Number of out-of-scope texts that are not rejected."""
    confident_out: Count = _ABSENT
    """Number of them with a probability above 90 %."""


class _LanguageModelMetrics(_Part):
    loss: Positive
    perplexity: Annotated[float, Field(strict=True, ge=0.0)]
    accuracy: Share


class _CardPart(_Part):
    """A part of the model card, as `card_part` makes it."""

    text: Text
    head: Many[Text]
    rows: Many[Many[Text]]


class _Measurement(_Part):
    """A measurement of `txcls measure`, whose own fields are validated by the module that made it."""

    card: Many[_CardPart] = ()


class _Group(_Part):
    name: Text
    n: Count
    accuracy: dict[str, Share]


class _Agreement(_Measurement):
    attractors: Annotated[Many[_Group], Field(min_length=1)]


class _Metrics(_Part):
    """metrics.json: measurements, and how the model was made; every part is optional."""

    data: _Data = _Data()
    training: _Training = _Training()
    validation: Metrics = _ABSENT
    test: Metrics = _ABSENT
    new: Metrics = _ABSENT
    scope: dict[str, _Scope] = {}
    language: _LanguageModelMetrics = _ABSENT
    comparison: Comparison = _ABSENT
    refit: _Refit = _ABSENT
    """The model that was trained again on all rows after measuring."""
    agreement: _Agreement = _ABSENT
    route: _Measurement = _ABSENT
    explanations: _Measurement = _ABSENT
    heads: _Measurement = _ABSENT
    circuit: _Measurement = _ABSENT
    means: dict[str, Any] = _ABSENT


def classes_problem(metrics: Mapping[str, Any], classes: Sequence[str]) -> str | None:
    """A sentence on the field of metrics.json whose classes differ from those of labels.json; None if all agree."""
    n = len(classes)
    for split in MEASURED_SPLITS if classes else ():
        measured = metrics.get(split, {})
        if (size := len(measured.get("confusion", ()))) not in (0, n):
            return f"{split}.confusion has {size} classes, labels.json {n}"
        labels = [row["label"] for row in measured.get("per_class", ())]
        if labels and (other := next((a for a, b in zip_longest(labels, classes) if a != b), None)) is not None:
            return f"{split}.per_class has the class {other!r:.80}, which labels.json does not have at this place"
        if labels and len(labels) != n:
            return f"{split}.per_class has {len(labels)} classes, labels.json {n}"
    counts = metrics.get("data", {}).get("train_rows_by_class", ())
    if classes and counts and len(counts) != n:
        return f"data.train_rows_by_class has {len(counts)} classes, labels.json {n}"
    return None
