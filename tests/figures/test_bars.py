"""Bars show the numbers they are given, on fixed scales."""

import numpy as np
import pytest

from txcls.figures import (
    compared_bars,
    probability_bars,
    shuffle_bars,
)

COLOURS = ("#111111", "#222222")


def test_bars_are_ranked_on_a_fixed_scale_with_an_other_bar() -> None:
    figure = probability_bars(["Sports", "World"], [0.7, 0.2], colours=COLOURS, other=(2, 0.1))
    [bars] = figure.data
    assert list(bars.x) == [0.7, 0.2, 0.1]
    assert list(bars.text) == ["70.0 %", "20.0 %", "10.0 %"]
    assert "2 others" in bars.customdata[2]
    assert tuple(figure.layout.xaxis.range) == (0, 1)
    assert tuple(figure.layout.yaxis.range) == (2.5, -0.5)  # the best on top
    changed = probability_bars(["Sports", "World"], [1.0, 0.0], colours=COLOURS, other=(2, 0.0))
    assert changed.layout.height == figure.layout.height, "a page does not jump when probabilities change"


@pytest.mark.parametrize("names_above", [False, True])
def test_shuffle_bars_show_the_original_and_every_shuffle(names_above: bool) -> None:
    orders = np.array([[0.2, 0.6, 0.2], [0.5, 0.3, 0.2]])
    figure = shuffle_bars(["a", "b", "c"], [0.1, 0.7, 0.2], orders, names_above=names_above)
    bars, dots = figure.data
    assert list(bars.x) == [0.7, 0.2, 0.1] and dots.name == "2 shuffled orders"
    assert list(dots.x) == [0.6, 0.3, 0.2, 0.2, 0.2, 0.5]
    assert all(abs(y - bars.y[n // 2]) <= bars.width / 2 for n, y in enumerate(dots.y)), "each dot is on its bar"
    assert [note.text.strip() for note in figure.layout.annotations] == (["b", "c", "a"] if names_above else [])


def test_compared_bars_keep_the_order_of_before_and_never_round_to_certainty() -> None:
    figure = compared_bars(
        ["a", "b", "c<b>", "d"], [0.7, 0.2, 0.1, 0.0], [0.0001, 0.3, 0.6999, 0.0], n_rows=3, names_above=True
    )
    before, after = figure.data
    assert list(before.x) == [0.7, 0.2, 0.1] and list(after.x) == [0.0001, 0.3, 0.6999]
    assert after.text[0] == "&lt; 0.1 %" and tuple(figure.layout.xaxis.range) == (0, 1)
    assert [note.text.strip() for note in figure.layout.annotations] == ["a", "b", "c&lt;b&gt;"]
