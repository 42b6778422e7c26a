"""The page What if in a browser."""

import re
from itertools import combinations

import numpy as np
import torch
from playwright.sync_api import Page, expect

from tests.app.tiny import PLAIN
from tests.browser.conftest import Server
from tests.browser.visiting import BARS, click_plot, query, settle, visit, wait_until_steady
from tests.conftest import TEXTS
from txcls.inference.predictor import Predictor
from txcls.inspection.counterfactuals import compare_texts, search_flips
from txcls.inspection.patching import patch_grid

TEXT = "the bank raised its rates again"


def test_a_changed_text_is_compared_and_a_search_ends(page: Page, server: Server) -> None:
    visit(page, server, "whatif", text=TEXT)
    box = page.locator('[class*="st-key-text_box_changed"] textarea')
    box.fill("the club raised its rates again")
    expect(page.locator(".txcls-pair.changed")).to_have_count(1)
    expect(page.locator(".txcls-pair.changed ins")).to_have_text("club")
    settle(page)
    assert query(page)["changed"] == "the club raised its rates again"
    classifier = Predictor.load(server.log.parent / "checkpoints" / PLAIN)
    comparison = compare_texts(classifier, TEXT, "the club raised its rates again")
    order = [score.label for score in comparison.before.ranked]
    for trace, prediction in ((0, comparison.before), (1, comparison.after)):
        probabilities = {score.label: score.probability for score in prediction.ranked}
        shown = page.evaluate(BARS.format("chart_compared", trace, "x"))
        np.testing.assert_allclose(shown, [probabilities[label] for label in order], atol=1e-6)
    for trace, effects in ((0, comparison.effects_before), (1, comparison.effects_after)):
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
         f"{100 * flip.probability:.1f}\u00a0%"]
        for flip in last.flips[:12]
    ]  # fmt: skip


CELL = """([part, token]) => {
  const plot = document.querySelector('[class*="st-key-chart_patching"] .js-plotly-plot')
  plot.scrollIntoView({block: "center"})
  const {xaxis, yaxis, _size} = plot._fullLayout, {left, top} = plot.getBoundingClientRect()
  return [left + _size.l + xaxis.l2p(token), top + _size.t + yaxis.l2p(part)]
}"""


def test_a_click_on_a_cell_patches_it_and_the_bars_move(page: Page, server: Server) -> None:
    classifier = Predictor.load(server.log.parent / "checkpoints" / PLAIN)
    words = " ".join(TEXTS).split()
    texts = [" ".join(words[start : start + 6]) for start in range(len(words) - 6)]
    read = {text: classifier.predict([text])[0] for text in texts}
    first, second = next(
        (one, other)
        for one, other in combinations(texts, 2)
        if len(read[one].tokens) == len(read[other].tokens) and read[one].label != read[other].label
    )
    grid = patch_grid(classifier, first, second)
    part, token = len(grid.parts) - 1, 2
    visit(page, server, "whatif", text=first, changed=second, experiment="patch")
    page.wait_for_selector('[class*="st-key-chart_patching"] .js-plotly-plot')
    wait_until_steady(page)
    click_plot(page, *page.evaluate(CELL, [part, token]))
    patched_part = f"{grid.parts[part].name} at {grid.clean_tokens[token].label}"
    expect(page.locator("p", has_text=patched_part)).to_be_visible()  # the plot's own label says it too
    expect(page).to_have_url(re.compile(rf"patched={part + 1}\.{token + 1}"))
    settle(page)
    wait_until_steady(page)
    logits = torch.from_numpy(grid.logits[part, token])[None]
    patched = classifier.calibrated(logits, n_tokens=len(grid.clean_tokens))[0].numpy()
    shown = page.evaluate(BARS.format("chart_patched", 1, "x"))
    assert len(shown) == 2 and all(np.isclose(patched, value, atol=1e-6).any() for value in shown)
