import json

import pytest

from txcls.config import RunConfig, load_preset, preset_names
from txcls.errors import ConfigError


def config(**sections: object) -> RunConfig:
    return RunConfig.from_mapping({"name": "x", **sections}, source="test")


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_valid_and_round_trips(name: str) -> None:
    preset = load_preset(name)
    assert preset.name == name and preset.title
    reread = RunConfig.from_mapping(json.loads(json.dumps(preset.model_dump(mode="json"))), source="again")
    assert reread == preset


@pytest.mark.parametrize(
    "sections, message",
    [
        ({"model": {"d_model": 10, "n_heads": 4}}, "model.d_model: 10 is not divisible by n_heads = 4"),
        (
            {"model": {"d_model": 16_384, "max_length": 8192}},
            "model.max_length: sinusoidal positions for 8,192 tokens and d_model = 16,384 are 134,217,728 numbers; "
            "expected at most 8,388,608",
        ),
        ({"model": {"dropout": 1.0}}, "model.dropout: input should be less than 1, got 1.0"),
        ({"model": {"norm": "middle"}}, "model.norm: input should be 'pre' or 'post', got 'middle'"),
        ({"model": {"d_modle": 8}}, "model.d_modle: unknown setting (did you mean d_model?)"),
        ({"train": {"learning_rate": float("nan")}}, "train.learning_rate: input should be a finite number"),
        ({"data": {"dataset": "mixture", "sources": ["imdb", "imdb"]}}, "data.sources: a data set is listed more"),
        ({"nodel": {}}, "nodel: unknown setting (did you mean model?)"),
    ],
)
def test_bad_settings_are_refused_with_the_field_named(sections: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(**sections)
    assert message in str(caught.value)


def test_settings_can_be_assigned_by_name() -> None:
    changed = config().with_settings(
        [
            "model.n_layers=3",
            "train.learning_rate=2e-4",
            "model.norm=post",
            "text.cleaning=['urls']",
            "data.text_column=body",
        ]
    )
    assert (changed.model.n_layers, changed.train.learning_rate, changed.model.norm) == (3, 2e-4, "post")
    assert (changed.text.cleaning, changed.data.text_column) == (("urls",), "body")
