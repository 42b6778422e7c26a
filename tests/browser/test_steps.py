"""Step by step, What if and Neighbourhood in a real browser: keys, clicks, and every number against the library's."""

import re

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.app.tiny import LEARNED, PLAIN
from tests.browser.conftest import Server
from tests.browser.test_app import CHART, query, settle, text_box, visit
from txcls.classifier import Classifier
from txcls.inspection.counterfactuals import compare_texts, search_flips
from txcls.inspection.principal_components import token_plane
from txcls.inspection.walk import Walk, walk_through
from txcls.inspection.walk.arithmetic import number

TEXT = "the bank raised its rates again"
CELLS = "[...document.querySelector('.st-key-chart_numbers .js-plotly-plot')._fullData[0].z].map((row) => [...row])"
BARS = "[...document.querySelector('.st-key-{} .js-plotly-plot')._fullData[{}].{}]"
SOURCES = "[...document.querySelectorAll('.katex annotation')].map((one) => one.textContent)"


@pytest.fixture(scope="session")
def walk(server: Server) -> Walk:
    return walk_through(Classifier.load(server.log.parent / "checkpoints" / PLAIN), TEXT)


def turn(page: Page, key: str, *, to: str) -> None:
    """Press a key that turns to another step; once more where the page, just drawn, did not listen yet."""
    heading = page.locator("h3").first
    for _ in range(5):
        page.keyboard.press(key)
        try:
            expect(heading).to_contain_text(to, timeout=12_000)
        except AssertionError:
            continue
        return
    expect(heading).to_contain_text(to)


def test_every_number_of_every_step_is_the_librarys(page: Page, server: Server, walk: Walk) -> None:
    """Walks through with PageDown: the heat map's numbers, the arithmetic's result and the table of its terms."""
    visit(page, server, "steps", wait_for="h3", text=TEXT)
    for place, step in enumerate(walk.steps):
        expect(page.locator("h3").first).to_contain_text(step.title)
        settle(page)
        if step.values is not None:
            page.wait_for_function(f"document.querySelector('.st-key-chart_numbers {CHART}')")
            cells = step.cells(0)
            shown = np.array(page.evaluate(CELLS), dtype=np.float64)
            np.testing.assert_allclose(shown, cells, atol=1e-6)
            result = re.findall(r"=\s*(\S+)\s*\\end{aligned}", page.evaluate(SOURCES)[-1])
            page.get_by_text("How one number comes about").wait_for()
            chart = page.locator(".st-key-chart_numbers [aria-label]").first.get_attribute("aria-label") or ""
            row, column = map(int, re.findall(r"row (\d+), column (\d+)", chart)[0])
            assert step.columns is not None
            made = step.explain(row - 1, column - (step.columns.what != "dimension"))
            assert number(made.value) == (result or re.findall(r"=\s*(.*?)\s*\\end{aligned}", chart))[0]
            if made.terms is not None:
                table = page.locator(".txcls-terms tbody tr").evaluate_all(
                    "(rows) => rows.map((row) => [...row.cells].slice(1).map((cell) => cell.textContent))"
                )
                assert [[cell.replace("−", "-") for cell in line] for line in table] == [
                    [f"{value:.4f}" for value in line] for line in made.terms
                ]
        if place < len(walk.steps) - 1:
            turn(page, "PageDown", to=walk.steps[place + 1].title)
    expect(page.locator(".st-key-step_next button")).to_be_disabled()
    page.keyboard.press("PageUp")
    expect(page.locator("h3").first).to_contain_text(walk.steps[-2].title)
    settle(page)
    assert query(page)["step"] == walk.steps[-2].name


def test_a_clicked_cell_has_its_arithmetic_shown(page: Page, server: Server, walk: Walk) -> None:
    visit(page, server, "steps", text=TEXT, step="scores", layer=2, head=2)
    plot = page.locator(f".st-key-chart_numbers {CHART} .nsewdrag").first
    box = plot.bounding_box()
    assert box
    at = {"x": box["width"] * 4.5 / 6, "y": box["height"] * 1.5 / 6}
    plot.hover(position=at)
    page.wait_for_timeout(200)
    plot.click(position=at)
    step = walk.steps[walk.find("scores", 1)]
    page.wait_for_function(f"{SOURCES}.some((one) => one.includes('S_{{2,5}}'))")
    settle(page)
    assert number(float(step.cells(1)[1, 4])) in page.evaluate(SOURCES)[-1]


def test_a_link_opens_the_step_and_typing_stays_on_it(page: Page, server: Server) -> None:
    visit(page, server, "steps", checkpoint=LEARNED, text=TEXT, step="softmax", layer=2, head=3)
    expect(page.get_by_role("heading", name="Layer 2 · Softmax: the attention pattern · head 3")).to_be_visible()
    text_box(page).fill("voters went to the polls")
    page.wait_for_url(re.compile("voters"))
    expect(page.get_by_role("heading", name="Layer 2 · Softmax: the attention pattern · head 3")).to_be_visible()
    settle(page)
    assert query(page)["step"] == "softmax"
    page.locator("h1").click()  # out of the text box, where the key scrolls
    turn(page, "PageDown", to="Layer 2 · Weighted sum")  # handing over text leaves no key held down


@pytest.mark.parametrize("scheme, width", [("light", 1280), ("dark", 390)])
@pytest.mark.parametrize("step", ["tokens", "norm_attn", "softmax", "calibrated"])
def test_steps_open_without_sideways_scrolling(
    context: BrowserContext, server: Server, step: str, scheme: str, width: int
) -> None:
    page = context.new_page()
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 850})
    visit(page, server, "steps", wait_for="pre", step=step)
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width


def test_a_changed_text_is_compared_and_a_search_ends(page: Page, server: Server) -> None:
    visit(page, server, "whatif", text=TEXT)
    box = page.locator('[class*="st-key-text_box_changed"] textarea')
    box.fill("the club raised its rates again")
    expect(page.locator(".txcls-pair.changed")).to_have_count(1)
    expect(page.locator(".txcls-pair.changed ins")).to_have_text("club")
    settle(page)
    assert query(page)["changed"] == "the club raised its rates again"
    classifier = Classifier.load(server.log.parent / "checkpoints" / PLAIN)
    made = compare_texts(classifier, TEXT, "the club raised its rates again")
    order = [score.label for score in made.before.scores]
    for trace, prediction in ((0, made.before), (1, made.after)):
        known = {score.label: score.probability for score in prediction.scores}
        shown = page.evaluate(BARS.format("chart_compared", trace, "x"))
        np.testing.assert_allclose(shown, [known[label] for label in order], atol=1e-6)
    for trace, effects in ((0, made.effects_before), (1, made.effects_after)):
        np.testing.assert_allclose(page.evaluate(BARS.format("chart_effects", trace, "y")), effects, atol=1e-6)
    *_, last = search_flips(classifier, TEXT)
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text(f"{last.total} of {last.total} changes tried")).to_be_visible()
    settle(page)
    rows = page.locator("table tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    assert rows == [
        [f"{flip.size:.3f}", f"{flip.word} → {flip.replacement}" if flip.replacement else flip.word, flip.label,
         f"{flip.probability:.1%}"]
        for flip in last.flips[:12]
    ]  # fmt: skip


def test_a_search_is_stopped_and_keeps_what_it_found(page: Page, server: Server) -> None:
    visit(page, server, "whatif", checkpoint="positions_none", text="the bank raised its rates again " * 40)
    page.evaluate(
        """() => new MutationObserver(() => {
          const stop = [...document.querySelectorAll("button")].find((button) => button.innerText.trim() === "Stop")
          if (stop && document.body.innerText.match(/[1-9][\\d,]* of [\\d,]+ changes tried/)) stop.click()
        }).observe(document.body, {subtree: true, childList: true, characterData: true})"""
    )
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page.get_by_role("button", name="Search")).to_be_visible()
    settle(page)
    line = page.get_by_text("changes tried").inner_text()
    done, total = (int(number.replace(",", "")) for number in re.findall(r"[\d,]+", line)[:2])
    assert 0 < done < total


def test_neighbours_shown_are_the_librarys(page: Page, server: Server) -> None:
    visit(page, server, "neighbourhood", text=TEXT)
    classifier = Classifier.load(server.log.parent / "checkpoints" / PLAIN)
    made = token_plane(classifier, TEXT)
    page.locator(f".st-key-chart_words {CHART}").wait_for()
    np.testing.assert_allclose(page.evaluate(BARS.format("chart_words", 1, "x")), made.own_points[:, 0], atol=1e-6)
    spelled = classifier.encoder.vocabulary.token_of
    lines = (
        page.locator("table")
        .first.locator("tbody tr")
        .evaluate_all("(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))")
    )
    assert lines == [
        [spelled(index), ", ".join(f"{spelled(one)} {cosine:.2f}" for one, cosine in made.nearest[index])]
        for index in made.own
    ]


@pytest.mark.parametrize("scheme, width", [("light", 1280), ("dark", 390)])
@pytest.mark.parametrize("path", ["whatif", "neighbourhood"])
def test_both_pages_open_without_sideways_scrolling(
    context: BrowserContext, server: Server, path: str, scheme: str, width: int
) -> None:
    page = context.new_page()
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 850})
    visit(page, server, path)
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
