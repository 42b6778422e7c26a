"""Settings: which are refused and with what message, and that a round trip through JSON loses nothing."""

import inspect
import json
import re
from pathlib import Path

import pytest

from txcls.config import RunConfig, load_preset, preset_names
from txcls.errors import ConfigError


def config(**sections: object) -> RunConfig:
    return RunConfig.from_mapping({"name": "x", **sections}, source="test")


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_valid_and_round_trips(name: str) -> None:
    preset = load_preset(name)
    assert preset.name == name and preset.title
    again = RunConfig.from_mapping(json.loads(json.dumps(preset.model_dump(mode="json"))), source="again")
    assert again == preset


@pytest.mark.parametrize(
    "sections, message",
    [
        ({"model": {"d_model": 10, "n_heads": 4}}, "model.d_model: 10 is not divisible by n_heads = 4"),
        (
            {"model": {"d_model": 16_384, "max_length": 8192}},
            "model.max_length: sinusoids for 8,192 tokens are 134,217,728 numbers at d_model = 16,384; expected at "
            "most 8,388,608",
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


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        config(model={"d_model": 0, "n_layers": 0}, train={"epochs": 0})
    for field in ("model.d_model", "model.n_layers", "train.epochs"):
        assert field in str(caught.value)


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


@pytest.mark.parametrize(
    "assignment, message",
    [
        ("model.n_layers", "expected section.key=value"),
        ("=3", "expected section.key=value"),
        ("shape.n_layers=3", "no section 'shape'"),
        ("model.n_layers.x=3", "no section 'n_layers'"),
        ("model.heads=3", "model.heads: unknown setting (did you mean n_heads?)"),
        ("model.n_heads=3", "model.d_model: 128 is not divisible by n_heads = 3"),
    ],
)
def test_bad_assignments_are_refused(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config().with_settings([assignment])
    assert message in str(caught.value)


def test_a_preset_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('title = "mine"\n[model]\nn_layers = 1\n', encoding="utf-8")
    preset = load_preset(tmp_path / "mine.toml")
    assert (preset.name, preset.model.n_layers) == ("mine", 1)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"model = [", "not a TOML file"),
        (b"\xff\xfe", "cannot read preset file"),
        (b"[model]\nlayers = 1", "unknown setting"),
    ],
)
def test_a_broken_preset_file_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "mine.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        load_preset(tmp_path / "mine.toml")


def test_an_unknown_preset_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no preset named 'agnews'; there are .*ag_news"):
        load_preset("agnews")
    with pytest.raises(ConfigError, match="cannot read preset file"):
        load_preset("nowhere.toml")


@pytest.mark.parametrize("section", ["data", "model", "train"])
def test_only_reference_presets_change_settings_for_the_reference_systems(section: str) -> None:
    kind = type(getattr(config(), section))
    _, marked = inspect.getsource(kind).split("    # Only for the reference systems")
    names = re.findall(r"^    (\w+): ", marked, flags=re.MULTILINE)
    assert names and set(names) <= set(kind.model_fields)
    others = [name for name in preset_names() if not name.startswith(("reference_", "gpt"))]
    for preset in (config(), *map(load_preset, others)):
        values = getattr(preset, section)
        changed = [name for name in names if getattr(values, name) != kind.model_fields[name].default]
        assert not changed, f"{preset.name} sets {changed}"


def test_every_field_is_documented() -> None:
    for section in (RunConfig, *(field.annotation for field in RunConfig.model_fields.values())):
        for name, field in getattr(section, "model_fields", {}).items():
            is_section = hasattr(field.annotation, "model_fields")
            assert field.description or is_section, f"{section}.{name} has no line of documentation"
