"""Boards and experiment figures show the numbers they are given, on scales that can be compared."""

import json

import numpy as np
import pytest

from txcls.figures import (
    FEED_FORWARD,
    correlation_map,
    deletion_lines,
    effect_board,
    head_board,
    lens_lines,
    moved_bars,
    query_key_bars,
    share_bars,
    token_rows,
)

ODD = ["<b>bold</b>", "the", "the", "x" * 300, "שלום"]


def test_board_shows_points_with_sign_and_feed_forward_apart() -> None:
    heads, feed_forward = np.array([[0.031, -0.2], [0.0, 1e-6]]), np.array([-0.5, 0.004])
    figure = effect_board(heads, feed_forward, title="points", what="It", badges={(0, 1): "uniform"})
    cells, marks = figure.data
    np.testing.assert_allclose(cells.z[:, [0, 1, 3]], [[3.1, -20, -50], [0, 1e-4, 0.4]], atol=1e-5)
    assert [list(row) for row in cells.text] == [["+3.1", "−20.0", "", "−50.0"], ["0.0", "0.0", "", "+0.4"]]
    assert [tuple(one) for one in marks.customdata] == [
        (0, 0), (0, 1), (0, FEED_FORWARD), (1, 0), (1, 1), (1, FEED_FORWARD),
    ]  # fmt: skip
    assert "layer 1, head 2" in marks.text[1] and "−20.00 points" in marks.text[1] and "feed-forward" in marks.text[2]
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-50, 50)
    [frame] = figure.layout.shapes
    assert frame.x0 < 1 < frame.x1 and frame.y0 < 0 < frame.y1
    assert [note.text for note in figure.layout.annotations] == ["<b>uniform</b>"]
    assert "click" in marks.text[0]
    fixed = effect_board(np.zeros((1, 1)), np.zeros(1), title="", what="It", clickable=False)
    assert "click" not in fixed.data[1].text[0] and fixed.layout.coloraxis.cmax == 1


def test_colours_of_small_effects_are_the_same_for_most_texts() -> None:
    tops = {
        effect_board(np.array([[one]]), np.zeros(1), title="", what="").layout.coloraxis.cmax
        for one in (0.021, 0.03, -0.05)
    }
    assert tops == {5}


def test_head_board_runs_from_zero_to_its_top() -> None:
    figure = head_board(np.array([[0.5, 2.25]]), title="bits", what="entropy in bits:", top=3.0)
    assert list(figure.data[0].text[0]) == ["0.50", "2.25"] and "entropy in bits: 2.250" in figure.data[1].text[1]
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 3)


def test_moved_bars_keep_the_order_of_before_and_never_round_to_certainty() -> None:
    figure = moved_bars(["a", "b", "c<b>", "d"], [0.7, 0.2, 0.1, 0.0], [0.0001, 0.3, 0.6999, 0.0], n_rows=3)
    before, after = figure.data
    assert list(before.x) == [0.7, 0.2, 0.1] and list(after.x) == [0.0001, 0.3, 0.6999]
    assert after.text[0] == "&lt; 0.1 %" and tuple(figure.layout.xaxis.range) == (0, 1)
    assert [note.text for note in figure.layout.annotations] == ["a", "b", "c&lt;b&gt;"]


def test_correlations_stand_in_their_cells() -> None:
    figure = correlation_map(["one way", "other"], np.array([[1.0, -0.256], [np.nan, 1.0]]))
    assert [list(row) for row in figure.data[0].text] == [["1.00", "−0.26"], ["–", "1.00"]]
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-1, 1)
    json.loads(figure.to_json())


def test_deletion_lines_have_a_band_and_differ_in_colour_and_dash() -> None:
    shares = np.linspace(0, 1, 4)
    curves = [np.linspace(1, 0, 4)] * 5
    random = np.stack([np.ones(4), np.zeros(4)])
    figure = deletion_lines(list("abcde"), shares, curves, random, winner="<b>")
    top, bottom, mean, *lines = figure.data
    assert list(top.y) == [1] * 4 and list(bottom.y) == [0] * 4 and list(mean.y) == [0.5] * 4
    assert len({(line.line.color, line.line.dash) for line in lines}) == 5
    assert "<b>" not in figure.layout.yaxis.title.text


def test_lens_draws_the_classes_that_get_highest() -> None:
    probabilities = np.array([[0.1, 0.8, 0.1], [0.9, 0.05, 0.05]])
    figure = lens_lines(["embeddings", "layer 1: attention"], ["a", "b", "c"], probabilities, n_lines=2)
    assert [line.name for line in figure.data] == ["a", "b"]
    assert list(figure.data[0].y) == [0.1, 0.9] and list(figure.data[0].x)[1] == "layer 1<br>attention"


@pytest.mark.parametrize("n", [1, 5])
def test_rows_of_tokens_keep_repeated_and_odd_ones_apart(n: int) -> None:
    values = np.arange(2.0 * n).reshape(2, n) - 1
    figure = token_rows(["a", "b"], ODD[:n], values, title="share", signed=True, form=".0%")
    assert len(set(figure.data[0].x)) == n and np.array_equal(figure.data[0].z, values)
    assert figure.layout.coloraxis.cmin == -figure.layout.coloraxis.cmax
    assert token_rows(["a"], ["t"], np.zeros((1, 1)), title="", signed=False, form=".2f").layout.coloraxis.cmin == 0
    figure.to_json().encode()


def test_share_bars_show_each_share_and_no_minus_zero() -> None:
    bars, numbers = share_bars(["a", "b", "c"], np.array([1.2, -0.2, -1e-9])).data
    assert list(bars.x) == [1.2, -0.2, -1e-9]
    assert [number.strip() for number in numbers.text] == ["120.0 %", "−20.0 %", "0.0 %"]
    assert list(numbers.x) == [1.2, 0, 0], "right of the bars, away from the names"


def test_query_key_bars_show_each_dimension() -> None:
    assert list(query_key_bars(np.array([0.5, -0.25])).data[0].y) == [0.5, -0.25]
