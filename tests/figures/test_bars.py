"""Bars show the numbers they are given, on fixed scales."""

import numpy as np
import pytest

from txcls.figures import (
    class_counts,
    compared_bars,
    contribution_bars,
    group_bars,
    length_histogram,
    number_bars,
    probability_bars,
    shuffle_bars,
    surprisal_bars,
    token_bars,
)
from txcls.figures.style import FRAME

COLOURS = ("#111111", "#222222")


def test_bars_are_ranked_on_a_fixed_scale_with_an_other_bar() -> None:
    figure = probability_bars(["Sports", "World"], [0.7, 0.2], colours=COLOURS, other=(2, 0.1))
    [bars] = figure.data
    assert list(bars.x) == [0.7, 0.2, 0.1]
    assert list(bars.text) == ["70.0 %", "20.0 %", "10.0 %"]
    assert "2 others" in bars.customdata[2]
    assert tuple(figure.layout.xaxis.range) == (0, 1)
    assert tuple(figure.layout.yaxis.range) == (2.5, -0.5)  # the best on top
    changed = probability_bars(["Sports", "World"], [1.0, 0.0], colours=COLOURS, other=(2, 0.0))
    assert changed.layout.height == figure.layout.height, "a page does not jump when probabilities change"


def test_long_names_stand_above_their_bars_in_full() -> None:
    names = ["what_can_i_ask_you_about_my_account", "transfer"]
    figure = probability_bars(names, [0.7, 0.2], colours=COLOURS, other=(148, 0.1), names_above=True)
    assert [note.text.strip() for note in figure.layout.annotations] == [*names, "148 others"]
    [bars] = figure.data
    for row, (bar, note) in enumerate(zip(bars.y, figure.layout.annotations, strict=True)):
        assert row - 0.5 < note.y < bar - bars.width / 2 < bar + bars.width / 2 < row + 0.5
    assert not figure.layout.yaxis.showticklabels
    assert probability_bars(names, [0.7, 0.2], colours=COLOURS).layout.yaxis.showticklabels


@pytest.mark.parametrize("names_above", [False, True])
def test_shuffle_bars_show_the_original_and_every_shuffle(names_above: bool) -> None:
    orders = np.array([[0.2, 0.6, 0.2], [0.5, 0.3, 0.2]])
    figure = shuffle_bars(["a", "b", "c"], [0.1, 0.7, 0.2], orders, names_above=names_above)
    bars, dots = figure.data
    assert list(bars.x) == [0.7, 0.2, 0.1] and dots.name == "2 shuffled orders"
    assert list(dots.x) == [0.6, 0.3, 0.2, 0.2, 0.2, 0.5]
    assert all(abs(y - bars.y[n // 2]) <= bars.width / 2 for n, y in enumerate(dots.y)), "each dot is on its bar"
    assert [note.text.strip() for note in figure.layout.annotations] == (["b", "c", "a"] if names_above else [])


def test_compared_bars_keep_the_order_of_before_and_never_round_to_certainty() -> None:
    figure = compared_bars(
        ["a", "b", "c<b>", "d"], [0.7, 0.2, 0.1, 0.0], [0.0001, 0.3, 0.6999, 0.0], n_rows=3, names_above=True
    )
    before, after = figure.data
    assert list(before.x) == [0.7, 0.2, 0.1] and list(after.x) == [0.0001, 0.3, 0.6999]
    assert after.text[0] == "&lt; 0.1 %" and tuple(figure.layout.xaxis.range) == (0, 1)
    assert [note.text.strip() for note in figure.layout.annotations] == ["a", "b", "c&lt;b&gt;"]


@pytest.mark.parametrize(
    "best, filtered, top", [(0.02, None, 0.1), (0.1, None, 0.1), (0.11, None, 0.25), (0.9, None, 1.0), (0.02, 0.4, 0.5)]
)
def test_the_scale_of_token_bars_ends_above_the_longest(best: float, filtered: float | None, top: float) -> None:
    drawn = None if filtered is None else [filtered, 0.0]
    figure = token_bars(["x", "y"], [best, 0.01], other=(5, 0.1), filtered=drawn)
    assert tuple(figure.layout.xaxis.range) == (0, top)


def test_surprisal_has_its_mean_and_a_gap_for_a_token_without_one() -> None:
    figure = surprisal_bars(np.array([np.nan, 3.0, 6.0]), ["<cls>", "the", "the"], mean=4.5)
    assert figure.layout.shapes[0].y0 == 4.5 and np.isnan(figure.data[0].y[0])
    assert not surprisal_bars(np.array([np.nan]), ["x"], mean=None).layout.shapes


def test_bars_of_numbers_rank_many_classes_and_keep_the_order_of_dimensions() -> None:
    values = np.array([0.5, -np.inf, 2.0, 1.0])
    [bars] = number_bars(values, names=["a", "b", "c", "d"], axis_title="class", chosen=0, ranked=True).data
    assert list(bars.customdata) == [2, 3, 0, 1] and list(bars.x[:3]) == [2.0, 1.0, 0.5] and np.isnan(bars.x[3])
    assert [colour == FRAME for colour in bars.marker.color] == [False, False, True, False]
    many = np.arange(150.0)
    [bars] = number_bars(many, names=[f"class {n}" for n in range(150)], axis_title="class", chosen=3, ranked=True).data
    assert list(bars.customdata) == [*range(149, 126, -1), 3], "the largest, and the chosen one"
    [bars] = number_bars(many, chosen=7).data
    assert list(bars.x) == list(range(150)) == list(bars.customdata) and list(bars.y) == many.tolist()


def test_contribution_bars_show_each_number_and_no_minus_zero() -> None:
    bars, numbers = contribution_bars(["a", "b", "c"], np.array([1.2, -0.2, -1e-9]), title="logit").data
    assert list(bars.x) == [1.2, -0.2, -1e-9]
    assert [number.strip() for number in numbers.text] == ["+1.20", "−0.20", "+0.00"]
    assert list(numbers.x) == [1.2, 0, 0], "right of the bars, away from the names"


def test_groups_have_their_name_above_their_bar_and_their_accuracy_beside_it() -> None:
    figure = group_bars(("short", "<b>long</b>"), (0.5, 1.0), (10, 20), axis_title="tokens")
    [bars] = figure.data
    assert list(bars.text) == ["50.0 %", "100.0 %"] and list(bars.x) == [0.5, 1.0]
    names = ["short", "&lt;b&gt;long&lt;/b&gt;"]
    assert [list(row) for row in bars.customdata] == [[names[0], 10], [names[1], 20]]
    assert [note.text for note in figure.layout.annotations] == names
    assert all(note.y < bar for note, bar in zip(figure.layout.annotations, bars.y, strict=True))


def test_ranked_tokens_have_bars_the_others_a_number_and_filtered_ones_a_mark() -> None:
    figure = token_bars(["the", "a"], [0.2, 0.1], other=(998, 0.7), filtered=[1.0, 0.0], true=1)
    plain, sampled = figure.data
    assert list(plain.x) == [0.2, 0.1] and list(plain.text) == ["20.0 %", "10.0 % ◀ in the text"]
    assert list(plain.marker.line.width) == [0, 4]
    assert figure.layout.annotations[0].text == "998 others: 70.0 % in total"
    assert list(sampled.x) == [1.0, 0.0] and list(sampled.text) == ["100.0 %", "filtered out"]
    gaps = np.array(sampled.y) - np.array(plain.y)
    assert (gaps >= (plain.width + sampled.width) / 2).all(), "they do not overlap"


def test_counts_have_separators_and_many_classes_share_a_bar() -> None:
    figure = class_counts({"a": 4825, "b": 747})
    assert figure.layout.xaxis.tickformat == ",d" and list(figure.data[0].text) == ["4,825", "747"]
    [bars] = class_counts({str(n): 30 - n for n in range(26)}).data
    assert list(bars.x[-2:]) == [7, 6 + 5] and bars.customdata[-1] == "2 other classes"


def test_the_longest_hundredth_of_texts_shares_the_last_bar_of_lengths() -> None:
    [bars] = length_histogram([(1, 50), (2, 49), (90, 1)]).data
    assert list(bars.y) == [50, 50] and list(bars.customdata) == ["1", "2 to 90"]
    assert not length_histogram([]).data[0].y.size
