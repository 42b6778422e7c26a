"""The page What if in a browser."""

import re

import numpy as np
from playwright.sync_api import Page, expect

from tests.app.tiny import PLAIN
from tests.browser.conftest import Server
from tests.browser.visiting import BARS, query, settle, visit
from txcls.inspection.counterfactuals import compare_texts, search_flips
from txcls.predictor import Predictor

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
         f"{100 * flip.probability:.1f} %"]
        for flip in last.flips[:12]
    ]  # fmt: skip


def test_a_search_is_stopped_and_keeps_what_it_found(page: Page, server: Server) -> None:
    visit(page, server, "whatif", checkpoint="who_won_none", text="the bank raised its rates again " * 40)
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
