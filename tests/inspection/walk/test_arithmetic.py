"""The arithmetic of one number, written out."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from txcls.inspection.walk.arithmetic import dot_product, number, softmax_entry


def test_a_sum_is_written_with_its_real_numbers() -> None:
    made = dot_product(
        "s", "q k", np.array([1.5, -2.0]), np.array([2.0, 0.25]), headers=("q", "k"), labels=("0", "1"), divisor=2.0
    )
    assert made.value == pytest.approx((1.5 * 2.0 - 2.0 * 0.25) / 2.0)
    assert made.lines[1] == r"&= \frac{1.5000 \cdot 2.0000 + (-2.0000) \cdot 0.2500}{2.0000}"
    assert made.lines[-1] == "&= 1.2500"


def test_a_softmax_entry_agrees_with_torch_and_survives_huge_scores() -> None:
    scores = np.array([3.0, -math.inf, 1000.0, 999.0])
    expected = F.softmax(torch.from_numpy(scores), dim=0).numpy()
    for place in range(4):
        made = softmax_entry("P", scores, place, entry="", each="", labels="abcd")
        assert made.value == pytest.approx(expected[place], abs=1e-12)
        assert made.terms is not None
        np.testing.assert_allclose(made.terms[:, -1], expected, atol=1e-12)


def test_numbers_are_printed_with_four_decimals_or_as_powers_of_ten() -> None:
    assert [number(value) for value in (0.0, 1.23456, -0.00012, -math.inf)] == [
        "0.0000",
        "1.2346",
        "-0.0001",
        r"-\infty",
    ]
    assert number(1.23e-7) == r"1.2 \cdot 10^{-7}"
