"""The experiment pages in a real browser: what stands on the screen is what the library computes."""

import re

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.app.tiny import PAIRS, PLAIN
from tests.browser.conftest import Server
from tests.browser.test_app import CHART, answers, settle, visit
from txcls.classifier import Classifier
from txcls.inspection.ablation import Change, ablate, ablate_each
from txcls.inspection.attention import attention_rollout, head_statistics, query_key
from txcls.inspection.attribution import METHODS, deletion_curves, explain, rank_correlations
from txcls.inspection.lens import class_lens
from txcls.inspection.tracing import trace_text

__all__ = ["answers"]  # a fixture
TEXT = "the bank raised its rates after the report"


def written(page: Page, chart: str) -> list[float]:
    """The numbers in a chart's cells or beside its bars, in the order in which they were drawn."""
    texts = page.locator(f'[class*="st-key-{chart}"] {CHART}').first.evaluate(
        "plot => plot._fullData.flatMap(one => [].concat(...(one.text || []))).filter(one => /^ ?[+−\\d]/.test(one))"
    )
    return [float(re.sub("[ %]", "", one).replace("−", "-")) for one in texts]


def cells(page: Page, chart: str) -> np.ndarray:
    """The values of a chart's heat map."""
    rows = page.locator(f".st-key-{chart} {CHART}").first.evaluate("plot => plot._fullData[0].z.map(row => [...row])")
    return np.array(rows)


def table(page: Page, place: int) -> list[list[str]]:
    rows = page.locator(".txcls-table table").nth(place).locator("tbody tr")
    return [row.locator("td").all_text_contents() for row in rows.all()]


@pytest.mark.parametrize("path", ["switchboard", "explanation", "lens"])
@pytest.mark.parametrize("scheme, width", [("light", 1280), ("dark", 390)])
def test_page_opens_with_described_charts_and_no_sideways_scrolling(
    context: BrowserContext, server: Server, path: str, scheme: str, width: int
) -> None:
    page = context.new_page()
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 850})
    visit(page, server, path, text=TEXT)
    for chart in page.locator(".stPlotlyChart").all():
        assert chart.locator("[aria-label]").count() or chart.get_attribute("aria-label")
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width


def test_switchboard_shows_the_librarys_numbers_and_a_click_switches(
    page: Page, server: Server, answers: Classifier
) -> None:
    visit(page, server, "switchboard", text=TEXT)
    effects = ablate_each(answers, TEXT)
    expected = 100 * np.column_stack([effects.heads, effects.feed_forward]).ravel()
    np.testing.assert_allclose(written(page, "chart_board"), expected, atol=0.0501)
    for n_clicks, changes in ((1, [Change("head", "zero", 0, 1)]), (2, [])):
        box = page.locator(f'[class*="st-key-chart_board"] {CHART} .nsewdrag').bounding_box()
        assert box
        x, y = box["x"] + box["width"] * 1.5 / 3.4, box["y"] + box["height"] * 0.25  # head 2 of layer 1
        page.mouse.move(x, y)
        page.wait_for_timeout(300)
        page.mouse.click(x, y)
        words = "With 1 part changed" if changes else "Nothing is changed yet"
        expect(page.get_by_text(words)).to_be_visible()
        settle(page)
        result = ablate(answers, TEXT, [changes])
        both = [*sorted(result.original, reverse=True), *result.changed[0][np.argsort(-result.original)]]
        np.testing.assert_allclose(written(page, "chart_moved"), 100 * np.array(both), atol=0.0501)
        if n_clicks == 1:
            label = answers.classes[int(result.changed[0].argmax())]
            expect(page.get_by_text(f"{label}, {result.changed[0].max():.1%}".replace("%", " %"))).to_be_visible()


def test_explanation_shows_the_librarys_numbers(page: Page, server: Server, answers: Classifier) -> None:
    visit(page, server, "explanation", text=TEXT)
    found = explain(answers, TEXT)
    page.get_by_text("All numbers").click()
    numbers = np.array(table(page, 0))
    assert [cell.split(" · ")[1] for cell in numbers[:, 0]] == TEXT.split()
    for column, name in enumerate(METHODS, start=1):
        shown = [float(cell.replace("−", "-")) for cell in numbers[:, column]]
        np.testing.assert_allclose(shown, found.scores[name], atol=0.0000501)
    integrated = found.integrated
    caption = page.get_by_text("(completeness error)")
    for number in (integrated.baseline_value, integrated.value, integrated.completeness_error):
        expect(caption).to_contain_text(f"{number:.4f}".replace("-", "−"))
    correlations = rank_correlations(found.scores)
    np.testing.assert_allclose(written(page, "chart_correlations"), correlations.ravel(), atol=0.00501)
    curves = deletion_curves(answers, TEXT, found.scores)
    areas = [float(row[1]) for row in table(page, 1)]
    np.testing.assert_allclose(areas, [*curves.areas.values(), curves.random_area], atol=0.000501)
    words = page.locator(".txcls-words").first.locator("span")
    assert words.all_text_contents() == TEXT.split()
    assert words.nth(1).get_attribute("title") == f"bank: {found.scores['attention'][1]:.4f}"


def test_lens_shows_the_librarys_numbers(page: Page, server: Server, answers: Classifier) -> None:
    visit(page, server, "lens", text=TEXT)
    lens = class_lens(answers, TEXT)
    shown = page.locator(".txcls-steps > *").all_text_contents()[3:]
    for place, (state, row) in enumerate(zip(lens.states, lens.probabilities, strict=True)):
        best = answers.classes[int(row.argmax())]
        assert shown[3 * place : 3 * place + 3] == [state, best, f"{row.max():.1%}".replace("%", " %")]
    np.testing.assert_allclose(written(page, "chart_shares"), 100 * (lens.shares @ lens.weights), atol=0.0501)
    np.testing.assert_allclose(cells(page, "chart_lengths"), lens.lengths, rtol=1e-5)
    np.testing.assert_allclose(cells(page, "chart_share_map"), lens.shares, atol=1e-6)
    for length in lens.lengths.mean(axis=1):
        expect(page.get_by_text("The Euclidean length")).to_contain_text(f"{length:.1f}")


def test_attention_shows_the_librarys_numbers_and_a_second_checkpoint(
    page: Page, server: Server, answers: Classifier
) -> None:
    visit(page, server, "attention", text=TEXT, layer=2, head=2, versus=PAIRS)
    traced = trace_text(answers, TEXT)
    heads = head_statistics(traced.attention)
    np.testing.assert_allclose(written(page, "chart_entropy"), heads.entropy.ravel(), atol=0.00501)
    np.testing.assert_allclose(written(page, "chart_distance"), heads.distance.ravel(), atol=0.0501)
    np.testing.assert_allclose(cells(page, "chart_rollout"), attention_rollout(traced.attention), atol=1e-6)
    pattern = traced.attention[1, 1]
    query, key = np.unravel_index(int(pattern.argmax()), pattern.shape)
    found = query_key(traced, layer=1, head=1, query=int(query), key=int(key))
    sentence = page.get_by_text("Query times key")
    expect(sentence).to_contain_text(f"score {found.score:.3f}")
    expect(sentence).to_contain_text(f"weight {found.weight:.3f}")
    other = trace_text(Classifier.load(server.log.parent / "checkpoints" / PAIRS), TEXT)
    np.testing.assert_allclose(cells(page, f"chart_versus_{PLAIN}"), pattern, atol=1e-6)
    np.testing.assert_allclose(cells(page, f"chart_versus_{PAIRS}"), other.attention[1, 1], atol=1e-6)


def test_words_are_dragged_and_moved_by_keys_and_the_models_asked_again(page: Page, server: Server) -> None:
    text = "shares of the bank fell"
    visit(page, server, "positions", text=text)
    words = page.locator(".st-key-lab_words button")
    expect(words).to_have_text(text.split()[::-1])
    answers = [
        Classifier.load(server.log.parent / "checkpoints" / name) for name in ("positions_sinusoidal", "positions_none")
    ]

    def expect_answers(now: str) -> None:
        expect(words).to_have_text(now.split())
        for row, classifier in zip((0, 2), answers, strict=True):
            best = classifier.predict([now])[0].scores[0]
            cell = page.locator("table").first.locator("tbody tr").nth(row).locator("td").nth(2)
            expect(cell).to_have_text(f"{best.label} {best.probability:.1%}".replace("%", " %"))
        settle(page)

    expect_answers("fell bank the of shares")
    words.first.scroll_into_view_if_needed()
    first, last = words.first.bounding_box(), words.last.bounding_box()
    assert first and last
    page.mouse.move(first["x"] + 5, first["y"] + 5)
    page.mouse.down()
    page.mouse.move(last["x"] + last["width"] - 3, last["y"] + 5, steps=8)
    page.mouse.up()
    expect_answers("bank the of shares fell")
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    expect_answers("bank the fell of shares")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    expect_answers("the bank fell of shares")
    expect(words.first).to_be_focused()
    page.get_by_role("button", name="As typed").click()
    expect_answers(text)
    assert words.locator("xpath=self::*[@tabindex='0']").count() == 1, "one tab stop, the arrows do the rest"
