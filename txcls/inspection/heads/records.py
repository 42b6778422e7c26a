"""What was measured about each head of a checkpoint, as stored in metrics.json, and the rule of a table in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from txcls.checkpoint.card import card_part
from txcls.checkpoint.json_files import validate
from txcls.errors import CheckpointError
from txcls.inference.predictor import Predictor
from txcls.inspection.heads.tables import KINDS, MAX_DISTANCE, TableKind
from txcls.text.formatting import decimals, head_name, percentage, points_number
from txcls.text.vocabulary import SPECIAL_TOKENS

Verdict = Literal["confirmed", "in part", "undecided", "no rule", "hardly matters"]
Replacement = Literal["mean", "resampled"]

CONFIRMED, IN_PART = 0.75, 0.5
"""Minimum share of a head's effect that a table restores, at the lower end of the corrected interval."""
MAX_LOST = 0.01
"""A table that costs at least this accuracy does not fully replace a head, whatever share it restores."""
MARGIN = 0.25
"""Minimum share by which a table exceeds its shuffled control, at the lower end of the corrected interval."""
MIN_COST = 0.005
"""A loss of accuracy whose interval ends below this is described as "hardly any"."""
NEGLIGIBLE = 0.005
"""An effect whose 95 % interval ends below this many nats is too small for shares of it to mean much."""
ON_ONE, ON_NEIGHBOURS = 0.5, 0.6
"""Minimum share of a table's weight on one distance, or on the `NEAR` tokens of one side, for the rule to name it.

Uniform attention puts at most 0.375 on one side (in a text of four tokens)."""
NEAR = 3
"""Maximum distance of a neighbour, in tokens."""
TELLING = 2.0
"""Minimum weight of a quoted token, relative to the average token."""
QUOTED = 3
"""Number of tokens quoted."""
PUNCTUATION = "some punctuation"
"""Stands for tokens without a letter or digit, which cannot be read aloud."""
NOT_QUOTED = frozenset({*SPECIAL_TOKENS, "space"})
"""Special tokens and the name of a space, which are not quoted."""
QUOTATION_MARKS = frozenset("\"'`“”‘’")
"""Tokens that contain one of these beside letters are not quoted."""
PIECE = "…"
"""Prefix of the name of a piece of a word."""
SOUNDING = frozenset("aeiouy0123456789")
"""A token without any of these, such as “th”, is taken for a piece of a word and not quoted."""
ORDINALS = ("", "", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


@dataclass(frozen=True)
class Effect:
    """What replacing a part changes: KL divergence of the output in nats, and accuracy lost, with 95 % intervals."""

    kl: float
    kl_low: float
    kl_high: float
    lost: float
    lost_low: float
    lost_high: float


@dataclass(frozen=True)
class Restored:
    """How much of the effect of uniform attention is undone by a table.

    Attributes:
        share: 1 - KL(table) / KL(uniform), over texts.
        low, high: its 95 % interval.
        least: the lower end of the interval corrected for the number of tables tested.
        control: the same share for the shuffled table.
        gain: the lower end of the corrected interval of the share minus the control.
        lost: the accuracy lost with the table.
    """

    share: float
    low: float
    high: float
    least: float
    control: float
    gain: float
    lost: float

    @property
    def corrected_high(self) -> float:
        """The upper end of the corrected interval."""
        return 2 * self.share - self.least

    @property
    def verdict(self) -> Literal["confirmed", "in part"] | None:
        """Whether the table replaces the head, by CONFIRMED, IN_PART, MARGIN and MAX_LOST; None if it does not."""
        if self.gain < MARGIN or self.least < IN_PART:
            return None
        return "confirmed" if self.least >= CONFIRMED and self.lost < MAX_LOST else "in part"


@dataclass(frozen=True)
class Worth:
    """What a part is worth: the effects of averaging its output over texts, and of replacing it with another text's."""

    mean: Effect
    resampled: Effect

    def of(self, replacement: Replacement) -> Effect:
        """The effect with this replacement."""
        return self.mean if replacement == "mean" else self.resampled


@dataclass(frozen=True)
class HeadsRecord(Worth):
    """The measurements of one head, or of several heads replaced together.

    Attributes:
        uniform: the effect of uniform attention, with which the tables are compared.
        tables: how much of this effect each kind of table undoes.
    """

    uniform: Effect
    tables: Mapping[TableKind, Restored]

    @property
    def best(self) -> TableKind | None:
        """The simplest table that replaces the heads: by distance or word alone if possible; None if none does."""
        for verdict in ("confirmed", "in part"):
            fits = [kind for kind in KINDS if self.tables[kind].verdict == verdict]
            if fits:
                single = [kind for kind in fits if kind != "both"]
                return max(single or fits, key=lambda kind: self.tables[kind].share)
        return None

    @property
    def verdict(self) -> Verdict:
        """The verdict on the heads' attention."""
        if self.best is not None:
            return self.tables[self.best].verdict or "no rule"
        if self.is_negligible:
            return "hardly matters"
        # If an interval reaches the bound, a table may replace them, but its control may too, or the texts are too few.
        return "undecided" if max(table.corrected_high for table in self.tables.values()) >= IN_PART else "no rule"

    @property
    def is_negligible(self) -> bool:
        """Whether uniform attention hardly changes the output and costs less than half a point."""
        return self.uniform.kl_high < NEGLIGIBLE and self.uniform.lost < MIN_COST


@dataclass(frozen=True)
class HeadRecord(HeadsRecord):
    """The measurements of one head, with telling weights of its "both" table if that is best, else of the others.

    Attributes:
        distances: (2 MAX_DISTANCE + 1,) shares of the table's weight on keys at each distance from the query; the first
            and the last are for all keys that far away or farther.
        words: the words that receive most weight beyond that of average words, each with its weight relative to those.
    """

    distances: tuple[float, ...]
    words: tuple[tuple[str, float], ...]

    @property
    def rule(self) -> str:
        """What its best table attends to, in words; "" if no table replaces it."""
        return "" if self.best is None else rule_in_words(self.best, self.distances, self.words)

    @property
    def caption(self) -> str:
        """The rule in a few words, or that there is none."""
        if self.best is not None:
            return short_rule(self.best, self.distances, self.words)
        if self.verdict == "no rule":
            return "no rule found"
        return f"where it looks: {'small effect by itself' if self.verdict == 'hardly matters' else 'undecided'}"


@dataclass(frozen=True)
class HeadMeasurements:
    """The measurements of all heads of a checkpoint, on test texts.

    Attributes:
        n: number of test texts.
        n_training: number of training texts from which the tables were learned.
        accuracy: the accuracy on the test texts.
        heads: one record per head, layer by layer.
        feed_forward: one per layer.
        layers: all heads of a layer together.
        all_heads: all heads together.
    """

    split: str
    n: int
    n_training: int
    accuracy: float
    heads: tuple[HeadRecord, ...]
    feed_forward: tuple[Worth, ...]
    layers: tuple[HeadsRecord, ...]
    all_heads: HeadsRecord

    def head(self, layer: int, head: int) -> HeadRecord:
        """The record of one head, both counted from 0."""
        return self.heads[layer * (len(self.heads) // len(self.layers)) + head]

    def by_name(self) -> dict[str, HeadRecord]:
        """Each head's record by its name, layer and head from 1: "2.1"."""
        n_heads = len(self.heads) // len(self.layers)
        return {f"{n // n_heads + 1}.{n % n_heads + 1}": record for n, record in enumerate(self.heads)}

    @classmethod
    def of(cls, classifier: Predictor) -> "HeadMeasurements | None":
        """The measurements stored in the checkpoint; None if there are none, or if they do not fit the model."""
        config = classifier.checkpoint.config.model
        try:
            measured = validate(cls, classifier.checkpoint.metrics["heads"], where="heads")
        except (KeyError, CheckpointError):
            return None
        records = (*measured.heads, *measured.layers, measured.all_heads)
        fits = len(measured.heads) == config.n_layers * config.n_heads
        fits = fits and len(measured.layers) == len(measured.feed_forward) == config.n_layers
        fits = fits and all(set(record.tables) == set(KINDS) for record in records)
        fits = fits and all(len(head.distances) == 2 * MAX_DISTANCE + 1 for head in measured.heads)
        return measured if fits else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, for `metrics["heads"]`, with numbers rounded to four significant digits."""
        values: dict[str, Any] = _round(asdict(self))
        head = (
            "part",
            "averaged",
            "another text's",
            "uniform attention",
            "kept by distance",
            "by word",
            "by both",
            "rule",
        )
        return values | {"card": [card_part(self._method, head, self._rows())]}

    @property
    def _method(self) -> str:
        return (
            f"What each head is worth, and which simple rule can replace it, on {self.n:,} {self.split} rows "
            f"(`measure NAME heads`; accuracy on them {percentage(self.accuracy, 2)}):\n\n"
            "- averaged, another text's, uniform attention: how much the output distribution changes (KL divergence "
            "in nats, with the points of accuracy lost in brackets) if the part's output is averaged over texts, which "
            "removes information, or is another text's, which contradicts it, or if its attention is uniform\n"
            "- kept by distance, by word, by both: the share of the effect of uniform attention that a fixed table "
            f"undoes, learned from the attention on {self.n_training:,} training texts (95 % interval over texts; the "
            "control, a table shuffled among tokens of similar frequency and among distances)\n"
            "- confirmed: the lower end of the share's interval, corrected for all tables tested, is at least "
            f"{CONFIRMED}, the table costs under {points_number(MAX_LOST, digits=0)} point, and the share is at least "
            f"{MARGIN} above the control; in part: the same with {IN_PART}, whatever the table costs\n"
            f"- hardly matters by itself: no rule, and uniform attention changes the output by under {NEGLIGIBLE} nats "
            f"and costs under {points_number(MIN_COST)} points\n"
            f"- undecided: none of these, but a corrected interval reaches {IN_PART}; no rule found: none does"
        )

    def _rows(self) -> Iterator[tuple[str, ...]]:
        """Yield for each part: effects when averaged, resampled and uniform, what each table keeps, and the rule."""
        n_heads = len(self.heads) // len(self.layers)
        for layer, (whole, feed_forward) in enumerate(zip(self.layers, self.feed_forward, strict=True)):
            for number in range(n_heads):
                head = self.head(layer, number)
                partly = " (in part)" * (head.verdict == "in part")
                yield head_name(layer, number), *_cells(head), (head.rule or head.verdict) + partly
            yield f"all heads of layer {layer + 1}", *_cells(whole), whole.verdict
            yield f"feed-forward {layer + 1}", *map(_cell, (feed_forward.mean, feed_forward.resampled)), *["–"] * 5
        yield "all heads", *_cells(self.all_heads), self.all_heads.verdict


def _cells(record: HeadsRecord) -> Iterator[str]:
    """The effects of a record, and what each table keeps, as cells of the card."""
    yield from map(_cell, (record.mean, record.resampled, record.uniform))
    for table in record.tables.values():
        share, low, high, control = (
            decimals(value, 2) for value in (table.share, table.low, table.high, table.control)
        )
        yield f"{share} ({low} to {high}; {control})"


def _cell(effect: Effect) -> str:
    return f"{decimals(effect.kl, 3)} ({points_number(effect.lost)})"


def _round(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _round(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_round(item) for item in value]
    return round(float(f"{value:.4g}"), 6) + 0.0 if isinstance(value, float) else value


def rule_in_words(kind: TableKind, distances: Sequence[float], words: Sequence[tuple[str, float]]) -> str:
    """What a table of this kind attends to: "the previous token", "certain tokens, such as “card” and “limit”"."""
    near = distance_in_words(distances)
    if kind == "distance":
        return near or "tokens by their distance"
    quoted = quote_tokens(words)
    examples = f", such as {quoted}" if quoted else ""
    if kind == "word":
        return f"certain tokens{examples}"
    if not near:
        return f"certain tokens{examples}{',' * bool(examples)} and more so at some distances"
    return f"{near}, and more to certain {'tokens' if near == 'itself' else 'ones'}{examples}"


def quote_tokens(words: Sequence[tuple[str, float]]) -> str:
    """The tokens with the largest weights: "“card” and “limit”"; "" if none can be quoted."""
    quoted = [name if name == PUNCTUATION else f"“{name}”" for name in tokens_to_quote(words)]
    return " and ".join([", ".join(quoted[:-1]), *quoted[-1:]][not quoted[:-1] :])


def short_rule(kind: TableKind, distances: Sequence[float], words: Sequence[tuple[str, float]]) -> str:
    """What a table of this kind attends to, as a caption: "previous token", "tokens: card, limit"."""
    near = distance_in_words(distances).removeprefix("the ")
    if kind == "distance":
        return near or "distance"
    if kind == "both" and near:
        return f"{near}, certain ones more"
    name = "tokens" if kind == "word" else "tokens by distance"
    return ": ".join([name, *filter(None, [", ".join(tokens_to_quote(words)[:2])])])


def distance_in_words(distances: Sequence[float]) -> str:
    """Where most of a table's weight is, seen from the query: "the previous token"; "" if it is spread wider."""
    peak = max(range(len(distances)), key=distances.__getitem__)
    if distances[peak] >= ON_ONE and 0 < peak < len(distances) - 1:
        return _one_distance(peak - MAX_DISTANCE)
    before = sum(distances[MAX_DISTANCE - NEAR : MAX_DISTANCE])
    after = sum(distances[MAX_DISTANCE + 1 : MAX_DISTANCE + 1 + NEAR])
    if after >= ON_NEIGHBOURS:
        return "the next few tokens"
    # Without any weight after the query, the model is causal, and uniform attention would be as near.
    return "the few tokens before it" if before >= ON_NEIGHBOURS and after > 0 else ""


def _one_distance(distance: int) -> str:
    if distance == 0:
        return "itself"
    if abs(distance) == 1:
        return "the previous token" if distance < 0 else "the next token"
    return f"the {ORDINALS[abs(distance)]} token {'before' if distance < 0 else 'after'} it"


def tokens_to_quote(words: Sequence[tuple[str, float]]) -> list[str]:
    """Up to `QUOTED` of these tokens, without repeats; all punctuation counts as one token, which is named last."""
    named = [
        name if any(map(str.isalnum, name)) else PUNCTUATION
        for name, weight in words
        if weight >= TELLING and name not in NOT_QUOTED and not name.startswith(PIECE)
    ]
    readable = [name for name in dict.fromkeys(named) if not set(name) & QUOTATION_MARKS and set(name) & SOUNDING]
    readable = readable[:QUOTED]
    return sorted(readable, key=PUNCTUATION.__eq__)
