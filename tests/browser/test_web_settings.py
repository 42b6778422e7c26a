"""In every place of `IMPLEMENTED`, every value of every setting is computed as in Python, or refused by name."""

import base64
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page

from tests.browser import test_training_parity as parity
from tests.browser.conftest import page_with
from tests.conftest import Untrained, make_checkpoint
from txcls.classifier import Classifier
from txcls.config import ModelConfig
from txcls.config.places import IMPLEMENTED, UNREAD, not_available
from txcls.errors import TraceError
from txcls.inference.predictor import Predictor
from txcls.inspection.tracing import trace_text
from txcls.model import TextClassifier
from txcls.web.export import describe, unsupported
from txcls.web.tokenizer_rules import reading_tables

SMALL: dict[str, Any] = {"d_model": 12, "n_heads": 2, "n_layers": 2, "d_ff": 16, "max_length": 20}
TEXTS = ["Rovers land on a comet, they said.", "a bank"]
CHOICES = {
    name: get_args(field.annotation)
    for name, field in ModelConfig.model_fields.items()
    if get_origin(field.annotation) is Literal
}
"""The settings with named values."""
SWITCHES = [name for name, field in ModelConfig.model_fields.items() if field.annotation is bool]
NUMBERS = {"norm_epsilon": (1e-5, 1e-12)}
"""The values of a number that some places implement."""
VALUES = [
    *((name, value) for name, values in NUMBERS.items() for value in values),
    *((name, value) for name, values in CHOICES.items() for value in values),
    *((name, value) for name in SWITCHES for value in (False, True)),
]
IN_THE_PAGE = """
globalThis.classify = (description, weights, tables, texts) => {
  const classifier = new Classifier(description, fromBase64(weights), tables);
  return texts.map((text) => [...classifier.read(text).probabilities]);
};
globalThis.refusal = (act) => { try { act(); return ""; } catch (error) { return error.message; } };
globalThis.poolWeights = (description, weights, tables, text) => {
  const classifier = new Classifier(description, fromBase64(weights), tables);
  return [...sceneOf(classifier, classifier.read(text)).pool];
};
Object.assign(globalThis, {textClassifier, pooling, Trace, checkSettings, Cleaning, Words, scopeScore});
"""
MODULES = (*parity.MODULES, "engine/classifier", "picture/scene")


@pytest.fixture(scope="module")
def engine(browser: Browser) -> Iterator[Page]:
    with page_with(browser, MODULES, IN_THE_PAGE + parity.IN_THE_PAGE) as page:
        yield page


def browser_answers(
    engine: Page, classifier: Predictor, *, call: str = "classify", texts: object = TEXTS, **config: object
) -> Any:
    """What a function in the page returns for a model with settings of its description changed; an error as text."""
    description = describe(classifier)
    description["config"] |= config
    assert classifier.checkpoint.path is not None
    weights = base64.b64encode((classifier.checkpoint.path / "model.safetensors").read_bytes()).decode()
    tables = reading_tables(tokenizers={"word"})
    code = f"(given) => {{ try {{ return {call}(...given) }} catch (error) {{ return error.message }} }}"
    return engine.evaluate(code, [description, weights, tables, texts])


def test_the_table_lists_every_value_of_every_setting() -> None:
    assert {"positions", "pooling", "norm", "activation", "init"} <= CHOICES.keys() and "mask_padding" in SWITCHES
    rates = {"dropout", "attention_dropout"}
    assert {*CHOICES, *SWITCHES, *NUMBERS} == IMPLEMENTED.keys() | set(UNREAD) - rates
    for name, values in IMPLEMENTED.items():
        assert set(values) == set(CHOICES.get(name) or NUMBERS.get(name, (False, True)))
    assert not_available(ModelConfig(norm_epsilon=1e-6), "page") == "not available for model.norm_epsilon = 1e-06"


@pytest.mark.parametrize("name, value", VALUES, ids=[f"{name}={value}" for name, value in VALUES])
def test_a_value_gives_the_numbers_of_python_or_is_refused_by_name(
    engine: Page, tmp_path: Path, name: str, value: Any
) -> None:
    checkpoint = make_checkpoint(tmp_path / "model", **{**SMALL, name: value})
    classifier, config = Predictor(checkpoint), checkpoint.config.model
    if reason := not_available(config, "page"):
        assert str(unsupported(checkpoint)) == f"model: an exported page is {reason}"
        answer = browser_answers(engine, classifier, **{name: value})
        assert f"this page is not available for {name} = {str(value).lower()}; expected " in answer
    else:
        expected = classifier.probabilities(TEXTS, precision="float32")
        np.testing.assert_allclose(browser_answers(engine, classifier), expected, atol=1e-5)
    pooled = browser_answers(engine, classifier, call="poolWeights", texts=TEXTS[1], **{name: value})
    if not_available(config, "picture"):
        assert "is not available for" in pooled
    else:
        weights = trace_text(classifier, TEXTS[1]).pooling
        np.testing.assert_allclose(pooled, np.eye(len(pooled))[0] if weights is None else weights, atol=1e-5)
    if not_available(config, "steps"):
        with pytest.raises(TraceError, match="Step by step is not available for"):
            Classifier(checkpoint).walk(TEXTS[0])
    else:
        Classifier(checkpoint).walk(TEXTS[0])


@pytest.mark.parametrize("name, value", VALUES, ids=[f"{name}={value}" for name, value in VALUES])
def test_training_in_the_browser_has_the_gradients_of_python_or_refuses_a_value(
    engine: Page, name: str, value: Any
) -> None:
    config = ModelConfig(**{**SMALL, "dropout": 0.0, name: value})
    model = parity.random_model(config, 3).double()
    texts, labels = parity.random_batch(random.Random(3), 7)
    code = "([...given]) => { try { return gradientsOf(...given) } catch (error) { return error.message } }"
    result = engine.evaluate(code, [parity.sent(model), texts, labels])
    if not_available(config, "training"):
        words = f"{value} {name} (" if isinstance(value, str) else ""
        assert result.startswith(f"training in the browser is not available for {words}{name} = ")
        return
    loss = torch.nn.functional.cross_entropy(model(parity.padded(texts)), torch.tensor(labels))
    loss.backward()
    assert result["loss"] / len(texts) == pytest.approx(loss.item(), rel=1e-5)
    parity.check_gradients(result, model)


@pytest.mark.parametrize("name", [name for name in CHOICES if name != "init"])  # that one is only for training
def test_an_unknown_value_is_an_error_everywhere(engine: Page, untrained: Untrained, name: str) -> None:
    classifier = untrained(**SMALL)
    config = classifier.checkpoint.config.model.model_copy(update={name: "new"})
    with pytest.raises(ValueError, match=f"{name}: 'new' is not implemented"):
        TextClassifier(config, vocab_size=20, n_classes=3)
    refusal = f'is not available for new {name} ({name} = "new"); expected "'
    assert refusal in browser_answers(engine, classifier, **{name: "new"})
    given = config.model_dump(mode="json", warnings=False)
    for act in ("newModel(config, 20, 3, Math.random)", "run(textClassifier({config, weights: new Map()}, [5]))"):
        assert refusal in engine.evaluate(f"(config) => refusal(() => {act})", given)


def test_settings_that_are_missing_or_no_numbers_and_unknown_ways_of_reading_are_errors(engine: Page) -> None:
    config = ModelConfig(**SMALL).model_dump(mode="json")
    check = "(config) => refusal(() => checkSettings(config))"
    assert engine.evaluate(check, config) == engine.evaluate(check, {**config, "d_embedding": 6}) == ""
    assert 'n_layers = "2"; expected a number' in engine.evaluate(check, {**config, "n_layers": "2"})
    for name in (*SMALL, "d_embedding", "pooling", "norm", "positions", "causal"):
        without = {key: value for key, value in config.items() if key != name}
        assert f"{name} = undefined" in engine.evaluate(check, without)
    tables = reading_tables(tokenizers={"basic_english"})
    for act, problem in (
        ("new Cleaning(['lowercase', 'new'], tables)", "the cleaning step new"),
        ("new Words([], 'new', tables)", "the tokenizer new"),
        ("scopeScore([1, 2], {temperature: 1, power: 1}, 'new')", "the score new"),
    ):
        answer = engine.evaluate(f"(tables) => refusal(() => {{ {act} }})", tables)
        assert answer == f"this page does not support {problem}"
