"""The number of processor threads is chosen by measuring, and the previous setting is restored."""

import pytest
import torch

from tests.training.test_loop import TRAIN, config, model
from txcls.training import speed


def measured(monkeypatch: pytest.MonkeyPatch, rates: dict[int, float]) -> speed.Speed:
    """The choice if training has these rates in tokens per second, keyed by number of threads."""
    monkeypatch.setattr(speed, "processors", lambda: max(rates))
    monkeypatch.setattr(speed, "_tokens_per_second", lambda *_: rates[torch.get_num_threads()])
    return speed.measure_speed(model(), TRAIN, config())


def test_more_threads_are_used_only_if_they_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, {1: 1000.0, 2: 55.0}).threads == 1
    assert measured(monkeypatch, {1: 1000.0, 2: 1050.0}).threads == 1
    choice = measured(monkeypatch, {1: 1000.0, 2: 1700.0})
    assert (choice.threads, choice.tokens_per_second) == (2, 1700.0)
    assert choice.sentence == "2 processor threads, as measured (tokens per second: 1,000 with 1, 1,700 with 2)."
