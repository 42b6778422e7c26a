"""The picture of the whole model in a real Chromium: its numbers, its sentences, and mouse and keyboard input."""

import base64
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import page_with
from tests.browser.exported import Open, bars, expected, write
from tests.browser.visiting import wait_until_steady
from tests.conftest import TEXTS, Untrained, make_checkpoint
from txcls.config import Calibration, ScopeRule
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import Ablation, ablate
from txcls.inspection.lens import class_lens
from txcls.inspection.tracing import TracedText, trace_text
from txcls.web.export import export_page, pack

MAX_LANES = 24
LONG = " ".join(TEXTS[n % len(TEXTS)] for n in range(60))
KINDS: dict[str, dict[str, Any]] = {
    "pooled by attention": {"pooling": "attention", "positions": "learned"},
    "mean, no positions": {"pooling": "mean", "positions": "none", "norm": "post"},
    "class token": {"pooling": "class_token", "positions": "sinusoidal", "n_heads": 4},
    "first, causal": {"pooling": "first", "causal": True, "n_layers": 1},
}
IN_THE_PAGE = """
globalThis.make = (encoded) => {
  const buffer = Uint8Array.from(atob(encoded), (one) => one.charCodeAt(0)).buffer;
  const length = new DataView(buffer).getUint32(0, true);
  const {description, tables} = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  globalThis.classifier = new Classifier(description, buffer.slice(4 + length), tables);
};
const plain = (stage) => ({size: [...stage.size], best: [...stage.best], certainty: [...stage.certainty]});
globalThis.sceneFor = (text, off = [], how = "zero") => {
  const scene = sceneOf(classifier, classifier.read(text, {edit: headsOff(off, how, classifier.description.means)}));
  const names = new Set(off.map(({layer, head}) => `${layer + 1}.${head + 1}`));
  return {
    lanes: scene.lanes, pool: [...scene.pool], start: plain(scene.start), nTokens: scene.nTokens,
    positions: scene.positions?.map((values) => [...values]),
    layers: scene.layers.map(({patterns, fed, mid, post}) => ({patterns: patterns.map((one) => [...one]),
      fed: [...fed], mid: plain(mid), post: plain(post)})),
    parts: narrate(scene, {off: names, how}),
  };
};
Object.assign(globalThis, {Machine, minDrawnWeight, minWeight});
"""


@pytest.fixture(scope="module")
def scenes(browser: Browser) -> Iterator[Page]:
    """An empty page with the modules that compute scenes."""
    with page_with(browser, ["engine/reader", "engine/classifier", "picture/machine"], IN_THE_PAGE) as page:
        yield page


def scene(page: Page, classifier: Predictor, text: str, *, off: Any = (), how: str = "zero") -> dict[str, Any]:
    path = classifier.checkpoint.path
    assert path is not None
    page.evaluate("(one) => make(one)", base64.b64encode(pack(path)).decode())
    heads = [{"layer": layer, "head": head} for layer, head in off]
    computed: dict[str, Any] = page.evaluate("([text, off, how]) => sceneFor(text, off, how)", [text, heads, how])
    return computed


def pooled(traced: TracedText) -> np.ndarray:
    """Each token's pooling weight."""
    return np.eye(len(traced.tokens))[0] if traced.pooling is None else traced.pooling


def together(computed: dict[str, Any], matrix: np.ndarray) -> np.ndarray:
    """Weights between lanes: mean over the query tokens, sum over the key tokens."""
    places = [lane["tokens"] for lane in computed["lanes"]]
    columns = np.stack([matrix[..., place].sum(-1) for place in places], -1)
    return np.stack([columns[..., place, :].mean(-2) for place in places], -2)


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [TEXTS[0], "striker", LONG], ids=["8", "1", "300"])
def test_the_scene_holds_the_numbers_of_python(scenes: Page, untrained: Untrained, kind: str, text: str) -> None:
    classifier = untrained(max_length=300, **KINDS[kind])
    traced, computed = trace_text(classifier, text), scene(scenes, classifier, text)
    n, lanes = len(traced.tokens), computed["lanes"]
    assert sorted(place for lane in lanes for place in lane["tokens"]) == list(range(n))
    assert len(lanes) == min(n, MAX_LANES) and computed["nTokens"] == n
    assert [place for lane in lanes for place in lane["tokens"]] == list(range(n)), "lanes keep the order of the text"
    for lane in lanes:
        if len(lane["tokens"]) > 1:
            assert lane["name"] == f"⋯ {len(lane['tokens'])}" and lane["isSpecial"]
    if n > MAX_LANES:
        single_places = {lane["tokens"][0] for lane in lanes if len(lane["tokens"]) == 1}
        assert int(pooled(traced).argmax()) in single_places and len(single_places) >= MAX_LANES // 3
    if KINDS[kind].get("positions") == "sinusoidal":
        assert computed["positions"][0] == [0, 1] * 4, "sines and cosines of position 0"
        [sentence] = [part["text"] for part in computed["parts"] if part["part"] == "positions"]
        assert sentence.endswith(f"; 8 of the {classifier.checkpoint.config.model.d_model} are drawn.")
        sines = [values[:2] for values in computed["positions"]]
        places = np.array([lane["tokens"][0] for lane in lanes])
        np.testing.assert_allclose(sines, np.stack([np.sin(places), np.cos(places)], -1), atol=1e-5)
    N = len(lanes)
    lengths = []
    for number, layer in enumerate(computed["layers"]):
        patterns = np.array(layer["patterns"]).reshape(-1, N, N)
        np.testing.assert_allclose(patterns.sum(-1), 1, atol=1e-5)
        np.testing.assert_allclose(patterns, together(computed, traced[f"layers.{number}.attn.pattern"]), atol=1e-5)
        states = {key: np.linalg.norm(traced[f"layers.{number}.resid_{key}"], axis=-1) for key in ("mid", "post")}
        lengths += [(layer[key]["size"], states[key]) for key in states]
        single = [i for i, lane in enumerate(lanes) if len(lane["tokens"]) == 1]
        places = [lanes[i]["tokens"][0] for i in single]
        fed = np.linalg.norm(traced[f"layers.{number}.ff_out"], axis=-1) / states["mid"]
        np.testing.assert_allclose(np.array(layer["fed"])[single], fed[places], rtol=1e-4)
    longest = max(max(np.mean([state[i] for i in lane["tokens"]]) for lane in lanes) for _, state in lengths)
    longest = max(
        longest, max(np.linalg.norm(traced["embeddings.out"], axis=-1)[lane["tokens"]].mean() for lane in lanes)
    )
    for size, state in lengths:
        np.testing.assert_allclose(size, [state[lane["tokens"]].mean() / longest for lane in lanes], rtol=1e-4)
    np.testing.assert_allclose(computed["pool"], [pooled(traced)[lane["tokens"]].sum() for lane in lanes], atol=1e-5)
    if KINDS[kind]["pooling"] in ("first", "class_token"):  # Python's lens reads only this token
        first = next(i for i, lane in enumerate(lanes) if lane["tokens"][0] == 0)
        stages = [computed["start"], *(layer[key] for layer in computed["layers"] for key in ("mid", "post"))]
        uncalibrated = class_lens(Predictor(replace(classifier.checkpoint, calibration=Calibration())), text)
        for stage, probabilities in zip(stages, uncalibrated.probabilities, strict=True):
            assert all(index == -1 for lane, index in enumerate(stage["best"]) if lane != first), "no other is read"
            assert stage["best"][first] == probabilities.argmax()
            assert stage["certainty"][first] == pytest.approx(probabilities.max(), abs=1e-5)


COUNTED = re.compile(
    r"In head (\d+)\.(\d+), (?:all (\d+)|(\d+) of \d+) lanes "
    r"(?:attend most to “(.*)” \(weight|give “(.*)” the most weight among the tokens with a lane \()"
    r" ?([\d.]+) on average; uniform weights: ([\d.]+)\)\.$"
)
AVERAGE = re.compile(
    r"In head (\d+)\.(\d+), “(.*)” gets the most weight of a single token, ([\d.]+) on average "
    r"\(uniform weights: ([\d.]+)\)\.$"
)
NEXT = re.compile(
    r"In head (\d+)\.(\d+), lanes attend to the token (before|after) them with weight ([\d.]+) on average "
    r"\(uniform weights: ([\d.]+)\)\.$"
)
FIRST_ROW = re.compile(
    r"Only the row of the first lane matters here, since pooling reads no other: in head (\d+)\.(\d+), it attends most "
    r"to “(.*)” \(weight ([\d.]+)\)\.$"
)
POOLED = re.compile(r"“(.*)” has the most weight of a single token, ([\d.]+) \(uniform weights: ([\d.]+)\)\.$")


def assert_true_of_attention(
    sentence: str, number: int, patterns: np.ndarray, lanes: list[dict[str, Any]], n: int, *, n_layers: int
) -> None:
    """Check that a sentence about layer `number` is true of its patterns between lanes (heads, lanes, lanes)."""
    share = np.array([len(lane["tokens"]) for lane in lanes]) / n
    single = [i for i, lane in enumerate(lanes) if len(lane["tokens"]) == 1]
    if match := FIRST_ROW.match(sentence):
        rows = patterns[:, 0, single]
        head, key = np.unravel_index(int(rows.argmax()), rows.shape)
        assert (int(match[1]), int(match[2]), match[3]) == (number + 1, head + 1, lanes[single[key]]["name"])
        assert number == n_layers - 1 and float(match[4]) == pytest.approx(rows.max(), abs=0.0051)
        return
    if match := NEXT.match(sentence):
        mean = np.diagonal(patterns[int(match[2]) - 1], -1 if match[3] == "before" else 1).mean()
        weight, even, of_even = match[4], match[5], 1 / len(lanes)
    else:
        match = COUNTED.match(sentence) or AVERAGE.match(sentence)
        assert match, sentence
        pattern = patterns[int(match[2]) - 1]
        mean, of_even = max((share @ pattern)[single]), 1 / n
        key = single[int((share @ pattern)[single].argmax())]
        first = sum(single[int(row[single].argmax())] == key for row in pattern)
        counted = match.re is COUNTED
        name, weight, even = (match[5] or match[6], match[7], match[8]) if counted else (match[3], match[4], match[5])
        assert name == lanes[key]["name"] and counted == (2 * first > len(lanes)), sentence
        if counted:
            assert int(match[3] or match[4]) == first and bool(match[6]) == (len(single) < len(lanes)), sentence
    assert int(match[1]) == number + 1
    assert float(weight) == pytest.approx(mean, abs=0.0051) and float(even) == pytest.approx(of_even, abs=0.0051)


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [TEXTS[0], LONG], ids=["8", "300"])
def test_each_sentence_is_true_of_this_text(scenes: Page, untrained: Untrained, kind: str, text: str) -> None:
    classifier = untrained(max_length=300, **KINDS[kind])
    computed = scene(scenes, classifier, text)
    prediction, lanes, parts = (
        classifier.predict([text])[0],
        computed["lanes"],
        {part["part"]: part for part in computed["parts"]},
    )
    N, n = len(lanes), computed["nTokens"]
    assert parts["words"]["text"].startswith(f"The text becomes {n} tokens, each a vector of ")
    n_open = sum(len(lane["tokens"]) == 1 for lane in lanes)
    lane_count = f"{n_open} of them, those with the most weight and their neighbours, have a lane each"
    assert (lane_count in parts["words"]["text"]) == (n > MAX_LANES)
    for number, layer in enumerate(computed["layers"]):
        patterns = np.array(layer["patterns"]).reshape(-1, N, N)
        sentence = parts[f"layers.{number}.attn"]["text"]
        assert_true_of_attention(sentence, number, patterns, lanes, n, n_layers=len(computed["layers"]))
        fed, best = layer["fed"], layer["post"]["best"]
        single = [i for i in range(N) if len(lanes[i]["tokens"]) == 1]
        most_changed = max(single, key=lambda i: fed[i])
        sentence = parts[f"layers.{number}.ff"]["text"]
        added = f"the vector added to it is {fed[most_changed]:.2f} times"
        assert f"“{lanes[most_changed]['name']}” changes most; {added}" in sentence
        if KINDS[kind].get("pooling") in ("first", "class_token"):
            [read] = [index for index in best if index >= 0]
            assert f"the only lane that pooling reads, the class head reads {classifier.classes[read]} (" in sentence
            continue
        voted = max(set(best), key=best.count)
        assert (f"all {N} lanes" if best.count(voted) == N else f"{best.count(voted)} of {N} lanes") in sentence
        assert any(classifier.classes[index] in sentence for index in best if best.count(index) == best.count(voted))
    if KINDS[kind]["pooling"] == "attention":
        weights = pooled(trace_text(classifier, text))
        match = POOLED.search(parts["pool"]["text"])
        assert match and match[1] == computed["lanes"][max(single, key=lambda i: computed["pool"][i])]["name"]
        assert float(match[2]) == pytest.approx(weights.max(), abs=0.0051)
        assert float(match[3]) == pytest.approx(1 / n, abs=0.0051)
    first, second = prediction.ranked[:2]
    percent = [f"{score.label} {score.probability:.1%}".replace("%", "\u00a0%") for score in (first, second)]
    assert parts["answer"]["text"] == f"{percent[0]}, then {percent[1]}."


def shown(page: Page) -> list[str]:
    return [number for _, number in bars(page)]


def sentence(page: Page) -> str:
    return page.locator(".machine-bar p").inner_text().strip()


@pytest.mark.smoke
def test_a_click_or_enter_switches_a_head_off_and_on_as_python_would(
    single: str, classifiers: dict[str, Predictor], open_page: Open
) -> None:
    page = open_page(single)
    write(page, TEXTS[0])
    result = ablate(classifiers["first"], TEXTS[0], [[Ablation("head", "zero", 1, 1)]])
    changed = result.changed[0][np.argsort(-result.original, kind="stable")]  # classes keep their order
    head = page.locator('.machine-head[data-head="2.2"]')
    head.click()
    page.wait_for_selector(".machine-bars .then")
    legend = page.locator(".machine-legend")
    expect(legend.get_by_text("with all heads on")).to_be_visible()
    assert shown(page) == [f"{p:.1%}".replace("%", "\u00a0%") for p in changed]
    bold = page.locator(".machine-bars .best .number").all_inner_texts()
    assert bold == [f"{max(changed):.1%}".replace("%", "\u00a0%")], "the most probable class is emphasised"
    assert head.get_attribute("aria-pressed") == "false"
    assert page.locator('.machine-ribbons .ribbon[data-head="2.2"]').count() == 0
    assert page.locator('.machine-ribbons .ribbon[data-head="2.1"]').count() > 0
    head.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".machine-bars .then", state="detached")
    expect(legend.get_by_text("with all heads on")).to_have_count(0)
    assert shown(page) == expected(classifiers["first"], TEXTS[0])
    assert page.evaluate("document.activeElement.dataset.head") == "2.2", "the focus was lost"
    page.keyboard.press("Space")
    page.wait_for_selector(".machine-bars .then")
    assert "Head 2.2 off (set to zero)" in sentence(page)
    assert "upright marks" in page.locator("#bars-caption").inner_text()
    page.locator("#all-on").click()
    page.wait_for_selector(".machine-bars .then", state="detached")
    assert shown(page) == expected(classifiers["first"], TEXTS[0])


@pytest.mark.smoke
def test_the_part_under_the_pointer_lights_up_and_is_described(
    single: str, classifiers: dict[str, Predictor], open_page: Open
) -> None:
    page = open_page(single)
    write(page, TEXTS[0])
    traced = trace_text(classifiers["first"], TEXTS[0])
    page.locator('.machine-word[data-lane="1"]').hover()
    lit = page.locator(".machine-ribbons .ribbon.lit").evaluate_all(
        "all => all.map(({dataset: d}) => [d.query, d.key])"
    )
    assert lit and all("1" in pair for pair in lit)
    unlit = page.locator(".ribbon:not(.lit)").evaluate_all("all => all.map(({dataset: d}) => [d.query, d.key])")
    assert not any("1" in pair for pair in unlit)
    assert f"Pooling gives the last state of “striker” weight {pooled(traced)[1]:.2f}." in sentence(page)
    page.locator('.machine-head[data-head="1.2"]').hover()
    assert set(page.locator(".ribbon.lit").evaluate_all("all => all.map((one) => one.dataset.head)")) == {"1.2"}
    pattern, tokens = traced["layers.0.attn.pattern"][1], [token.text for token in traced.tokens]
    query, key = np.unravel_index(pattern.argmax(), pattern.shape)
    key_name = "itself" if query == key else f"“{tokens[key]}”"
    assert f"“{tokens[query]}” attends to {key_name} with weight {pattern.max():.2f} in head 1.2." in sentence(page)
    ribbon = page.locator(".machine-ribbons .ribbon").first
    ribbon_data = ribbon.evaluate(
        "(one) => { one.dispatchEvent(new PointerEvent('pointerover', {bubbles: true})); return {...one.dataset}; }"
    )
    layer, head = (int(n) - 1 for n in ribbon_data["head"].split("."))
    weight = traced[f"layers.{layer}.attn.pattern"][head][int(ribbon_data["query"]), int(ribbon_data["key"])]
    assert f"with weight {weight:.2f} in head {ribbon_data['head']}." in sentence(page)
    page.mouse.move(5, 5)
    assert page.locator(".tracing").count() == 0


@pytest.mark.smoke
def test_page_keys_go_part_by_part_except_in_the_text_box(single: str, open_page: Open) -> None:
    page = open_page(single)
    write(page, TEXTS[0])
    first_sentence = sentence(page)
    sentences = page.locator(".machine-text li").evaluate_all("all => all.map((one) => one.textContent)")
    assert len(sentences) == 8
    page.locator("#text").press("PageDown")
    assert page.locator(".part-by-part").count() == 0
    page.locator("#text").evaluate("(box) => box.blur()")
    page.evaluate(
        "() => { window.left = []; window.addEventListener('keydown', (e) => left.push(e.defaultPrevented)); }"
    )
    ends = []
    for number, text in enumerate(sentences):
        page.keyboard.press("PageDown")
        assert page.locator(".machine-place").inner_text() == f"{number + 1} / {len(sentences)}"
        assert sentence(page) == text
        assert page.locator(".machine-positions").is_visible() == (number > 0), "the words' lanes, without positions"
        ends.append(float(page.locator(".machine-veil").evaluate("(veil) => parseFloat(veil.style.left)")))
    assert ends == sorted(ends) and ends[0] < ends[-1]
    lanes = page.locator(".machine-lanes path").evaluate_all("all => Math.min(...all.map((one) => one.getBBox().x))")
    assert ends[0] > lanes + 30, "each lane's beginning is not covered"
    assert page.evaluate("left") == [True] * len(sentences), "the page scrolled too"
    page.keyboard.press("PageUp")
    assert page.locator(".machine-place").inner_text() == f"{len(sentences) - 1} / {len(sentences)}"
    page.keyboard.press("Escape")
    assert page.locator(".part-by-part").count() == 0 and sentence(page) == first_sentence


def test_play_runs_to_the_end_and_can_be_paused(single: str, open_page: Open) -> None:
    page = open_page(single)
    write(page, TEXTS[0])
    page.clock.install()
    play = page.locator(".machine-play")
    play.click()
    assert page.locator(".machine-place").inner_text() == "1 / 8" and "Pause" in play.inner_text()
    read = len(sentence(page))
    assert 55 * read > 2500
    page.clock.run_for(1900)
    assert page.locator(".machine-place").inner_text() == "1 / 8", "there is time to read the sentence"
    page.clock.run_for(55 * read - 1900)
    assert page.locator(".machine-place").inner_text() == "2 / 8"
    play.click()
    page.clock.run_for(20_000)
    assert page.locator(".machine-place").inner_text() == "2 / 8" and "Part by part" in play.inner_text()
    play.click()
    page.clock.run_for(120_000)
    assert page.locator(".machine-place").inner_text() == "8 / 8" and "Part by part" in play.inner_text()


def test_reduced_motion_disables_all_transitions(browser: Browser, single: str) -> None:
    durations = {}
    for motion in ("reduce", "no-preference"):
        page = browser.new_page(reduced_motion=motion)  # type: ignore[arg-type]
        page.goto(single)
        page.wait_for_selector("html[data-answered]")
        durations[motion] = page.evaluate(
            "[...document.querySelectorAll('.machine *')].map((one) => Math.max(...getComputedStyle(one)"
            ".transitionDuration.split(',').map(parseFloat))).reduce((a, b) => Math.max(a, b), 0)"
        )
        page.close()
    assert durations["reduce"] == 0 and durations["no-preference"] > 0


def inside(page: Page) -> list[str]:
    """Words, heads, names and bars that extend beyond the picture, focus ring included."""
    outside: list[str] = page.evaluate("""() => {
      const stage = document.querySelector(".machine-stage").getBoundingClientRect();
      return [...document.querySelectorAll(".machine-word, .machine-head, .machine-name, .machine-bars li")]
        .filter((one) => { const b = one.getBoundingClientRect(); return one.offsetParent && (b.left < stage.left - 0.5
          || b.right > stage.right + 0.5 || b.top < stage.top - 0.5 || b.bottom > stage.bottom + 0.5); })
        .map((one) => `${one.className} ${one.textContent}`);
    }""")
    return outside


SIZES = ((1920, 1080), (1280, 800), (390, 844))
BIG: dict[str, dict[str, Any]] = {
    "six layers of twelve heads": {"n_layers": 6, "n_heads": 12, "d_model": 48, "positions": "none", "pooling": "mean"},
    "150 classes, none of which fits": {
        "classes": tuple(f"what_can_i_ask_you_about_subject_{n}" for n in range(150)),
        "scope": ScopeRule(score="max_probability", threshold=2.0),
    },
}


@pytest.mark.parametrize("kind", BIG)
def test_the_picture_fits_any_width(tmp_path: Path, open_page: Open, kind: str) -> None:
    checkpoint = make_checkpoint(tmp_path / "tiny", max_length=300, **BIG[kind])
    page = open_page(export_page([tmp_path / "tiny"], tmp_path / "page", single_file=True).as_uri())
    page.evaluate("document.getElementById('article').remove()")  # as in lessons, the picture has the whole width
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function(
            "(w) => Math.abs(document.querySelector('.machine-stage').clientWidth - w) < 200", arg=width
        )
        for text in ("striker", "x" * 300, LONG, "שלום عليكم the striker"):
            write(page, text)
            wait_until_steady(page)
            assert inside(page) == [], text
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".machine.vertical").count() == (width < 720)
        expect(page.locator(".machine-signs")).to_be_visible(visible=width < 720)
        for small in (".machine-legend", ".machine-hint", ".machine-name", ".machine-head"):
            size = page.locator(small).first.evaluate("(one) => parseFloat(getComputedStyle(one).fontSize)")
            assert (size >= 17) == (width == 1920), small
        assert (
            page.locator(".machine-head").count() == checkpoint.config.model.n_layers * checkpoint.config.model.n_heads
        )
        for head in page.locator(".machine-head canvas").all()[:3]:
            box = head.bounding_box()
            assert box and min(box["width"], box["height"]) >= 20
    if len(checkpoint.classes) == 150:
        names = page.locator(".machine-bars .name").all_inner_texts()
        assert len(names) == 8 and names[-1] == "143 others"
        assert sentence(page).startswith("Probably none of the classes; nearest: ")
        fills = page.locator(".machine-bars .fill").evaluate_all("all => all.map((one) => one.style.background)")
        assert len(set(fills[:6])) == 6 and set(fills[6:]) == {"rgb(138, 138, 138)"}


def test_axe_finds_nothing(single: str, open_page: Open) -> None:
    page = open_page(f"{single}#theme=dark&text=zyzzyva+the+striker&off=1.1", width=390, height=850)
    wait_until_steady(page)
    violations = Axe().run(page).response["violations"]
    assert [
        (rule["id"], [node["html"] for node in rule["nodes"]]) for rule in violations if rule["impact"] != "minor"
    ] == []
