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
    assert len(lanes) == min(n, MAX_LANES) and computed["nTokens"] == n
    assert [place for lane in lanes for place in lane["tokens"]] == list(range(n)), "lanes keep the order of the text"
    if n > MAX_LANES:
        assert [int(pooled(traced).argmax())] in [lane["tokens"] for lane in lanes]
    if KINDS[kind].get("positions") == "sinusoidal":
        sines = [values[:2] for values in computed["positions"]]
        places = np.array([lane["tokens"][0] for lane in lanes])
        np.testing.assert_allclose(sines, np.stack([np.sin(places), np.cos(places)], -1), atol=1e-5)
    N = len(lanes)
    sizes, lengths = [], []
    single = [i for i, lane in enumerate(lanes) if len(lane["tokens"]) == 1]
    for number, layer in enumerate(computed["layers"]):
        patterns = np.array(layer["patterns"]).reshape(-1, N, N)
        np.testing.assert_allclose(patterns.sum(-1), 1, atol=1e-5)
        np.testing.assert_allclose(patterns, together(computed, traced[f"layers.{number}.attn.pattern"]), atol=1e-5)
        for key in ("mid", "post"):
            sizes.append(layer[key]["size"])
            lengths.append(np.linalg.norm(traced[f"layers.{number}.resid_{key}"], axis=-1))
        places = [lanes[i]["tokens"][0] for i in single]
        fed = (np.linalg.norm(traced[f"layers.{number}.ff_out"], axis=-1) / lengths[-2])[places]
        np.testing.assert_allclose(np.array(layer["fed"])[single], fed, rtol=1e-4)
    start = np.linalg.norm(traced["embeddings.out"], axis=-1)
    of_lanes = [[length[lane["tokens"]].mean() for lane in lanes] for length in (start, *lengths)]
    np.testing.assert_allclose([computed["start"]["size"], *sizes], of_lanes / np.max(of_lanes), rtol=1e-4)
    np.testing.assert_allclose(computed["pool"], [pooled(traced)[lane["tokens"]].sum() for lane in lanes], atol=1e-5)
    if KINDS[kind]["pooling"] in ("first", "class_token"):  # Python's lens reads only this token
        first = next(i for i, lane in enumerate(lanes) if lane["tokens"][0] == 0)
        stages = [computed["start"], *(layer[key] for layer in computed["layers"] for key in ("mid", "post"))]
        uncalibrated = class_lens(Predictor(replace(classifier.checkpoint, calibration=Calibration())), text)
        for stage, probabilities in zip(stages, uncalibrated.probabilities, strict=True):
            assert all(index == -1 for lane, index in enumerate(stage["best"]) if lane != first), "no other is read"
            assert stage["best"][first] == probabilities.argmax()
            assert stage["certainty"][first] == pytest.approx(probabilities.max(), abs=1e-5)


OF_HEAD = re.compile(
    r"In head \d+\.(\d+), (?:(?:all (\d+)|(\d+) of \d+) lanes|lanes attend to the token (before|after) them)?"
    r"(?:[^“]*“(.*)”)?[^“”]*?([\d.]+) on average\W+an even spread gives ([\d.]+)\)\.$"
)
FIRST_ROW = re.compile(r"in head \d+\.(\d+), it attends most to “(.*)” \(weight ([\d.]+)\)\.$")
POOLED = re.compile(r"“(.*)” has the most weight of a single token, ([\d.]+) \(an even spread gives ([\d.]+)\)\.$")


def assert_true_of_attention(sentence: str, patterns: np.ndarray, lanes: list[dict[str, Any]], n: int) -> None:
    """Check that a sentence about a layer is true of its patterns between lanes (heads, lanes, lanes)."""
    share = np.array([len(lane["tokens"]) for lane in lanes]) / n
    single = [i for i, lane in enumerate(lanes) if len(lane["tokens"]) == 1]
    if match := FIRST_ROW.search(sentence):
        rows = patterns[:, 0, single]
        head, key = np.unravel_index(int(rows.argmax()), rows.shape)
        assert (int(match[1]), match[2]) == (head + 1, lanes[single[key]]["name"])
        assert float(match[3]) == pytest.approx(rows.max(), abs=0.0051)
        return
    match = OF_HEAD.match(sentence)
    assert match, sentence
    pattern = patterns[int(match[1]) - 1]
    if match[4]:
        mean, uniform = np.diagonal(pattern, -1 if match[4] == "before" else 1).mean(), 1 / len(lanes)
    else:
        received, uniform = (share @ pattern)[single], 1 / n
        key, mean = single[int(received.argmax())], received.max()
        first = sum(single[int(row[single].argmax())] == key for row in pattern)
        assert match[5] == lanes[key]["name"], sentence
        assert int(match[2] or match[3] or 0) == (first if 2 * first > len(lanes) else 0), sentence
    assert float(match[6]) == pytest.approx(mean, abs=0.0051) and float(match[7]) == pytest.approx(uniform, abs=0.0051)


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [TEXTS[0], LONG], ids=["8", "300"])
def test_each_sentence_is_true_of_this_text(scenes: Page, untrained: Untrained, kind: str, text: str) -> None:
    classifier = untrained(max_length=300, **KINDS[kind])
    computed = scene(scenes, classifier, text)
    prediction, lanes = classifier.predict([text])[0], computed["lanes"]
    parts = {part["part"]: part for part in computed["parts"]}
    N, n = len(lanes), computed["nTokens"]
    single = [i for i in range(N) if len(lanes[i]["tokens"]) == 1]
    assert parts["words"]["text"].startswith(f"The text becomes {n} tokens, each a vector of ")
    assert (f"{len(single)} of them, those with the most weight" in parts["words"]["text"]) == (n > MAX_LANES)
    for number, layer in enumerate(computed["layers"]):
        patterns = np.array(layer["patterns"]).reshape(-1, N, N)
        sentence = parts[f"layers.{number}.attn"]["text"]
        assert_true_of_attention(sentence, patterns, lanes, n)
        fed, best = layer["fed"], layer["post"]["best"]
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
    assert [number for _, number in bars(page)] == [f"{p:.1%}".replace("%", "\u00a0%") for p in changed]
    bold = page.locator(".machine-bars .best .number").all_inner_texts()
    assert bold == [f"{max(changed):.1%}".replace("%", "\u00a0%")], "the most probable class is emphasised"
    assert head.get_attribute("aria-pressed") == "false"
    assert page.locator('.machine-ribbons .ribbon[data-head="2.2"]').count() == 0
    assert page.locator('.machine-ribbons .ribbon[data-head="2.1"]').count() > 0
    head.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".machine-bars .then", state="detached")
    assert [number for _, number in bars(page)] == expected(classifiers["first"], TEXTS[0])
    assert page.evaluate("document.activeElement.dataset.head") == "2.2", "the focus was lost"
    page.keyboard.press("Space")
    page.wait_for_selector(".machine-bars .then")
    assert "Head 2.2 off (set to zero)" in sentence(page)
    page.locator("#all-on").click()
    page.wait_for_selector(".machine-bars .then", state="detached")
    assert [number for _, number in bars(page)] == expected(classifiers["first"], TEXTS[0])


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
    veils = []
    for number, text in enumerate(sentences):
        page.keyboard.press("PageDown")
        assert page.locator(".machine-place").inner_text() == f"{number + 1} / {len(sentences)}"
        assert sentence(page) == text
        assert page.locator(".machine-positions").is_visible() == (number > 0), "the words' lanes, without positions"
        veils.append(float(page.locator(".machine-veil").evaluate("(veil) => parseFloat(veil.style.left)")))
    assert veils == sorted(veils) and veils[0] < veils[-1]
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
    to_read = 55 * len(sentence(page))
    page.clock.run_for(1900)
    assert page.locator(".machine-place").inner_text() == "1 / 8", "there is time to read the sentence"
    page.clock.run_for(to_read - 1900)
    assert page.locator(".machine-place").inner_text() == "2 / 8"
    play.click()
    page.clock.run_for(20_000)
    assert page.locator(".machine-place").inner_text() == "2 / 8" and "Part by part" in play.inner_text()
    play.click()
    page.clock.run_for(120_000)
    assert page.locator(".machine-place").inner_text() == "8 / 8" and "Part by part" in play.inner_text()


def test_reduced_motion_disables_all_transitions(browser: Browser, single: str) -> None:
    page = browser.new_page(reduced_motion="reduce")
    page.goto(single)
    page.wait_for_selector("html[data-answered]")
    read = "(all) => all.map((one) => getComputedStyle(one).transitionDuration)"
    durations = page.locator(".machine *").evaluate_all(read)
    assert durations and set("".join(durations)) <= set("0s, ")
    page.close()


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
        for small in (".machine-legend", ".machine-name", ".machine-head"):
            size = page.locator(small).first.evaluate("(one) => parseFloat(getComputedStyle(one).fontSize)")
            assert (size >= 17) == (width == 1920), small
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
