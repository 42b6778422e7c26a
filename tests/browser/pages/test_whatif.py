"""The page What if in a browser."""

import re
from itertools import combinations

import numpy as np
import torch
from playwright.sync_api import Page, expect

from tests.app.tiny import PLAIN
from tests.browser.conftest import Server
from tests.browser.visiting import BARS, click_plot, settle, visit, wait_until_steady
from tests.conftest import TEXTS
from txcls.inference.predictor import Predictor
from txcls.inspection.patching import patch_grid

CELL = """([part, token]) => {
  const plot = document.querySelector('[class*="st-key-chart_patching_states"] .js-plotly-plot')
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
    click_plot(page, *page.evaluate(CELL, [classifier.checkpoint.config.model.n_layers, token]))  # the last state
    patched_part = f"{grid.parts[part].name} at {grid.clean_tokens[token].label}"
    said = page.locator("p", has_text=re.compile(re.escape(patched_part), re.IGNORECASE))
    expect(said).to_be_visible()  # the plot's own label says it too
    expect(page).to_have_url(re.compile(rf"patched={part + 1}\.{token + 1}"))
    settle(page)
    wait_until_steady(page)
    logits = torch.from_numpy(grid.logits[part, token])[None]
    patched = classifier.calibrate(logits, n_tokens=len(grid.clean_tokens))[0].numpy()
    shown = page.evaluate(BARS.format("chart_patched", 1, "x"))
    assert len(shown) == 2 and all(np.isclose(patched, value, atol=1e-6).any() for value in shown)
