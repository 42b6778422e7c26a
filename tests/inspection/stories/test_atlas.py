"""The atlas of a checkpoint: kinds, tables, and what is saved."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import CLASSES, TEXTS, Untrained, make_checkpoint
from tests.inspection.stories.planted import planted
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.data.batches import TokenisedTexts
from txcls.data.types import LabelledTexts
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation_on_rows import measure_heads
from txcls.inspection.stories import (
    ANY,
    HeadAtlas,
    TokenStatistics,
    all_heads_sentence,
    keys_of,
    measure_atlas,
    measure_kinds,
    queries_of,
    spare_sentence,
    worth_words,
)
from txcls.inspection.tracing import trace_text

SUBJECTS = ("cooking", "health", "money", "sport", "technology", "travel")
MODELS = [
    {},
    {"pooling": "class_token"},
    {"pooling": "first", "causal": True},
    {"fixed_length": True, "mask_padding": False, "pooling": "mean", "positions": "none", "n_layers": 1},
]


def statistics_of(classifier: Predictor) -> TokenStatistics:
    rows = LabelledTexts(TEXTS, [n % 4 for n in range(len(TEXTS))], CLASSES)
    tokens = TokenisedTexts.encode(classifier.tokenizer, rows)
    return TokenStatistics.of(tokens, n_classes=4, vocab_size=classifier.tokenizer.vocab_size)


@pytest.mark.parametrize("model", MODELS)
def test_attention_by_kinds_equals_a_loop_over_texts(untrained: Untrained, model: dict[str, object]) -> None:
    classifier = untrained(**model)
    texts = statistics_of(classifier).read(classifier.tokenizer, TEXTS, [0] * len(TEXTS))
    table = measure_kinds(classifier, texts)
    causal = classifier.checkpoint.config.model.causal
    for q, query in enumerate(table.queries):
        for k, key in enumerate(table.keys):
            weights, chances, n_texts = [], [], 0
            for text, kinds in zip(TEXTS, texts, strict=True):
                size = len(kinds)
                pattern = trace_text(classifier, text).attention[:, :, :size, :size]  # L H T T
                has_pair = False
                for row in np.flatnonzero(queries_of(query, kinds)):
                    keys = [key for key in np.flatnonzero(keys_of(key, kinds)[row]) if key <= row or not causal]
                    if keys:
                        weights.append(pattern[:, :, row, keys].sum(axis=-1))
                        chances.append(len(keys) / (row + 1 if causal else size))
                        has_pair = True
                n_texts += has_pair
            assert table.coverage[q, k] == pytest.approx(n_texts / len(TEXTS))
            assert table.chance[q, k] == pytest.approx(np.mean(chances) if chances else 0.0)
            expected = np.mean(weights, axis=0) if weights else np.zeros(table.entropy.shape)
            np.testing.assert_allclose(table.attention[:, :, q, k], expected, atol=1e-5)
    assert (table.entropy > 0).all() and (table.entropy <= 1).all()


def test_kinds_of_tokens() -> None:
    classifier = planted({1: 1.0}, {2: 1.0})
    rows = LabelledTexts(
        ["rise gain ;"] * 60 + ["fall dip ;"] * 60 + ["start ;"] * 2, [0] * 60 + [1] * 61 + [0], ("up", "down")
    )
    tokens = TokenisedTexts.encode(classifier.tokenizer, rows)
    statistics = TokenStatistics.of(tokens, n_classes=2, vocab_size=classifier.tokenizer.vocab_size)
    ids = {word: classifier.tokenizer.encode(word).ids[0] for word in ("rise", "gain", "fall", "dip", "start", ";")}
    assert statistics.typical == {ids[word] for word in ("rise", "gain", "fall", "dip")}
    assert statistics.rare == {ids["start"]} and statistics.counts[ids[";"]] == 122
    texts = statistics.read(
        classifier.tokenizer,
        ["rise ; not rise", "", "start"],
        [0, 1, 1],
        roles=[{"gap": [(5, 10)]}, {}, {}],
    )
    assert [text.label for text in texts] == [0, 1], "a text without words is left out"
    first, second = texts
    expected = {"first token": [0], "punctuation": [1], "negation": [2], "typical word": [0, 3], "gap": [1, 2]}
    for kind, places in expected.items():
        assert np.flatnonzero(first.kinds[kind]).tolist() == places, kind
    assert np.flatnonzero(first.kinds["rare word"]).tolist() == [2], "a word outside the vocabulary is rare"
    assert second.kinds["rare word"].tolist() == [True]
    assert np.flatnonzero(keys_of("same token elsewhere", first)[0]).tolist() == [3]
    assert np.flatnonzero(keys_of("previous token", first)[2]).tolist() == [1]
    assert not keys_of("previous token", first)[0].any() and not keys_of("next token", first)[3].any()
    assert not keys_of("no such kind", first).any()


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Predictor, HeadAtlas]:
    """The atlas of an untrained checkpoint on the sample data."""
    folder = tmp_path_factory.mktemp("atlas") / "tiny"
    classifier = Predictor(make_checkpoint(folder, classes=SUBJECTS))
    means, effects = measure_heads(classifier)
    stages: list[str] = []
    atlas = measure_atlas(classifier, means, effects, on_stage=stages.append)
    assert len(stages) == 5 + 2 * 4
    for record in atlas.heads:
        place = record.story.story.layer, record.story.story.head
        assert record.lost["zero"] == effects["zero"].accuracy - effects["zero"].heads[place]
        assert record.worth == record.lost["mean"] == effects["mean"].accuracy - effects["mean"].heads[place]
        assert record.changed is not None and record.changed.low <= record.worth <= record.changed.high
        assert record.changed.wrong - record.changed.right == round(record.worth * atlas.n)
    assert atlas.all_heads is not None and atlas.all_heads.n == atlas.n_stories
    assert np.isfinite(atlas.all_heads.stories) and atlas.spare_lost is not None
    save_checkpoint(classifier.checkpoint.with_metrics(atlas=atlas.to_dict()))
    return classifier, atlas


def test_the_atlas_is_stored_in_the_checkpoint(measured: tuple[Predictor, HeadAtlas]) -> None:
    classifier, atlas = measured
    loaded = HeadAtlas.of(Predictor(load_checkpoint(classifier.checkpoint.path)))
    assert loaded is not None
    assert (loaded.split, loaded.n, loaded.n_stories, loaded.n_validation) == (
        atlas.split,
        atlas.n,
        atlas.n_stories,
        atlas.n_validation,
    )
    assert loaded.to_dict() == atlas.to_dict()
    assert [head.story.story for head in loaded.heads] == [head.story.story for head in atlas.heads]
    np.testing.assert_allclose(loaded.table.attention, atlas.table.attention, atol=1e-4)
    assert ANY in loaded.table.queries and "next token" in loaded.table.keys
    card = (classifier.checkpoint.path / "README.md").read_text(encoding="utf-8")
    for head in atlas.heads:
        worth = worth_words(head).replace(" points of accuracy", "")
        assert f"| {worth} | {head.story.story} | " in card, "the same digits as on the pages"


@pytest.mark.parametrize(
    "change",
    [
        {"chance": [[0.5]]},
        {"all_heads": {"n": 3}},
        {"heads": {"story": {"lists": {"words": [0.5]}}}},
        {"heads": []},
        {"heads": {"story": {"attention": []}}},
    ],
)
def test_a_damaged_atlas_is_ignored(measured: tuple[Predictor, HeadAtlas], change: dict[str, object]) -> None:
    classifier, atlas = measured
    values = json.loads(json.dumps(atlas.to_dict()))
    for name, value in change.items():
        if name == "heads" and isinstance(value, dict):
            for part, fields in value.items():
                values["heads"][0][part] = {**values["heads"][0][part], **fields}
        else:
            values[name] = value
    damaged = replace(classifier.checkpoint, metrics={"atlas": values})
    assert HeadAtlas.of(Predictor(damaged)) is None


def test_an_atlas_of_an_earlier_version_is_read(measured: tuple[Predictor, HeadAtlas], tmp_path: Path) -> None:
    classifier, atlas = measured
    values = json.loads(json.dumps(atlas.to_dict()))
    values = {**{key: values[key] for key in values if key not in ("spare_lost", "all_heads")}, "confirmed_share": 0.5}
    for head in values["heads"]:
        del head["changed"]
    story = {"accuracy": 0.9, "even": 0.8, "share": -0.4, "control_share": 0.3, "interval": [-4.6, 0.83]}
    values["heads"][0]["story"] |= {**story, "verdict": "wrong"}
    values["heads"][1]["story"] |= {**story, "interval": [-4.6, 0.2], "verdict": "partly confirmed"}
    save_checkpoint(replace(classifier.checkpoint, metrics={"atlas": values}), tmp_path / "tiny")
    loaded = HeadAtlas.of(Predictor(load_checkpoint(tmp_path / "tiny")))
    assert loaded is not None and loaded.spare_lost is loaded.all_heads is None
    verdicts = [head.story.verdict for head in loaded.heads[:2]]
    assert verdicts == ["undecided", "refuted"], "from the shares, by the present rule"
    assert not any(head.is_spare for head in loaded.heads), "not known without an interval"
    assert loaded.heads[0].changed is None and loaded.heads[0].least_worth == atlas.heads[0].worth
    assert all_heads_sentence(loaded) == spare_sentence(loaded) == ""
