"""The page Attention in a browser."""

import numpy as np
from playwright.sync_api import Page, expect

from tests.app.tiny import PAIRS, PLAIN
from tests.browser.conftest import Server
from tests.browser.visiting import CHART, cells, click_plot, query, settle, visit, written
from txcls.inspection.attention import attention_rollout, head_statistics, query_key
from txcls.inspection.tracing import trace_text
from txcls.predictor import Predictor

TEXT = "the bank raised its rates after the report"


def test_clicking_a_map_in_the_grid_enlarges_that_head(page: Page, server: Server) -> None:
    visit(page, server, "attention", text="the bank raised its rates again")
    plot = page.locator(f".st-key-chart_grid {CHART} .nsewdrag").first
    box = plot.bounding_box()
    assert box
    click_plot(page, box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.7)
    expect(page.get_by_role("heading", name="Layer 2, head 2", exact=True)).to_be_visible()
    settle(page)
    assert query(page)["layer"] == "2" and query(page)["head"] == "2"


def test_attention_shows_the_librarys_numbers_and_a_second_checkpoint(
    page: Page, server: Server, answers: Predictor
) -> None:
    traced = trace_text(answers, TEXT)
    heads = head_statistics(traced.attention)
    visit(page, server, "attention", text=TEXT, layer=2, head=2, versus=PAIRS, section="heads")
    np.testing.assert_allclose(written(page, "chart_entropy"), heads.entropy.ravel(), atol=0.00501)
    np.testing.assert_allclose(written(page, "chart_distance"), heads.distance.ravel(), atol=0.0501)
    page.get_by_role("radio", name="rollout").click()
    page.locator(f".st-key-chart_rollout {CHART}").wait_for()
    settle(page)
    np.testing.assert_allclose(cells(page, "chart_rollout"), attention_rollout(traced.attention), atol=1e-6)
    pattern = traced.attention[1, 1]
    query, key = np.unravel_index(int(pattern.argmax()), pattern.shape)
    scored = query_key(traced, layer=1, head=1, query=int(query), key=int(key))
    page.get_by_role("radio", name="one score").click()
    sentence = page.get_by_text("Query times key")
    expect(sentence).to_contain_text(f"score {scored.score:.3f}")
    expect(sentence).to_contain_text(f"weight {scored.weight:.3f}")
    other = trace_text(Predictor.load(server.log.parent / "checkpoints" / PAIRS), TEXT)
    np.testing.assert_allclose(cells(page, f"chart_versus_{PLAIN}"), pattern, atol=1e-6)
    np.testing.assert_allclose(cells(page, f"chart_versus_{PAIRS}"), other.attention[1, 1], atol=1e-6)


def test_layer_norms_code_stands_under_its_formula(page: Page, server: Server) -> None:
    visit(page, server, "attention")
    page.get_by_text("LayerNorm").click()
    expect(page.locator("code", has_text="class LayerNorm(nn.Module):")).to_be_visible()
    expect(page.locator(".katex").first).to_be_visible()
    settle(page)
