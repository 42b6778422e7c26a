"""Figures of attributions."""

import json

import numpy as np

from txcls.figures import deletion_lines, overlap_map


def test_overlaps_stand_in_their_cells() -> None:
    figure = overlap_map(["one way", "other"], np.array([[1.0, 0.256], [np.nan, 1.0]]))
    assert [list(row) for row in figure.data[0].text] == [["1.00", "0.26"], ["–", "1.00"]]
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 1)
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
