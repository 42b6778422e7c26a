"""From a configuration to a checkpoint folder: data, split, tokenizer, model, training, calibration, model card."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from txcls.checkpoint import Checkpoint
from txcls.config import Calibration, RunConfig, ScopeRule
from txcls.data.batches import TokenisedTexts
from txcls.data.cache import cache_folder
from txcls.data.datasets import Dataset, LabelledTexts, open_dataset
from txcls.data.splits import training_and_validation
from txcls.errors import DataError, TrainingError
from txcls.evaluation import in_classes_of, predict_logits
from txcls.metrics import auroc, fit_calibration, scope_scores, scope_threshold
from txcls.model import TextClassifier
from txcls.stored import as_stored
from txcls.text.encoder import TextEncoder
from txcls.training.distributed import here
from txcls.training.from_pretrained import check_unread, settings_from
from txcls.training.loop import HistoryRow, Progress, fit
from txcls.training.measure import Evaluation, accuracy_without_order, measure
from txcls.training.phrases import PhraseVotes, fit_votes, limits
from txcls.training.prepare import prepare
from txcls.training.setup import (
    check_classes,
    check_writable,
    choose_device,
    data_facts,
    finished,
    one_run_per_folder,
    state_file,
    training_facts,
)


@one_run_per_folder
def train(
    config: RunConfig,
    *,
    out: Path,
    data_path: Path | None = None,
    init: Checkpoint | None = None,
    command: str = "",
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    max_steps: int | None = None,
    on_stage: Callable[[str], None] | None = None,
    on_step: Callable[[Progress], None] | None = None,
    on_validation: Callable[[HistoryRow], None] | None = None,
) -> Checkpoint:
    """Train what `config` describes and save it as the checkpoint folder `out`; the test split is not touched.

    In a process of several (`txcls.training.distributed`) all of them call it alike, and the first one writes.

    While it runs, its state lies beside `out` in a folder with `.training` added, from which `resume` goes on; the
    folder goes away once the checkpoint is saved.

    Args:
        config: all settings.
        out: the checkpoint folder to write.
        data_path: folder or file in the data set's published format; None looks where `open_dataset` says.
        init: a pre-trained model to start from, with its text and model settings (`settings_from`); the head starts
            anew.
        command: the command line to write into the model card.
        device: "cpu", "cuda", …; None takes CUDA where there is one.
        resume: go on from an interrupted run with the same settings.
        overwrite: begin anew where an interrupted run left its state.
        max_steps: stop after so many optimiser steps in all, for trials.
        on_stage, on_step, on_validation: told what is going on.

    Raises:
        DataError, TrainingError, CheckpointError: see their messages.
    """
    if config.objective != "classify":
        raise TrainingError(f"{config.name} is a preset for pre-training; use `pretrain {config.name}`")
    if init is not None:
        config = settings_from(init, config)
    tell = on_stage or (lambda message: None)
    chosen = choose_device(device)
    state_path = state_file(out)
    check_writable(out)
    tell(f"reading {config.data.dataset}")
    dataset = open_dataset(config.data, path=data_path)
    check_classes(dataset)
    if init is not None:
        check_unread(init, dataset, config)
    training_rows, validation_rows = training_and_validation(dataset, config.data)
    run = prepare(config, training_rows, validation_rows, init=init, tell=tell)
    model, held_out = run.model, run.held_out
    assert held_out is not None
    tell(f"training {sum(p.numel() for p in model.parameters()):,} parameters on {chosen}")
    result = fit(
        model,
        run.texts,
        held_out,
        config.train,
        objective=run.objective,
        device=chosen,
        state_path=state_path,
        resume=resume,
        on_step=on_step,
        on_validation=on_validation,
        max_steps=max_steps,
    )
    metrics = {
        "data": data_facts(dataset, training_rows, validation_rows),
        "training": training_facts(result, config, command, chosen),
    }
    if config.model.phrases:
        tell(f"fitting how {config.model.phrases:,} phrases vote")
        metrics["phrases"] = _let_phrases_vote(model, run.texts, held_out, device=chosen)
    tell("fitting the calibration and saving")
    as_stored(model.cpu(), config.stored_tables)
    history = [asdict(row) for row in result.history]
    checkpoint = Checkpoint(out, config, run.encoder, dataset.classes, model.eval(), metrics=metrics, history=history)
    return finished(_calibrated(checkpoint, dataset, held_out, device="cpu"), state_path)


def _let_phrases_vote(
    model: TextClassifier, texts: TokenisedTexts, held_out: TokenisedTexts, *, device: torch.device
) -> dict[str, float]:
    """Fit the votes of a trained model's phrases; returns what is to be known of them."""

    def found() -> PhraseVotes:
        logits = predict_logits(model, held_out, device=device).numpy()  # M C
        return fit_votes(texts, held_out, logits, **limits(model))

    fitted = here().from_first(found)
    fitted.teach(model)
    assert fitted.log_loss is not None
    alone, together = fitted.log_loss
    return {
        "n": len(fitted.phrases),
        "strength": fitted.strength,
        "scale": round(fitted.scale, 6),
        "log_loss_without": round(alone, 6),
        "log_loss_with": round(together, 6),
    }


def evaluate(
    checkpoint: Checkpoint,
    *,
    split: str = "test",
    data_path: Path | None = None,
    device: str | None = None,
    without_order: bool = True,
) -> Evaluation:
    """Measure a checkpoint on the "test" or the "validation" rows of its data set.

    Args:
        checkpoint: a classifier.
        split: whose rows.
        data_path: folder or file in the data set's published format; None looks where `open_dataset` says.
        device: "cpu", "cuda", …; None takes CUDA where there is one.
        without_order: also measure what is left without the order of words, which takes two or three times as long
            again.

    Raises:
        DataError: the data are not there, have no such split, or their classes are not the checkpoint's.
        TrainingError: the checkpoint is a language model, has learned the validation rows that are asked for (`refit`),
            or the device cannot be used.
    """
    model = _classifier_of(checkpoint)
    if split not in ("test", "validation"):
        raise DataError(f"got split {split!r}; wanted test or validation")
    if split == "validation":
        _check_unseen(checkpoint)
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    rows = dataset.load("test") if split == "test" else training_and_validation(dataset, checkpoint.config.data)[1]
    chosen = choose_device(device)
    model.to(chosen)
    tokenised = _tokenised(rows, checkpoint)
    logits = predict_logits(model, tokenised, device=chosen).numpy()  # N C
    measured = measure(logits, tokenised, calibration=checkpoint.calibration, classes=checkpoint.classes)
    if checkpoint.scope is not None and f"oos_{split}" in dataset.splits:
        unlabelled = _outside(dataset, f"oos_{split}", checkpoint.encoder)
        outside = predict_logits(model, unlabelled, device=chosen).numpy()  # M C
        scope = _scope_figures(logits, tokenised.labels, outside, checkpoint.calibration, checkpoint.scope)
        measured = replace(measured, scope=scope)
    if without_order:
        order = accuracy_without_order(model, tokenised, encoder=checkpoint.encoder, device=chosen)
        measured = replace(measured, order=order)
    model.cpu()
    return measured


def calibrate(checkpoint: Checkpoint, *, data_path: Path | None = None, device: str | None = None) -> Checkpoint:
    """A copy with calibration (and threshold of scope) fitted anew on the validation rows; weights stay as they are.

    Its record holds what they give there; what was measured on test rows under the old calibration is left out.

    Raises:
        DataError, TrainingError: as for `evaluate`.
    """
    model = _classifier_of(checkpoint)
    _check_unseen(checkpoint)
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    rows = training_and_validation(dataset, checkpoint.config.data)[1]
    chosen = choose_device(device)
    model.to(chosen)
    kept = {name: value for name, value in checkpoint.metrics.items() if name not in ("test", "scope")}
    fitted = _calibrated(replace(checkpoint, metrics=kept), dataset, _tokenised(rows, checkpoint), device=chosen)
    model.cpu()
    return fitted


def _calibrated(
    checkpoint: Checkpoint, dataset: Dataset, held_out: TokenisedTexts, *, device: torch.device | str
) -> Checkpoint:
    """A copy with calibration and threshold fitted on held-out texts, and in its record what they give there."""
    model = _classifier_of(checkpoint)
    logits = predict_logits(model, held_out, device=device).numpy()  # N C
    calibration = fit_calibration(logits, held_out.labels)
    measured = measure(logits, held_out, calibration=calibration, classes=checkpoint.classes)
    record = {**checkpoint.metrics, "validation": measured.to_dict()}
    scope = None
    if "oos_validation" in dataset.splits:
        unlabelled = _outside(dataset, "oos_validation", checkpoint.encoder)
        outside = predict_logits(model, unlabelled, device=device).numpy()  # M C
        scope = _fit_scope(logits, held_out.labels, outside, calibration)
        record["scope"] = {"validation": _scope_figures(logits, held_out.labels, outside, calibration, scope)}
    return replace(checkpoint, calibration=calibration, metrics=record, scope=scope)


def with_evaluation(checkpoint: Checkpoint, *, split: str, evaluation: Evaluation) -> Checkpoint:
    """A copy of the checkpoint whose record (and model card, once saved) says what `evaluate` measured."""
    record = {**checkpoint.metrics, split: evaluation.to_dict()}
    record["data"] = {**record.get("data", {}), f"{split}_rows": evaluation.metrics.n}
    if evaluation.scope is not None:
        record["scope"] = {**record.get("scope", {}), split: dict(evaluation.scope)}
    return replace(checkpoint, metrics=record)


def _outside(dataset: Dataset, split: str, encoder: TextEncoder) -> TokenisedTexts:
    """The ids of texts of no class; their labels mean nothing."""
    return TokenisedTexts.encode(encoder, dataset.load(split))  # type: ignore[arg-type]


def _fit_scope(inside: Any, labels: Any, outside: Any, calibration: Calibration) -> ScopeRule:
    """The score that parts validation queries in and out of scope best, by AUROC, and its best threshold."""
    right = inside.argmax(axis=1) == labels  # N
    scores = {
        kind: tuple(scope_scores(logits, calibration=calibration, score=kind) for logits in (inside, outside))
        for kind in ("max_probability", "energy")
    }
    kind = max(scores, key=lambda name: auroc(*scores[name]))
    own, others = scores[kind]
    values = {"score": kind, "threshold": scope_threshold(own, right, others)}
    return ScopeRule.from_mapping(values, source="scope")


def _scope_figures(
    inside: Any, labels: Any, outside: Any, calibration: Calibration, rule: ScopeRule
) -> dict[str, float]:
    """AUROC, and accuracies with texts below the threshold turned away, over N rows of the classes and M of none."""
    own, others = (scope_scores(logits, calibration=calibration, score=rule.score) for logits in (inside, outside))
    kept = (inside.argmax(axis=1) == labels) & (own >= rule.threshold)  # N
    turned_away = others < rule.threshold  # M
    return {
        "n_in": len(own),
        "n_out": len(others),
        "auroc": round(auroc(own, others), 6),
        "accuracy": round(float((kept.sum() + turned_away.sum()) / (len(own) + len(others))), 6),
        "accuracy_in": round(float(kept.mean()), 6),
        "recall_out": round(float(turned_away.mean()), 6),
    }


def _check_unseen(checkpoint: Checkpoint) -> None:
    """Refuse validation rows to a model that has learned them."""
    if checkpoint.is_refitted:
        raise TrainingError(
            f"{checkpoint.name} has learned its validation rows as well (refit), so that they tell nothing of it; what "
            "the same settings gave on them before is in its card. Wanted its test rows"
        )


def _classifier_of(checkpoint: Checkpoint) -> TextClassifier:
    if not isinstance(checkpoint.model, TextClassifier):
        raise TrainingError(f"{checkpoint.name} is a language model; its perplexity on validation texts is in its card")
    return checkpoint.model


def _tokenised(rows: LabelledTexts, checkpoint: Checkpoint) -> TokenisedTexts:
    return TokenisedTexts.encode(checkpoint.encoder, in_classes_of(rows, checkpoint), cache=cache_folder() / "tokens")
