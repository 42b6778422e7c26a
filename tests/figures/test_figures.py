"""Figures show the numbers they are given, on fixed scales, and never break on odd tokens."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from txcls.figures import (
    attention_arcs,
    attention_grid,
    attention_map,
    choose_arcs,
    label,
    mask_map,
    number_bars,
    percent,
    pooling_bars,
    position_curves,
    position_heatmap,
    position_products_map,
    probability_bars,
    query_key_bars,
    shuffle_bars,
    surprisal_bars,
    token_bars,
    training_curves,
    visible,
)
from txcls.figures.style import FRAME

ODD_TOKENS = ["<b>bold</b>", "&amp;", "\x00", "\ud800", "שלום", "🦊", "the", "the", "x" * 500, ""]


def pattern(n: int, *, seed: int = 0) -> np.ndarray:
    raw = np.random.default_rng(seed).random((n, n)) ** 4
    return (raw / raw.sum(axis=1, keepdims=True)).astype(np.float32)


def test_bars_are_ranked_on_a_fixed_scale_with_an_other_bar() -> None:
    figure = probability_bars(["Sports", "World"], [0.7, 0.2], other=(2, 0.1))
    bars = figure.data[0]
    assert list(bars.x) == [0.7, 0.2, 0.1]
    assert list(bars.text) == ["70.0 %", "20.0 %", "10.0 %"]
    assert "2 others" in bars.customdata[2]
    assert tuple(figure.layout.xaxis.range) == (0, 1)
    assert tuple(figure.layout.yaxis.range) == (2.5, -0.5)  # the best on top


def test_long_names_stand_above_their_bars_in_full() -> None:
    names = ["what_can_i_ask_you_about_my_account", "transfer"]
    figure = probability_bars(names, [0.7, 0.2], other=(148, 0.1), names_above=True)
    written = [one.text.strip() for one in figure.layout.annotations]
    assert written == [*names, "148 others"]
    for row, (bar, note) in enumerate(zip(figure.data[0].y, figure.layout.annotations, strict=True)):
        assert row - 0.5 < note.y < bar - figure.data[0].width / 2 < bar + figure.data[0].width / 2 < row + 0.5
    assert not figure.layout.yaxis.showticklabels
    assert probability_bars(names, [0.7, 0.2]).layout.yaxis.showticklabels


def test_many_bars_are_drawn_closer() -> None:
    few, many = (probability_bars(["a"] * n, [0.1] * n).layout.height for n in (5, 20))
    assert many < 4 * few


def test_ranked_tokens_have_bars_and_the_others_a_number() -> None:
    figure = token_bars(["the", "a"], [0.2, 0.1], other=(998, 0.7), true=1)
    [bars] = figure.data
    assert list(bars.x) == [0.2, 0.1] and list(bars.text) == ["20.0 %", "10.0 % ◀ in the text"]
    assert list(bars.marker.line.width) == [0, 4]
    assert figure.layout.annotations[0].text == "998 others: 70.0 % in total"


@pytest.mark.parametrize(
    "best, filtered, top", [(0.02, None, 0.1), (0.1, None, 0.1), (0.11, None, 0.25), (0.9, None, 1.0), (0.02, 0.4, 0.5)]
)
def test_the_scale_of_token_bars_ends_above_the_longest(best: float, filtered: float | None, top: float) -> None:
    drawn = None if filtered is None else [filtered, 0.0]
    figure = token_bars(["x", "y"], [best, 0.01], other=(5, 0.1), filtered=drawn)
    assert tuple(figure.layout.xaxis.range) == (0, top)


def test_tokens_that_cannot_be_drawn_are_said_to_be_left_out() -> None:
    figure = token_bars(["x", "y"], [0.4, 0.3], other=(5, 0.3), filtered=[1.0, 0.0])
    plain, drawn = figure.data
    assert list(drawn.x) == [1.0, 0.0] and list(drawn.text) == ["100.0 %", "filtered out"]
    gaps = np.array(drawn.y) - np.array(plain.y)
    assert (gaps >= (plain.width + drawn.width) / 2).all(), "they do not overlap"


def test_surprisal_has_its_mean_and_a_gap_for_a_token_without_one() -> None:
    figure = surprisal_bars(np.array([np.nan, 3.0, 6.0]), ["<cls>", "the", "the"], mean=4.5)
    assert figure.layout.shapes[0].y0 == 4.5 and np.isnan(figure.data[0].y[0])
    assert len(set(figure.data[0].x)) == 3
    assert not surprisal_bars(np.array([np.nan]), ["x"], mean=None).layout.shapes


def test_the_mask_has_two_values_on_a_fixed_scale() -> None:
    mask = np.tril(np.ones((4, 4), dtype=bool))
    heat = mask_map(mask, ["a", "b", "c", "c"]).data[0]
    np.testing.assert_array_equal(heat.z, mask)
    assert (heat.zmin, heat.zmax) == (0, 1)
    assert heat.text[0][1] == "cannot attend to" and heat.text[1][0] == "can attend to"


@pytest.mark.parametrize("figure", ["tokens", "surprisal", "mask"])
def test_language_figures_take_odd_tokens(figure: str) -> None:
    n = len(ODD_TOKENS)
    made = {
        "tokens": lambda: token_bars(ODD_TOKENS, [0.05] * n, other=(3, 0.5), filtered=[0.1] * n),
        "surprisal": lambda: surprisal_bars(np.arange(n, dtype=float), ODD_TOKENS, mean=2.0),
        "mask": lambda: mask_map(np.ones((n, n), dtype=bool), ODD_TOKENS),
    }[figure]()
    sent = made.to_json()
    sent.encode("utf-8")
    assert "<b>bold" not in sent


def test_bars_keep_their_height_when_probabilities_change() -> None:
    heights = {probability_bars(["a", "b"], [p, 1 - p]).layout.height for p in (0.5, 0.9, 1.0)}
    assert len(heights) == 1


@pytest.mark.parametrize(
    "probability, text",
    [(0.0, "0.0 %"), (1.0, "100.0 %"), (0.9999, "&gt; 99.9 %"), (0.0001, "&lt; 0.1 %"), (0.931, "93.1 %")],
)
def test_percentages_never_round_to_certainty(probability: float, text: str) -> None:
    assert percent(probability) == text


def test_grid_sends_every_head_as_bytes_on_one_fixed_scale() -> None:
    patterns = np.stack([[pattern(5, seed=layer * 3 + head) for head in range(3)] for layer in range(2)])
    figure = attention_grid(patterns, selected=(1, 2))
    maps = [trace for trace in figure.data if trace.type == "heatmap"]
    assert len(maps) == 6
    assert all(trace.z.dtype == np.uint8 and trace.coloraxis == "coloraxis" for trace in maps)
    assert np.allclose(maps[5].z / 255, patterns[1, 2], atol=0.5 / 255 + 1e-6)
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 255)
    assert list(figure.layout.coloraxis.colorbar.ticktext)[-1] == "1"


def test_grid_of_four_layers_and_eight_heads_at_full_length_stays_below_a_megabyte() -> None:
    figure = attention_grid(np.broadcast_to(pattern(128), (4, 8, 128, 128)))
    assert len(figure.to_json()) < 1_000_000


def test_clicking_the_grid_names_layer_and_head_and_the_choice_is_framed() -> None:
    figure = attention_grid(np.zeros((2, 3, 4, 4)), selected=(1, 0))
    points = next(trace for trace in figure.data if trace.type == "scatter")
    assert [tuple(place) for place in points.customdata] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert points.marker.opacity == points.unselected.marker.opacity == points.selected.marker.opacity == 0
    x, y = points.x[3], points.y[3]
    frame = figure.layout.shapes[0]
    assert frame.x0 < x < frame.x1 and frame.y0 < y < frame.y1


def test_map_has_fixed_scale_colour_bar_and_axis_titles() -> None:
    figure = attention_map(pattern(6), ["a", "b", "c", "d", "e", "f"])
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 1)
    assert figure.layout.coloraxis.colorbar.title.text == "weight"
    assert "key" in figure.layout.xaxis.title.text and "query" in figure.layout.yaxis.title.text
    assert figure.layout.yaxis.autorange == "reversed"


@pytest.mark.parametrize("n", [1, 2, 10])
def test_odd_and_repeated_tokens_keep_a_row_each(n: int) -> None:
    tokens = ODD_TOKENS[:n]
    figures = [
        attention_map(pattern(n), tokens),
        attention_arcs(pattern(n), tokens, choose_arcs(pattern(n))),
        pooling_bars(np.full(n, 1 / n), tokens),
    ]
    assert len(set(figures[0].data[0].x)) == n
    for figure in figures:
        json.loads(figure.to_json())
        assert "<b>bold" not in str(figure.data[0].x)
        figure.to_json().encode()


def test_arcs_and_dots_account_for_all_attention_when_none_is_left_out() -> None:
    arcs = choose_arcs(pattern(8), min_weight=0.0, at_most=1000)
    assert arcs.share == pytest.approx(1.0)
    assert arcs.n_hidden == 0 and len(arcs.weights) == 8 * 7


def test_arcs_left_out_are_counted_and_the_strongest_stay() -> None:
    weights = pattern(8)
    arcs = choose_arcs(weights, min_weight=0.2)
    off_diagonal = weights - np.diag(np.diag(weights))
    assert len(arcs.weights) == (off_diagonal >= 0.2).sum()
    assert arcs.n_hidden == 8 * 7 - len(arcs.weights)
    assert arcs.share == pytest.approx((arcs.weights.sum() + np.trace(weights)) / 8, abs=1e-5)
    assert list(arcs.weights) == sorted(arcs.weights, reverse=True)
    assert len(choose_arcs(weights, min_weight=0.0, at_most=5).weights) == 5


def test_arcs_of_one_token_start_there() -> None:
    arcs = choose_arcs(pattern(8), query=3, min_weight=0.0)
    assert set(arcs.queries) == {3}
    assert len(arcs.weights) + arcs.n_hidden == 7


def test_arcs_to_later_tokens_go_above_the_line() -> None:
    weights = np.array([[0.1, 0.9], [0.6, 0.4]])
    figure = attention_arcs(weights, ["a", "b"], choose_arcs(weights))
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    later, earlier = lines[0], lines[1]
    assert np.nanmin(later.y) >= -1e-6 and np.nanmax(earlier.y) <= 1e-6


def test_position_heatmap_is_centred_on_zero() -> None:
    figure = position_heatmap(np.array([[0.5, -2.0]]))
    assert figure.layout.coloraxis.cmin == -2 and figure.layout.coloraxis.cmax == 2
    assert position_heatmap(np.zeros((2, 2))).layout.coloraxis.cmax == 1
    assert position_heatmap(np.zeros((9, 2)), used=4).layout.shapes[0].y1 == 3.5


def test_position_curves_differ_in_colour_and_dash() -> None:
    figure = position_curves(np.zeros((5, 8)), range(6), bound=1.0)
    assert len({(line.line.color, line.line.dash) for line in figure.data}) == 6
    assert len({line.line.dash for line in figure.data}) == 6
    assert position_curves(np.zeros((5, 8)), []).data == ()


def test_products_map_shows_each_pair() -> None:
    products = np.arange(9.0).reshape(3, 3)
    figure = position_products_map(products, used=2)
    assert np.array_equal(figure.data[0].z, products)
    assert figure.layout.shapes[0].x1 == 1.5


def test_shuffle_bars_show_the_original_and_every_shuffle() -> None:
    figure = shuffle_bars(["a", "b", "c"], [0.1, 0.7, 0.2], np.array([[0.2, 0.6, 0.2], [0.5, 0.3, 0.2]]))
    bars, dots = figure.data
    assert list(bars.x) == [0.7, 0.2, 0.1]
    assert sorted(dots.x) == sorted([0.6, 0.3, 0.2, 0.2, 0.2, 0.5])
    assert dots.name == "2 shuffled orders"


def test_long_names_stand_above_shuffle_bars_too() -> None:
    figure = shuffle_bars(["a_long_class_name", "b"], [0.1, 0.9], np.array([[0.2, 0.8]] * 3), names_above=True)
    bars, dots = figure.data
    assert [note.text.strip() for note in figure.layout.annotations] == ["b", "a_long_class_name"]
    assert all(note.y < row for note, row in zip(figure.layout.annotations, bars.y, strict=True))
    assert all(abs(y - bars.y[n // 3]) <= bars.width / 2 for n, y in enumerate(dots.y))


def test_training_curves_leave_out_what_a_row_lacks() -> None:
    assert len(training_curves([]).data) == 4
    rows = [{"step": 1, "train_loss": 0.5}, {"step": 2, "validation_accuracy": 0.9, "best": True}]
    figure = training_curves(rows)
    assert any(trace.name == "saved weights" for trace in figure.data)
    json.loads(figure.to_json())


@given(st.text(st.characters(codec=None)))
def test_any_token_becomes_a_label_without_markup(text: str) -> None:
    shown = label(text)
    shown.encode()
    visible(text).encode()
    assert "<" not in shown and ">" not in shown
    assert not any(ord(character) < 32 for character in shown)


def test_query_key_bars_show_each_dimension() -> None:
    assert list(query_key_bars(np.array([0.5, -0.25])).data[0].y) == [0.5, -0.25]


def test_a_map_of_one_word_is_no_slab_and_what_is_not_shown_has_a_column() -> None:
    one, many = attention_map(np.ones((1, 1)), ["a"]), attention_map(np.eye(9), list("abcdefghi"))
    assert list(one.layout.xaxis.range) == [-0.5, 5.5] and list(one.layout.yaxis.range) == [5.5, -0.5]
    assert many.layout.xaxis.range is None and many.layout.yaxis.autorange == "reversed"
    window = attention_map(np.eye(3) / 4, ["a", "b", "c"], elsewhere=np.array([0.75, 0.75, 0.75]))
    np.testing.assert_array_equal(window.data[1].z[:, 1], [0.75] * 3)
    assert np.isnan(window.data[1].z[:, 0]).all() and "elsewhere" in window.data[1].x[1]
    assert window.data[0].coloraxis == window.data[1].coloraxis, "one scale for both"


def test_bars_of_numbers_rank_many_classes_and_keep_the_order_of_dimensions() -> None:
    values = np.array([0.5, -np.inf, 2.0, 1.0])
    [bars] = number_bars(values, names=["a", "b", "c", "d"], axis_title="class", chosen=0, ranked=True).data
    assert list(bars.customdata) == [2, 3, 0, 1] and list(bars.x[:3]) == [2.0, 1.0, 0.5] and np.isnan(bars.x[3])
    assert [colour == FRAME for colour in bars.marker.color] == [False, False, True, False]
    many = np.arange(150.0)
    [bars] = number_bars(many, names=[f"class {n}" for n in range(150)], axis_title="class", chosen=3, ranked=True).data
    assert list(bars.customdata) == [*range(149, 126, -1), 3], "the largest, and the chosen one"
    [bars] = number_bars(many, chosen=7).data
    assert list(bars.x) == list(range(150)) == list(bars.customdata) and list(bars.y) == many.tolist()
