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


@pytest.mark.parametrize("step_seconds", [0.9, 6.0])
def test_a_very_busy_moment_leaves_at_least_half_of_the_idle_speed(
    monkeypatch: pytest.MonkeyPatch, step_seconds: float
) -> None:
    """Each step of 100 tokens takes 0.1 s of CPU time, but the machine gives this process only a part of the time."""
    now, work = [0.0], [0.0]

    def step(trainer: Trainer, indices: object) -> None:
        now[0], work[0] = now[0] + step_seconds, work[0] + 0.1
        trainer.tokens += 100

    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    monkeypatch.setattr("time.process_time", lambda: work[0])
    monkeypatch.setattr(Trainer, "train_step", step)
    monkeypatch.setattr(speed, "processors", lambda: 1)
    choice = speed.measure_speed(model(), TRAIN, config())
    assert choice.tokens_per_second == pytest.approx(500.0)


def test_more_threads_are_used_only_if_they_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, {1: 1000.0, 2: 55.0}).threads == 1
    assert measured(monkeypatch, {1: 1000.0, 2: 1050.0}).threads == 1
    choice = measured(monkeypatch, {1: 1000.0, 2: 1700.0})
    assert choice.threads == 2 and choice.tokens_per_second == pytest.approx(1.2 * 1700.0)
