"""The head atlas of a checkpoint: what each head attends to (a hypothesis, its story, tested by intervention), and how
much accuracy its loss costs (its worth)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import AblationMethod
from txcls.inspection.ablation_on_rows import ChangedRows
from txcls.inspection.stories.all_heads import AllHeads
from txcls.inspection.stories.kinds import KindsTable
from txcls.inspection.stories.lists import LOG_WEIGHT_STEP, MAX_DISTANCE, Lists
from txcls.inspection.stories.measure_story import MeasuredStory
from txcls.inspection.stories.story import Clause, Story
from txcls.inspection.stories.verdicts import IDLE


@dataclass(frozen=True)
class HeadRecord:
    """The measurements of one head.

    Attributes:
        lost: the accuracy lost on the test rows with "zero" or "mean" ablation, or with "uniform" weights.
        story: its story, measured on texts that were not used to choose it.
        changed: the test rows that change with mean ablation, and the interval of the worth; None in older records.
    """

    lost: Mapping[AblationMethod, float]
    story: MeasuredStory
    changed: ChangedRows | None = None

    @property
    def head_name(self) -> str:
        """Layer and head, from 1: "2.2"."""
        return f"{self.story.story.layer + 1}.{self.story.story.head + 1}"

    @property
    def worth(self) -> float:
        """The accuracy lost with mean ablation.

        Means, zeros and uniform weights all give later layers unusual inputs; which costs most differs between heads.
        """
        return self.lost["mean"]

    @property
    def least_worth(self) -> float:
        """The lower end of the 95 % interval of the worth, by which heads are sorted; the worth in older records."""
        return self.worth if self.changed is None else self.changed.low

    @property
    def is_spare(self) -> bool:
        """Whether mean ablation of only this head costs almost no accuracy, even at the upper end of the interval.

        False in older records, which have no interval.
        """
        return self.changed is not None and self.changed.high < IDLE

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key: heads with a confirmed story first, then partly confirmed, then the rest, each by `least_worth`."""
        verdicts = ("confirmed", "partly confirmed")
        verdict = self.story.verdict
        return verdicts.index(verdict) if verdict in verdicts else len(verdicts), -self.least_worth


@dataclass(frozen=True)
class HeadAtlas:
    """The measurements of all heads of a checkpoint.

    Attributes:
        split: the split on which everything except the choice of stories was measured.
        n: number of its rows used for `HeadRecord.lost`.
        n_stories: number of its rows used for attention and stories.
        n_validation: number of validation texts on which stories were chosen.
        table: mean attention from each kind of query to each kind of key, on the `n_stories` texts.
        heads: a record for each head, layer by layer.
        spare_lost: the accuracy lost on the test rows with mean ablation of all spare heads together; None if not
            measured.
        all_heads: results with the weights of all heads replaced together; None if not measured.
    """

    split: str
    n: int
    n_stories: int
    n_validation: int
    table: KindsTable
    heads: tuple[HeadRecord, ...]
    spare_lost: float | None = None
    all_heads: AllHeads | None = None

    @classmethod
    def of(cls, classifier: Predictor) -> "HeadAtlas | None":
        """The atlas stored in the checkpoint; None if there is none, or if it does not fit the model."""
        try:
            atlas = cls.from_dict(classifier.checkpoint.metrics["atlas"])
            return atlas if atlas._fits(classifier) else None
        except (AttributeError, KeyError, TypeError, ValueError):
            return None

    def _fits(self, classifier: Predictor) -> bool:
        """Whether all arrays have the shapes that the classifier needs."""
        config = classifier.checkpoint.config.model
        heads = [(head.story.story.layer, head.story.story.head) for head in self.heads]
        expected = [(layer, head) for layer in range(config.n_layers) for head in range(config.n_heads)]
        table = self.table
        shape = (config.n_layers, config.n_heads, len(table.queries), len(table.keys))
        n_words = classifier.tokenizer.vocab_size
        lists = [head.story.story.lists for head in self.heads if head.story.story.lists is not None]
        fits_lists = all(
            (of_head.words is None or len(of_head.words) == n_words)
            and (of_head.distances is None or len(of_head.distances) == 2 * MAX_DISTANCE + 1)
            for of_head in lists
        )
        fits = fits_lists and heads == expected and table.attention.shape == shape and table.entropy.shape == shape[:2]
        return fits and table.chance.shape == table.coverage.shape == shape[2:]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, for `metrics["atlas"]`; NaN becomes null."""
        heads = [
            {
                "entropy": round(float(self.table.entropy[head.story.story.layer, head.story.story.head]), 4),
                "worth": {how: round(lost, 6) for how, lost in head.lost.items()},
                **({} if head.changed is None else {"changed": asdict(head.changed)}),
                "story": _story_to_dict(head.story),
                "attention": _rounded(self.table.attention[head.story.story.layer, head.story.story.head]),
            }
            for head in self.heads
        ]
        return {
            "split": self.split,
            "n": self.n,
            "n_told": self.n_stories,
            "n_found": self.n_validation,
            **({} if self.spare_lost is None else {"spare_lost": round(self.spare_lost, 6)}),
            **({} if self.all_heads is None else {"all_heads": _all_heads_to_dict(self.all_heads)}),
            "queries": list(self.table.queries),
            "keys": list(self.table.keys),
            "held": _rounded(self.table.coverage),
            "chance": _rounded(self.table.chance),
            "heads": heads,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "HeadAtlas":
        """The atlas from the output of `to_dict`.

        Raises:
            KeyError, TypeError, ValueError: the values are not such an output.
        """
        heads = values["heads"]
        n_layers = 1 + max(int(head["story"]["layer"]) for head in heads)
        attention = np.array([head["attention"] for head in heads], dtype=float)  # L*H Q K
        table = KindsTable(
            queries=tuple(map(str, values["queries"])),
            keys=tuple(map(str, values["keys"])),
            coverage=np.array(values["held"], dtype=float),
            chance=np.array(values["chance"], dtype=float),
            attention=attention.reshape(n_layers, -1, *attention.shape[1:]),
            entropy=np.array([head["entropy"] for head in heads], dtype=float).reshape(n_layers, -1),
        )
        records = tuple(
            HeadRecord(
                {how: float(lost) for how, lost in head["worth"].items()},
                _story_from_dict(head["story"]),
                ChangedRows(**head["changed"]) if "changed" in head else None,
            )
            for head in heads
        )
        return cls(
            split=str(values["split"]),
            n=int(values["n"]),
            n_stories=int(values["n_told"]),
            n_validation=int(values["n_found"]),
            table=table,
            heads=records,
            spare_lost=values.get("spare_lost"),
            all_heads=_all_heads_from_dict(values["all_heads"]) if "all_heads" in values else None,
        )


def _rounded(values: Any) -> list[list[float]]:
    return [[round(float(value), 4) for value in row] for row in values]


def _or_none(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else round(value, 4)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _lists_to_dict(lists: Lists) -> dict[str, Any]:
    """Log weights as multiples of LOG_WEIGHT_STEP."""
    parts = {"words": lists.words, "distances": lists.distances}
    return {
        name: np.rint(part / LOG_WEIGHT_STEP).astype(int).tolist() for name, part in parts.items() if part is not None
    }


def _lists_from_dict(values: Mapping[str, Any]) -> Lists:
    parts = [
        (np.array(values[name], dtype=float) * LOG_WEIGHT_STEP).round(1) if name in values else None
        for name in ("words", "distances")
    ]
    return Lists(*parts)


def _all_heads_to_dict(measured: AllHeads) -> dict[str, Any]:
    return {
        name: [_or_none(end) for end in value] if isinstance(value, tuple) else _or_none(value)
        for name, value in vars(measured).items()
    }


def _all_heads_from_dict(values: Mapping[str, Any]) -> AllHeads:
    low, high = values["interval"]
    shares = {name: float(values[name]) for name in ("accuracy", "uniform", "lists", "control")}
    return AllHeads(
        n=int(values["n"]),
        stories=values["stories"],
        share=_or_nan(values["share"]),
        interval=(_or_nan(low), _or_nan(high)),
        control_share=_or_nan(values["control_share"]),
        control_range=_range_from(values),
        **shares,
    )


def _story_to_dict(measured: MeasuredStory) -> dict[str, Any]:
    return {
        "layer": measured.story.layer,
        "head": measured.story.head,
        "clauses": [{"query": clause.query, "key": clause.key} for clause in measured.story.clauses],
        **({} if measured.story.lists is None else {"lists": _lists_to_dict(measured.story.lists)}),
        "n": measured.n,
        "held": round(measured.coverage, 6),
        "accuracy": round(measured.accuracy, 6),
        "even": round(measured.uniform, 6),
        "told": round(measured.restored, 6),
        "control": round(measured.control, 6),
        **(
            {}
            if measured.control_range is None
            else {"control_range": [round(end, 6) for end in measured.control_range]}
        ),
        "share": _or_none(measured.share),
        "control_share": _or_none(measured.control_share),
        "interval": [_or_none(end) for end in measured.interval],
        "attention": [_or_none(weight) for weight in measured.attention],
        "chance": [_or_none(weight) for weight in measured.chance],
        "verdict": measured.verdict,
        **({"is_minimal": True} if measured.is_minimal else {}),
        **({"key_is_answer": True} if measured.story.key_is_answer else {}),
        **({"has_leak": True} if measured.story.has_leak else {}),
    }


def _story_from_dict(values: Mapping[str, Any]) -> MeasuredStory:
    clauses = tuple(Clause(str(clause["query"]), str(clause["key"])) for clause in values["clauses"])
    lists = _lists_from_dict(values["lists"]) if "lists" in values else None
    low, high = values["interval"]
    if len(values["attention"]) != max(1, len(clauses)):
        raise ValueError("expected the attention on the keys of each clause")
    return MeasuredStory(
        story=Story(int(values["layer"]), int(values["head"]), clauses, lists),
        n=int(values["n"]),
        coverage=float(values["held"]),
        accuracy=float(values["accuracy"]),
        uniform=float(values["even"]),
        restored=float(values["told"]),
        control=float(values["control"]),
        share=_or_nan(values["share"]),
        interval=(_or_nan(low), _or_nan(high)),
        control_share=_or_nan(values["control_share"]),
        attention=tuple(map(_or_nan, values["attention"])),
        chance=tuple(map(_or_nan, values["chance"])),
        control_range=_range_from(values),
        is_minimal=bool(values.get("is_minimal", False)),
    )


def _range_from(values: Mapping[str, Any]) -> tuple[float, float] | None:
    if values.get("control_range") is None:
        return None
    low, high = values["control_range"]
    return float(low), float(high)
