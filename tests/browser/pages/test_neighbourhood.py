"""The page Neighbourhood in a browser."""

import numpy as np
from playwright.sync_api import Page

from tests.app.tiny import PLAIN
from tests.browser.conftest import Server
from tests.browser.visiting import BARS, CHART, visit
from txcls.inspection.principal_components import token_plane
from txcls.predictor import Predictor

TEXT = "the bank raised its rates again"


def test_neighbours_shown_are_the_librarys(page: Page, server: Server) -> None:
    visit(page, server, "neighbourhood", text=TEXT)
    classifier = Predictor.load(server.log.parent / "checkpoints" / PLAIN)
    made = token_plane(classifier, TEXT)
    page.locator(f".st-key-chart_words_0 {CHART}").wait_for()
    np.testing.assert_allclose(page.evaluate(BARS.format("chart_words_0", 1, "x")), made.own_points[:, 0], atol=1e-6)
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
