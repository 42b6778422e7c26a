"""What config.json, labels.json, metrics.json and history.jsonl hold, read and validated."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, model_validator

from txcls.checkpoint.comparison import Comparison
from txcls.checkpoint.json_files import (
    PLAIN,
    Correlation,
    Count,
    Many,
    Number,
    Positive,
    Share,
    Text,
    checked,
    is_text,
    parsed,
    read_json,
    read_text,
    short,
)
from txcls.config import Calibration, RunConfig, ScopeRule
from txcls.errors import CheckpointError, ConfigError

FORMAT_VERSION = 1
"""Of config.json."""
MEASURED_SPLITS = ("validation", "test", "new")
"""Splits whose figures metrics.json may hold."""
MAX_CLASSES = 10_000
MAX_LABEL_CHARACTERS = 1_000_000
"""Of all class names together."""
MAX_CLASSES_OF_A_MATRIX = 600
"""Most classes for which metrics.json keeps the whole confusion matrix."""
MAX_ROWS = 100_000
"""Of history.jsonl."""

WITHDRAWN = frozenset({"start_vectors"})
"""Settings of training that checkpoints of earlier versions name: what they did is in the weights."""


def checked_config(values: dict[str, Any], *, source: str) -> tuple[RunConfig, Calibration, ScopeRule | None]:
    """The settings, calibration and out-of-scope rule in the values of a config.json.

    Raises:
        CheckpointError: the format version is different, or a setting is unknown or invalid; the field is named.
    """
    values = dict(values)
    version = values.pop("format_version", None)
    if version != FORMAT_VERSION:
        raise CheckpointError(
            f"{source}: format_version is {version!r:.100}; this txcls reads {FORMAT_VERSION}. "
            "Is it a txcls checkpoint?"
        )
    calibration = values.pop("calibration", None)
    scope = values.pop("scope", None)
    if isinstance(values.get("train"), dict):
        values["train"] = {name: value for name, value in values["train"].items() if name not in WITHDRAWN}
    if isinstance(values.get("data"), dict):  # from before there were two rules: the only one then
        values["data"] = {"validation": "stratified", **values["data"]}
    try:
        fitted = Calibration.from_mapping(calibration, source=f"{source}: calibration")
        rule = None if scope is None else ScopeRule.from_mapping(scope, source=f"{source}: scope")
        return RunConfig.from_mapping(values, source=source), fitted, rule
    except ConfigError as error:
        raise CheckpointError(str(error)) from None


def read_labels(path: Path) -> tuple[str, ...]:
    """The class names of labels.json, in the order of the logits.

    Raises:
        CheckpointError: it is not a list of at least two different class names.
    """
    values = read_json(path, list)
    if len(values) < 2 or not all(isinstance(value, str) and value for value in values):
        raise CheckpointError(f"{path}: wanted at least two class names, got {values[:20]!r:.200}")
    if problem := labels_problem(values):
        raise CheckpointError(f"{path}: {problem}")
    return tuple(values)


def labels_problem(labels: Sequence[str]) -> str | None:
    """Why these cannot be a checkpoint's class names; None if they can."""
    if len(labels) > MAX_CLASSES:
        return f"{len(labels):,} classes; wanted at most {MAX_CLASSES:,}"
    if (length := sum(map(len, labels))) > MAX_LABEL_CHARACTERS:
        return f"class names of {length:,} characters together; wanted at most {MAX_LABEL_CHARACTERS:,}"
    if len(set(labels)) != len(labels):
        return "a class name occurs twice"
    if odd := next((label for label in labels if not is_text(label)), None):
        return f"the class name {odd!r:.200} holds half a character (a lone surrogate)"
    return None


def read_metrics(path: Path) -> dict[str, Any]:
    """The validated contents of metrics.json, unchanged.

    Raises:
        CheckpointError: it cannot be read, or a field is invalid; the field is named.
    """
    values = read_json(path, dict)
    checked(Metrics, values, where=str(path))
    return values


def read_history(path: Path) -> list[dict[str, Any]]:
    """The validated rows of history.jsonl, unchanged.

    Raises:
        CheckpointError: as for `read_metrics`; the line is named.
    """
    text = read_text(path)
    lines = text.split("\n", MAX_ROWS + 1)
    if len(lines) > MAX_ROWS + 1:
        raise CheckpointError(f"{path}: more than {MAX_ROWS:,} rows")
    rows = []
    for number, line in enumerate(lines[:-1] if not lines[-1] else lines, start=1):
        where = f"{path}: line {number}"
        try:
            row = parsed(line, dict, where=where)
        except CheckpointError as error:
            raise CheckpointError(f"{error}; wanted one JSON object per line") from None
        checked(HistoryRow, row, where=where)
        rows.append(row)
    return rows


class _Part(BaseModel):
    """A part that is validated but not converted: the values stay plain JSON."""

    model_config = ConfigDict(frozen=True, protected_namespaces=(), **PLAIN)


_ABSENT: Any = None
"""Default of parts that may be missing; null is refused."""


def _vector_or_matrix(values: list[Any]) -> list[Any]:
    rows = values if values and all(isinstance(one, list) for one in values) else [values]
    for row in rows:
        for one in row:
            if isinstance(one, bool) or not isinstance(one, int | float) or not abs(one) <= 1e15:
                raise ValueError(f"wanted finite numbers, got {short(one)}")
    return values


Tap = Annotated[list[Any], AfterValidator(_vector_or_matrix)]


class _Data(_Part):
    dataset: Text = ""
    title: Text = ""
    terms: Text = ""
    note: Text = ""
    validation: Text = ""
    train_rows: Count = 0
    validation_rows: Count = 0
    test_rows: Count = 0
    new_rows: Count = 0


class _Training(_Part):
    command: Text = ""
    seed: Count = 0
    seconds: Positive = 0
    epochs: Count = 0
    steps: Count = 0
    best_epoch: Count = 0
    runs: Count = 1
    machine: Text = ""
    software: Text = ""


@dataclass(frozen=True, slots=True)
class ClassMetrics:
    """One class against the rest; figures from 0 to 1, `support` in rows."""

    __pydantic_config__ = PLAIN
    label: Annotated[str, Field(strict=True, max_length=MAX_LABEL_CHARACTERS)]
    precision: Share
    recall: Share
    f1: Share
    support: Count


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Predictions whose confidence is in (low, high]: their number, mean confidence and accuracy."""

    __pydantic_config__ = PLAIN
    low: Share
    high: Share
    n: Count
    confidence: Share
    accuracy: Share


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows for which some quantity is above `over` and at most `up_to` (None for no bound), and their accuracy."""

    __pydantic_config__ = PLAIN
    over: Number | None
    up_to: Number | None
    n: Count
    accuracy: Share


class _Figures(_Part):
    """Figures on the validation or the test rows."""

    n: Count
    accuracy: Share
    macro_f1: Share
    ece: Share
    log_loss: Positive
    per_class: Many[ClassMetrics] = Field(max_length=MAX_CLASSES)
    confusion: Many[Many[Count]] = Field([], max_length=MAX_CLASSES)
    reliability: Many[ReliabilityBin] = Field(max_length=1000)
    by_length: Many[Slice] = Field([], max_length=1000)
    by_unknown: Many[Slice] = Field([], max_length=1000)
    order: dict[str, Share] = Field({}, max_length=100)

    @model_validator(mode="after")
    def _matrix_is_square(self) -> Self:
        if any(len(row) != len(self.confusion) for row in self.confusion):
            raise ValueError("confusion: wanted as many columns as rows")
        return self


class _Scope(_Part):
    n_in: Count
    n_out: Count
    auroc: Share
    accuracy: Share
    accuracy_in: Share
    recall_out: Share


class _Language(_Part):
    loss: Positive
    perplexity: Annotated[float, Field(strict=True, ge=0.0)]
    accuracy: Share


class _Effects(_Part):
    heads: Many[Many[Share]] = Field(max_length=1000)
    feed_forward: Many[Share] = Field(max_length=1000)


class _Heads(_Part):
    split: Text
    n: Count
    accuracy: Share
    zero: _Effects
    mean: _Effects

    @model_validator(mode="after")
    def _alike(self) -> Self:
        shapes = {(len(one.feed_forward), *map(len, one.heads)) for one in (self.zero, self.mean)}
        if len(shapes) > 1 or any(len(one.heads) != len(one.feed_forward) for one in (self.zero, self.mean)):
            raise ValueError("zero and mean: wanted the same layers and heads in both")
        return self


class _Means(_Part):
    split: Text
    n: Count
    taps: dict[str, Tap] = Field(max_length=1000)


class _Exact(_Part):
    """A part in which a key that is not known is refused."""

    model_config = ConfigDict(extra="forbid")


class _Clause(_Exact):
    query: Annotated[str, Field(strict=True, max_length=100)]
    key: Annotated[str, Field(strict=True, max_length=100)]


LogWeight = Annotated[int, Field(strict=True, ge=-1000, le=1000)]


class _Lists(_Exact):
    words: Many[LogWeight] = Field([], max_length=200_000)
    distances: Many[LogWeight] = Field([], max_length=1000)


class _Story(_Exact):
    layer: Count
    head: Count
    clauses: Many[_Clause] = Field(max_length=10)
    lists: _Lists = _ABSENT
    n: Count
    held: Share
    accuracy: Share
    even: Share
    told: Share
    control: Share
    share: Number | None
    interval: Many[Number | None] = Field(min_length=2, max_length=2)
    control_share: Number | None
    attention: Many[Share | None] = Field(max_length=10)
    chance: Many[Share | None] = Field(max_length=10)
    verdict: Literal["confirmed", "part of it", "wrong", "idle"]

    @model_validator(mode="after")
    def _weights_of_each_clause(self) -> Self:
        if (self.lists is None) == (not self.clauses):
            raise ValueError("clauses: wanted some, or lists")
        if not len(self.attention) == len(self.chance) == max(1, len(self.clauses)):
            raise ValueError("attention and chance: wanted a number for each clause")
        return self


class _Worth(_Exact):
    zero: Correlation
    mean: Correlation
    uniform: Correlation


class _AtlasHead(_Exact):
    entropy: Share
    worth: _Worth
    story: _Story
    attention: Many[Many[Share]] = Field(max_length=100)


class _AllHeads(_Exact):
    n: Count
    accuracy: Share
    uniform: Share
    lists: Share
    control: Share
    stories: Share | None
    share: Number | None
    interval: Many[Number | None] = Field(min_length=2, max_length=2)
    control_share: Number | None


class _Atlas(_Exact):
    split: Text
    n: Count
    n_told: Count
    n_found: Count
    confirmed_share: Share | None = None
    """Written by earlier versions."""
    spare_lost: Correlation = _ABSENT
    all_heads: _AllHeads = _ABSENT
    queries: Many[Annotated[str, Field(strict=True, max_length=100)]] = Field(max_length=100)
    keys: Many[Annotated[str, Field(strict=True, max_length=100)]] = Field(max_length=100)
    held: Many[Many[Share]] = Field(max_length=100)
    chance: Many[Many[Share]] = Field(max_length=100)
    heads: Many[_AtlasHead] = Field(min_length=1, max_length=1000)

    @model_validator(mode="after")
    def _tables_fit(self) -> Self:
        tables = {"held": self.held, "chance": self.chance}
        tables |= {f"heads.{n}.attention": head.attention for n, head in enumerate(self.heads)}
        for name, table in tables.items():
            if [len(row) for row in table] != [len(self.keys)] * len(self.queries):
                raise ValueError(f"{name}: wanted a row for each of queries, with a number for each of keys")
        return self


class _Row(_Exact):
    layer: Count
    head: Count
    role: Annotated[str, Field(strict=True, max_length=100)]


BySplit = Annotated[dict[str, Share], Field(max_length=10)]


class _KeptRows(_Exact):
    row: _Row
    accuracy: BySplit
    control: BySplit
    control_most: BySplit


class _Pointed(_Exact):
    heads: Many[Count] = Field(min_length=1, max_length=1000)
    n: Count
    share: Share


class _Circuit(_Exact):
    n: dict[str, Count] = Field(max_length=10)
    n_search: Count
    n_rows: Count
    n_controls: Count
    whole: BySplit
    none: BySplit
    kept: Many[_KeptRows] = Field(min_length=1, max_length=100)
    pointed: Many[_Pointed] = Field(max_length=1000)

    @model_validator(mode="after")
    def _same_splits(self) -> Self:
        tables = [self.whole, self.none]
        tables += [of for one in self.kept for of in (one.accuracy, one.control, one.control_most)]
        if "test" not in self.n or any(of.keys() != self.n.keys() for of in tables):
            raise ValueError("wanted accuracies of the splits of n, test among them")
        return self


class _Explanations(_Part):
    split: Text
    n: Count
    areas: dict[str, Share] = Field(max_length=100)
    random_area: Share
    overlaps: Many[Many[Share | None]] = Field([], max_length=100)
    chance: Share = 0.0
    completeness_error: Positive


class Metrics(_Part):
    """metrics.json: what was measured and how the model was made; every part is optional."""

    data: _Data = _Data()
    training: _Training = _Training()
    validation: _Figures = _ABSENT
    test: _Figures = _ABSENT
    new: _Figures = _ABSENT
    scope: dict[str, _Scope] = Field({}, max_length=100)
    language: _Language = _ABSENT
    heads: _Heads = _ABSENT
    atlas: _Atlas = _ABSENT
    means: _Means = _ABSENT
    circuit: _Circuit = _ABSENT
    explanations: _Explanations = _ABSENT
    comparison: Comparison = _ABSENT


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A line of history.jsonl, one validation: training figures since the previous one, and on validation rows."""

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
    """Tokens read so far, padding not counted."""
