"""The workers that train on a visitor's table, with a small model in place of the encoder, in a real Chromium."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import page_with
from txcls.web.assemble import script
from txcls.web.playground import page_data

IN_THE_PAGE = """
const workerAddress = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
const config = {d_model: 16, n_heads: 2, n_layers: 2, d_embedding: null, d_ff: 24, max_length: 12,
  positions: "sinusoidal", scale_embeddings: true, causal: false, pooling: "mean", norm: "pre", activation: "gelu"};
globalThis.begin = async (rows, {isPlanned = true, isPretrained = true, twin = false, rate = 0.01} = {}) => {
  globalThis.session?.stop();
  const data = globalThis.prepared = await prepare(rows, {tables, classToken: false});
  const V = data.tokenizer.tokens.length, given = newModel(config, V, 2, randomNumbers(7));
  given.weights.delete("head.weight");
  given.weights.delete("head.bias");
  const starts = [{name: "encoder", config, given: isPretrained ? given : null, isPretrained, steps: 0}];
  if (twin) starts.push({name: "random", config, given: null, isPretrained: false, steps: 0});
  globalThis.reports = [];
  globalThis.problems = [];
  const settings = {rate, batch: 8, seed: 1};
  globalThis.session = new Session({workerAddress, tables, data, starts, isPlanned, pace: 0, settings},
    {onReport: (report) => reports.push(structuredClone(report)), onProblem: (problem) => problems.push(problem)});
  const {rows: {length: nRows}, nParts, nTruncated, nWordless, classes} = data;
  return {nRows, nParts, nTruncated, nWordless, classes};
};
globalThis.isDone = () => problems.length || reports.at(-1)?.runs.every(({stage}) => stage === "done");
globalThis.withWeightsOfSession = async (text) => {
  const model = await session.weights();
  const description = {classes: prepared.classes, calibration: {temperature: 1, power: 1}, scope: null};
  const classifier = Classifier.of(description, prepared.tokenizer, model);
  return classifier.read(text).ranked[0];
};
"""
WORDS = ["lamp", "river", "stone", "key", "door", "cloud", "table", "glass", "paper", "queen"]


@pytest.fixture(scope="module")
def engine(browser: Browser) -> Iterator[Page]:
    """A page with the session's modules and the worker's source."""
    modules = ("playground/session", "playground/data", "playground/training/optimizer", "engine/classifier")
    given = {"tables": page_data(None, None)["tables"], "source": script("playground/worker")}
    with page_with(browser, modules, IN_THE_PAGE, before=f"Object.assign(globalThis, {json.dumps(given)})") as page:
        yield page


def red_or_blue(n: int, *, noise: bool = False) -> list[dict[str, Any]]:
    """Texts with the word red or blue; with `noise`, each has a word of its own and a random label."""
    rng = random.Random(0)
    rows = []
    for i in range(n):
        colour = rng.choice(["red", "blue"])
        words = [*rng.sample(WORDS, 3), colour, *([f"word{i}"] if noise else [])]
        rng.shuffle(words)
        rows.append({"text": " ".join(words), "label": rng.choice(["a", "b"]) if noise else colour})
    return rows


def begin(engine: Page, rows: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    result: dict[str, Any] = engine.evaluate("([rows, options]) => begin(rows, options)", [rows, options])
    return result


def finish(engine: Page) -> dict[str, Any]:
    """Train to the end, and return the last report."""
    engine.evaluate("session.play()")
    engine.wait_for_function("isDone()", timeout=120_000)
    assert not engine.evaluate("problems")
    report: dict[str, Any] = engine.evaluate("reports.at(-1)")
    return report


def in_folds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "part": n % 5} for n, row in enumerate(rows)]


def test_every_row_is_predicted_once_by_a_model_that_has_not_seen_it(engine: Page) -> None:
    """Each text has a word of its own and a random label: only a model that has seen the row can know it."""
    begin(engine, in_folds(red_or_blue(60, noise=True)))
    run = finish(engine)["runs"][0]
    measured = (run["probe"] if run["preferred"] == "probe" else run["evaluated"])["answers"]
    assert min(measured) >= 0 and len(measured) == 60
    assert run["evaluated"]["accuracy"] < 0.75 and run["probe"]["accuracy"] < 0.75
    rows = engine.evaluate("prepared.rows.map(({text, label, part}) => ({text, label, part}))")
    known = engine.evaluate("(rows) => session.classify(rows.map(({text}) => text))", rows)
    right = sum(got["label"] == row["label"] for got, row in zip(known, rows, strict=True))
    assert right > 42, "the final model has seen them all"
    for row, answer in list(zip(rows, measured, strict=True))[:10]:
        read = engine.evaluate("({text, part}) => session.read(text, [], 0, part)", row)
        assert read["scene"]["ranked"][0]["index"] == answer, "the picture is of the model that was measured"


def test_a_table_is_learned_all_answers_agree_and_heads_off_change_them(engine: Page) -> None:
    facts = begin(engine, in_folds([*red_or_blue(50), {"text": "", "label": "red"}]), twin=True)
    assert facts == {"nRows": 50, "nParts": 5, "nTruncated": 0, "nWordless": 1, "classes": ["blue", "red"]}
    report = finish(engine)
    for run in report["runs"]:
        assert run["evaluated"]["accuracy"] > 0.9
        assert run["steps"] == run["total"] == run["evaluated"]["steps"]
    main, twin = report["runs"]
    assert main["preferred"] in ("probe", "fine-tuned") and twin["preferred"] is None
    assert report["baseline"]["accuracy"] > 0.9 and len(report["baseline"]["answers"]) == 50
    text = "stone red key lamp"
    [classified] = engine.evaluate("(text) => session.classify([text])", text)
    read = engine.evaluate("(text) => session.read(text)", text)
    kept = engine.evaluate("(text) => withWeightsOfSession(text)", text)
    assert classified["label"] == read["scene"]["ranked"][0]["label"] == kept["label"] == "red"
    for other in (read["scene"]["ranked"][0], kept):
        assert other["probability"] == pytest.approx(classified["probability"], abs=1e-5)
    assert engine.evaluate("session.classify(['', 'red'])")[0] is None
    heads = [f"{layer}.{head}" for layer in (1, 2) for head in (1, 2)]
    read = engine.evaluate("(heads) => session.read('stone blue key lamp', heads)", heads)
    after = [row["probability"] for row in sorted(read["scene"]["ranked"], key=lambda row: row["index"])]
    assert after != pytest.approx(read["before"], abs=1e-6)
    without = engine.evaluate("(heads) => session.accuracyWithout(heads)", heads)
    assert 0 <= without["accuracy"] <= 1 and len(without["answers"]) == 50
    assert without["loss"] != main["evaluated"]["loss"]


def test_a_generated_task_goes_on_until_it_is_paused(engine: Page) -> None:
    rows = [{**row, "part": 0 if n < 20 else -1} for n, row in enumerate(red_or_blue(100))]
    begin(engine, rows, isPlanned=False, isPretrained=False)
    engine.wait_for_function("reports.at(-1)?.baseline")
    first = engine.evaluate("reports[0].runs[0]")
    assert first["steps"] == 0 and first["total"] is None and first["evaluated"]["steps"] == 0
    engine.evaluate("session.step()")
    engine.wait_for_function("reports.at(-1).runs[0].steps === 1")
    engine.evaluate("session.play(40)")
    engine.wait_for_function("reports.at(-1).runs[0].steps === 40 && !reports.at(-1).runs[0].isPlaying")
    assert engine.evaluate("reports.at(-1).runs[0].evaluated.accuracy") > 0.8


def test_training_is_refused_without_simd(browser: Browser) -> None:
    code, before = "globalThis.api = {Session};", "delete globalThis.WebAssembly"
    with page_with(browser, ["playground/session"], code, before=before) as page:
        message = page.evaluate(
            "(() => { try { new api.Session({starts: []}, {}); } catch (error) { return error.message; } })()"
        )
        assert "SIMD" in message
