from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from tests.conftest import TEXTS, Untrained
from txcls.errors import TraceError
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import Ablation, ablate, ablate_each, measure_means
from txcls.inspection.tracing import trace_text

MODELS = [
    {},
    {"n_layers": 1, "n_heads": 1, "pooling": "first", "norm": "post"},
    {"pooling": "class_token", "positions": "learned", "causal": True},
    {"pooling": "mean", "positions": "none"},
    {"fixed_length": True, "mask_padding": False, "pooling": "mean", "output_bias": False},
    {"fixed_length": True},
]
SOME = [TEXTS[0], "bank", "zyzzyva", "the bank " * 30]


def probabilities(classifier: Predictor, text: str) -> np.ndarray:
    [prediction] = classifier.predict([text])
    by_label = {ranked.label: ranked.probability for ranked in prediction.ranked}
    return np.array([by_label[name] for name in classifier.classes])


def altered(classifier: Predictor, change: Callable[[torch.nn.Module], None]) -> Predictor:
    """The same checkpoint with a separate copy of the weights, which `change` edits in place."""
    model = deepcopy(classifier.checkpoint.model)
    with torch.no_grad():
        change(model)
    return Predictor(replace(classifier.checkpoint, model=model))


@pytest.mark.parametrize("model", MODELS)
def test_an_empty_setting_changes_nothing(untrained: Untrained, model: dict[str, object]) -> None:
    classifier = untrained(**model)
    for text in SOME:
        result = ablate(classifier, text, [[], []])
        expected = probabilities(classifier, text)
        np.testing.assert_allclose(result.original, expected, atol=1e-6)
        np.testing.assert_array_equal(result.changed, [result.original] * 2)
        assert result.predicted == expected.argmax() and not result.effect.any()


@pytest.mark.parametrize("model", MODELS)
def test_an_ablated_head_equals_a_model_without_its_output_columns(
    untrained: Untrained, model: dict[str, object]
) -> None:
    classifier = untrained(**model)
    config = classifier.checkpoint.config.model
    effects = {text: ablate_each(classifier, text) for text in SOME}
    for layer, head in product(range(config.n_layers), range(config.n_heads)):

        def zero_columns(network: torch.nn.Module, layer: int = layer, head: int = head) -> None:
            network.layers[layer].attn.output.weight[:, head * config.d_head : (head + 1) * config.d_head] = 0

        without_head = altered(classifier, zero_columns)
        for text in SOME:
            before, after = probabilities(classifier, text), probabilities(without_head, text)
            result = ablate(classifier, text, [[Ablation("head", "zero", layer, head)]])
            np.testing.assert_allclose(result.changed[0], after, atol=1e-6)
            expected = after[before.argmax()] - before.max()
            assert effects[text].heads[layer, head] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_other_ablated_parts_equal_a_model_without_them(untrained: Untrained, model: dict[str, object]) -> None:
    classifier = untrained(**model)
    config = classifier.checkpoint.config.model

    def no_feed_forward(network: torch.nn.Module) -> None:
        network.layers[-1].ff.contract.weight.zero_()
        network.layers[-1].ff.contract.bias.zero_()

    def no_positions(network: torch.nn.Module) -> None:
        network.embeddings.positional.zero_()

    def assert_equal(change: Ablation, remove_part: Callable[[torch.nn.Module], None]) -> None:
        expected = probabilities(altered(classifier, remove_part), TEXTS[1])
        np.testing.assert_allclose(ablate(classifier, TEXTS[1], [[change]]).changed[0], expected, atol=1e-6)

    last = Ablation("feed_forward", layer=config.n_layers - 1)
    assert_equal(last, no_feed_forward)
    expected = ablate(classifier, TEXTS[1], [[last]]).effect[0]
    assert ablate_each(classifier, TEXTS[1]).feed_forward[-1] == pytest.approx(expected, abs=1e-6)
    if config.positions == "none":
        with pytest.raises(TraceError, match="no tap named"):
            ablate(classifier, TEXTS[1], [[Ablation("positions")]])
    else:
        assert_equal(Ablation("positions"), no_positions)


def test_an_ablated_token_equals_a_zero_row_of_the_embedding(untrained: Untrained) -> None:
    classifier = untrained(positions="none")
    place = 2
    token_id = classifier.tokenizer.encode(TEXTS[1]).ids[place]

    def no_vector(network: torch.nn.Module) -> None:
        network.embeddings.token.weight[token_id] = 0

    result = ablate(classifier, TEXTS[1], [[Ablation("token", index=place)]])
    np.testing.assert_allclose(result.changed[0], probabilities(altered(classifier, no_vector), TEXTS[1]), atol=1e-6)


def test_uniform_attention_equals_a_head_with_zero_queries(untrained: Untrained) -> None:
    for model in MODELS:
        classifier = untrained(**model)
        rows = slice(0, classifier.checkpoint.config.model.d_head)

        def zero_queries(network: torch.nn.Module, rows: slice = rows) -> None:
            network.layers[0].attn.query.weight[rows] = 0
            network.layers[0].attn.query.bias[rows] = 0

        result = ablate(classifier, TEXTS[0], [[Ablation("head", "uniform", 0, 0)]])
        expected = probabilities(altered(classifier, zero_queries), TEXTS[0])
        np.testing.assert_allclose(result.changed[0], expected, atol=1e-6)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_mean_ablation_equals_a_constant_in_the_bias(untrained: Untrained, positions: str) -> None:
    classifier = untrained(positions=positions)
    means = measure_means(classifier, [*TEXTS, ""], split="train")
    assert means.n_texts == len(TEXTS)
    traced = [trace_text(classifier, text).values for text in TEXTS]
    for name, mean in means.taps.items():
        outputs = np.concatenate([values[name] for values in traced], axis=-2)
        np.testing.assert_allclose(mean, outputs.mean(axis=-2), atol=1e-5)

    def constant(network: torch.nn.Module) -> None:
        output = network.layers[1].attn.output
        output.bias += output.weight[:, 8:16] @ torch.from_numpy(means.taps["layers.1.attn.z"][1])
        output.weight[:, 8:16] = 0

    result = ablate(classifier, TEXTS[0], [[Ablation("head", "mean", 1, 1)]], means=means)
    np.testing.assert_allclose(result.changed[0], probabilities(altered(classifier, constant), TEXTS[0]), atol=1e-6)
    for part in ("feed_forward", "positions", "token"):
        assert ablate(classifier, TEXTS[0], [[Ablation(part, "mean")]], means=means).effect[0]  # type: ignore[arg-type]


def test_ablations_in_a_setting_add_up_and_settings_are_independent(classifier: Predictor) -> None:
    first, second = Ablation("head", "zero", 0, 1), Ablation("feed_forward", "zero", 1)
    result = ablate(classifier, TEXTS[2], [[first], [second], [first, second], []])
    settings = ([first], [second], [first, second], [])
    separately = [ablate(classifier, TEXTS[2], [setting]).changed[0] for setting in settings]
    np.testing.assert_allclose(result.changed, separately, atol=1e-6)
    assert np.abs(result.changed[2] - result.changed[0]).max() > 1e-4
