"""Lines and points show the numbers they are given."""

import numpy as np

from txcls.figures import (
    comparison_intervals,
    deletion_lines,
    lens_lines,
    live_curves,
    reliability_diagram,
    training_curves,
)


def rows(*steps: int) -> list[dict[str, float]]:
    return [{"step": step, "loss": 1 / step, "accuracy": 1 - 1 / step} for step in steps]


def test_training_curves_leave_out_what_a_row_lacks() -> None:
    assert len(training_curves([]).data) == 4
    history = [{"step": 1, "train_loss": 0.5}, {"step": 2, "validation_accuracy": 0.9, "best": True}]
    saved = [trace for trace in training_curves(history).data if trace.name == "saved weights"]
    assert [list(trace.y) for trace in saved] == [[None], [0.9]]
    assert not any(trace.name == "saved weights" for trace in training_curves(history, runs=3).data)


def test_two_runs_have_separate_curves_and_a_dividing_line() -> None:
    figure = live_curves(rows(1, 10, 11, 20, 21), rows(10, 20), steps=30, runs=3)
    training, validation = figure.data[:2]
    assert list(training.x) == [1, 10, None, 11, 20, None, 21] and list(validation.x) == [10, None, 20]
    assert {shape.x0 for shape in figure.layout.shapes} == {10, 20}


def test_one_run_is_one_line_and_none_is_a_legend() -> None:
    figure = live_curves(rows(1, 2, 30), [], steps=30)
    assert list(figure.data[0].x) == [1, 2, 30] and list(figure.data[1].x) == [None] and not figure.layout.shapes


def test_the_reliability_diagram_leaves_out_empty_bins() -> None:
    bins = [
        {"low": 0.0, "high": 0.5, "n": 0, "confidence": 0.0, "accuracy": 0.0},
        {"low": 0.5, "high": 1.0, "n": 4, "confidence": 0.9, "accuracy": 0.75},
    ]
    shares, _, line = reliability_diagram(bins).data
    assert list(line.x) == [0.9] and list(line.y) == [0.75] and list(shares.y) == [1.0]


def test_deletion_lines_have_a_band_and_differ_in_colour_and_dash() -> None:
    shares = np.linspace(0, 1, 4)
    random = np.stack([np.ones(4), np.zeros(4)])
    figure = deletion_lines(list("abcde"), shares, [np.linspace(1, 0, 4)] * 5, random, winner="<b>")
    top, bottom, mean, *lines = figure.data
    assert list(top.y) == [1] * 4 and list(bottom.y) == [0] * 4 and list(mean.y) == [0.5] * 4
    assert len({line.line.color for line in lines}) == len({line.line.dash for line in lines}) == 5
    assert len({line.marker.symbol for line in lines}) == 5 and mean.mode == "lines", (
        "deleting at random has no markers"
    )
    assert "<b>" not in figure.layout.yaxis.title.text


def test_lens_draws_the_classes_that_get_highest() -> None:
    probabilities = np.array([[0.1, 0.8, 0.1], [0.9, 0.05, 0.05]])
    figure = lens_lines(["embeddings", "layer 1: attention"], ["a", "b", "c"], probabilities, n_lines=2)
    assert [line.name for line in figure.data] == ["a", "b"]
    assert list(figure.data[0].y) == [0.1, 0.9] and list(figure.data[0].x)[1] == "layer 1<br>attention"


def test_axis_labels_stop_at_100_percent() -> None:
    for low in (0.2, 0.5, 0.8, 0.97):
        intervals = [("guess", low, low - 0.01, low + 0.01), ("model", 0.99, 0.98, 1.0)]
        ticks = comparison_intervals(intervals, measure="share").layout.xaxis.tickvals
        assert 2 <= len(ticks) <= 7 and max(ticks) == 1
