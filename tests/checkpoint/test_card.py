from typing import Any

from huggingface_hub import ModelCard

from tests.conftest import CLASSES, FITTED, tiny_config
from txcls.checkpoint.card import model_card

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
    "order": {"words_shuffled": 0.55, "positions_mean": 0.5},
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


def test_the_metadata_is_read_back_by_the_hubs_own_class() -> None:
    data = ModelCard(card(name='o\'dd: "name"')).data
    assert (data.library_name, data.pipeline_tag, data.datasets) == ("txcls", "text-classification", ["sample"])
    metrics = {(result.metric_type, result.dataset_split): result.metric_value for result in data.eval_results}
    assert metrics == {("accuracy", "test"): 0.6, ("f1", "test"): 0.5} and data.model_name == 'o\'dd: "name"'
    own_data = ModelCard(card(config=tiny_config().with_settings(["data.dataset=table"]))).data
    assert not own_data.datasets, "an own file is no data set of the Hub"
