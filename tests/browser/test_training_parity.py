"""Training in the browser gives the same gradients and weights as PyTorch, in a real Chromium."""

import base64
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from playwright.sync_api import Browser, Page

from tests.browser.conftest import page_with
from tests.conftest import add_noise
from txcls.checkpoint.load import load_checkpoint
from txcls.config import ModelConfig, TrainConfig
from txcls.model import Dropout, TextClassifier
from txcls.training import objectives
from txcls.training.from_pretrained import copy_pretrained_weights
from txcls.training.objectives import Classify
from txcls.training.optimizer import learning_rate, make_optimizer, set_learning_rate

MODULES = (
    "engine/ablation",
    "engine/model",
    "playground/training/backward",
    "playground/training/embedding_rows",
    "playground/training/optimizer",
)
IN_THE_PAGE = """
const numbers = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
const sent = (data) => {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength), parts = [];
  for (let i = 0; i < bytes.length; i += 3000) parts.push(btoa(String.fromCharCode(...bytes.subarray(i, i + 3000))));
  return parts.join("");
};
const modelOf = ({config, weights}) =>
  ({config, weights: new Map(weights.map(([name, shape, text]) => [name, {data: numbers(text), shape}]))});
const logitsOf = (model, texts) => run(logitSteps(model, texts));
const listed = (gradients) => [...gradients].map(([name, data]) => [name, sent(data)]);
// Options of gradientSteps, in which the list `draws` stands for the random numbers.
const objectiveOf = ({draws, ...objective}) => ({...objective, random: () => draws.shift()});
globalThis.gradientsOf = (given, texts, labels, objective = {}) => {
  let gradients;
  const use = (found) => { gradients = listed(found); };
  const {loss, right} = run(gradientSteps(modelOf(given), texts, labels, objectiveOf(objective), use));
  return {loss, right, gradients};
};
globalThis.trainOn = (given, batches, {schedule, used, ...options}) => {
  const base = modelOf(given), {model, idOf} = used ? keepUsedRows(base, used) : {model: base, idOf: null};
  if (schedule) options.scheduleOf = warmupCosine(...schedule);
  const optimizer = new AdamW(model, options);
  const losses = batches.map(([texts, labels]) => {
    const read = idOf ? texts.map((ids) => ids.map((id) => idOf[id])) : texts;
    const {loss} = run(gradientSteps(model, read, labels, {}, (gradients) => optimizer.step(gradients)));
    return loss / texts.length;
  });
  const {weights} = used ? restoreAllRows(model, used, base) : model;
  return {losses, weights: [...weights].map(([name, {data}]) => [name, sent(data)])};
};
globalThis.initialWeights = (config, V, C) => [...newModel(config, V, C, randomNumbers(1)).weights].map(
  ([name, {data, shape}]) => [name, shape, sent(data)]);
// What the engine of the picture computes from each text alone.
globalThis.readOne = (given, texts, off, means) => texts.map((ids) => {
  const edit = headsOff(off, means ? "mean" : "zero", means), trace = new Trace({edit});
  const logits = run(textClassifier(modelOf(given), ids, trace));
  const heads = [...trace.values].filter(([name]) => name.endsWith(".z"));
  const z = heads.map(([name, {data, shape}]) => [name, [...data], shape]);
  return {logits: [...logits.data], pooled: [...trace.get("pooled").data], z};
});
globalThis.readAll = (given, texts, off, means) => {
  const model = modelOf(given), logits = run(logitSteps(model, texts, {off, means}));
  const pooled = run(featureSteps(model, texts));
  return {logits: [...logits.data], pooled: [...pooled.data], means: run(headMeanSteps(model, texts))};
};
Object.assign(globalThis, {hasKernel, modelOf, listed, gradientSteps, logitsOf, logitSteps, keepUsedRows, featureSteps,
  restoreAllRows, modelForTexts, newModel, randomNumbers, AdamW, run, idle});
"""
PROBLEM = """([given, texts]) => {
  try { logitsOf(modelOf(given), texts); } catch (error) { return error.message; }
}"""
VOCABULARY, CLASSES = 40, 5


@pytest.fixture(scope="module")
def engine(browser: Browser) -> Iterator[Page]:
    with page_with(browser, MODULES, IN_THE_PAGE) as page:
        assert page.evaluate("hasKernel")
        yield page


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


def check_gradients(result: dict[str, Any], model: TextClassifier) -> None:
    """The page's gradients are within 1e-4 of PyTorch's, relative to the largest number of each tensor."""
    gradients = {name: received(text) for name, text in result["gradients"]}
    expected = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert gradients.keys() == expected.keys()
    for name, gradient in expected.items():
        assert gradient is not None
        reference = gradient.numpy().ravel()
        if name.endswith("attn.key.bias"):  # zero in theory: it adds a constant to all scores of a query
            assert np.abs(gradients[name]).max() < 1e-6
            continue
        assert np.abs(gradients[name] - reference).max() <= 1e-4 * np.abs(reference).max() + 1e-9, name


@pytest.mark.parametrize("seed", range(20))
def test_every_gradient_equals_pytorchs(engine: Page, seed: int) -> None:
    rng = random.Random(seed)
    model = random_model(random_config(rng), seed).double()
    texts, labels = random_batch(rng, 7)
    logits = model(padded(texts))
    loss = F.cross_entropy(logits, torch.tensor(labels))
    loss.backward()
    result = engine.evaluate("([...given]) => gradientsOf(...given)", [sent(model), texts, labels])
    assert result["loss"] / len(texts) == pytest.approx(loss.item(), rel=1e-5)
    assert result["right"] == int((logits.argmax(1) == torch.tensor(labels)).sum())
    check_gradients(result, model)


def test_texts_that_are_read_one_part_after_the_other_have_the_gradients_of_a_batch(engine: Page) -> None:
    rng = random.Random(4)
    model = random_model(random_config(rng), 4).double()
    texts, labels = random_batch(rng, 300)
    assert sum(map(len, texts)) > 3 * 512, "more tokens than are read at once"
    F.cross_entropy(model(padded(texts)), torch.tensor(labels)).backward()
    check_gradients(engine.evaluate("([...given]) => gradientsOf(...given)", [sent(model), texts, labels]), model)


def draws_of(seed: int, n: int) -> np.ndarray:
    """n random numbers of optimizer.js, randomNumbers, as 32 bits."""
    mixed = (seed + np.arange(1, n + 1, dtype=np.uint64) * 0x9E3779B9) & 0xFFFFFFFF
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        mixed = ((mixed ^ (mixed >> np.uint64(shift))) * factor) & 0xFFFFFFFF
    return mixed ^ (mixed >> np.uint64(16))


def use_masks(
    model: TextClassifier, lengths: list[int], draws: Iterator[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the model's dropout use the engine's masks: one seed for each place, rows without padding tokens, and columns
    padded to a multiple of 8."""

    def forward(self: Dropout, x: torch.Tensor) -> torch.Tensor:
        if not self.p:
            return x
        rows, columns = (len(lengths) if x.ndim == 2 else sum(lengths)), x.shape[-1]
        width = -(-columns // 8) * 8
        kept = draws_of(int(next(draws) * 2**32), rows * width).reshape(rows, width)[:, :columns] >= round(
            self.p * 2**32
        )
        mask = torch.from_numpy(kept / (1 - self.p))
        if x.ndim == 2:
            return x * mask
        return x * torch.nn.utils.rnn.pad_sequence(list(mask.split(lengths)), batch_first=True)

    monkeypatch.setattr(Dropout, "forward", forward)


@pytest.mark.parametrize("seed", range(3))
def test_gradients_of_the_whole_objective_equal_pytorchs(
    engine: Page, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hidden dropout, token dropout and label smoothing, from the same random numbers."""
    rng = random.Random(100 + seed)
    dropout = 0.3 if seed else 0.0
    model = random_model(random_config(rng).model_copy(update={"dropout": dropout}), seed).double()
    texts, labels = random_batch(rng, 9)
    train = TrainConfig(label_smoothing=0.1, consistency=0.0, token_dropout=0.25)
    draws = [rng.random() for _ in range(600)]
    remaining = iter(draws)
    seen = padded([[2 if token >= 4 and next(remaining) < 0.25 else token for token in ids] for ids in texts])
    monkeypatch.setattr(objectives, "drop_tokens", lambda ids, *args, **kwargs: seen)
    use_masks(model, [len(ids) for ids in texts], remaining, monkeypatch)
    outcome = Classify(train, torch.ones(CLASSES)).batch_loss(model, padded(texts), torch.tensor(labels))
    outcome.loss.backward()
    objective = {"tokenDropout": 0.25, "dropped": 2, "dropout": dropout, "draws": draws, "smoothing": 0.1}
    result = engine.evaluate("([...given]) => gradientsOf(...given)", [sent(model), texts, labels, objective])
    assert result["loss"] / len(texts) == pytest.approx(outcome.loss.item(), rel=1e-5)
    assert result["right"] == int(outcome.right)
    check_gradients(result, model)


def train_in_pytorch(
    model: TextClassifier, train: TrainConfig, batches: list[tuple[list[list[int]], list[int]]]
) -> list[float]:
    """The loss of each step."""
    optimizer, losses = make_optimizer(model, train), []
    for step, (texts, labels) in enumerate(batches):
        set_learning_rate(optimizer, learning_rate(step, total=len(batches), config=train))
        loss = F.cross_entropy(model(padded(texts)), torch.tensor(labels))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), train.gradient_clip)
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0], "it learns"
    return losses


def test_a_hundred_steps_have_the_losses_of_pytorch(engine: Page) -> None:
    rng = random.Random(3)
    config = ModelConfig(d_model=16, n_heads=2, n_layers=2, d_ff=24, max_length=12, norm="post", dropout=0.0)
    model = random_model(config, 0)
    given, batches = sent(model), [random_batch(rng, 8) for _ in range(10)] * 10
    train = TrainConfig(learning_rate=3e-3, weight_decay=0.05, gradient_clip=0.5, schedule="constant",
                        warmup_fraction=0.1)  # fmt: skip
    expected = train_in_pytorch(model, train, batches)
    options = {"rate": 3e-3, "decay": 0.05, "clip": 0.5, "warmup": 10}
    losses = engine.evaluate("([...given]) => trainOn(...given)", [given, batches, options])["losses"]
    np.testing.assert_allclose(losses, expected, atol=1e-3)


TEXTS = (
    "Remind me to water the tomatoes on Friday.",
    "the new phone's battery lasts two days, and its camera is worse than last year's",
    "Wall St. falls as oil prices climb to a record of $54 a barrel",
    "Is it worth 3/5? Unbelievably funny in its first half, unbearable afterwards!",
    "ok",
    "play some jazz in the kitchen",
)


def test_fifty_steps_from_the_shipped_encoder_have_the_losses_and_weights_of_pytorch(engine: Page) -> None:
    """With only the embedding rows of the used tokens trained, and warm-up and cosine decay."""
    checkpoint = load_checkpoint("encoder")
    config = checkpoint.config.model.model_copy(update={"pooling": "mean"})
    torch.manual_seed(0)
    model = TextClassifier(config, vocab_size=checkpoint.tokenizer.vocab_size, n_classes=CLASSES)
    copy_pretrained_weights(model, checkpoint)
    texts = [checkpoint.tokenizer.encode(text).ids for text in TEXTS]
    labels = [b % CLASSES for b in range(len(texts))]
    used = sorted({token for ids in texts for token in ids})
    given = sent(model)
    train = TrainConfig(learning_rate=3e-4, weight_decay=0.05, layer_decay=1.0, warmup_fraction=0.1)
    batches = [(texts[step % 2 :: 2], labels[step % 2 :: 2]) for step in range(50)]
    initial = model.embeddings.token.weight.detach().clone()
    unused = torch.ones(len(initial), dtype=torch.bool)
    unused[[0, 1, 2, 3, *used]] = False
    expected = train_in_pytorch(model, train, batches)
    with torch.no_grad():
        model.embeddings.token.weight[unused] = initial[unused]  # without their weight decay
    options = {"rate": 3e-4, "decay": 0.05, "clip": 1.0, "schedule": [50, 0.1], "used": used}
    result = engine.evaluate("([...given]) => trainOn(...given)", [given, batches, options])
    np.testing.assert_allclose(result["losses"], expected, atol=1e-3)
    weights = {name: received(text) for name, text in result["weights"]}
    for name, parameter in model.named_parameters():
        reference = parameter.detach().numpy().ravel()
        if not name.endswith("attn.key.bias"):
            np.testing.assert_allclose(
                weights[name], reference, atol=2e-3 * max(1e-3, np.abs(reference).max()), err_msg=name
            )


def test_a_model_of_the_used_rows_reads_any_text_as_the_whole_one(engine: Page) -> None:
    rng = random.Random(8)
    model = random_model(random_config(rng), 8)
    texts, _ = random_batch(rng, 5)
    used = sorted({token for ids in texts for token in ids if token % 2})
    whole, read = engine.evaluate(
        """([given, texts, used]) => {
          const base = modelOf(given), small = keepUsedRows(base, used);
          const read = texts.map((ids) => modelForTexts(small, base, ids));
          return [[...logitsOf(base, texts).data], read.flatMap(({model, ids}) => [...logitsOf(model, [ids]).data])];
        }""",
        [sent(model), texts, used],
    )
    np.testing.assert_allclose(read, whole, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_many_texts_at_once_are_read_as_by_the_engine_of_the_picture(engine: Page, seed: int) -> None:
    rng = random.Random(200 + seed)
    config = random_config(rng)
    given, (texts, _) = sent(random_model(config, seed)), random_batch(rng, 40)
    n_heads, layers = config.n_heads, range(config.n_layers)
    off = [{"layer": rng.choice(layers), "head": rng.randrange(n_heads)} for _ in range(seed)]
    means = None
    for _ in range(2):  # heads off with zeros, then with the means
        one = engine.evaluate("([...given]) => readOne(...given)", [given, texts, off, means])
        batch = engine.evaluate("([...given]) => readAll(...given)", [given, texts, off, means])
        np.testing.assert_allclose(batch["logits"], np.ravel([text["logits"] for text in one]), atol=2e-5)
        means = batch["means"]
    assert means is not None
    intact = engine.evaluate("([...given]) => readOne(...given)", [given, texts, [], None])
    np.testing.assert_allclose(batch["pooled"], np.ravel([text["pooled"] for text in intact]), atol=2e-5)
    for layer in layers:
        z = np.concatenate([np.reshape(data, shape) for text in intact for name, data, shape in text["z"]
                            if name == f"layers.{layer}.attn.z"], axis=1)  # H, all tokens, E  # fmt: skip
        np.testing.assert_allclose(means[f"layers.{layer}.attn.z"], z.mean(axis=1), atol=1e-5)


def test_readers_that_take_turns_do_not_disturb_each_other_and_abandoned_ones_nobody(engine: Page) -> None:
    rng = random.Random(5)
    model = random_model(random_config(rng), 5)
    texts, labels = random_batch(rng, 40)
    alone, together = engine.evaluate(
        """([given, texts, labels]) => {
          const model = modelOf(given), results = [];
          const make = () => {
            let gradients;
            const training = gradientSteps(model, texts, labels, {}, (found) => { gradients = listed(found); });
            return [() => gradients, training, logitSteps(model, texts), featureSteps(model, texts)];
          };
          for (const turns of [false, true]) {
            const [gradients, ...readers] = make(), values = readers.map(() => null);
            logitSteps(model, texts).next(); // abandoned
            for (let left = readers.map((_, i) => i); left.length;) {
              for (const i of turns ? left : left.slice(0, 1)) {
                const {done, value} = readers[i].next();
                if (!done) continue;
                values[i] = value.data ? [...value.data] : value;
                left = left.filter((other) => other !== i);
              }
            }
            results.push([values, gradients()]);
          }
          return results;
        }""",
        [sent(model), texts, labels],
    )
    assert alone == together


def test_the_kernels_memory_does_not_grow_with_the_number_of_steps(engine: Page) -> None:
    rng = random.Random(6)
    config = ModelConfig(d_model=32, n_heads=2, n_layers=2, d_ff=64, max_length=128, pooling="mean")
    sizes = engine.evaluate(
        """([config, texts]) => {
          const sizes = [], model = newModel(config, 40, 5, randomNumbers(0)), labels = texts.map((_, b) => b % 5);
          const optimizer = new AdamW(model, {rate: 1e-3});
          for (let step = 0; step < 12; step++) {
            const objective = {dropout: 0.1, random: randomNumbers(step)};
            run(gradientSteps(model, texts, labels, objective, (gradients) => optimizer.step(gradients)));
            logitsOf(model, texts);
            sizes.push(idle.reduce((sum, {kernel}) => sum + kernel.memory.buffer.byteLength, 0));
          }
          return sizes;
        }""",
        [config.model_dump(mode="json"), [[rng.randrange(1, 40) for _ in range(128)] for _ in range(40)]],
    )
    assert len(set(sizes)) == 1
    assert sizes[0] < 64e6


def test_texts_and_models_that_cannot_be_read_are_errors(engine: Page) -> None:
    """Settings that are not implemented: test_web_settings.py."""
    given = sent(random_model(random_config(random.Random(0)), 0))
    assert "no tokens" in engine.evaluate(PROBLEM, [given, [[5], []]])
    assert "13 tokens; this model reads at most 12" in engine.evaluate(PROBLEM, [given, [[5] * 13]])
    given["config"] |= {"d_embedding": 4}
    assert "narrower" in engine.evaluate(PROBLEM, [given, [[5]]])


def test_initial_weights_have_the_names_shapes_and_spread_of_pytorch(engine: Page) -> None:
    for choices in (
        {"norm": "pre", "positions": "learned", "pooling": "attention"},
        {"norm": "post", "positions": "sinusoidal", "pooling": "mean"},
    ):
        sizes = {"d_model": 24, "n_heads": 2, "n_layers": 1, "d_ff": 32, "max_length": 12}
        config = ModelConfig.model_validate({**sizes, **choices})
        torch.manual_seed(0)
        expected = sent(TextClassifier(config, vocab_size=VOCABULARY, n_classes=CLASSES))["weights"]
        given = [config.model_dump(mode="json"), VOCABULARY, CLASSES]
        initial = {
            name: (shape, text) for name, shape, text in engine.evaluate("(all) => initialWeights(...all)", given)
        }
        assert initial.keys() == {name for name, *_ in expected}
        for name, shape, text in expected:
            assert initial[name][0] == shape, name
            spread = received(text).std()
            assert received(initial[name][1]).std() == pytest.approx(spread, rel=0.15, abs=1e-6), name
        assert not received(initial["embeddings.token.weight"][1])[:24].any(), "the padding vector"
