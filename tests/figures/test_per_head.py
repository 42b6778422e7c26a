"""Numbers per head as heat maps."""

import numpy as np

from txcls.figures import FEED_FORWARD, head_effects_map, head_values_map


def test_effects_show_points_with_sign_and_feed_forward_apart() -> None:
    figure = head_effects_map(
        np.array([[0.031, -0.2], [0.0, 1e-6]]), np.array([-0.5, 0.004]), title="points", quantity="It",
        badges={(0, 1): "uniform"},
    )  # fmt: skip
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
    assert [one.text for one in figure.layout.annotations if one.x == 1] == ["<b>uniform</b>"]
    assert "click" in marks.text[0]
    fixed = head_effects_map(np.zeros((1, 1)), np.zeros(1), title="", quantity="It", clickable=False)
    assert "click" not in fixed.data[1].text[0] and fixed.layout.coloraxis.cmax == 1


def test_colours_of_small_effects_are_the_same_for_most_texts() -> None:
    tops = {
        head_effects_map(np.array([[one]]), np.zeros(1), title="", quantity="").layout.coloraxis.cmax
        for one in (0.021, 0.03, -0.05)
    }
    assert tops == {5}


def test_head_values_map_runs_from_zero_to_its_top() -> None:
    figure = head_values_map(np.array([[0.5, 2.25]]), title="bits", quantity="entropy in bits:", top=3.0)
    assert list(figure.data[0].text[0]) == ["0.50", "2.25"] and "entropy in bits: 2.250" in figure.data[1].text[1]
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 3)
