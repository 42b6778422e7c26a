"""Carry out a plan: fit the linear baseline, train, compare both on the test rows, save."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.comparison import Comparison
from txcls.checkpoint.schema import HistoryRow
from txcls.data.batches import TokenisedTexts
from txcls.data.from_python import dataset_from_rows
from txcls.data.hashes import repeats
from txcls.errors import DataError
from txcls.evaluation.baseline import LinearBaseline, fit_linear_baseline
from txcls.evaluation.compare_with_baseline import compare, majority_predictions
from txcls.evaluation.evaluate import Evaluation, measure, with_evaluation
from txcls.evaluation.learning_curve import LearningCurve, linear_learning_curve
from txcls.evaluation.predict_logits import predict_logits
from txcls.model import TextClassifier
from txcls.training.auto.choose_settings import MINUTES_CHOICES, fits, minutes_for, minutes_needed
from txcls.training.auto.plan import MIN_LEFT, TrainingPlan, overrun, write_plan
from txcls.training.loop import Progress
from txcls.training.run_folder import check_writable, is_interrupted, plan_file, refuse_saved_state
from txcls.training.speed import Speed, using_threads
from txcls.training.supervised import train

MIN_SECONDS = 10.0
"""Training may always take this long, however short the budget is."""
COMPLETE = 0.8
"""With a smaller share of the planned steps, a longer run is offered."""
MAX_DELAY = 5.0
"""On a busy machine, up to this many times the planned time is reserved for measuring and saving."""
Stage = Literal["prepare", "learn", "compare", "save"]
"""Fitting the linear baseline and tokenising; training; measuring on the test rows; saving."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Progress of a run; `share` and the estimated `seconds_left` refer to the whole run.

    In stages without steps, epochs and steps are 0, and the metrics are None.
    """

    stage: Stage
    message: str
    share: float
    seconds_left: float
    epoch: int = 0
    epochs: int = 0
    step: int = 0
    steps: int = 0
    loss: float | None = None
    accuracy: float | None = None
    tokens_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class LongerRun:
    """A longer run with the same rows, for which all rows or planned steps were too many.

    Attributes:
        minutes, speed: how long `missed` takes at the speed of the shorter run, and the speed to plan for.
        missed: "all rows", "all planned steps" or "all rows and planned steps".
        reason: why they were missed, as a sentence.
    """

    minutes: int
    speed: Speed
    missed: str
    reason: str


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """The classifier and its comparison with the linear baseline.

    Attributes:
        checkpoint: with "test" and "comparison" in its metrics.
        linear_predictions, predictions: those of the linear baseline and of the Transformer for the test rows, (M,).
        stopped_early: whether `should_stop` ended training.
        done: how much was trained, why it ended early if it did, and whether the budget was exceeded, in sentences.
        baseline: the fitted linear baseline.
        curve: the linear baseline's learning curve, if asked for and there are enough rows.
        longer: the run to offer if rows were left out, or if less than `COMPLETE` of the planned steps were made.
    """

    checkpoint: Checkpoint
    comparison: Comparison
    linear_predictions: NDArray[np.int64]
    predictions: NDArray[np.int64]
    seconds: float
    stopped_early: bool
    done: str
    baseline: LinearBaseline
    curve: LearningCurve | None = None
    longer: LongerRun | None = None

    @property
    def steps(self) -> tuple[int, int]:
        """Number of optimiser steps made, and planned; fewer are made if the time is up."""
        assert self.comparison.steps is not None  # `_compare_on_test_rows` stores them
        return self.comparison.steps


def run_plan(
    plan: TrainingPlan,
    *,
    out: Path | None,
    on_progress: Callable[[RunProgress], None] | None = None,
    on_epoch: Callable[[HistoryRow], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    command: str = "",
    learning_curve: bool = False,
) -> TrainingResult:
    """Fit the linear baseline, train as planned, compare both on the test rows, and save.

    Training gets the rest of the budget after planning and the baseline, less the time to measure and save: the planned
    time, or more if the machine is so busy that the baseline took longer than planned.

    After Ctrl-C or SIGTERM, the state is saved next to `out`, and `resume` continues from it with the same plan.
    `should_stop` ends training early instead; the weights so far are measured and saved.

    Args:
        plan: from `plan_training`; to resume a run, from `plan_training(…, resume=out)`.
        out: the checkpoint folder to write; if None, the checkpoint is only returned.
        on_progress: called after each step and at each stage.
        on_epoch: called after each validation.
        should_stop: called after each step.
        resume: continue an interrupted run of the same plan.
        overwrite: discard the saved state of an interrupted run.
        command: the command line, for the model card.
        learning_curve: also fit the linear baseline to subsets of the rows, within the same budget.

    Raises:
        TrainingError, TrainingInterruptedError, CheckpointError: as for `txcls.training.train`.
    """
    if out is not None:
        check_writable(out)
        refuse_saved_state(out, resume=resume, overwrite=overwrite)
        if not resume:
            write_plan(plan, out)
    reporter, started = _Reporter(plan, on_progress), time.monotonic()
    reporter.stage("prepare", 0.0, "fitting the linear baseline")
    is_stopped = False

    def stop() -> bool:
        nonlocal is_stopped
        is_stopped = is_stopped or (should_stop is not None and should_stop())
        return is_stopped

    try:
        with using_threads(plan.speed.of(one_layer=plan.recipe.one_layer).threads):
            linear, linear_seconds = _fit_linear(plan)
            curve = None
            if learning_curve and not isinstance(linear, Exception):
                reporter.stage("prepare", reporter.share, "fitting the linear baseline to subsets of the rows")
                with suppress(DataError):  # too few rows
                    curve = linear_learning_curve(
                        plan.splits.fitted, plan.splits.test, predictions=linear[1], seed=plan.config.train.seed
                    )
            reporter.measuring *= float(np.clip(linear_seconds / plan.recipe.baseline, 1.0, MAX_DELAY))
            reporter.stage("prepare", reporter.share, "turning texts into tokens")
            checkpoint = train_as_planned(
                plan,
                started=started - plan.seconds,
                after=reporter.measuring,
                out=out,
                command=command,
                resume=resume,
                overwrite=overwrite,
                on_step=reporter.step,
                on_validation=on_epoch,
                should_stop=stop,
            )
            reporter.stage("compare", reporter.share, "comparing with the linear baseline on the test rows")
            if isinstance(linear, Exception):
                raise linear
            result = _compare_on_test_rows(plan, checkpoint, *linear, linear_seconds=linear_seconds)
    finally:
        if out is not None and not is_interrupted(out):  # nothing to resume
            plan_file(out).unlink(missing_ok=True)
            with suppress(OSError):  # not empty, or already removed
                plan_file(out).parent.rmdir()
    if out is not None:
        reporter.stage("save", reporter.share, "saving")
        save_checkpoint(result.checkpoint)
    reporter.stage("save", 1.0, "done")
    seconds = plan.seconds + time.monotonic() - reporter.started
    reason = ""
    if result.steps[0] < result.steps[1]:
        reason = f"; ended early {'on request' if is_stopped else 'because the time was up'}"
    done = f"{result.done}{reason}.{overrun(plan.recipe, plan.minutes, seconds=seconds)}"
    longer = None if is_stopped else _longer_run(plan, result, seconds)
    return replace(result, seconds=seconds, stopped_early=is_stopped, done=done, curve=curve, longer=longer)


def _longer_run(plan: TrainingPlan, result: TrainingResult, seconds: float) -> LongerRun | None:
    """The run in which all rows are used and all planned steps made; None if this was one, or is the longest possible.

    It has more minutes than this run had, even if this one ended just before its time was up.
    """
    made, planned = result.steps
    misses_rows, misses_steps = plan.recipe.rows < plan.inputs.n, made < COMPLETE * planned
    longer_budgets = [n for n in MINUTES_CHOICES if n > plan.minutes]
    if not (misses_rows or misses_steps) or not longer_budgets:
        return None
    spent = max(float(result.checkpoint.metrics["training"]["seconds"]), 1.0)
    whole = spent * planned / max(made, 1)
    slowdown = max(whole / plan.recipe.seconds, 1.0)
    minutes = minutes_for(seconds - spent + whole)
    if misses_rows:
        minutes = max(minutes, minutes_needed(plan.inputs.slowed(slowdown), all_rows=True))
    missed = ["rows"] * misses_rows + ["planned steps"] * misses_steps
    is_slow = misses_steps and fits(plan.recipe, plan.minutes)
    short = ["rows"] * misses_rows + ["planned steps"] * (misses_steps and not is_slow)
    reasons = [f"the time was too short for all {' and '.join(short)}"] if short else []
    reason = " and ".join([*reasons, *["the machine was slower than planned for"] * is_slow])
    return LongerRun(
        max(minutes, longer_budgets[0]),
        plan.speed.slowed(slowdown),
        f"all {' and '.join(missed)}",
        f"{reason[0].upper()}{reason[1:]}.",
    )


def train_as_planned(plan: TrainingPlan, *, started: float, after: float = 0.0, **options: Any) -> Checkpoint:
    """Train with a plan's settings, without a comparison; for `options` and errors see `train`.

    `started` is the start of the time budget (`time.monotonic`), `after` the seconds needed after training.
    """
    budget = 60 * plan.minutes
    left = max(started + budget - after - time.monotonic(), MIN_LEFT * budget, MIN_SECONDS)
    return train(
        plan.config,
        dataset=dataset_from_rows(plan.splits.training, plan.splits.validation, source=plan.config.title),
        init=plan.init,
        device="cpu",
        max_seconds=left,
        **{"out": None, **options},
    )


class _Reporter:
    """Reports the training loop's progress as progress of the whole run."""

    def __init__(self, plan: TrainingPlan, on_progress: Callable[[RunProgress], None] | None) -> None:
        self.recipe, self.on_progress = plan.recipe, on_progress
        self.measuring = plan.recipe.measuring  # seconds after training
        self.started = time.monotonic()
        self.end = self.started - plan.seconds + 60 * plan.minutes
        self.share = 0.0

    def stage(self, stage: Stage, share: float, message: str) -> None:
        """Report that a stage without steps begins."""
        self.share = max(self.share, share)
        if self.on_progress is not None:
            seconds = time.monotonic() - self.started
            to_prepare = self._within_budget(self.recipe.forecast - self.recipe.planning - seconds)
            left = {"prepare": to_prepare, "compare": self.measuring}.get(stage, 0.0)  # comparing is always completed
            self.on_progress(RunProgress(stage, message, self.share, left))

    def _within_budget(self, seconds: float) -> float:
        """Seconds left, at most until the end of the budget."""
        return max(min(seconds, self.end - time.monotonic()), 0.0)

    def step(self, progress: Progress) -> None:
        """Report a training step."""
        if self.on_progress is None:
            return
        left = self._within_budget(progress.seconds_left + self.measuring)
        seconds = time.monotonic() - self.started
        self.share = max(self.share, seconds / max(seconds + left, 1e-9))
        self.on_progress(
            RunProgress(
                "learn",
                "training",
                share=self.share,
                seconds_left=left,
                epoch=progress.epoch,
                epochs=progress.epochs,
                step=progress.step,
                steps=progress.total_steps,
                loss=progress.loss,
                accuracy=progress.accuracy,
                tokens_per_second=progress.tokens_per_second,
            )
        )


_FittedLinear = tuple[LinearBaseline, NDArray[np.int64]]
"""The linear baseline and its predictions for the test rows, (M,)."""


def _fit_linear(plan: TrainingPlan) -> tuple[_FittedLinear | Exception, float]:
    """The linear baseline and the seconds that it took; an error is returned, since it must not prevent training."""
    started = time.monotonic()
    try:
        rows = plan.splits.fitted
        baseline = fit_linear_baseline(rows.texts, rows.labels, seed=plan.config.train.seed)
        fitted: _FittedLinear | Exception = baseline, baseline.predict(plan.splits.test.texts)
    except Exception as error:  # noqa: BLE001  # raised after training
        fitted = error
    return fitted, time.monotonic() - started


def _compare_on_test_rows(
    plan: TrainingPlan,
    checkpoint: Checkpoint,
    baseline: LinearBaseline,
    linear: NDArray[np.int64],
    *,
    linear_seconds: float,
) -> TrainingResult:
    """Measure the checkpoint on the test rows, and compare it with the linear baseline."""
    test = plan.splits.test
    other_rows = plan.splits.fitted
    assert isinstance(checkpoint.model, TextClassifier)
    texts = TokenisedTexts.encode(checkpoint.tokenizer, test)
    logits = predict_logits(checkpoint.model, texts).numpy()  # M C
    predictions = logits.argmax(axis=1)
    metrics = measure(logits, texts, checkpoint)
    comparison = compare(
        truth=test.labels,
        majority=majority_predictions(plan.splits.training.labels, len(test)),
        linear=linear,
        transformer=predictions,
        baseline=baseline,
        seconds={"linear": linear_seconds, "transformer": float(checkpoint.metrics["training"]["seconds"])},
        is_repeated=repeats(test.texts, other_rows.texts),
        n_unseen=plan.splits.n_unseen,
        steps=(checkpoint.metrics["training"]["steps"], plan.steps),
    )
    checkpoint = with_evaluation(checkpoint, split="test", evaluation=Evaluation(metrics))
    checkpoint = checkpoint.with_metrics(comparison=comparison.to_dict())
    left_out = f"; {n:,} further rows were left out" if (n := len(plan.splits.unused)) else ""
    return TrainingResult(
        checkpoint,
        comparison,
        linear,
        predictions,
        0.0,
        stopped_early=False,
        done=f"Done: {checkpoint.metrics['training']['done']}{left_out}",
        baseline=baseline,
    )
