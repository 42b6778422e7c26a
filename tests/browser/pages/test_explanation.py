"""The page Explanation? in a browser."""

import numpy as np
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.visiting import visit, written
from txcls.inspection.attribution import METHODS, deletion_curves, explain, top_overlaps
from txcls.predictor import Predictor

TEXT = "the bank raised its rates after the report"


def table(page: Page, place: int) -> list[list[str]]:
    rows = page.locator(".txcls-table table").nth(place).locator("tbody tr")
    return [row.locator("td").all_text_contents() for row in rows.all()]


def test_explanation_shows_the_librarys_numbers(page: Page, server: Server, answers: Predictor) -> None:
    visit(page, server, "explanation", text=TEXT)
    found = explain(answers, TEXT)
    page.get_by_text("All scores").click()
    numbers = np.array(table(page, 0))
    assert [cell.split(" · ")[1] for cell in numbers[:, 0]] == TEXT.split()
    for column, name in enumerate(METHODS, start=1):
        shown = [float(cell.replace("−", "-")) for cell in numbers[:, column]]
        np.testing.assert_allclose(shown, found.scores[name], atol=0.0000501)
    integrated = found.integrated
    caption = page.get_by_text("(completeness error)")
    for number in (integrated.baseline_value, integrated.value, integrated.completeness_error):
        expect(caption).to_contain_text(f"{number:.4f}".replace("-", "−"))
    overlaps = top_overlaps(found.scores)
    np.testing.assert_allclose(written(page, "chart_overlaps"), overlaps.ravel(), atol=0.00501)
    curves = deletion_curves(answers, TEXT, found.scores)
    areas = [float(row[1]) for row in table(page, 1)]
    np.testing.assert_allclose(areas, [*curves.areas.values(), curves.random_area], atol=0.000501)
    words = page.locator(".txcls-words").first.locator("span")
    assert words.all_text_contents() == TEXT.split()
    assert words.nth(1).get_attribute("title") == f"bank: {found.scores['attention'][1]:.4f}"
