"""What `train_own` does: fit, compare with the linear baseline on the test rows, save."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.schema import HistoryRow
from txcls.data.batches import TokenisedTexts
from txcls.data.given import given_dataset
from txcls.evaluation.baseline import ClassIndices, compare, fit_linear_baseline, majority_answers
from txcls.evaluation.evaluate import Evaluation, evaluate_rows, predict_logits, with_comparison, with_evaluation
from txcls.model import TextClassifier
from txcls.training.auto.resume import write_plan
from txcls.training.auto.types import OwnPlan, OwnProgress, OwnResult, Stage
from txcls.training.loop import Progress
from txcls.training.run_folder import check_writable, is_interrupted, plan_file, refuse_saved_state
from txcls.training.supervised import train


class _Reporter:
    """Turns the loop's progress into that of the whole run."""

    def __init__(self, plan: OwnPlan, on_progress: Callable[[OwnProgress], None] | None) -> None:
        self.plan, self.on_progress = plan, on_progress
        self.started = time.monotonic()
        self.share = 0.0

    def stage(self, stage: Stage, share: float, message: str) -> None:
        """A stage without steps begins."""
        self.share = max(self.share, share)
        if self.on_progress is not None:
            left = self.plan.overhead * (stage == "compare") + self.plan.forecast * (stage == "prepare")
            self.on_progress(OwnProgress(stage, self.share, left, message=message))

    def step(self, progress: Progress) -> None:
        """A step of training is done."""
        if self.on_progress is None:
            return
        left = progress.seconds_left + self.plan.overhead
        spent = time.monotonic() - self.started
        self.share = max(self.share, spent / max(spent + left, 1e-9))
        self.on_progress(
            OwnProgress(
                "learn",
                share=self.share,
                seconds_left=left,
                epoch=progress.epoch,
                epochs=progress.epochs,
                step=progress.step,
                steps=progress.total_steps,
                loss=progress.loss,
                accuracy=progress.accuracy,
                tokens_per_second=progress.tokens_per_second,
                message="learning the labels",
            )
        )


def train_own(
    plan: OwnPlan,
    *,
    out: Path | None,
    on_progress: Callable[[OwnProgress], None] | None = None,
    on_epoch: Callable[[HistoryRow], None] | None = None,
    on_stage: Callable[[str], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    command: str = "",
) -> OwnResult:
    """Train as planned, compare with the linear baseline on the test rows, and save.

    Ctrl-C and SIGTERM save the state beside `out`, from which `resume` continues with the same plan; `should_stop` ends
    training early instead, and what has been learned so far is measured and saved.

    Args:
        plan: from `plan_own`.
        out: the checkpoint folder to write; None for none.
        on_progress: called after each step and at each stage.
        on_epoch: called after each validation.
        on_stage: called with a message at each stage.
        should_stop: asked after each step; once it is true, training ends with what there is.
        resume: continue an interrupted run of the same plan.
        overwrite: discard the saved state of an interrupted run.
        command: the command line for the model card.

    Raises:
        TrainingError, TrainingInterruptedError, CheckpointError: as `txcls.training.train`.
    """
    started = time.monotonic()
    if out is not None:
        check_writable(out)
        refuse_saved_state(out, resume=resume, overwrite=overwrite)
        if not resume:
            write_plan(plan, out)
    reporter = _Reporter(plan, on_progress)
    reporter.stage("prepare", 0.0, "turning texts into tokens")
    stopper = _Stopper(should_stop)
    try:
        with _threads(plan.threads):
            checkpoint = train(
                plan.config,
                out=out,
                dataset=given_dataset(plan.training, plan.validation, source=plan.config.title),
                init=plan.init,
                command=command,
                device="cpu",
                resume=resume,
                overwrite=overwrite,
                on_stage=on_stage,
                on_step=reporter.step,
                on_validation=on_epoch,
                should_stop=stopper,
            )
            reporter.stage("compare", reporter.share, "comparing with the linear baseline on the test rows")
            result = _compared(plan, checkpoint)
    finally:
        if out is not None and not is_interrupted(out):
            _discard_plan(out)
    if out is not None:
        reporter.stage("save", reporter.share, "saving")
        save_checkpoint(result.checkpoint)
    reporter.stage("save", 1.0, "done")
    return replace(result, seconds=time.monotonic() - started, stopped_early=stopper.stopped)


class _Stopper:
    """Asks whether to stop until it is told so once."""

    def __init__(self, should_stop: Callable[[], bool] | None) -> None:
        self.should_stop, self.stopped = should_stop, False

    def __call__(self) -> bool:
        self.stopped = self.stopped or (self.should_stop is not None and self.should_stop())
        return self.stopped


@contextmanager
def _threads(n: int) -> Iterator[None]:
    """Inside the block, torch uses n processor threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _discard_plan(out: Path) -> None:
    """Remove the plan of a run that has no state to resume from, and its folder if nothing else is in it."""
    plan_file(out).unlink(missing_ok=True)
    with suppress(OSError):
        plan_file(out).parent.rmdir()


def _compared(plan: OwnPlan, checkpoint: Checkpoint) -> OwnResult:
    """The checkpoint with its figures on the test rows, beside the linear baseline's."""
    parts = (plan.training, plan.validation, plan.unused)
    known = [text for part in parts for text in part.texts], [label for part in parts for label in part.labels]
    begun = time.monotonic()
    baseline = fit_linear_baseline(*known, seed=plan.config.train.seed)
    linear = baseline.predict(plan.test.texts)
    seconds = {"linear": time.monotonic() - begun, "transformer": float(checkpoint.metrics["training"]["seconds"])}
    evaluation: Evaluation = evaluate_rows(checkpoint, plan.test, device="cpu", without_order=False)
    answers = _answers(checkpoint, plan)
    comparison = compare(
        truth=plan.test.labels,
        majority=majority_answers(known[1], len(plan.test)),
        linear=linear,
        transformer=answers,
        baseline=baseline,
        seconds=seconds,
    )
    measured = with_comparison(with_evaluation(checkpoint, split="test", evaluation=evaluation), comparison)
    return OwnResult(measured, comparison, evaluation, linear, answers, 0.0, stopped_early=False)


def _answers(checkpoint: Checkpoint, plan: OwnPlan) -> ClassIndices:
    assert isinstance(checkpoint.model, TextClassifier)
    texts = TokenisedTexts.encode(checkpoint.encoder, plan.test)
    logits = predict_logits(checkpoint.model, texts)  # N C
    answers: ClassIndices = logits.argmax(-1).numpy().astype(np.int64)
    return answers
