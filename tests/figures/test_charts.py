"""Heat maps and arcs show the numbers they are given, on fixed scales."""

import numpy as np
import pytest

from txcls.figures import (
    attention_grid,
    choose_arcs,
    confusion_map,
)


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
