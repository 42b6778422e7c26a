"""Runs from the same initial weights: the mean of their weights, whether or not something comes between."""

import os
import signal
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.training.test_loop import TRAIN, VALIDATION, config, model
from txcls.config import TrainConfig
from txcls.errors import ConfigError, TrainingError
from txcls.training import FitResult, HistoryRow, Progress, TrainingInterruptedError, fit
from txcls.training.objectives import Classify
from txcls.training.repeated import SEEDS_APART, fit_repeatedly
from txcls.training.run_folder import runs_file

RUNS = 3


def settings(**changes: object) -> TrainConfig:
    return config(epochs=2, monitor="last", **changes)


def fitted(state: Path | None = None, **changes: object) -> tuple[dict[str, Tensor], FitResult]:
    """Weights and result of three runs."""
    own, chosen = model(), settings(runs=RUNS)
    options: dict[str, object] = {
        "state_path": state,
        "resume": False,
        "on_step": None,
        "on_validation": None,
        "max_steps": None,
        "should_stop": None,
        "device": "cpu",
    }
    objective = Classify.of(TRAIN, n_classes=own.head.out_features, config=chosen)
    result = fit_repeatedly(own, TRAIN, VALIDATION, chosen, objective=objective, **{**options, **changes})  # type: ignore[arg-type]
    return own.state_dict(), result


def single(number: int) -> dict[str, Tensor]:
    own = model()
    fit(own, TRAIN, VALIDATION, settings(runs=RUNS, seed=settings().seed + SEEDS_APART * number))
    return own.state_dict()


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, other[name], rtol=1e-5, atol=1e-6, msg=name)


def test_the_weights_are_the_mean_of_runs_that_differ() -> None:
    weights, result = fitted()
    runs = [single(number) for number in range(RUNS)]
    assert not torch.equal(runs[0]["head.weight"], runs[1]["head.weight"])
    same(weights, {name: sum(run[name] for run in runs) / RUNS for name in weights})  # type: ignore[misc]
    assert len(result.history) == 2 and not result.stopped_early


def test_progress_and_curves_count_on_over_all_runs_and_the_history_is_of_the_first() -> None:
    steps: list[Progress] = []
    rows: list[HistoryRow] = []
    _, result = fitted(on_step=steps.append, on_validation=rows.append)
    assert [row.epoch for row in result.history] == [1, 2]
    total = steps[-1].total_steps
    assert [one.step for one in steps] == list(range(1, total + 1)) and steps[-1].seconds_left == 0
    assert (steps[-1].epoch, steps[-1].epochs) == (2 * RUNS, 2 * RUNS)
    ends = [steps[total * n // RUNS - 1] for n in range(1, RUNS)]
    assert all(one.seconds_left > 0 for one in ends), "at the end of a run there are others to come"
    assert [row.epoch for row in rows] == list(range(1, 2 * RUNS + 1))
    assert [row.step for row in rows] == [total * n // (2 * RUNS) for n in range(1, 2 * RUNS + 1)]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_interrupted_runs_go_on_where_they_were(tmp_path: Path, share: float) -> None:
    state = tmp_path / "state.pt"

    def interrupt(progress: Progress) -> None:
        if progress.step == round(share * progress.total_steps):
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(TrainingInterruptedError):
        fitted(state, on_step=interrupt)
    same(fitted(state, resume=True)[0], fitted()[0])


def test_a_kill_between_two_runs_repeats_neither(tmp_path: Path) -> None:
    state = tmp_path / "state.pt"

    def kill(progress: Progress) -> None:
        if progress.step == progress.total_steps // RUNS + 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(state, on_step=kill)
    assert runs_file(state).is_file()
    stale = tmp_path / "stale.pt"
    fit(model(), TRAIN, VALIDATION, settings(runs=RUNS), state_path=stale)
    stale.replace(state)  # as if the process had been killed before the state of the finished run was removed
    same(fitted(state, resume=True)[0], fitted()[0])


def test_asked_to_stop_it_keeps_the_runs_that_are_finished() -> None:
    steps = 0
    total = 3 * RUNS

    def stop() -> bool:
        nonlocal steps
        steps += 1
        return steps > total

    total = len(range(0, len(TRAIN), settings().batch_size)) * 2
    weights, result = fitted(should_stop=stop)
    same(weights, single(0))
    assert result.stopped_early


def test_what_cannot_be_read_or_combined_is_said(tmp_path: Path) -> None:
    runs_file(tmp_path / "state.pt").write_bytes(b"nonsense")
    with pytest.raises(TrainingError, match=r"runs\.pt is damaged"):
        fitted(tmp_path / "state.pt", resume=True)
    with pytest.raises(ConfigError, match="snapshots: only of a single run"):
        TrainConfig.from_mapping({"runs": 2, "snapshots": 4}, source="test")
