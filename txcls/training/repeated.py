"""Fit a model several times from the same initial weights, and average the weights.

If runs start from the same pre-trained weights, the mean of their weights usually makes fewer errors than any one run,
at the inference cost of a single model (Wortsman et al. 2022, "Model soups"). The runs differ in the order of the rows
and in dropout.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from txcls.checkpoint.schema import HistoryRow
from txcls.config import TrainConfig
from txcls.data.batches import TokenisedTexts
from txcls.errors import TrainingError
from txcls.model import Encoder
from txcls.runtime.files import replacing
from txcls.training.distributed import current_processes
from txcls.training.loop import FitResult, Progress, fit
from txcls.training.run_folder import runs_file

MIN_TIME_LEFT = 0.7
"""A run is started only if at least this fraction of the earlier runs' mean time is left."""
SEED_STEP = 1000
"""Difference between the seeds of consecutive runs."""


@dataclass
class _FinishedRuns:
    """The number of finished runs, the sum of their weights, and the history of the first run."""

    runs: int = 0
    weights: dict[str, Tensor] = field(default_factory=dict)
    history: list[HistoryRow] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, weights: dict[str, Tensor], result: FitResult) -> None:
        """Add a finished run."""
        for name, tensor in weights.items():
            previous_sum = self.weights.get(name)
            self.weights[name] = tensor.detach().clone() if previous_sum is None else previous_sum + tensor
        self.history = self.history or list(result.history)
        self.runs, self.seconds = self.runs + 1, self.seconds + result.seconds

    def save(self, file: Path) -> None:
        """Save to `file`, so that resumed training does not repeat finished runs."""
        history = json.dumps([asdict(row) for row in self.history])
        try:
            with replacing(file, via=file.with_suffix(".tmp")) as temporary, temporary.open("wb") as target:
                torch.save({**vars(self), "history": history}, target)
        except (OSError, RuntimeError) as error:  # torch reports a full disk as RuntimeError
            raise TrainingError(f"cannot save finished runs to {file} ({error!s:.200}); free some space") from error

    @classmethod
    def load(cls, file: Path) -> "_FinishedRuns":
        """Load the saved runs; none if there is no file."""
        if not file.is_file():
            return cls()
        try:
            values: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
            return cls(**{**values, "history": [HistoryRow(**row) for row in json.loads(values["history"])]})
        except Exception as error:  # torch.load raises many exception types for a damaged file
            raise TrainingError(f"{file} is damaged ({error!s:.200}); start without --resume") from error


def fit_repeatedly(
    model: Encoder,
    train: TokenisedTexts,
    validation: TokenisedTexts,
    config: TrainConfig,
    *,
    state_path: Path | None = None,
    resume: bool = False,
    max_seconds: float | None = None,
    on_step: Callable[[Progress], None] | None = None,
    on_validation: Callable[[HistoryRow], None] | None = None,
    **options: Any,
) -> FitResult:
    """Call `fit` for each of `config.runs` runs, and leave `model` with the mean of the runs' weights.

    For arguments and errors see `fit`. The callbacks see all runs as one, with continuous step and epoch numbers. The
    returned history is the first run's; the seconds are the total, about `max_seconds` at most, since no run is started
    without enough time to finish it. If `should_stop` ends training early, the weights are the mean over the finished
    runs, or the first run's weights so far if none has finished.
    """

    def fit_once(config: TrainConfig, **more: Any) -> FitResult:
        return fit(model, train, validation, config, state_path=state_path, **options, **more)

    if config.runs == 1:
        return fit_once(config, resume=resume, on_step=on_step, on_validation=on_validation, max_seconds=max_seconds)
    file = None if state_path is None or current_processes().rank else runs_file(state_path)
    finished = _FinishedRuns.load(runs_file(state_path)) if resume and state_path is not None else _FinishedRuns()
    if file is not None and not resume:
        file.unlink(missing_ok=True)
    initial = deepcopy(model.state_dict())
    is_stopped, callbacks = False, _Callbacks(on_step, on_validation, config.runs)
    while finished.runs < config.runs and not is_stopped:
        left = None if max_seconds is None else max_seconds - finished.seconds
        if left is not None and finished.runs and left < MIN_TIME_LEFT * finished.seconds / finished.runs:
            break
        model.load_state_dict(initial)
        callbacks.runs_before = finished.runs
        run_config = config.model_copy(update={"seed": config.seed + SEED_STEP * finished.runs})
        result = fit_once(
            run_config,
            resume=resume and _has_state(state_path, run_config),
            on_step=callbacks.on_step,
            on_validation=callbacks.on_validation,
            max_seconds=left,
        )
        is_stopped = result.stopped_early and (left is None or result.seconds < left)
        if not is_stopped or not finished.runs:
            finished.add(model.state_dict(), result)
        if file is not None and state_path is not None and finished.runs < config.runs:
            finished.save(file)
            state_path.unlink(missing_ok=True)
    model.load_state_dict({name: tensor / finished.runs for name, tensor in finished.weights.items()})
    model.eval()
    best = [row for row in finished.history if row.best][-1]
    return FitResult(tuple(finished.history), best, finished.seconds, is_stopped)


def _has_state(state_path: Path | None, config: TrainConfig) -> bool:
    """Whether there is a saved state of this run; a state with another run's seed is left over from a finished run."""
    if state_path is None or not state_path.is_file():
        return False
    try:
        state: dict[str, Any] = torch.load(state_path, map_location="cpu", weights_only=True)
        seed: int = json.loads(state["config"])["seed"]
    except Exception:  # noqa: BLE001  # torch.load raises many types; `fit` reports what is wrong with the file
        return True
    return seed == config.seed or (seed - config.seed) % SEED_STEP != 0


class _Callbacks:
    """The caller's callbacks, with steps and epochs counted over all runs."""

    def __init__(
        self,
        on_step: Callable[[Progress], None] | None,
        on_validation: Callable[[HistoryRow], None] | None,
        runs: int,
    ) -> None:
        self._on_step, self._on_validation, self.runs = on_step, on_validation, runs
        self.runs_before = 0
        self.steps, self.epochs = 0, 0  # per run; known after the first step
        self.step_seconds = 0.0

    def on_step(self, progress: Progress) -> None:
        """Report a step of the current run."""
        self.steps, self.epochs = progress.total_steps, progress.epochs
        if self._on_step is None:
            return
        if steps_left := progress.total_steps - progress.step:
            self.step_seconds = progress.seconds_left / steps_left
        later_steps = (self.runs - 1 - self.runs_before) * self.steps
        self._on_step(
            replace(
                progress,
                epoch=progress.epoch + self.runs_before * self.epochs,
                epochs=self.epochs * self.runs,
                step=progress.step + self.runs_before * self.steps,
                total_steps=self.steps * self.runs,
                seconds_left=progress.seconds_left + self.step_seconds * later_steps,
            )
        )

    def on_validation(self, row: HistoryRow) -> None:
        """Report a validation of the current run."""
        if self._on_validation is not None:
            epoch, step = row.epoch + self.runs_before * self.epochs, row.step + self.runs_before * self.steps
            self._on_validation(replace(row, epoch=epoch, step=step))
