"""The number of processor threads is chosen by measuring, and the previous setting is restored."""

import pytest
import torch

from tests.training.test_loop import TRAIN, config, model
from txcls.training import speed
from txcls.training.loop import Trainer


def measured(monkeypatch: pytest.MonkeyPatch, rates: dict[int, float]) -> speed.Speed:
    """The choice if training has these rates in tokens per second, keyed by number of threads."""
    monkeypatch.setattr(speed, "processors", lambda: max(rates))
    monkeypatch.setattr(speed, "_tokens_per_second", lambda *_: (rates[n := torch.get_num_threads()], 1.2 * rates[n]))
    return speed.measure_speed(model(), TRAIN, config())


def test_training_is_planned_for_the_fastest_part_of_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program runs during the first of the three parts, in which every step takes five times as long."""
    now = [0.0]

    def step(trainer: Trainer, indices: object) -> None:
        now[0] += 0.5 if now[0] < 0.5 else 0.1
        trainer.tokens += 100

    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    monkeypatch.setattr("time.process_time", lambda: now[0])
    monkeypatch.setattr(Trainer, "train_step", step)
    mean, fastest = speed._tokens_per_second(model(), TRAIN, config())
    assert fastest == pytest.approx(1000.0) and mean < fastest


def test_more_threads_are_used_only_if_they_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, {1: 1000.0, 2: 55.0}).threads == 1
    assert measured(monkeypatch, {1: 1000.0, 2: 1050.0}).threads == 1
    choice = measured(monkeypatch, {1: 1000.0, 2: 1700.0})
    assert choice.threads == 2 and choice.tokens_per_second == pytest.approx(1.2 * 1700.0), "that of the fastest part"
    assert choice.sentence == "2 processor threads, as measured (tokens per second: 1,000 with 1, 1,700 with 2)."
