"""Runs from the same initial weights: their weights are averaged, with or without an interruption."""

import itertools
import os
import signal
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.training.test_loop import TRAIN, VALIDATION, config, model
from txcls.config import TrainConfig
from txcls.training import FitResult, Progress, TrainingInterruptedError, fit
from txcls.training.objectives import Classify
from txcls.training.repeated import SEED_STEP, fit_repeatedly
from txcls.training.run_folder import runs_file

RUNS = 3


def settings(**changes: object) -> TrainConfig:
    return config(epochs=2, monitor="last", **changes)


def fitted(state: Path | None = None, **changes: object) -> tuple[dict[str, Tensor], FitResult]:
    """Weights and result of three runs."""
    network, config_of_runs = model(), settings(runs=RUNS)
    objective = Classify.of(TRAIN, n_classes=network.head.out_features, config=config_of_runs)
    result = fit_repeatedly(
        network, TRAIN, VALIDATION, config_of_runs, objective=objective, state_path=state, **changes
    )  # type: ignore[arg-type]
    return network.state_dict(), result


def single(number: int) -> dict[str, Tensor]:
    network = model()
    fit(network, TRAIN, VALIDATION, settings(runs=RUNS, seed=settings().seed + SEED_STEP * number))
    return network.state_dict()


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    torch.testing.assert_close(first, second, rtol=1e-5, atol=1e-6)


def test_the_weights_are_the_mean_of_runs_that_differ() -> None:
    weights, result = fitted()
    runs = [single(number) for number in range(RUNS)]
    assert not torch.equal(runs[0]["head.weight"], runs[1]["head.weight"])
    same(weights, {name: sum(run[name] for run in runs) / RUNS for name in weights})  # type: ignore[misc]
    assert len(result.history) == 2 and not result.stopped_early


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_interrupted_runs_are_resumed(tmp_path: Path, share: float) -> None:
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
    stale.replace(state)  # as if the process had been killed before it removed the finished run's state
    same(fitted(state, resume=True)[0], fitted()[0])


def test_a_stopped_training_keeps_the_finished_runs() -> None:
    steps = itertools.count(1)
    steps_of_a_run = 2 * len(range(0, len(TRAIN), settings().batch_size))
    weights, result = fitted(should_stop=lambda: next(steps) > steps_of_a_run)
    same(weights, single(0))
    assert result.stopped_early
