"""Heat maps and arcs show the numbers they are given, on fixed scales."""

import numpy as np
import pytest

from txcls.figures import (
    FEED_FORWARD,
    attention_arcs,
    attention_grid,
    attention_map,
    choose_arcs,
    confusion_map,
    head_effects_map,
    head_values_map,
    mask_map,
    overlap_map,
    position_heatmap,
    token_rows,
)
from txcls.text.tokens import Token


def pattern(n: int, *, seed: int = 0) -> np.ndarray:
    raw = np.random.default_rng(seed).random((n, n)) ** 4
    return (raw / raw.sum(axis=1, keepdims=True)).astype(np.float32)


def test_grid_sends_every_head_as_bytes_on_one_fixed_scale() -> None:
    patterns = np.stack([[pattern(5, seed=layer * 3 + head) for head in range(3)] for layer in range(2)])
    figure = attention_grid(patterns)
    maps = [trace for trace in figure.data if trace.type == "heatmap"]
    assert len(maps) == 6
    assert all(trace.z.dtype == np.uint8 and trace.coloraxis == "coloraxis" for trace in maps)
    assert np.allclose(maps[5].z / 255, patterns[1, 2], atol=0.5 / 255 + 1e-6)
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 255)
    assert list(figure.layout.coloraxis.colorbar.ticktext)[-1] == "1"
    long = attention_grid(np.broadcast_to(pattern(128), (4, 8, 128, 128)))
    assert len(long.to_json()) < 1_000_000


def test_clicking_the_grid_names_layer_and_head_and_the_choice_is_framed() -> None:
    figure = attention_grid(np.zeros((2, 3, 4, 4)), selected=(1, 0))
    points = next(trace for trace in figure.data if trace.type == "scatter")
    assert [tuple(place) for place in points.customdata] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert points.marker.opacity == points.unselected.marker.opacity == points.selected.marker.opacity == 0
    [frame] = figure.layout.shapes
    assert frame.x0 < points.x[3] < frame.x1 and frame.y0 < points.y[3] < frame.y1


def test_map_has_fixed_scale_colour_bar_and_axis_titles() -> None:
    figure = attention_map(pattern(6), list("abcdef"))
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 1)
    assert figure.layout.coloraxis.colorbar.title.text == "weight"
    assert "key" in figure.layout.xaxis.title.text and "query" in figure.layout.yaxis.title.text
    assert figure.layout.yaxis.autorange == "reversed" and figure.layout.xaxis.range is None


def test_a_map_of_one_word_is_no_slab_and_what_is_not_shown_has_a_column() -> None:
    figure = attention_map(np.ones((1, 1)), [Token("a", 5, 0, 1, is_unknown=False, is_special=False)])
    assert figure.data[0].x[0].startswith("a"), "a token stands there by its label"
    assert list(figure.layout.xaxis.range) == [-0.5, 5.5] and list(figure.layout.yaxis.range) == [5.5, -0.5]
    window = attention_map(np.eye(3) / 4, ["a", "b", "c"], elsewhere=np.array([0.75, 0.75, 0.75]))
    np.testing.assert_array_equal(window.data[1].z[:, 1], [0.75] * 3)
    assert np.isnan(window.data[1].z[:, 0]).all() and "elsewhere" in window.data[1].x[1]
    assert window.data[0].coloraxis == window.data[1].coloraxis, "one scale for both"


def test_the_mask_has_two_values_on_a_fixed_scale() -> None:
    mask = np.tril(np.ones((4, 4), dtype=bool))
    [heat] = mask_map(mask, ["a", "b", "c", "c"]).data
    np.testing.assert_array_equal(heat.z, mask)
    assert (heat.zmin, heat.zmax) == (0, 1)
    assert heat.text[0][1] == "cannot attend to" and heat.text[1][0] == "can attend to"


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
    of_one_query = choose_arcs(weights, query=3, min_weight=0.0)
    assert set(of_one_query.queries) == {3} and len(of_one_query.weights) + of_one_query.n_hidden == 7


def test_arcs_to_later_tokens_go_above_the_line() -> None:
    weights = np.array([[0.1, 0.9], [0.6, 0.4]])
    figure = attention_arcs(weights, ["a", "b"], choose_arcs(weights))
    later, earlier = [trace for trace in figure.data if trace.mode == "lines"]
    assert np.nanmin(later.y) >= -1e-6 and np.nanmax(earlier.y) <= 1e-6


def test_effects_show_points_with_sign_and_feed_forward_apart() -> None:
    figure = head_effects_map(
        np.array([[0.031, -0.2], [0.0, 1e-6]]), np.array([-0.5, 0.004]), title="points", quantity="It",
        badges={(0, 1): "uniform"},
    )  # fmt: skip
    cells, marks = figure.data
    np.testing.assert_allclose(cells.z[:, [0, 1, 3]], [[3.1, -20, -50], [0, 1e-4, 0.4]], atol=1e-5)
    assert [list(row) for row in cells.text] == [["+3.1", "−20.0", "", "−50.0"], ["0.0", "0.0", "", "+0.4"]]
    places = [(0, 0), (0, 1), (0, FEED_FORWARD), (1, 0), (1, 1), (1, FEED_FORWARD)]
    assert [tuple(place) for place in marks.customdata] == places
    assert "layer 1, head 2" in marks.text[1] and "−20.00 points" in marks.text[1] and "feed-forward" in marks.text[2]
    [frame] = figure.layout.shapes
    assert frame.x0 < 1 < frame.x1 and frame.y0 < 0 < frame.y1
    assert [note.text for note in figure.layout.annotations if note.x == 1] == ["<b>uniform</b>"]
    assert "click" in marks.text[0]
    fixed = head_effects_map(np.zeros((1, 1)), np.zeros(1), title="", quantity="It", clickable=False)
    assert "click" not in fixed.data[1].text[0]


@pytest.mark.parametrize("effect, top", [(0.0, 1), (0.021, 5), (0.03, 5), (-0.05, 5), (-0.5, 50)])
def test_colours_of_effects_end_at_few_numbers_so_that_texts_can_be_compared(effect: float, top: float) -> None:
    axis = head_effects_map(np.array([[effect]]), np.zeros(1), title="", quantity="").layout.coloraxis
    assert (axis.cmin, axis.cmax) == (-top, top)


def test_head_values_map_runs_from_zero_to_its_top() -> None:
    figure = head_values_map(np.array([[0.5, 2.25]]), title="bits", quantity="entropy in bits:", top=3.0)
    assert list(figure.data[0].text[0]) == ["0.50", "2.25"] and "entropy in bits: 2.250" in figure.data[1].text[1]
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 3)


def test_position_maps_are_centred_on_zero_and_frame_the_positions_of_the_text() -> None:
    figure = position_heatmap(np.array([[0.5, -2.0]]))
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-2, 2)
    assert position_heatmap(np.zeros((9, 2)), used=4).layout.shapes[0].y1 == 3.5
    products = np.arange(9.0).reshape(3, 3)
    figure = position_heatmap(products, columns="position", used=2)
    assert np.array_equal(figure.data[0].z, products)
    assert figure.layout.shapes[0].x1 == 1.5


def test_overlaps_are_written_in_their_cells() -> None:
    figure = overlap_map(["one way", "other"], np.array([[1.0, 0.256], [np.nan, 1.0]]))
    assert [list(row) for row in figure.data[0].text] == [["1.00", "0.26"], ["–", "1.00"]]
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 1)


def test_rows_of_tokens_show_signed_values_around_zero_and_norms_from_zero() -> None:
    values = np.arange(10.0).reshape(2, 5) - 1
    figure = token_rows(["a", "b"], list("vwxyz"), values, title="logits", signed=True, form="+.2f")
    assert np.array_equal(figure.data[0].z, values)
    assert figure.layout.coloraxis.cmin == -figure.layout.coloraxis.cmax == -8
    assert token_rows(["a"], ["t"], np.zeros((1, 1)), title="", signed=False, form=".2f").layout.coloraxis.cmin == 0


def test_the_confusion_map_shows_shares_of_rows_and_writes_counts_of_few_classes() -> None:
    counts = np.array([[8, 2], [0, 0]])
    [drawn] = confusion_map(("<b>a</b>", "b"), counts).data
    np.testing.assert_allclose(drawn.z, np.array([[0.8, 0.2], [0.0, 0.0]]), atol=1e-7)
    assert np.asarray(drawn.text).tolist() == [["8", "2"], ["0", "0"]] and "<b>" not in drawn.x[0]
    [zoomed] = confusion_map(("a", "b"), counts, support=(20, 5)).data
    np.testing.assert_allclose(zoomed.z, np.array([[0.4, 0.1], [0.0, 0.0]]), atol=1e-7)
    names = [f"{'what can i ask you about '}{n}" for n in range(150)]
    many = confusion_map(names, np.eye(150, dtype=int))
    assert many.data[0].texttemplate is None and many.layout.height <= 1000
    assert len(set(many.data[0].x)) == 150, "classes whose names are cut alike stay apart"
