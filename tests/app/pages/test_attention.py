from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.app.drawn import body_text, chart, charts_of, numbers, open_page
from tests.app.tiny import PAIRS, PLAIN
from txcls.app.pages.attention import _name_families
from txcls.app.shell import cached_results
from txcls.figures import minus
from txcls.inference.predictor import Predictor
from txcls.inspection.attention import query_key
from txcls.inspection.tracing import TracedText, trace_text
from txcls.text.formatting import percentage

TEXT = "banks signed a deal after the election"


def test_a_missing_layer_becomes_the_last_one_with_a_warning() -> None:
    app = open_page("attention", layer="99", head="1")
    assert any("Head 2.1" in heading.value for heading in app.subheader)
    assert any("no layer 99" in warning.value for warning in app.warning)
    assert app.query_params["layer"] == "2"


def test_heads_are_sorted_into_families_by_where_they_look() -> None:
    before, after = (np.roll(np.eye(12), offset, axis=1) for offset in (-1, 1))
    attention = np.stack([[before, after, np.eye(12)[[5] * 12]]])  # L H T T
    assert _name_families(attention) == ["previous", "next", "one token"]


def heat_map(app: AppTest, key: str) -> dict[str, Any]:
    """The first trace of a chart, which is its heat map."""
    return dict(chart(app, key).figure["data"][0])


def test_attention_page_prints_the_librarys_numbers() -> None:
    pages = {
        section: open_page("attention", text=TEXT, layer="2", head="2", section=section)
        for section in ("score", "pooling")
    }
    traced = trace_text(Predictor.load(PLAIN), TEXT)
    pattern = traced.attention[1, 1]
    query, key = np.unravel_index(int(pattern.argmax()), pattern.shape)
    explained = query_key(traced, layer=1, head=1, query=int(query), key=int(key))
    words = body_text(pages["score"])
    assert f"**{minus(f'{explained.score:.1f}')}**" in words and f"**{percentage(explained.weight)}**" in words
    others = [other for other in range(len(pattern)) if other != key]
    best = max(query_key(traced, layer=1, head=1, query=int(query), key=other).score for other in others)
    assert f"** with {minus(f'{best:.1f}')}. A softmax" in words
    np.testing.assert_allclose(numbers(heat_map(pages["pooling"], "chart_map")["z"]), pattern, atol=1e-6)
    np.testing.assert_allclose(numbers(heat_map(pages["pooling"], "chart_pooling")["y"]), traced.pooling, atol=1e-6)
    assert all(len(charts_of(page)) <= 4 for page in pages.values()), "one part at a time"


def test_a_score_that_the_model_computes_in_another_way_is_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one of rotated queries and keys."""

    def trace(*args: Any, **options: Any) -> TracedText:
        traced = trace_text(*args, **options)
        scores = {name: np.full_like(values, 3.065) for name, values in traced.values.items() if "scores" in name}
        return replace(traced, values={**traced.values, **scores})

    monkeypatch.setattr(cached_results, "trace_text", trace)
    app = open_page("attention", text=TEXT, layer="2", head="2", section="score")
    assert "Not available for this model" in body_text(app) and "3.065" in body_text(app)


def test_a_link_opens_with_the_chosen_query_and_pair_of_tokens() -> None:
    app = open_page("attention", text=TEXT, layer="1", head="2", section="score", pair="5.1")
    explained = query_key(trace_text(Predictor.load(PLAIN), TEXT), layer=0, head=1, query=4, key=0)
    words = body_text(app)
    assert f"**{minus(f'{explained.score:.1f}')}**" in words and f"**{percentage(explained.weight)}**" in words
    app.selectbox(key="why_Key").set_value(2).run()
    app.segmented_control(key="section").set_value("arcs").run()
    assert app.query_params["pair"] == "5.3" and app.query_params["section"] == "arcs"
    app.selectbox(key="arc_query").set_value(3).run()
    assert app.query_params["query"] == "3" and "of the attention of this query" in body_text(app)
    app.text_area[0].set_value("shares fell").run()
    assert not {"pair", "query"} & set(dict(app.query_params)), "another text has other tokens"
    beyond = open_page("attention", text="shares fell", query="9", pair="3.1", section="arcs")
    assert beyond.selectbox(key="arc_query").value == 0


def test_two_checkpoints_maps_stand_side_by_side() -> None:
    app = open_page("attention", text=TEXT, layer="2", head="2", versus=PAIRS)
    assert any(heading.value == "A test · ag news and A test · pairs" for heading in app.subheader)
    for name in (PLAIN, PAIRS):
        expected = trace_text(Predictor.load(name), TEXT).attention[1, 1]
        np.testing.assert_allclose(numbers(heat_map(app, f"chart_versus_{name}")["z"]), expected, atol=1e-6)
