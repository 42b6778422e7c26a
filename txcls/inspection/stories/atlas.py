"""Every head of a checkpoint: what it attends to, what it is worth, and its tested story; measured once and kept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.types import Dataset, LabelledTexts, Roles, SplitName
from txcls.evaluation.evaluate import in_classes_of
from txcls.inspection.ablation import AccuracyEffects, Change, How, Off, accuracy_with, sampled
from txcls.inspection.stories.kinds import ANY, KindsTable, TextKinds, TokenStatistics, measure_kinds
from txcls.inspection.stories.story import Clause, MeasuredStory, Story, find_stories, measure_story, story_masks
from txcls.predictor import Predictor

MAX_VALIDATION = (600, 15_000)
"""Most validation texts, and most tokens of them together, on which stories are chosen."""
MAX_TEST = (4000, 150_000)
"""Most test texts, and most tokens of them together, on which stories are measured."""


@dataclass(frozen=True)
class HeadRecord:
    """One head: `worth` is the accuracy that the test rows lose with its output set to "zero" or to its "mean", or with
    its weights made even ("uniform"); `story` is what it does, measured on texts it was not chosen on."""

    worth: Mapping[How, float]
    story: MeasuredStory

    @property
    def carried(self) -> float:
        """How much of the worth of the head's weights a confirmed story accounts for.

        The accuracy over all texts that the story brings back over even weights, at most what all of the head's weights
        are worth, and 0 where the story is not confirmed.
        """
        if self.story.verdict != "confirmed":
            return 0.0
        return max(0.0, min(self.story.brought_back * self.story.coverage, self.worth["uniform"]))


@dataclass(frozen=True)
class HeadAtlas:
    """All heads of a checkpoint, layer by layer.

    Attributes:
        split: the rows that everything but the choice of stories was measured on.
        n: how many of them for `worth`.
        n_stories: how many of them for attention and stories.
        n_validation: on how many validation texts stories were chosen.
        table: attention by kinds, on the texts of `n_stories`.
        heads: a record for each head.
    """

    split: str
    n: int
    n_stories: int
    n_validation: int
    table: KindsTable
    heads: tuple[HeadRecord, ...]

    @property
    def confirmed_share(self) -> float:
        """The share of the heads' worth that confirmed stories carry; nan where no head is worth anything.

        The worth of a head is the accuracy lost when all of its weights are made even, at least 0; the sum of
        `HeadRecord.carried` is divided by the sum of these. Each head is changed alone, so what several heads do
        alike counts for none of them.
        """
        worth = sum(max(0.0, head.worth["uniform"]) for head in self.heads)
        return sum(head.carried for head in self.heads) / worth if worth else float("nan")

    @classmethod
    def of(cls, classifier: Predictor) -> "HeadAtlas | None":
        """The one that the checkpoint keeps; None if it keeps none, or none that fits."""
        config = classifier.checkpoint.config.model
        try:
            atlas = cls.from_dict(classifier.checkpoint.metrics["atlas"])
        except (KeyError, TypeError, ValueError):
            return None
        places = [(head.story.story.layer, head.story.story.head) for head in atlas.heads]
        expected = [(layer, head) for layer in range(config.n_layers) for head in range(config.n_heads)]
        table = atlas.table
        shape = (config.n_layers, config.n_heads, len(table.queries), len(table.keys))
        fits = places == expected and table.attention.shape == shape and table.entropy.shape == shape[:2]
        return atlas if fits and table.chance.shape == table.coverage.shape == shape[2:] else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, for `metrics["atlas"]`; nan becomes null."""
        heads = [
            {
                "entropy": round(float(self.table.entropy[head.story.story.layer, head.story.story.head]), 4),
                "worth": {how: round(lost, 6) for how, lost in head.worth.items()},
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
            "confirmed_share": _or_none(self.confirmed_share),
            "queries": list(self.table.queries),
            "keys": list(self.table.keys),
            "held": _rounded(self.table.coverage),
            "chance": _rounded(self.table.chance),
            "heads": heads,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "HeadAtlas":
        """The atlas that `to_dict` described.

        Raises:
            KeyError, TypeError, ValueError: it is no such description.
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
            HeadRecord({how: float(lost) for how, lost in head["worth"].items()}, _story_from_dict(head["story"]))
            for head in heads
        )
        return cls(
            split=str(values["split"]),
            n=int(values["n"]),
            n_stories=int(values["n_told"]),
            n_validation=int(values["n_found"]),
            table=table,
            heads=records,
        )


def measure_atlas(
    classifier: Predictor,
    effects: Mapping[Off, AccuracyEffects],
    *,
    data_path: Path | None = None,
    on_stage: Callable[[str], None] | None = None,
) -> HeadAtlas:
    """What every head attends to and is worth, and its story, found on validation texts and measured on test texts.

    Args:
        classifier: nothing in it is changed.
        effects: the accuracy without each head, from `measure_heads`.
        data_path: folder or file in the data set's published format; None for where `open_dataset` looks.
        on_stage: called with what is being done.

    Raises:
        DataError: the data are missing, have no test split, or have classes that the checkpoint does not have.
        ValueError: no validation or no test text holds a token, or `effects` are of other rows.
    """
    tell = on_stage or (lambda message: None)
    checkpoint, config = classifier.checkpoint, classifier.checkpoint.config.model
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    training, validation = (
        in_classes_of(rows, checkpoint) for rows in training_and_validation(dataset, checkpoint.config.data)
    )
    test = in_classes_of(dataset.load("test"), checkpoint)
    tell(f"counting the tokens of {len(training):,} training texts")
    tokens = TokenisedTexts.encode(classifier.encoder, training)
    statistics = TokenStatistics.of(tokens, n_classes=len(classifier.classes), vocab_size=classifier.encoder.vocab_size)
    validation_texts = _some(classifier, statistics, validation, _roles(dataset, "validation"), MAX_VALIDATION)
    test_texts = _some(classifier, statistics, test, _roles(dataset, "test"), MAX_TEST)
    tell(f"finding the stories of heads on {len(validation_texts):,} validation texts")
    stories = find_stories(
        classifier, validation_texts, on_head=lambda done, total: tell(f"found the stories of {done} of {total} heads")
    )
    tell(f"measuring the stories on {len(test_texts):,} test texts")
    rows = TokenisedTexts.encode(classifier.encoder, sampled(classifier, test))
    if len(rows) != effects["zero"].n:
        raise ValueError(f"effects were measured on {effects['zero'].n:,} rows; wanted {len(rows):,}, as read here")
    records = []
    for story in stories:
        worth: dict[How, float] = {
            off: effects[off].accuracy - float(effects[off].heads[story.layer, story.head]) for off in ("zero", "mean")
        }
        even = accuracy_with(classifier, rows, [Change("head", "uniform", story.layer, story.head)])
        worth["uniform"] = effects["zero"].accuracy - even
        records.append(HeadRecord(worth, measure_story(classifier, test_texts, _testable(story, test_texts))))
        tell(f"measured the stories of {len(records)} of {config.n_layers * config.n_heads} heads")
    return HeadAtlas(
        "test",
        len(rows),
        len(test_texts),
        len(validation_texts),
        measure_kinds(classifier, test_texts),
        tuple(records),
    )


def with_atlas(checkpoint: Checkpoint, atlas: HeadAtlas) -> Checkpoint:
    """A copy of the checkpoint with the atlas in its record (and model card, once saved)."""
    return replace(checkpoint, metrics={**checkpoint.metrics, "atlas": atlas.to_dict()})


def _roles(dataset: Dataset, split: SplitName) -> Sequence[Roles] | None:
    return dataset.roles(split) if dataset.roles else None


def _some(
    classifier: Predictor,
    statistics: TokenStatistics,
    rows: LabelledTexts,
    roles: Sequence[Roles] | None,
    most: tuple[int, int],
) -> list[TextKinds]:
    """Random rows with the kinds of their tokens, at most that many texts and tokens (but at least one text)."""
    most_texts, most_tokens = most
    places = [int(place) for place in np.random.default_rng(0).permutation(len(rows))[:most_texts]]
    texts = statistics.read(
        classifier.encoder,
        [rows.texts[place] for place in places],
        [rows.labels[place] for place in places],
        roles=None if roles is None else [roles[place] for place in places],
    )
    ends = np.cumsum([len(text) for text in texts])
    return texts[: max(1, int((ends <= most_tokens).sum()))]


def _testable(story: Story, texts: Sequence[TextKinds]) -> Story:
    """The story without clauses of which no text holds a query and a key; of itself alone where none are left."""
    testable = [clause for clause in story.clauses if any(story_masks([clause], text).any() for text in texts)]
    return replace(story, clauses=tuple(testable) or (Clause(ANY, "itself"),))


def _rounded(values: Any) -> list[list[float]]:
    return [[round(float(value), 4) for value in row] for row in values]


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 4)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _story_to_dict(measured: MeasuredStory) -> dict[str, Any]:
    return {
        "layer": measured.story.layer,
        "head": measured.story.head,
        "clauses": [{"query": clause.query, "key": clause.key} for clause in measured.story.clauses],
        "n": measured.n,
        "held": round(measured.coverage, 6),
        "accuracy": round(measured.accuracy, 6),
        "even": round(measured.even, 6),
        "told": round(measured.restored, 6),
        "control": round(measured.control, 6),
        "share": _or_none(measured.share),
        "control_share": _or_none(measured.control_share),
        "interval": [_or_none(end) for end in measured.interval],
        "attention": [_or_none(weight) for weight in measured.attention],
        "chance": [_or_none(weight) for weight in measured.chance],
        "verdict": measured.verdict,
    }


def _story_from_dict(values: Mapping[str, Any]) -> MeasuredStory:
    clauses = tuple(Clause(str(clause["query"]), str(clause["key"])) for clause in values["clauses"])
    low, high = values["interval"]
    return MeasuredStory(
        story=Story(int(values["layer"]), int(values["head"]), clauses),
        n=int(values["n"]),
        coverage=float(values["held"]),
        accuracy=float(values["accuracy"]),
        even=float(values["even"]),
        restored=float(values["told"]),
        control=float(values["control"]),
        share=_or_nan(values["share"]),
        interval=(_or_nan(low), _or_nan(high)),
        control_share=_or_nan(values["control_share"]),
        attention=tuple(map(_or_nan, values["attention"])),
        chance=tuple(map(_or_nan, values["chance"])),
        verdict=values["verdict"],
    )
