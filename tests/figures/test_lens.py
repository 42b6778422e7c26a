"""Figures of the class lens."""

import numpy as np
import pytest

from txcls.figures import contribution_bars, lens_lines, token_rows

ODD = ["<b>bold</b>", "the", "the", "x" * 300, "שלום"]


def test_lens_draws_the_classes_that_get_highest() -> None:
    probabilities = np.array([[0.1, 0.8, 0.1], [0.9, 0.05, 0.05]])
    figure = lens_lines(["embeddings", "layer 1: attention"], ["a", "b", "c"], probabilities, n_lines=2)
    assert [line.name for line in figure.data] == ["a", "b"]
    assert list(figure.data[0].y) == [0.1, 0.9] and list(figure.data[0].x)[1] == "layer 1<br>attention"


@pytest.mark.parametrize("n", [1, 5])
def test_rows_of_tokens_keep_repeated_and_odd_ones_apart(n: int) -> None:
    values = np.arange(2.0 * n).reshape(2, n) - 1
    figure = token_rows(["a", "b"], ODD[:n], values, title="logits", signed=True, form="+.2f")
    assert len(set(figure.data[0].x)) == n and np.array_equal(figure.data[0].z, values)
    assert figure.layout.coloraxis.cmin == -figure.layout.coloraxis.cmax
    assert token_rows(["a"], ["t"], np.zeros((1, 1)), title="", signed=False, form=".2f").layout.coloraxis.cmin == 0
    figure.to_json().encode()


def test_contribution_bars_show_each_number_and_no_minus_zero() -> None:
    bars, numbers = contribution_bars(["a", "b", "c"], np.array([1.2, -0.2, -1e-9]), title="logit").data
    assert list(bars.x) == [1.2, -0.2, -1e-9]
    assert [number.strip() for number in numbers.text] == ["+1.20", "−0.20", "+0.00"]
    assert list(numbers.x) == [1.2, 0, 0], "right of the bars, away from the names"
