"""Carry out a plan: train, compare with the linear baseline on the test rows, save."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.comparison import Comparison
from txcls.checkpoint.schema import HistoryRow
from txcls.data.batches import TokenisedTexts
from txcls.data.given import given_dataset
from txcls.evaluation.baseline import ClassIndices, compare, fit_linear_baseline, majority_answers
from txcls.evaluation.evaluate import evaluate_rows, predict_logits, with_comparison, with_evaluation
from txcls.model import TextClassifier
from txcls.training.auto.plan import TrainingPlan, write_plan
from txcls.training.loop import Progress
from txcls.training.run_folder import check_writable, is_interrupted, plan_file, refuse_saved_state
from txcls.training.speed import using_threads
from txcls.training.supervised import train

Stage = Literal["prepare", "learn", "compare", "save"]
"""Tokenising, learning the labels, fitting the linear baseline and measuring on the test rows, and saving."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is, after a step; `share` and `seconds_left` are of the whole run.

    Attributes:
        stage, message: the present stage, and a sentence about it.
        share: of the run that is done, from 0 to 1.
        seconds_left: forecast by the speed so far.
        epoch, epochs, step, steps: of this stage; 0 in stages without steps.
        loss, accuracy: over the last steps on training rows; None in stages without steps.
        tokens_per_second: of these steps; None likewise.
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


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """The classifier and how it compares.

    Attributes:
        checkpoint: the classifier; its metrics hold "test" and "comparison", its `path` the folder or None.
        comparison: with the majority guess and the linear baseline on the test rows.
        linear_answers: the linear baseline's class of each test row (M,), in the order of `plan.parts.test`.
        answers: the Transformer's (M,).
        seconds: from start to end.
        stopped_early: whether `should_stop` ended it.
    """

    checkpoint: Checkpoint
    comparison: Comparison
    linear_answers: NDArray[np.int64]
    answers: NDArray[np.int64]
    seconds: float
    stopped_early: bool


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
) -> TrainingResult:
    """Train as planned, compare with the linear baseline on the test rows, and save.

    Ctrl-C and SIGTERM save the state beside `out`, from which `resume` continues with the same plan; `should_stop` ends
    training early instead, and what has been learned so far is measured and saved.

    Args:
        plan: from `plan_training`; to resume, planned with `resume=out`.
        out: the checkpoint folder to write; None for none.
        on_progress: called after each step and at each stage.
        on_epoch: called after each validation.
        should_stop: asked after each step; once it is true, training ends with the weights so far.
        resume: continue an interrupted run of the same plan.
        overwrite: discard the saved state of an interrupted run.
        command: the command line for the model card.

    Raises:
        TrainingError, TrainingInterruptedError, CheckpointError: as `txcls.training.train`.
    """
    if out is not None:
        check_writable(out)
        refuse_saved_state(out, resume=resume, overwrite=overwrite)
        if not resume:
            write_plan(plan, out)
    reporter = _Reporter(plan, on_progress)
    reporter.stage("prepare", 0.0, "turning texts into tokens")
    is_stopped = False

    def stop() -> bool:
        nonlocal is_stopped
        is_stopped = is_stopped or (should_stop is not None and should_stop())
        return is_stopped

    try:
        with using_threads(plan.speed.threads):
            checkpoint = train(
                plan.config,
                out=out,
                dataset=given_dataset(plan.parts.training, plan.parts.validation, source=plan.config.title),
                init=plan.init,
                command=command,
                device="cpu",
                resume=resume,
                overwrite=overwrite,
                on_step=reporter.step,
                on_validation=on_epoch,
                should_stop=stop,
            )
            reporter.stage("compare", reporter.share, "comparing with the linear baseline on the test rows")
            result = _compare_on_test_rows(plan, checkpoint)
    finally:
        if out is not None and not is_interrupted(out):  # nothing to resume
            plan_file(out).unlink(missing_ok=True)
            with suppress(OSError):  # not empty, or gone already
                plan_file(out).parent.rmdir()
    if out is not None:
        reporter.stage("save", reporter.share, "saving")
        save_checkpoint(result.checkpoint)
    reporter.stage("save", 1.0, "done")
    return replace(result, seconds=time.monotonic() - reporter.started, stopped_early=is_stopped)


class _Reporter:
    """Turns the loop's progress into that of the whole run."""

    def __init__(self, plan: TrainingPlan, on_progress: Callable[[RunProgress], None] | None) -> None:
        self.recipe, self.on_progress = plan.recipe, on_progress
        self.started = time.monotonic()
        self.share = 0.0

    def stage(self, stage: Stage, share: float, message: str) -> None:
        """A stage without steps begins."""
        self.share = max(self.share, share)
        if self.on_progress is not None:
            left = {"prepare": self.recipe.forecast, "compare": self.recipe.overhead}.get(stage, 0.0)
            self.on_progress(RunProgress(stage, message, self.share, left))

    def step(self, progress: Progress) -> None:
        """A step of training is done."""
        if self.on_progress is None:
            return
        left = progress.seconds_left + self.recipe.overhead
        spent = time.monotonic() - self.started
        self.share = max(self.share, spent / max(spent + left, 1e-9))
        self.on_progress(
            RunProgress(
                "learn",
                "learning the labels",
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


def _compare_on_test_rows(plan: TrainingPlan, checkpoint: Checkpoint) -> TrainingResult:
    """The checkpoint with its figures on the test rows, beside the linear baseline's."""
    test = plan.parts.test
    known = (plan.parts.training, plan.parts.validation, plan.parts.unused)
    labels = [label for rows in known for label in rows.labels]
    started = time.monotonic()
    baseline = fit_linear_baseline([text for rows in known for text in rows.texts], labels, seed=plan.config.train.seed)
    linear = baseline.predict(test.texts)
    seconds = {"linear": time.monotonic() - started, "transformer": float(checkpoint.metrics["training"]["seconds"])}
    evaluation = evaluate_rows(checkpoint, test, device="cpu", without_order=False)
    answers = _answers(checkpoint, plan)
    comparison = compare(
        truth=test.labels,
        majority=majority_answers(labels, len(test)),
        linear=linear,
        transformer=answers,
        baseline=baseline,
        seconds=seconds,
    )
    checkpoint = with_comparison(with_evaluation(checkpoint, split="test", evaluation=evaluation), comparison)
    return TrainingResult(checkpoint, comparison, linear, answers, seconds=0.0, stopped_early=False)


def _answers(checkpoint: Checkpoint, plan: TrainingPlan) -> ClassIndices:
    assert isinstance(checkpoint.model, TextClassifier)
    logits = predict_logits(checkpoint.model, TokenisedTexts.encode(checkpoint.encoder, plan.parts.test))  # N C
    answers: ClassIndices = logits.argmax(-1).numpy().astype(np.int64)
    return answers
