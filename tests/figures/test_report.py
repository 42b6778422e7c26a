"""Figures of reports."""

import numpy as np

from txcls.figures import confusion_map, group_bars, reliability_diagram


def test_the_confusion_map_shows_shares_of_rows_and_writes_counts_of_few_classes() -> None:
    counts = np.array([[8, 2], [0, 0]])
    (drawn,) = confusion_map(("a", "b"), counts).data
    np.testing.assert_allclose(drawn.z, np.array([[0.8, 0.2], [0.0, 0.0]]), atol=1e-7)
    assert np.asarray(drawn.text).tolist() == [["8", "2"], ["0", "0"]]
    (zoomed,) = confusion_map(("a", "b"), counts, support=(20, 5)).data
    np.testing.assert_allclose(zoomed.z, np.array([[0.4, 0.1], [0.0, 0.0]]), atol=1e-7)
    many = confusion_map([f"class {n}" for n in range(150)], np.eye(150, dtype=int))
    assert many.data[0].texttemplate is None and many.layout.height <= 1000
    assert len(set(many.data[0].x)) == 150


def test_classes_whose_names_are_cut_alike_stay_apart() -> None:
    names = [f"{'what can i ask you about '}{n}" for n in range(30)]
    assert len(set(confusion_map(names, np.eye(30, dtype=int)).data[0].x)) == 30


def test_markup_in_class_names_is_escaped() -> None:
    figure = confusion_map(("<b>x</b>", "y"), np.eye(2, dtype=int))
    assert "<b>" not in figure.data[0].x[0]
    assert "<b>" not in group_bars(("<b>x</b>",), (0.5,), (10,), axis_title="tokens").data[0].customdata[0][0]


def test_the_reliability_diagram_leaves_out_empty_bins() -> None:
    bins = [
        {"low": 0.0, "high": 0.5, "n": 0, "confidence": 0.0, "accuracy": 0.0},
        {"low": 0.5, "high": 1.0, "n": 4, "confidence": 0.9, "accuracy": 0.75},
    ]
    shares, _, line = reliability_diagram(bins).data
    assert list(line.x) == [0.9] and list(line.y) == [0.75] and list(shares.y) == [1.0]


def test_groups_have_their_name_above_their_bar_and_their_accuracy_beside_it() -> None:
    figure = group_bars(("short", "long"), (0.5, 1.0), (10, 20), axis_title="tokens")
    (bars,) = figure.data
    assert list(bars.text) == ["50.0 %", "100.0 %"] and list(bars.x) == [0.5, 1.0]
    assert [list(one) for one in bars.customdata] == [["short", 10], ["long", 20]]
    assert [one.text for one in figure.layout.annotations] == ["short", "long"]
    above = [one.y for one in figure.layout.annotations]
    assert all(name < bar for name, bar in zip(above, bars.y, strict=True)), "rows are counted from the top"
