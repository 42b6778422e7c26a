"""Train on a user's rows as planned (`plan.py`): fit the linear model, train, compare both, save what is to be used."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.comparison import Comparison
from txcls.checkpoint.folders import LINEAR
from txcls.data.batches import TokenisedTexts
from txcls.data.hashes import repeats, sketch
from txcls.data.labelled import dataset_from_rows
from txcls.data.types import join_rows
from txcls.evaluation.compare import compare
from txcls.evaluation.evaluate import measure, with_evaluation
from txcls.evaluation.linear import LinearModel, fit_linear, save_linear
from txcls.evaluation.predict_logits import predict_logits
from txcls.model import TextClassifier
from txcls.training.plan import MIN_LEFT, TrainingPlan
from txcls.training.probe import choose_start
from txcls.training.run_folder import check_writable
from txcls.training.speed import using_threads
from txcls.training.supervised import train

MAX_DELAY = 5.0
"""On a busy machine, up to this many times the planned time is kept for measuring and saving."""

PROBE = "the output layer alone, a logistic regression on the encoder's mean output: cross-validation preferred it"


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """The classifier and its comparison with the linear model.

    Attributes:
        checkpoint: with "test" and "comparison" in its metrics.
        linear_is_limited: whether the linear model was fitted without characters to save time and memory.
        never_found: classes that the recommended model never recognised, each with its number of test rows.
        delay: how many times as long as estimated the linear model took to fit.
    """

    checkpoint: Checkpoint
    comparison: Comparison
    linear_is_limited: bool
    never_found: Mapping[str, int]
    seconds: float
    delay: float


def run_plan(
    plan: TrainingPlan,
    *,
    out: Path | None,
    command: str = "",
    refit: bool = False,
    on_stage: Callable[[str], None] | None = None,
    **callbacks: Any,
) -> TrainingResult:
    """Fit the linear model, train as planned, compare both on the test rows, and save.

    Training gets the time that is left, less the time to measure and save.

    Args:
        plan: from `plan_training`.
        out: the checkpoint folder to write; if None, the checkpoint is only returned.
        command: the command line, for the model card.
        refit: after measuring, train the recommended model again, on all rows; this takes up to `minutes` again.
        on_stage: called with a message at each stage.
        callbacks: `on_step`, `on_validation` and `should_stop`, as for `txcls.training.train`.

    Raises:
        TrainingError, TrainingInterruptedError, CheckpointError: as for `txcls.training.train`.
    """
    if out is not None:
        check_writable(out)
    say = on_stage or (lambda _: None)
    fitted, test, seed = plan.splits.fitted, plan.splits.test, plan.config.train.seed
    say("fitting the linear model")
    started = time.monotonic()
    linear = fit_linear(fitted, seed=seed, reads_characters=plan.reads_characters)
    predicted = linear.predict(test.texts, test.classes)
    linear_seconds = time.monotonic() - started
    delay = linear_seconds / max(plan.linear_seconds, 1.0)
    options = {"out": None, "command": command, "on_stage": say, **callbacks}
    checkpoint = train_as_planned(plan, after=min(max(delay, 1.0), MAX_DELAY) * plan.measuring_seconds, **options)
    say("comparing with the linear model on the test rows")
    checkpoint, comparison, predictions = _compare(plan, checkpoint, linear, predicted, seconds=linear_seconds)
    saves_linear = not comparison.transformer_is_better
    truth, used = np.array(test.labels), predicted if comparison.to_use == "linear" else predictions
    counts = dict(zip(*np.unique(truth, return_counts=True), strict=True))
    never_found = {test.classes[c]: int(n) for c, n in counts.items() if not (used[truth == c] == c).any()}
    if refit:
        started = time.monotonic()
        if comparison.to_use == "linear":
            say("fitting the linear model to all rows")
            linear = fit_linear(join_rows((fitted, test)), seed=seed, reads_characters=plan.reads_characters)
        else:
            say("training again, on all rows")
            splits = replace(plan.splits, training=join_rows((plan.splits.training, test)))
            whole = train_as_planned(replace(plan, splits=splits, started=time.monotonic()), after=0.0, **options)
            measured = {name: checkpoint.metrics[name] for name in ("test", "comparison")}
            checkpoint = whole.with_metrics(**measured)
        texts = [*fitted.texts, *test.texts]
        facts = {"rows": len(texts), "seconds": round(time.monotonic() - started, 1), "sketch": sketch(texts)}
        checkpoint = checkpoint.with_metrics(refit={"model": comparison.to_use, **facts})
    if out is not None:
        say("saving")
        with TemporaryDirectory(prefix="txcls-") as folder:
            file = save_linear(linear, Path(folder) / LINEAR) if saves_linear else None
            save_checkpoint(replace(checkpoint, path=out, linear=file))
        checkpoint = replace(checkpoint, path=out, linear=out / LINEAR if saves_linear else None)
    seconds = time.monotonic() - plan.started
    return TrainingResult(checkpoint, comparison, linear.is_limited, never_found, seconds, delay)


def train_as_planned(plan: TrainingPlan, *, after: float = 0.0, **options: Any) -> Checkpoint:
    """Train with a plan's settings, without a comparison; for `options` and errors see `txcls.training.train`.

    `after` is the number of seconds needed after training.
    """

    def seconds_left() -> float | None:
        if plan.minutes is None:
            return None
        return max(plan.started + 60 * plan.minutes - after - time.monotonic(), MIN_LEFT * 60 * plan.minutes)

    rows, validation = plan.splits.training, plan.splits.validation
    is_probe, started = False, time.monotonic()
    with using_threads(plan.threads):
        if plan.from_probe and plan.init is not None:
            left = seconds_left()
            say = options.get("on_stage") or (lambda _: None)
            cross_validation = None if left is None else 2 / 3 * left
            head, is_probe = choose_start(plan.config, plan.init, rows, validation, seconds=cross_validation, say=say)
            options |= {"head": head} | ({"max_steps": 0} if is_probe else {})
        checkpoint = train(
            plan.config,
            dataset=dataset_from_rows(rows, validation, source=plan.config.title),
            init=plan.init,
            device="cpu",
            max_seconds=seconds_left(),
            **{"out": None, **options},
        )
    facts = {"seconds": round(time.monotonic() - started, 1)} | ({"done": PROBE} if is_probe else {})
    return checkpoint.with_metrics(training=checkpoint.metrics["training"] | facts)


def _compare(
    plan: TrainingPlan,
    checkpoint: Checkpoint,
    linear: LinearModel,
    predicted: NDArray[np.int64],
    *,
    seconds: float,
) -> tuple[Checkpoint, Comparison, NDArray[np.int64]]:
    """Measure the checkpoint on the test rows, and compare it with the linear model's predictions (M,)."""
    test, training = plan.splits.test, checkpoint.metrics["training"]
    assert isinstance(checkpoint.model, TextClassifier)
    texts = TokenisedTexts.encode(checkpoint.tokenizer, test)
    with using_threads(plan.threads):
        logits = predict_logits(checkpoint.model, texts).numpy()  # M C
    predictions = logits.argmax(axis=1)
    comparison = compare(
        truth=test.labels,
        training_labels=plan.splits.training.labels,
        linear=predicted,
        transformer=predictions,
        model=linear,
        seconds={"linear": seconds, "transformer": float(training["seconds"])},
        is_repeated=repeats(test.texts, plan.splits.fitted.texts),
        n_unseen=plan.splits.n_unseen,
        steps=(training["steps"], plan.steps),
    )
    checkpoint = with_evaluation(checkpoint, split="test", evaluation=measure(logits, texts, checkpoint))
    return checkpoint.with_metrics(comparison=comparison.to_dict()), comparison, predictions
