"""The JSON files of a checkpoint: size limits, and the validated contents of config, labels, metrics and history.

They are untrusted: a file's size is checked before it is read, the number of values before it is parsed, and everything
that code or cards use is validated. Unknown keys are kept, since later versions and people add some; they may hold
plain values only, a few levels deep.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, Field, ValidationError, model_validator

from txcls.checkpoint.files import reason
from txcls.config import Calibration, RunConfig, ScopeRule
from txcls.errors import CheckpointError, ConfigError

Json = TypeVar("Json", dict[str, Any], list[Any])

FORMAT_VERSION = 1
"""Of config.json."""
MOST_BYTES = {
    "config.json": 200_000,
    "labels.json": 4_000_000,
    "metrics.json": 8_000_000,
    "history.jsonl": 32_000_000,
    "tokenizer.json": 24_000_000,
    "vocab.json": 12_000_000,
    "merges.txt": 12_000_000,
}
"""Largest size of each file."""
MOST_VALUES = {
    "config.json": 2_000,
    "labels.json": 20_000,
    "metrics.json": 1_500_000,
    "history.jsonl": 3_000_000,
    "tokenizer.json": 2_000_000,
    "vocab.json": 1_000_000,
}
"""Most values in each file: parsed, a value takes far more memory than its few characters."""
MOST_CONTAINERS = {
    "config.json": 2_000,
    "labels.json": 20_000,
    "metrics.json": 100_000,
    "history.jsonl": 200_000,
    "tokenizer.json": 2_000_000,
    "vocab.json": 1_000_000,
}
"""Most lists and objects among them, which are slowest to parse; tokens may contain brackets themselves."""
MEASURED_SPLITS = ("validation", "test", "new")
"""Splits whose figures metrics.json may hold."""
MOST_CLASSES = 10_000
MOST_LABEL_CHARACTERS = 1_000_000
"""Of all class names together."""
MOST_CLASSES_OF_A_MATRIX = 600
"""Most classes for which metrics.json keeps the whole confusion matrix."""
MOST_ROWS = 100_000
"""Of history.jsonl."""
MOST_SNAPSHOT_CHARACTERS = 100_000
"""Of the rows in the header of snapshots.safetensors."""
_DEEPEST = 8
_LONGEST = 1000


def one_line(text: str, *, limit: int = _LONGEST) -> str:
    """An untrusted text as one line of printable characters, cut in the middle if it is longer than `limit`."""
    text = text if len(text) <= 20 * limit else text[: 10 * limit] + text[-10 * limit :]
    text = "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    return f"{text[:head]} … {text[len(text) - (limit - head - 3) :]}"


def read_text(path: Path) -> str:
    """The text of one of the files above.

    Raises:
        CheckpointError: it cannot be read, is not UTF-8, or exceeds the limits for its name.
    """
    most, values = MOST_BYTES[path.name], MOST_VALUES.get(path.name)
    try:
        if not path.is_file():  # a device or a pipe could be read forever
            raise CheckpointError(f"{path}: missing, or not a plain file")
        with path.open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise CheckpointError(f"{path}: larger than {most / 1e6:g} MB, the most that is read")
        if values is not None:
            inner = content.count(b"[") + content.count(b"{")
            if (found := inner + content.count(b",")) > values:
                raise CheckpointError(f"{path}: about {found:,} values; at most {values:,} are read")
            if inner > MOST_CONTAINERS[path.name]:
                most = MOST_CONTAINERS[path.name]
                raise CheckpointError(f"{path}: about {inner:,} lists and objects; at most {most:,} are read")
        return content.decode("utf-8")
    except (OSError, ValueError) as error:
        kind = "JSON" if path.suffix.startswith(".json") else "text"
        raise CheckpointError(f"{path}: not readable as {kind} ({reason(error)!s:.200})") from None


def read_json(path: Path, kind: type[Json]) -> Json:
    """The contents of a JSON file: an object (dict) or a list.

    Raises:
        CheckpointError: as for `read_text`, or it is not JSON of that kind.
    """
    return _parsed(read_text(path), kind, where=str(path))


def _parsed(text: str, kind: type[Json], *, where: str) -> Json:
    try:
        value = json.loads(text)
    except RecursionError:
        raise CheckpointError(f"{where}: not readable as JSON (nested too deep)") from None
    except ValueError as error:
        raise CheckpointError(f"{where}: not readable as JSON ({error!s:.200})") from None
    if not isinstance(value, kind):
        raise CheckpointError(f"{where}: wanted a JSON {kind.__name__}, got {type(value).__name__}")
    return value


def write_json(path: Path, value: object, *, indent: int | None = 2) -> None:
    """Write a value as UTF-8 JSON with a final newline; lists of numbers, such as matrix rows, take one line each."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if indent is not None:  # JSON strings contain no line breaks, so none is changed
        text = re.sub(r"\[\n[\d\s,.eE+-]+\]", lambda found: "[" + " ".join(found[0][1:-1].split()) + "]", text)
    path.write_text(text + "\n", encoding="utf-8")


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
        raise CheckpointError(one_line(str(error))) from None


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
    if len(labels) > MOST_CLASSES:
        return f"{len(labels):,} classes; wanted at most {MOST_CLASSES:,}"
    if (length := sum(map(len, labels))) > MOST_LABEL_CHARACTERS:
        return f"class names of {length:,} characters together; wanted at most {MOST_LABEL_CHARACTERS:,}"
    if len(set(labels)) != len(labels):
        return "a class name occurs twice"
    if odd := next((label for label in labels if not _is_text(label)), None):
        return f"the class name {odd!r:.200} holds half a character (a lone surrogate)"
    return None


def read_metrics(path: Path) -> dict[str, Any]:
    """The validated contents of metrics.json, unchanged.

    Raises:
        CheckpointError: it cannot be read, or a field is invalid; the field is named.
    """
    values = read_json(path, dict)
    _check(Record, values, where=str(path))
    return values


def read_history(path: Path) -> list[dict[str, Any]]:
    """The validated rows of history.jsonl, unchanged.

    Raises:
        CheckpointError: as for `read_metrics`; the line is named.
    """
    text = read_text(path)
    lines = text.split("\n", MOST_ROWS + 1)
    if len(lines) > MOST_ROWS + 1:
        raise CheckpointError(f"{path}: more than {MOST_ROWS:,} rows")
    rows = []
    for number, line in enumerate(lines[:-1] if not lines[-1] else lines, start=1):
        where = f"{path}: line {number}"
        try:
            row = _parsed(line, dict, where=where)
        except CheckpointError as error:
            raise CheckpointError(f"{error}; wanted one JSON object per line") from None
        _check(HistoryLine, row, where=where)
        rows.append(row)
    return rows


def read_snapshot_rows(text: str | None, *, source: str) -> list[dict[str, Any]]:
    """The validated rows in the header of snapshots.safetensors.

    Raises:
        CheckpointError: they are missing, too many, or a field is invalid; the row is named.
    """
    if text is None:
        raise CheckpointError(f"{source}: snapshots: missing in the header")
    if len(text) > MOST_SNAPSHOT_CHARACTERS:
        raise CheckpointError(f"{source}: snapshots: more than {MOST_SNAPSHOT_CHARACTERS:,} characters in the header")
    rows = _parsed(text, list, where=f"{source}: snapshots")
    for number, row in enumerate(rows, start=1):
        where = f"{source}: snapshots: row {number}"
        if not isinstance(row, dict):
            raise CheckpointError(f"{where}: wanted a JSON object, got {_short(row)}")
        _check(SnapshotLine, row, where=where)
    known = SnapshotLine.model_fields
    return [{name: value for name, value in row.items() if name in known} for row in rows]


def _check(kind: "type[_Part]", values: Mapping[str, Any], *, where: str) -> None:
    try:
        kind.model_validate(values)
    except ValidationError as error:
        found = error.errors(include_url=False)
        more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
        raise CheckpointError(f"{where}: {'; '.join(map(_said, found[:3]))}{more}") from None


def _said(problem: Any) -> str:
    field = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "value_error":
        return f"{field}: {problem['ctx']['error']}" if field else str(problem["ctx"]["error"])
    if problem["type"] == "missing":
        return f"{field}: missing"
    return f"{field:.200}: {problem['msg'][0].lower()}{problem['msg'][1:]}, got {_short(problem['input'])}"


def _short(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**20:
        return f"a number of {len(str(value)) if value.bit_length() < 10_000 else 'thousands of'} digits"
    if isinstance(value, dict | list | str):
        return f"{value!r:.80}" if len(value) <= 100 else f"{type(value).__name__} of {len(value):,}"
    return f"{value!r:.80}"


def _is_text(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _is_plain(value: Any, levels: int = _DEEPEST) -> bool:
    """Whether the value of an unknown key may be kept: finite, valid Unicode, not deeply nested."""
    if isinstance(value, dict):
        return bool(levels) and all(_is_text(key) and _is_plain(one, levels - 1) for key, one in value.items())
    if isinstance(value, list):
        return bool(levels) and all(_is_plain(one, levels - 1) for one in value)
    if isinstance(value, str):
        return _is_text(value)
    return not isinstance(value, float) or math.isfinite(value)


class _Part(BaseModel):
    """A part that is validated but not converted: the values stay plain JSON."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", allow_inf_nan=False, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _unknown_keys_are_plain(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for key in values.keys() - cls.model_fields.keys():
                if not (_is_text(key) and _is_plain(values[key])):
                    raise ValueError(f"{key!r:.100}: not finite, nested too deep, or holds half a character")
        return values


Share = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=0, le=10**15)]
Number = Annotated[float, Field(ge=-1e15, le=1e15)]
Positive = Annotated[float, Field(ge=0.0, le=1e15)]
Correlation = Annotated[float, Field(ge=-1.000001, le=1.000001)]
Text = Annotated[str, Field(max_length=20_000)]
Item = TypeVar("Item")
Many = Annotated[list[Item], FailFast()]
"""A list of which only the first invalid item is reported: reporting a million would take a gigabyte."""


_ABSENT: Any = None
"""Default of parts that may be missing; null is refused."""


def _vector_or_matrix(values: list[Any]) -> list[Any]:
    rows = values if values and all(isinstance(one, list) for one in values) else [values]
    for row in rows:
        for one in row:
            if isinstance(one, bool) or not isinstance(one, int | float) or not abs(one) <= 1e15:
                raise ValueError(f"wanted finite numbers, got {_short(one)}")
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


class _OneClass(_Part):
    label: str = Field(max_length=MOST_LABEL_CHARACTERS)
    precision: Share
    recall: Share
    f1: Share
    support: Count


class _Bin(_Part):
    low: Share
    high: Share
    n: Count
    confidence: Share
    accuracy: Share


class _Slice(_Part):
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
    per_class: Many[_OneClass] = Field(max_length=MOST_CLASSES)
    confusion: Many[Many[Count]] = Field([], max_length=MOST_CLASSES)
    reliability: Many[_Bin] = Field(max_length=1000)
    by_length: Many[_Slice] = Field([], max_length=1000)
    by_unknown: Many[_Slice] = Field([], max_length=1000)
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
    perplexity: Annotated[float, Field(ge=0.0)]
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
    query: Annotated[str, Field(max_length=100)]
    key: Annotated[str, Field(max_length=100)]


class _Story(_Exact):
    layer: Count
    head: Count
    clauses: Many[_Clause] = Field(min_length=1, max_length=10)
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
        if not len(self.attention) == len(self.chance) == len(self.clauses):
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


class _Atlas(_Exact):
    split: Text
    n: Count
    n_told: Count
    n_found: Count
    confirmed_share: Share | None
    queries: Many[Annotated[str, Field(max_length=100)]] = Field(max_length=100)
    keys: Many[Annotated[str, Field(max_length=100)]] = Field(max_length=100)
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


class _Explanations(_Part):
    split: Text
    n: Count
    areas: dict[str, Share] = Field(max_length=100)
    random_area: Share
    overlaps: Many[Many[Share | None]] = Field([], max_length=100)
    chance: Share = 0.0
    completeness_error: Positive


Difference = Annotated[float, Field(ge=-1.0, le=1.0)]


class _Measured(_Part):
    value: Difference
    low: Difference
    high: Difference


class _Contestant(_Part):
    accuracy: _Measured
    macro_f1: _Measured
    seconds: Positive | None = None


class _Comparison(_Part):
    n: Count
    n_training: Count
    majority: _Contestant
    linear: _Contestant
    transformer: _Contestant
    difference: _Measured
    difference_f1: _Measured
    only_transformer: Count
    only_linear: Count
    baseline: Text | None = None


class Record(_Part):
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
    explanations: _Explanations = _ABSENT
    comparison: _Comparison = _ABSENT


class HistoryLine(_Part):
    """A line of history.jsonl: one validation during training."""

    epoch: Count = 0
    step: Count = 0
    train_loss: Number = 0.0
    train_accuracy: Share = 0.0
    validation_loss: Number = 0.0
    validation_accuracy: Share = 0.0
    learning_rate: Positive = 0.0
    seconds: Positive = 0.0
    tokens_per_second: Positive = 0.0
    best: bool = False
    tokens: Count = 0


class SnapshotLine(_Part):
    """A row in the header of snapshots.safetensors: one state along the training."""

    step: Count
    validation_loss: Number
    validation_accuracy: Share
    train_loss: Number | None = None
    train_accuracy: Share | None = None
