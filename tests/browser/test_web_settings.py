"""Every value of every setting of a model is computed as in Python, or refused by name: in Python, by the export and in
the browser."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import numpy as np
import pytest

from tests.conftest import make_checkpoint, make_language_model
from txcls.classifier import Classifier
from txcls.config import ModelConfig
from txcls.errors import TraceError
from txcls.inference.predictor import Predictor
from txcls.model import TextClassifier
from txcls.web.export import describe, unsupported
from txcls.web.join_scripts import script
from txcls.web.supported import SUPPORTED
from txcls.web.tokenizer_rules import reading_tables

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SMALL: dict[str, Any] = {"d_model": 12, "n_heads": 2, "n_layers": 2, "d_ff": 16, "max_length": 20}
TEXTS = ["Rovers land on a comet, they said.", "a bank"]
CHOICES = {
    name: get_args(field.annotation)
    for name, field in ModelConfig.model_fields.items()
    if get_origin(field.annotation) is Literal
}
"""The settings with named values."""
SWITCHES = [name for name, field in ModelConfig.model_fields.items() if field.annotation is bool]
VALUES = [
    *((name, value) for name, values in CHOICES.items() for value in values),
    *((name, value) for name in SWITCHES for value in (False, True)),
]
IN_THE_PAGE = """
globalThis.classify = (description, weights, tables, texts) => {
  const classifier = new Classifier(description, fromBase64(weights), tables);
  return texts.map((text) => [...classifier.read(text).probabilities]);
};
globalThis.refusal = (act) => { try { act(); return ""; } catch (error) { return error.message; } };
Object.assign(globalThis, {textClassifier, run, pooling, Trace, newModel, checkSettings, Cleaning, Words, scopeScore});
globalThis.ready = true;
"""
MODULES = ("engine/classifier", "playground/training/optimizer")


@pytest.fixture(scope="module")
def engine(browser: "Browser") -> "Iterator[Page]":
    page = browser.new_page()
    page.add_script_tag(type="module", content=script(*MODULES) + IN_THE_PAGE)
    page.wait_for_function("globalThis.ready")
    yield page
    page.close()


def browser_answers(engine: "Page", classifier: Predictor, **config: object) -> Any:
    """The probabilities that the browser computes, with settings of the description changed; an error as text."""
    description = describe(classifier)
    description["config"] |= config
    assert classifier.checkpoint.path is not None
    weights = base64.b64encode((classifier.checkpoint.path / "model.safetensors").read_bytes()).decode()
    tables = reading_tables(tokenizers={"word"})
    code = "(given) => { try { return classify(...given) } catch (error) { return error.message } }"
    return engine.evaluate(code, [description, weights, tables, TEXTS])


def test_there_are_settings_with_named_values() -> None:
    assert {"positions", "pooling", "norm", "activation", "init"} <= CHOICES.keys() and "mask_padding" in SWITCHES


@pytest.mark.parametrize("name, value", VALUES, ids=[f"{name}={value}" for name, value in VALUES])
def test_a_value_gives_the_numbers_of_python_or_is_refused_by_name(
    engine: "Page", tmp_path: Path, name: str, value: Any
) -> None:
    checkpoint = make_checkpoint(tmp_path / "model", **{**SMALL, name: value})
    classifier = Predictor(checkpoint)
    reason = unsupported(checkpoint)
    if reason is None:
        expected = classifier.probabilities(TEXTS, precision="float32")
        np.testing.assert_allclose(browser_answers(engine, classifier), expected, atol=1e-5)
    else:
        assert name in SUPPORTED and f"model.{name}" in reason
        answer = browser_answers(engine, classifier, **{name: value})
        assert f"{name} = {str(value).lower()}" in answer
    Classifier(checkpoint).walk(TEXTS[0])


@pytest.mark.parametrize("name", CHOICES)
def test_an_unknown_value_is_an_error_everywhere(engine: "Page", tmp_path: Path, name: str) -> None:
    checkpoint = make_checkpoint(tmp_path / "model", **SMALL)
    config = checkpoint.config.model.model_copy(update={name: "new"})
    with pytest.raises(ValueError, match=f"{name}: 'new' is not implemented"):
        TextClassifier(config, vocab_size=20, n_classes=3)
    if name == "init":  # only for training
        return
    changed = replace(checkpoint, config=checkpoint.config.model_copy(update={"model": config}))
    assert f"has model.{name} = 'new', which a page does not support; it supports " in str(unsupported(changed))
    refusal = f'this page does not support models with {name} = "new"; expected "'
    assert refusal in browser_answers(engine, Predictor(checkpoint), **{name: "new"})
    given = config.model_dump(mode="json", warnings=False)
    for act in (
        "newModel(config, 20, 3, Math.random)",
        "run(textClassifier({config, weights: new Map()}, [5]))",
        "pooling({config, weights: new Map()}, {data: new Float32Array(24), shape: [2, 12]}, new Trace())",
    ):
        assert refusal in engine.evaluate(f"(config) => refusal(() => {act})", given)


def test_no_steps_are_shown_for_a_pooling_that_they_do_not_know(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "model", pooling="mean", **SMALL)
    config = checkpoint.config.model.model_copy(update={"pooling": "new"})
    changed = replace(checkpoint, config=checkpoint.config.model_copy(update={"model": config}))
    changed.model.config = config
    with pytest.raises(TraceError, match="no steps are written for pooling: new"):
        Classifier(changed).walk(TEXTS[0])


def test_a_setting_that_is_missing_or_not_a_number_is_an_error(engine: "Page") -> None:
    config = ModelConfig(**SMALL).model_dump(mode="json")
    check = "(config) => refusal(() => checkSettings(config))"
    assert engine.evaluate(check, config) == ""
    needed = [name for name, values in SUPPORTED.items() if len(values) > 1]
    for name in needed:
        without = {key: value for key, value in config.items() if key != name}
        assert f"models with {name} = undefined" in engine.evaluate(check, without)
    assert 'n_layers = "2"; expected a number' in engine.evaluate(check, {**config, "n_layers": "2"})
    assert engine.evaluate(check, {**config, "d_embedding": 6}) == ""


def test_unknown_ways_of_reading_and_scores_are_errors(engine: "Page") -> None:
    tables = reading_tables(tokenizers={"basic_english"})
    refusal = "(tables) => refusal(() => {})"
    for act, problem in (
        ("new Cleaning(['lowercase', 'new'], tables)", "the cleaning step new"),
        ("new Words([], 'new', tables)", "the tokenizer new"),
        ("scopeScore([1, 2], {temperature: 1, power: 1}, 'new')", "the score new"),
    ):
        answer = engine.evaluate(refusal.replace("{}", f"{{ {act} }}"), tables)
        assert answer == f"this page does not support {problem}"


def test_language_models_are_refused(tmp_path: Path) -> None:
    assert "only classifiers" in str(unsupported(make_language_model(tmp_path / "lm")))
