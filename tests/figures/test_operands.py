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


def test_the_row_and_the_column_of_the_chosen_number_are_framed():
    frames = [trace for trace in drawn().data if trace.type == "scatter"][:3]
    around = [(min(frame.x), max(frame.x), min(frame.y), max(frame.y)) for frame in frames]
    assert around == [(1.5, 2.5, 6.5, 7.5), (-0.5, 2.5, 6.5, 7.5), (1.5, 2.5, -0.5, 2.5)]
    assert not [trace for trace in drawn(chosen=None).data if trace.type == "scatter"]


@pytest.mark.parametrize("n_columns", [1, 2, 5, 16, 39, 64, 256, 1024])
def test_matrices_of_any_width_stand_side_by_side(n_columns):
    wide = np.ones((2, n_columns))
    layout = operands_map(LEFT[:2], result="sum", operands=[("x", wide, "row")] * 3, rows=ROWS[:2]).layout
    domains = [getattr(layout, f"xaxis{n}").domain for n in (2, 3, 4)] + [layout.xaxis.domain]
    assert np.all(np.diff([place for domain in domains for place in domain]) > 0)
    assert domains[0][0] == 0.0 and domains[-1][1] == pytest.approx(1.0)
