import re

import numpy as np
import pytest

from txcls.figures import (
    attention_grid,
    choose_arcs,
    compared_bars,
    compared_effects,
    confusion_map,
    probability_bars,
    query_key_bars,
    reliability_diagram,
)
from txcls.text.formatting import with_sign


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


def test_the_strongest_arcs_are_drawn() -> None:
    weights = pattern(8)
    arcs = choose_arcs(weights, min_weight=0.2)
    off_diagonal = weights - np.diag(np.diag(weights))
    assert len(arcs.weights) == (off_diagonal >= 0.2).sum()
    assert arcs.share == pytest.approx((arcs.weights.sum() + np.trace(weights)) / 8, abs=1e-5)
    assert list(arcs.weights) == sorted(arcs.weights, reverse=True)
    assert len(choose_arcs(weights, min_weight=0.0, max_arcs=5).weights) == 5
    everything = choose_arcs(weights, min_weight=0.0, max_arcs=1000)
    assert everything.share == pytest.approx(1.0) and len(everything.weights) == 8 * 7
    of_one_query = choose_arcs(weights, query=3, min_weight=0.0)
    assert set(of_one_query.queries) == {3}


def test_the_confusion_map_shows_shares_of_rows_and_writes_counts_of_few_classes() -> None:
    counts = np.array([[8, 2], [0, 0]])
    figure = confusion_map(("<b>a</b>", "b"), counts)
    [heat_map] = figure.data
    assert figure.layout.coloraxis.colorbar.title.text == "share of true class"
    np.testing.assert_allclose(heat_map.z, np.array([[0.8, 0.2], [0.0, 0.0]]), atol=1e-7)
    assert np.asarray(heat_map.text).tolist() == [["8", "2"], ["0", "0"]] and "<b>" not in heat_map.x[0]
    [zoomed] = confusion_map(("a", "b"), counts, support=(20, 5)).data
    np.testing.assert_allclose(zoomed.z, np.array([[0.4, 0.1], [0.0, 0.0]]), atol=1e-7)
    names = [f"{'what can i ask you about '}{n}" for n in range(150)]
    many = confusion_map(names, np.eye(150, dtype=int))
    assert confusion_map(names[:20], np.eye(20, dtype=int)).layout.yaxis.dtick == 1, "each class has its name"
    assert many.data[0].texttemplate is None and many.layout.height <= 1000
    assert len(set(many.data[0].x)) == 150, "classes whose names are cut alike stay apart"


COLOURS = ("#111111", "#222222")


def test_bars_are_ranked_on_a_fixed_scale_with_an_other_bar() -> None:
    figure = probability_bars(["Sports", "World"], [0.7, 0.2], colours=COLOURS, other=(2, 0.1))
    [bars] = figure.data
    assert list(bars.x) == [0.7, 0.2, 0.1]
    assert list(bars.text) == ["70.0\u00a0%", "20.0\u00a0%", "10.0\u00a0%"]
    assert "2 others" in bars.customdata[2]
    assert tuple(figure.layout.xaxis.range) == (0, 1)
    assert tuple(figure.layout.yaxis.range) == (2.5, -0.5)  # the best on top
    changed = probability_bars(["Sports", "World"], [1.0, 0.0], colours=COLOURS, other=(2, 0.0))
    assert changed.layout.height == figure.layout.height, "a page does not jump when probabilities change"


def test_compared_bars_keep_the_order_of_before_and_never_round_to_certainty() -> None:
    figure = compared_bars(
        ["a", "b", "c<b>", "d"], [0.7, 0.2, 0.1, 0.0], [0.0001, 0.3, 0.6999, 0.0], n_rows=3, names_above=True
    )
    before, after = figure.data
    assert list(before.x) == [0.7, 0.2, 0.1] and list(after.x) == [0.0001, 0.3, 0.6999]
    assert after.text[0] == "&lt;\u00a00.1\u00a0%" and tuple(figure.layout.xaxis.range) == (0, 1)
    assert isinstance(after.marker.color, str), "the key has the colour of all bars"
    assert [note.text.strip() for note in figure.layout.annotations] == ["a", "b", "c&lt;b&gt;"]


def test_the_reliability_diagram_leaves_out_empty_bins_and_dots_of_few_rows() -> None:
    bins = [
        {"low": 0.0, "high": 0.5, "n": 0, "confidence": 0.0, "accuracy": 0.0},
        {"low": 0.5, "high": 0.8, "n": 10, "confidence": 0.6, "accuracy": 0.9},
        {"low": 0.8, "high": 1.0, "n": 30, "confidence": 0.9, "accuracy": 0.75},
    ]
    shares, _, line = reliability_diagram(bins).data
    assert list(line.x) == [0.9] and list(line.y) == [0.75] and list(shares.y) == [0.25, 0.75]


@pytest.mark.parametrize("value, text", [(-0.123, "−0.12"), (0.5, "+0.50"), (-0.001, "0.00"), (0.0, "0.00")])
def test_numbers_with_signs_have_a_true_minus_also_under_the_pointer(value: float, text: str) -> None:
    assert with_sign(value, 2) == text
    values = np.array([value])
    effects = compared_effects(["w"], values / 100, values / 100, class_name="c").data[0]
    dimensions = query_key_bars(values).data[0]
    assert (effects.customdata[0], dimensions.customdata[0]) == (text, with_sign(value, 3))
    for trace in (effects, dimensions):  # plotly's own formats write a hyphen
        assert not re.search(r"%\{[xyz]:[+.]", trace.hovertemplate)
