import pytest

from txcls.checkpoint.weights import build_without_memory
from txcls.config import RunConfig, load_preset
from txcls.inspection.parameters import part_sizes

SMALL = {"d_model": 24, "n_heads": 2, "n_layers": 3, "d_ff": 40, "max_length": 9}


def count(config: RunConfig, *, vocab_size: int) -> int:
    return sum(part.total for part in part_sizes(build_without_memory(config, vocab_size=vocab_size, n_classes=2)))


def test_gpt2_has_the_published_number_of_parameters() -> None:
    preset = load_preset("gpt2")
    assert preset.text.max_vocabulary == 50_257
    assert count(preset, vocab_size=50_257) == 124_439_808


@pytest.mark.parametrize(
    "objective, changes",
    [
        ("classify", {"positions": "learned", "pooling": "attention"}),
        ("classify", {"positions": "sinusoidal", "norm": "post", "qkv_bias": False, "output_bias": False}),
        ("masked", {"d_embedding": 8, "tie_output": False}),
        ("causal", {"d_embedding": 8, "causal": True}),
    ],
)
def test_parts_add_up_to_the_whole_model(objective: str, changes: dict[str, object]) -> None:
    config = RunConfig.model_validate({"name": "x", "objective": objective, "model": {**SMALL, **changes}})
    model = build_without_memory(config, vocab_size=31, n_classes=4)
    parts = part_sizes(model)
    assert sum(part.total for part in parts) == sum(parameter.numel() for parameter in model.parameters())
    assert {part.times for part in parts if part.name.startswith("layers.")} == {3}
    assert ("output" in {part.name for part in parts}) == (objective == "masked"), "a tied matrix counts once"
    [query] = [part for part in parts if part.name == "layers.*.attn.query"]
    assert query.shapes == (((24, 24), (24,)) if config.model.qkv_bias else ((24, 24),))
