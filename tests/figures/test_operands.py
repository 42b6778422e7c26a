"""The figure of a matrix beside its operands."""

import numpy as np
import pytest

from txcls.figures import operands_map

ROWS = [f"token{n}" for n in range(40)]
LEFT, RIGHT = np.arange(120.0).reshape(40, 3), np.ones((3, 5))


def drawn(chosen=(7, 2)):
    return operands_map(
        LEFT @ RIGHT, result="scores", operands=[("q", LEFT, "row"), ("k", RIGHT, "column")], rows=ROWS, chosen=chosen
    )


def maps(figure):
    return [trace for trace in figure.data if trace.type == "heatmap"]


def test_operands_share_the_axes_of_the_result():
    result, left, above = maps(drawn())
    assert (result.xaxis, result.yaxis) == ("x", "y") and left.yaxis == "y" and above.xaxis == "x"
    np.testing.assert_array_equal(result.z, (LEFT @ RIGHT).astype(np.float32))
    layout = drawn().layout
    assert layout.xaxis2.domain[1] < layout.xaxis.domain[0] and layout.yaxis.domain[1] < layout.yaxis2.domain[0]


def test_the_row_and_the_column_of_the_chosen_number_are_framed():
    frames = [trace for trace in drawn().data if trace.type == "scatter"][:3]
    around = [(min(frame.x), max(frame.x), min(frame.y), max(frame.y)) for frame in frames]
    assert around == [(1.5, 2.5, 6.5, 7.5), (-0.5, 2.5, 6.5, 7.5), (1.5, 2.5, -0.5, 2.5)]
    assert not [trace for trace in drawn(chosen=None).data if trace.type == "scatter"]


def test_an_operand_of_the_same_shape_has_one_number_framed():
    figure = operands_map(
        LEFT, result="sum", operands=[("x", LEFT, "cell"), ("y", LEFT, "cell")], rows=ROWS, chosen=(3, 1)
    )
    frames = [trace for trace in figure.data if trace.type == "scatter"][:3]
    assert {(min(frame.x), min(frame.y)) for frame in frames} == {(0.5, 2.5)}
    assert len({frame.xaxis for frame in frames}) == 3


@pytest.mark.parametrize("chosen", [0, 13, 39])
def test_few_rows_are_named_and_always_the_chosen_one(chosen):
    axis = drawn(chosen=(chosen, 0)).layout.yaxis
    assert len(axis.tickvals) <= 13 and f"token{chosen}" in axis.ticktext
    assert min(np.diff(axis.tickvals)) >= 3


@pytest.mark.parametrize("n_columns", [1, 2, 5, 16, 39, 64, 256, 1024])
def test_matrices_of_any_width_stand_side_by_side(n_columns):
    wide = np.ones((2, n_columns))
    layout = operands_map(LEFT[:2], result="sum", operands=[("x", wide, "row")] * 3, rows=ROWS[:2]).layout
    domains = [getattr(layout, f"xaxis{n}").domain for n in (2, 3, 4)] + [layout.xaxis.domain]
    assert np.all(np.diff([place for domain in domains for place in domain]) > 0)
    assert domains[0][0] == 0.0 and domains[-1][1] == pytest.approx(1.0)


def test_long_names_are_broken_into_lines_that_have_room_above_the_drawing():
    def names(name: str):
        layout = operands_map(LEFT, result=name, operands=[(name, LEFT, "cell"), (name, LEFT, "row")], rows=ROWS).layout
        return [note.text.removeprefix("<b>").removesuffix("</b>") for note in layout.annotations], layout.margin.t

    short, room = names("scores")
    assert short == ["scores"] * 3 and room >= 24
    long, more = names("hidden activations of the feed-forward network of this layer")
    assert all(title.count("<br>") == 1 and title.endswith(" …") for title in long) and more >= room + 24
