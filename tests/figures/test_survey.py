"""Figures of a table and of a training on it."""

from txcls.figures import class_counts, comparison_intervals, live_curves


def rows(*steps: int) -> list[dict[str, float]]:
    return [{"step": step, "loss": 1 / step, "accuracy": 1 - 1 / step} for step in steps]


def test_the_lines_of_two_runs_are_apart_and_a_line_stands_between_them() -> None:
    figure = live_curves(rows(1, 10, 11, 20, 21), rows(10, 20), steps=30, runs=3)
    training, validation = figure.data[0], figure.data[1]
    assert list(training.x) == [1, 10, None, 11, 20, None, 21] and list(validation.x) == [10, None, 20]
    assert {shape.x0 for shape in figure.layout.shapes} == {10, 20}


def test_one_run_is_one_line_and_none_is_a_legend() -> None:
    figure = live_curves(rows(1, 2, 30), [], steps=30)
    assert list(figure.data[0].x) == [1, 2, 30] and list(figure.data[1].x) == [None] and not figure.layout.shapes


def test_no_share_beyond_all_is_written_at_the_axis() -> None:
    for low in (0.2, 0.5, 0.8, 0.97):
        figure = comparison_intervals(
            [("guess", low, low - 0.01, low + 0.01), ("model", 0.99, 0.98, 1.0)], measure="share"
        )
        ticks = figure.layout.xaxis.tickvals
        assert 2 <= len(ticks) <= 7 and max(ticks) == 1


def test_counts_have_separators_at_the_axis_as_beside_the_bars() -> None:
    figure = class_counts({"a": 4825, "b": 747})
    assert figure.layout.xaxis.tickformat == ",d" and list(figure.data[0].text) == ["4,825", "747"]
