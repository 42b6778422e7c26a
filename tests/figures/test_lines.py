"""Lines and points show the numbers they are given."""

from txcls.figures import (
    reliability_diagram,
    training_curves,
)


def test_training_curves_leave_out_what_a_row_lacks() -> None:
    assert len(training_curves([]).data) == 4
    history = [{"step": 1, "train_loss": 0.5}, {"step": 2, "validation_accuracy": 0.9, "best": True}]
    saved = [trace for trace in training_curves(history).data if trace.name == "saved weights"]
    assert [list(trace.y) for trace in saved] == [[None], [0.9]]
    assert not any(trace.name == "saved weights" for trace in training_curves(history, runs=3).data)


def test_the_reliability_diagram_leaves_out_empty_bins() -> None:
    bins = [
        {"low": 0.0, "high": 0.5, "n": 0, "confidence": 0.0, "accuracy": 0.0},
        {"low": 0.5, "high": 1.0, "n": 4, "confidence": 0.9, "accuracy": 0.75},
    ]
    shares, _, line = reliability_diagram(bins).data
    assert list(line.x) == [0.9] and list(line.y) == [0.75] and list(shares.y) == [1.0]
