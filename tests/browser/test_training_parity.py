"""Training in the browser gives the same gradients and weights as PyTorch, in a real Chromium."""

import base64
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.conftest import add_noise
from txcls.config import ModelConfig, TrainConfig
from txcls.model import TextClassifier
from txcls.training.optim import learning_rate, make_optimizer, set_learning_rate
from txcls.web.join_scripts import script

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

IN_THE_PAGE = """
const numbers = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
const sent = (data) => {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
};
const modelOf = ({config, weights}) =>
  ({config, weights: new Map(weights.map(([name, shape, text]) => [name, {data: numbers(text), shape}]))});
globalThis.gradientsOf = (given, texts, labels) => {
  const model = modelOf(given), gradients = noGradients(model);
  const {loss, right} = addGradients(model, gradients, texts, labels);
  return {loss, right, gradients: [...gradients].map(([name, data]) => [name, sent(data)])};
};
globalThis.trainOn = (given, batches, options) => {
  const model = modelOf(given), optimizer = new AdamW(model, options);
  return batches.map(([texts, labels]) => {
    const gradients = noGradients(model);
    const {loss} = addGradients(model, gradients, texts, labels);
    optimizer.step(gradients);
    return loss / texts.length;
  });
};
globalThis.initialWeights = (config, V, C) => [...newModel(config, V, C, randomNumbers(1)).weights].map(
  ([name, {data, shape}]) => [name, shape, sent(data)]);
globalThis.ready = true;
"""
VOCABULARY, CLASSES = 40, 5


@pytest.fixture(scope="module")
def engine(browser: "Browser") -> "Iterator[Page]":
    """An empty page with the training modules."""
    page = browser.new_page()
    page.set_content("<!doctype html>")
    page.add_script_tag(
        content=script("playground/training/backward", "playground/training/optimizer") + IN_THE_PAGE, type="module"
    )
    page.wait_for_function("globalThis.ready")
    yield page
    page.close()


def random_config(rng: random.Random) -> ModelConfig:
    n_heads = rng.choice([1, 2, 3])
    return ModelConfig(
        d_model=n_heads * rng.choice([4, 6]),
        n_heads=n_heads,
        n_layers=rng.choice([1, 2, 3]),
        d_ff=rng.choice([7, 16]),
        max_length=12,
        positions=rng.choice(["sinusoidal", "learned", "none"]),
        scale_embeddings=rng.random() < 0.5,
        causal=rng.random() < 0.3,
        pooling=rng.choice(["first", "mean", "attention"]),
        norm=rng.choice(["pre", "post"]),
        activation=rng.choice(["relu", "gelu", "gelu_tanh"]),
        dropout=0.0,
    )


def random_model(config: ModelConfig, seed: int) -> TextClassifier:
    """A model with random weights, including biases, norms and positions."""
    torch.manual_seed(seed)
    model = TextClassifier(config, vocab_size=VOCABULARY, n_classes=CLASSES)
    add_noise(model, 0.1)
    return model


def random_batch(rng: random.Random, n: int) -> tuple[list[list[int]], list[int]]:
    texts = [[rng.randrange(1, VOCABULARY) for _ in range(rng.randint(1, 12))] for _ in range(n)]
    return texts, [rng.randrange(CLASSES) for _ in range(n)]


def sent(model: TextClassifier) -> dict[str, Any]:
    """The model in the form that the page reads."""
    weights = dict(model.named_parameters()) | {
        name: buffer for name, buffer in model.named_buffers() if name == "embeddings.positional"
    }
    return {
        "config": model.config.model_dump(mode="json"),
        "weights": [
            [name, list(value.shape), base64.b64encode(value.detach().numpy().astype("<f4").tobytes()).decode()]
            for name, value in weights.items()
        ],
    }


def received(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


def padded(texts: list[list[int]]) -> torch.Tensor:
    width = max(map(len, texts))
    return torch.tensor([ids + [0] * (width - len(ids)) for ids in texts])


@pytest.mark.parametrize("seed", range(50))
def test_every_gradient_equals_pytorchs(engine: "Page", seed: int) -> None:
    rng = random.Random(seed)
    model = random_model(random_config(rng), seed).double()
    texts, labels = random_batch(rng, 7)
    logits = model(padded(texts))
    loss = F.cross_entropy(logits, torch.tensor(labels))
    loss.backward()
    result = engine.evaluate("([...given]) => gradientsOf(...given)", [sent(model), texts, labels])
    assert result["loss"] / len(texts) == pytest.approx(loss.item(), rel=1e-5)
    assert result["right"] == int((logits.argmax(1) == torch.tensor(labels)).sum())
    gradients = {name: received(text) for name, text in result["gradients"]}
    expected = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert gradients.keys() == expected.keys()
    for name, gradient in expected.items():
        assert gradient is not None
        reference = gradient.numpy().ravel()
        if name.endswith("attn.key.bias"):  # zero in theory: it adds a constant to all scores of a query
            assert np.abs(gradients[name]).max() < 1e-6
            continue
        assert np.linalg.norm(gradients[name] - reference) <= 1e-4 * np.linalg.norm(reference) + 1e-9, name


@pytest.mark.parametrize("norm, positions", [("pre", "learned"), ("post", "sinusoidal")])
def test_a_hundred_steps_have_the_losses_of_pytorch(engine: "Page", norm: Any, positions: Any) -> None:
    rng = random.Random(3)
    config = ModelConfig(d_model=16, n_heads=2, n_layers=2, d_ff=24, max_length=12, norm=norm, positions=positions,
                         dropout=0.0)  # fmt: skip
    model = random_model(config, 0)
    initial_model = sent(model)
    train = TrainConfig(learning_rate=3e-3, weight_decay=0.05, gradient_clip=0.5, schedule="constant",
                        warmup_fraction=0.1)  # fmt: skip
    batches = [random_batch(rng, 8) for _ in range(10)] * 10
    optimizer, expected = make_optimizer(model, train), []
    for step, (texts, labels) in enumerate(batches):
        set_learning_rate(optimizer, learning_rate(step, total=len(batches), config=train))
        loss = F.cross_entropy(model(padded(texts)), torch.tensor(labels))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), train.gradient_clip)
        optimizer.step()
        expected.append(loss.item())
    options = {"rate": 3e-3, "decay": 0.05, "clip": 0.5, "warmup": 10}
    losses = engine.evaluate("([...given]) => trainOn(...given)", [initial_model, batches, options])
    assert expected[-1] < 0.7 * expected[0], "it learns"
    np.testing.assert_allclose(losses, expected, atol=1e-3)


def test_initial_weights_have_the_names_shapes_and_spread_of_pytorch(engine: "Page") -> None:
    for choices in (
        {"norm": "pre", "positions": "learned", "pooling": "attention"},
        {"norm": "post", "positions": "sinusoidal", "pooling": "mean"},
    ):
        config = ModelConfig.model_validate(
            {"d_model": 24, "n_heads": 2, "n_layers": 1, "d_ff": 32, "max_length": 12, **choices}
        )
        torch.manual_seed(0)
        model = TextClassifier(config, vocab_size=VOCABULARY, n_classes=CLASSES)
        expected = {name: (shape, received(text)) for name, shape, text in sent(model)["weights"]}
        initial = {
            name: (shape, received(text))
            for name, shape, text in engine.evaluate(
                "([...given]) => initialWeights(...given)", [config.model_dump(mode="json"), VOCABULARY, CLASSES]
            )
        }
        assert initial.keys() == expected.keys()
        for name, (shape, values) in expected.items():
            assert initial[name][0] == shape, name
            assert initial[name][1].std() == pytest.approx(values.std(), rel=0.15, abs=1e-6), name
        assert not initial["embeddings.token.weight"][1][:24].any(), "the padding vector"
