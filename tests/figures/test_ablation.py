"""Figures of ablations."""

from txcls.figures import moved_bars


def test_moved_bars_keep_the_order_of_before_and_never_round_to_certainty() -> None:
    figure = moved_bars(["a", "b", "c<b>", "d"], [0.7, 0.2, 0.1, 0.0], [0.0001, 0.3, 0.6999, 0.0], n_rows=3)
    before, after = figure.data
    assert list(before.x) == [0.7, 0.2, 0.1] and list(after.x) == [0.0001, 0.3, 0.6999]
    assert after.text[0] == "&lt; 0.1 %" and tuple(figure.layout.xaxis.range) == (0, 1)
    assert [note.text for note in figure.layout.annotations] == ["a", "b", "c&lt;b&gt;"]
