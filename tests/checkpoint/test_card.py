"""Model cards from plain values: metrics in words, and metadata that huggingface_hub can read back."""

from typing import Any

from huggingface_hub import ModelCard

from tests.conftest import CLASSES, FITTED, tiny_config
from txcls.checkpoint.card import model_card, most_confused
from txcls.config import Calibration, ScopeRule

FIGURES: dict[str, Any] = {
    "n": 10,
    "accuracy": 0.6,
    "macro_f1": 0.5,
    "ece": 0.1,
    "log_loss": 1.0,
    "per_class": [{"label": "a|b", "precision": 0.5, "recall": 0.5, "f1": 0.5, "support": 10}],
    "confusion": [[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]],
    "reliability": [{"low": 0.6, "high": 2 / 3, "n": 9, "confidence": 0.63, "accuracy": 0.7}],
    "by_length": [{"over": 10, "up_to": 20, "n": 4, "accuracy": 0.75}],
    "by_unknown": [
        {"over": None, "up_to": 0.0, "n": 6, "accuracy": 0.5},
        {"over": 0.2, "up_to": None, "n": 4, "accuracy": 0.25},
    ],
    "order": {"words_shuffled": 0.55, "positions_mean": 0.5},
}


AGREEMENT = {
    "attractors": [{"name": "0", "n": 90, "accuracy": {"transformer": 0.9, "shuffled": 0.7}}],
    "sources": [{"name": "imdb", "n": 90, "accuracy": {"transformer": 0.9}}],
    "constructions": [{"name": "relative clause", "n": 10, "accuracy": {"transformer": 0.8}}],
}


def card(**changes: Any) -> str:
    values = {
        "name": "tiny",
        "config": tiny_config(),
        "classes": CLASSES,
        "vocab_size": 99,
        "n_parameters": 1234,
        "calibration": FITTED,
        "metrics": {"test": FIGURES},
    }
    return model_card(**{**values, **changes})


def test_a_card_shows_agreement_by_attractors_and_constructions() -> None:
    text = card(metrics={"test": FIGURES, "agreement": AGREEMENT})
    assert "| attractors | rows | this model | its words in random order |\n|---|---|---|---|\n" in text
    assert "| 0 | 90 | 90.0 % | 70.0 % |\n" in text and "| source | rows | this model |\n" in text
    assert "| relative clause | 10 | 80.0 % |" in text


def test_a_classifiers_card_shows_its_settings_and_figures() -> None:
    text = card()
    for line in (
        "# tiny: a test",
        "into 4 classes: World, Sports, Business, Sci/Tech.",
        "| test | 10 | 60.00 % | 0.5000 | 0.1000 | 1.0000 |",
        "(-log p) / 1.500) ^ 1.250)",
        "The tables below are for the test rows.",
        "| a\\|b | 0.5000 | 0.5000 | 0.5000 | 10 |",
        "| Sports | 2 | 2 | 0 | 0 |",
        "| 60 % to 67 % | 9 | 63.00 % | 70.00 % |",
        "| over 10 to 20 | 4 | 75.00 % |",
        "| 0 % | 6 | 50.00 % |",
        "| over 20 % | 4 | 25.00 % |",
        "| words of each text in random order | 55.00 % |",
        "| every position vector replaced by their mean | 50.00 % |",
        "2 layers, 2 heads, d_model 16",
        "vocabulary of 99; 1,234 parameters, stored as float16.",
    ):
        assert line in text
    assert "--split new" not in text and "`txcls evaluate tiny --split new` the new ones." in card(
        metrics={"test": FIGURES, "new": FIGURES}
    )
    assert "out of scope" not in text and "softmax(logits / 1.500)" in card(calibration=Calibration(temperature=1.5))


def test_the_metadata_is_read_back_by_the_hubs_own_class() -> None:
    data = ModelCard(card(name='o\'dd: "name"')).data
    assert (data.library_name, data.pipeline_tag, data.datasets) == ("txcls", "text-classification", ["sample"])
    found = {(one.metric_type, one.dataset_split): one.metric_value for one in data.eval_results}
    assert found == {("accuracy", "test"): 0.6, ("f1", "test"): 0.5} and data.model_name == 'o\'dd: "name"'
    own = ModelCard(card(config=tiny_config().with_settings(["data.dataset=table"]))).data
    assert not own.datasets, "an own file is no data set of the Hub"


def test_the_out_of_scope_rule_is_stated_with_its_figures() -> None:
    figures = {"n_in": 9, "n_out": 4, "auroc": 0.9, "accuracy": 0.8, "accuracy_in": 0.7, "recall_out": 0.75}
    text = card(scope=ScopeRule(score="energy", threshold=1.25), metrics={"scope": {"test": figures}})
    assert "out of scope if its energy is below 1.2500" in text
    assert "| test | 4 | 0.9000 | 80.00 % | 70.00 % | 75.00 % |" in text


def test_a_pretrained_models_card_has_no_classes() -> None:
    config = tiny_config(causal=True).with_settings(["objective=causal"])
    text = card(config=config, classes=(), metrics={"language": {"loss": 2.0, "perplexity": 7.3891, "accuracy": 0.25}})
    assert "A causal language model" in text and "- perplexity, its exponential: 7.3891" in text
    assert "## Limits" not in text and ModelCard(text).data.pipeline_tag == "text-generation"


def test_the_most_frequent_confusions_come_first() -> None:
    assert most_confused(CLASSES, FIGURES["confusion"], n=2) == [
        ("Sports", "World", 2, 0.5),
        ("World", "Sports", 1, 0.25),
    ]
