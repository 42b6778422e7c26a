"""Measure the head atlas of a checkpoint: find each head's story, test it, and measure what its loss costs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.types import Dataset, LabelledTexts, Roles, SplitName
from txcls.evaluation.predict_logits import in_classes_of
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import AblationMethod, Change, Means, OutputAblation
from txcls.inspection.ablation_on_rows import AccuracyEffects, accuracy_with, sampled
from txcls.inspection.stories.all_heads import measure_all_heads
from txcls.inspection.stories.atlas import HeadAtlas, HeadRecord
from txcls.inspection.stories.kinds import ANY, TextKinds, TokenStatistics, measure_kinds, roles_by_prediction
from txcls.inspection.stories.lists import fit_lists
from txcls.inspection.stories.measure_story import measure_story, necessary_part
from txcls.inspection.stories.search import find_stories
from txcls.inspection.stories.story import Clause, Story, story_masks

MAX_TRAINING = (8000, 300_000)
"""Maximum number of training texts, and of their tokens, to which lists are fitted."""


MAX_VALIDATION = (600, 15_000)
"""Maximum number of validation texts, and of their tokens, on which stories are found."""


MAX_TEST = (4000, 150_000)
"""Maximum number of test texts, and of their tokens, on which stories are measured; also of the validation texts on
which stories are simplified."""


def measure_atlas(
    classifier: Predictor,
    means: Means,
    effects: Mapping[OutputAblation, AccuracyEffects],
    *,
    data_path: Path | None = None,
    on_stage: Callable[[str], None] | None = None,
) -> HeadAtlas:
    """Measure every head: stories are found on validation texts, and everything is measured on test texts.

    Args:
        means, effects: from `measure_heads`.
        data_path: folder or file in the data set's published format; None for the default location of `open_dataset`.
        on_stage: called with a description of each stage.

    Raises:
        DataError: the data are missing, have no test split, or have classes that the checkpoint does not have.
        ValueError: no validation text or no test text contains a word, or `effects` were measured on other rows.
    """
    report = on_stage or (lambda message: None)
    checkpoint = classifier.checkpoint
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    training, validation = (
        in_classes_of(rows, checkpoint) for rows in training_and_validation(dataset, checkpoint.config.data)
    )
    test = in_classes_of(dataset.load("test"), checkpoint)
    report(f"counting the tokens of {len(training):,} training texts")
    tokens = TokenisedTexts.encode(classifier.tokenizer, training)
    statistics = TokenStatistics.of(
        tokens, n_classes=len(classifier.classes), vocab_size=classifier.tokenizer.vocab_size
    )
    validation_texts = _sample(classifier, statistics, validation, _roles(dataset, "validation"), MAX_VALIDATION)
    more_validation_texts = _sample(classifier, statistics, validation, _roles(dataset, "validation"), MAX_TEST)
    test_texts = _sample(classifier, statistics, test, _roles(dataset, "test"), MAX_TEST)
    order = np.random.default_rng(0).permutation(len(tokens))[: MAX_TRAINING[0]]
    n_training = max(1, int((np.cumsum(tokens.lengths[order]) <= MAX_TRAINING[1]).sum()))
    report(f"fitting word lists and distance lists to {n_training:,} training texts")
    lists = fit_lists(classifier, tokens.subset(order[:n_training]))
    report(f"finding the stories of heads on {len(validation_texts):,} validation texts")
    stories = find_stories(
        classifier,
        validation_texts,
        lists=lists,
        on_head=lambda done, total: report(f"found the stories of {done} of {total} heads"),
    )
    report(f"measuring the stories on {len(test_texts):,} test texts")
    rows = TokenisedTexts.encode(classifier.tokenizer, sampled(classifier, test))
    if len(rows) != effects["zero"].n:
        raise ValueError(f"got effects measured on {effects['zero'].n:,} rows; expected {len(rows):,} rows")
    records = []
    changed = effects["mean"].changed or [None] * len(stories)
    for story, fitted, of_head in zip(stories, lists, changed, strict=True):
        lost: dict[AblationMethod, float] = {
            method: effects[method].accuracy - float(effects[method].heads[story.layer, story.head])
            for method in ("zero", "mean")
        }
        uniform = accuracy_with(classifier, rows, [Change("head", "uniform", story.layer, story.head)])
        lost["uniform"] = effects["zero"].accuracy - uniform
        testable = _testable(story, more_validation_texts)
        necessary = necessary_part(classifier, more_validation_texts, testable, fitted)
        measured = measure_story(classifier, test_texts, _testable(necessary, test_texts), counts=statistics.counts)
        records.append(HeadRecord(lost, replace(measured, is_minimal=True), of_head))
        report(f"measured the stories of {len(records)} of {len(stories)} heads")
    report("replacing the weights of all heads together")
    spare = [Change("head", "mean", head.story.story.layer, head.story.story.head) for head in records if head.is_spare]
    return HeadAtlas(
        split="test",
        n=len(rows),
        n_stories=len(test_texts),
        n_validation=len(validation_texts),
        table=measure_kinds(classifier, test_texts),
        heads=tuple(records),
        spare_lost=effects["mean"].accuracy - accuracy_with(classifier, rows, spare, means=means),
        all_heads=measure_all_heads(
            classifier,
            test_texts,
            [head.story for head in records],
            [fitted.both for fitted in lists],
            counts=statistics.counts,
        ),
    )


def _roles(dataset: Dataset, split: SplitName) -> Sequence[Roles] | None:
    return dataset.roles(split) if dataset.roles else None


def _sample(
    classifier: Predictor,
    statistics: TokenStatistics,
    rows: LabelledTexts,
    roles: Sequence[Roles] | None,
    limit: tuple[int, int],
) -> list[TextKinds]:
    """At least one random row with the kinds of its tokens, and at most `limit` = (texts, tokens)."""
    drawn = np.random.default_rng(0).permutation(len(rows))[: limit[0]].tolist()
    texts, labels = [rows.texts[n] for n in drawn], [rows.labels[n] for n in drawn]
    of_texts = None if roles is None else roles_by_prediction(classifier, texts, [roles[n] for n in drawn])
    with_kinds = statistics.read(classifier.tokenizer, texts, labels, roles=of_texts)
    ends = np.cumsum([len(text) for text in with_kinds])
    return with_kinds[: max(1, int((ends <= limit[1]).sum()))]


def _testable(story: Story, texts: Sequence[TextKinds]) -> Story:
    """The story without clauses that match no text; if none is left, the clause that any token attends to itself."""
    if story.lists is not None:
        return story
    testable = [clause for clause in story.clauses if any(story_masks([clause], text).any() for text in texts)]
    return replace(story, clauses=tuple(testable) or (Clause(ANY, "itself"),))
