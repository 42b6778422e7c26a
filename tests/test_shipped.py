"""The shipped checkpoints: small, consistent, and as good as their cards say when measured again on the real rows."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.checkpoint.folders import SNAPSHOTS
from txcls.checkpoint.load import load_checkpoint
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import examples_for, open_dataset
from txcls.data.generated.agreement import CLASSES, minimal_pairs
from txcls.data.unlabelled_texts import open_texts
from txcls.evaluation.evaluate import evaluate
from txcls.evaluation.predict_logits import in_classes_of, predict_logits
from txcls.inference.predictor import Predictor
from txcls.inspection.patching import patch_grid
from txcls.inspection.tracing import trace_text
from txcls.training.corpus import encode_windows
from txcls.training.objectives import PredictNext
from txcls.web.export import describe

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = sorted(path.parent for path in (ROOT / "checkpoints").glob("*/config.json"))
LANGUAGE = [
    folder for folder in SHIPPED if json.loads((folder / "config.json").read_bytes())["objective"] != "classify"
]


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_a_shipped_checkpoint_is_small(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.iterdir()) < 12_000_000
    assert (folder / "model.safetensors").stat().st_size <= 10_000_000


@pytest.mark.slow
def test_the_shipped_language_model_is_as_good_as_its_card_says(published_data: Path) -> None:
    checkpoint = load_checkpoint(ROOT / "checkpoints" / "lm")
    figures = checkpoint.metrics["language"]
    assert f"{figures['perplexity']:.4f}" in (checkpoint.path / "README.md").read_text(encoding="utf-8")
    texts = open_texts(checkpoint.config.data, path=published_data / "ag_news").validation
    rows = encode_windows(checkpoint.tokenizer, texts[:: len(texts) // 500])
    validated = PredictNext().validate(checkpoint.model, rows, torch.device("cpu"))
    assert validated.loss == pytest.approx(figures["loss"], abs=0.15)  # about 500 of the validation texts
    assert validated.accuracy == pytest.approx(figures["accuracy"], abs=0.03)


@pytest.mark.parametrize("name", [folder.name for folder in SHIPPED if folder not in LANGUAGE])
def test_the_app_opens_on_a_text_that_the_model_is_sure_and_right_about(name: str) -> None:
    classifier = Predictor.load(ROOT / "checkpoints" / name)
    example = examples_for(classifier.checkpoint.config.data.dataset)[0]
    traced = trace_text(classifier, example.text)
    best = traced.prediction.ranked[0]
    assert not traced.prediction.is_unusual
    if name == "who_won_none":  # without positions, it cannot know who beat whom
        return
    assert best.label.lower() == example.label.lower() and best.probability > 0.9
    changed = trace_text(classifier, example.changed)
    assert len(changed.tokens) == len(traced.tokens) and changed.prediction.label != best.label


def test_the_exported_page_of_ag_news_opens_patch_on_a_pair_that_shows_something() -> None:
    classifier = Predictor.load(ROOT / "checkpoints" / "ag_news")
    examples = examples_for("ag_news")
    pair = examples[describe(classifier)["pair"]]
    grid = patch_grid(classifier, pair.text, pair.changed, direction="noising")
    assert (abs(grid.values).max(axis=0) >= 0.1).all(), "the changed word has an effect at every token"


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_saving_a_shipped_checkpoint_writes_the_same_files(folder: Path, tmp_path: Path) -> None:
    save_checkpoint(replace(load_checkpoint(folder), path=tmp_path / folder.name))
    for name in {path.name for path in folder.iterdir()} - {"config.json", SNAPSHOTS}:
        assert (folder / name).read_bytes() == (tmp_path / folder.name / name).read_bytes(), name


def test_the_documented_results_are_those_of_the_cards() -> None:
    section = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    table = [[cell.strip(" *†") for cell in line.split("|")[1:-1]] for line in section.splitlines() if line[:1] == "|"]
    named = {row[0]: row[1:] for row in table}
    measured = [load_checkpoint(ROOT / "checkpoints" / name).metrics for name in SHOWN]
    percent = "{:.1%}".format
    expected = {
        "shipped": [percent(metrics["test"]["accuracy"]) for metrics in measured],
        "uniform attention": [
            percent(heads["accuracy"] - heads["all_heads"]["uniform"]["lost"])
            for heads in (metrics["heads"] for metrics in measured)
        ],
        "shuffled": [percent(metrics["test"]["order"]["words_shuffled"]) for metrics in measured],
        "position vectors": [percent(metrics["test"]["order"]["positions_mean"]) for metrics in measured],
        "calibration error": [f"{metrics['test']['ece']:.3f}" for metrics in measured],
        "training": [f"{metrics['training']['seconds']}s" for metrics in measured],
    }
    for row_title, figures in expected.items():
        [row] = [row for title, row in named.items() if row_title in title]
        assert [cell.replace(" ", "") for cell in row] == figures, row_title


SHOWN = ("ag_news", "huffpost", "clinc150", "imdb")
"""The columns of the table in docs/results.md."""


@pytest.mark.slow
def test_the_cards_metrics_are_measured_again(published_data: Path) -> None:
    checkpoint = load_checkpoint(ROOT / "checkpoints" / "clinc150")
    evaluation = evaluate(checkpoint, split="test", data_path=published_data / "clinc150", measure_without_order=True)
    measured, recorded = evaluation.to_dict(), checkpoint.metrics["test"]
    assert measured["n"] == recorded["n"] and measured["ece"] <= 0.02
    assert evaluation.scope is not None and evaluation.scope["auroc"] >= 0.95
    assert evaluation.scope == pytest.approx(checkpoint.metrics["scope"]["test"], abs=2.5 / 1000)
    for figure in ("accuracy", "macro_f1", "order"):
        assert measured[figure] == pytest.approx(recorded[figure], abs=2.5 / recorded["n"])  # ties may fall otherwise
    assert measured["ece"] == pytest.approx(recorded["ece"], abs=1e-3)
    assert np.abs(np.array(measured["confusion"]) - recorded["confusion"]).sum() <= 4
    for ours, theirs in zip(measured["by_length"], recorded["by_length"], strict=True):
        assert {**ours, "accuracy": None} == {**theirs, "accuracy": None}
        assert ours["accuracy"] == pytest.approx(theirs["accuracy"], abs=2.5 / ours["n"])


@pytest.mark.slow
@pytest.mark.parametrize("name, n", [("ag_news", 1000), ("huffpost", 1000), ("imdb", 300)])
def test_some_rows_agree_with_the_card(published_data: Path, name: str, n: int) -> None:
    """All rows take minutes (`python -m txcls evaluate imdb`); the accuracy on some has a sampling error."""
    checkpoint = load_checkpoint(ROOT / "checkpoints" / name)
    rows = in_classes_of(open_dataset(checkpoint.config.data, path=published_data / name).load("test"), checkpoint)
    some = rows.subset(np.random.default_rng(0).choice(len(rows), n, replace=False))
    right = predict_logits(checkpoint.model, TokenisedTexts.encode(checkpoint.tokenizer, some)).numpy().argmax(1)
    share = (right == np.asarray(some.labels)).mean()
    expected = checkpoint.metrics["test"]["accuracy"]
    assert len(rows) == checkpoint.metrics["test"]["n"]
    assert abs(share - expected) < 3 * math.sqrt(expected * (1 - expected) / n)


WHO_WON = {
    ("who_won", "test"): (0.995, 1.0),
    ("who_won", "new"): (0.97, 1.0),
    ("who_won_learned", "test"): (0.995, 1.0),
    ("who_won_none", "test"): (0.0, 0.45),
}
"""Minimum and maximum accuracy of the match report models, which differ in their positions."""


@pytest.mark.slow
@pytest.mark.parametrize("name, split", WHO_WON)
def test_positions_decide_who_won(name: str, split: str) -> None:
    checkpoint = load_checkpoint(ROOT / "checkpoints" / name)
    measured = evaluate(checkpoint, split=split, measure_without_order=False).metrics
    recorded = checkpoint.metrics[split]
    minimum, maximum = WHO_WON[name, split]
    assert measured.n == recorded["n"] and minimum <= measured.accuracy <= maximum
    assert measured.accuracy == pytest.approx(recorded["accuracy"], abs=2.5 / measured.n)


def test_agreement_answers_the_minimal_pairs_as_its_card_says_and_not_by_the_last_noun() -> None:
    checkpoint = load_checkpoint(ROOT / "checkpoints" / "agreement")
    pairs = minimal_pairs()
    predictions = Predictor(checkpoint).predict([pair.text for pair in pairs])
    right = np.array(
        [prediction.label == CLASSES[pair.label] for pair, prediction in zip(pairs, predictions, strict=True)]
    )
    assert right.mean() == pytest.approx(checkpoint.metrics["new"]["accuracy"], abs=1.5 / len(pairs))
    attracted = np.array([pair.is_attracted for pair in pairs])
    assert right[attracted].mean() > 0.7  # by the last noun it would be 0
