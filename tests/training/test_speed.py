"""The number of processor threads is chosen by measuring, and the previous setting is restored."""

from copy import deepcopy

import pytest
import torch

from tests.training.test_loop import TRAIN, config, model
from txcls.config import load_preset
from txcls.training import speed, supervised, train


def measured(monkeypatch: pytest.MonkeyPatch, rates: dict[int, float]) -> speed.Speed:
    """The choice if training has these rates in tokens per second, keyed by number of threads."""
    monkeypatch.setattr(speed, "processors", lambda: max(rates))
    monkeypatch.setattr(speed, "_tokens_per_second", lambda *_: rates[torch.get_num_threads()])
    return speed.measure_speed(model(), TRAIN, config())


def test_more_threads_are_used_only_if_they_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, {1: 1000.0, 2: 55.0}).threads == 1
    assert measured(monkeypatch, {1: 1000.0, 2: 1050.0}).threads == 1
    found = measured(monkeypatch, {1: 1000.0, 2: 1700.0})
    assert (found.threads, found.tokens_per_second) == (2, 1700.0)
    assert found.sentence == "2 processor threads, as measured (tokens per second: 1,000 with 1, 1,700 with 2)."


def test_on_a_busy_machine_more_than_one_step_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step takes 0.7 s, of which this process gets a tenth, so that one second would cover a single step."""
    now = [0.0]

    class Clock:
        @staticmethod
        def perf_counter() -> float:
            now[0] += 0.7
            return now[0]

        @staticmethod
        def process_time() -> float:
            return now[0] / 10

    monkeypatch.setattr(speed, "time", Clock)
    monkeypatch.setattr(speed, "processors", lambda: 1)
    speed.measure_speed(deepcopy(model()), TRAIN, config())
    assert 0.7 * (1 + 3) < now[0] < 0.7 * (1 + 2) + speed.MAX_SECONDS


@pytest.mark.parametrize("variable, limit", [("1", 1), ("", 10_000), ("many", 10_000)])
def test_the_environment_limits_the_threads(monkeypatch: pytest.MonkeyPatch, variable: str, limit: int) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    assert 1 <= speed.processors() <= limit


def test_measuring_changes_nothing_but_the_threads_and_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_preset("sample").with_settings(["train.epochs=1", "model.n_layers=1"])
    plain = train(config, out=None, max_steps=5)
    monkeypatch.setattr(supervised, "processors", lambda: 2)
    monkeypatch.setattr(speed, "processors", lambda: 1)
    monkeypatch.setattr(speed, "SECONDS", 0.02)
    monkeypatch.setattr(speed, "MIN_WORK", 0.01)
    said: list[str] = []
    measured = train(config, out=None, max_steps=5, measure_threads=True, on_stage=said.append)
    assert any(message.startswith("1 processor thread, as measured") for message in said)
    for name, tensor in plain.model.state_dict().items():
        assert torch.equal(tensor, measured.model.state_dict()[name]), name
