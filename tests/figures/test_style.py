"""Tokens and names of any kind can be drawn safely."""

import json
from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from txcls.figures import (
    attention_arcs,
    attention_map,
    choose_arcs,
    label,
    mask_map,
    percent,
    pooling_bars,
    surprisal_bars,
    token_bars,
    token_rows,
    visible,
)

ODD_TOKENS = ["<b>bold</b>", "&amp;", "\x00", "\ud800", "שלום", "🦊", "the", "the", "x" * 500, ""]
FIGURES: dict[str, Callable[[int], go.Figure]] = {
    "map": lambda n: attention_map(np.full((n, n), 1 / n), ODD_TOKENS[:n]),
    "arcs": lambda n: attention_arcs(np.full((n, n), 1 / n), ODD_TOKENS[:n], choose_arcs(np.full((n, n), 1 / n))),
    "pooling": lambda n: pooling_bars(np.full(n, 1 / n), ODD_TOKENS[:n]),
    "surprisal": lambda n: surprisal_bars(np.arange(n, dtype=float), ODD_TOKENS[:n], mean=2.0),
    "mask": lambda n: mask_map(np.ones((n, n), dtype=bool), ODD_TOKENS[:n]),
    "rows": lambda n: token_rows(["a"], ODD_TOKENS[:n], np.zeros((1, n)), title="", signed=True, form=".2f"),
    "tokens": lambda n: token_bars(ODD_TOKENS[:n], [0.05] * n, other=(3, 0.5), filtered=[0.1] * n),
}


@pytest.mark.parametrize("n", [1, 2, 10])
@pytest.mark.parametrize("name", FIGURES)
def test_odd_and_repeated_tokens_are_drawn_apart_and_without_markup(name: str, n: int) -> None:
    figure = FIGURES[name](n)
    sent = figure.to_json()
    sent.encode("utf-8")
    json.loads(sent)
    assert "<b>bold" not in sent
    if name not in ("arcs", "tokens"):  # these have a numeric axis
        assert len(set(figure.data[0].x)) == n


@given(st.text(st.characters(codec=None)))
def test_any_token_becomes_a_label_without_markup(text: str) -> None:
    shown = label(text)
    shown.encode()
    visible(text).encode()
    assert "<" not in shown and ">" not in shown
    assert not any(ord(character) < 32 for character in shown)


@pytest.mark.parametrize(
    "probability, text",
    [(0.0, "0.0 %"), (1.0, "100.0 %"), (0.9999, "&gt; 99.9 %"), (0.0001, "&lt; 0.1 %"), (0.931, "93.1 %")],
)
def test_percentages_never_round_to_certainty(probability: float, text: str) -> None:
    assert percent(probability) == text
