"""Once settings are chosen, learn from all rows: validation rows have done their work and are training rows again."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from txcls.checkpoint import Checkpoint
from txcls.data.datasets import open_dataset
from txcls.data.splits import split_rows
from txcls.errors import DataError, TrainingError
from txcls.model import TextClassifier
from txcls.stored import as_stored
from txcls.training.distributed import here
from txcls.training.loop import HistoryRow, Progress, fit
from txcls.training.phrases import fit_votes_again, limits
from txcls.training.prepare import Prepared, prepare
from txcls.training.setup import check_writable, choose_device, finished, one_run_per_folder, state_file, training_facts

KEPT = ("data", "training", "validation", "phrases")
"""What stays in the record: how settings were chosen, and what they gave on rows that had not been learned."""


@one_run_per_folder
def refit(
    checkpoint: Checkpoint,
    *,
    out: Path,
    data_path: Path | None = None,
    init: Checkpoint | None = None,
    command: str = "",
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    on_stage: Callable[[str], None] | None = None,
    on_step: Callable[[Progress], None] | None = None,
    on_validation: Callable[[HistoryRow], None] | None = None,
) -> Checkpoint:
    """Train a checkpoint's settings anew on its training rows and those held out of them, and save it as `out`.

    What validation rows were for is taken from the checkpoint: after which share of the steps to stop, how votes of
    phrases are regularised and how loud they are, and the calibration. So no row is learned that chose anything else,
    the test rows are as unseen as before, and there is nothing to measure but them: the record keeps what the same
    settings gave on validation rows before, and `evaluate` will not ask the new model about them.

    Args:
        checkpoint: a classifier that `train` made.
        out: the checkpoint folder to write; it may be the checkpoint's own.
        data_path: folder or file in the data set's published format; None looks where `open_dataset` says.
        init: the language model that `train` started from, if it did.
        command: the command line to write into the model card.
        device: "cpu", "cuda", …; None takes CUDA where there is one.
        resume: go on from an interrupted run of the same.
        overwrite: begin anew where an interrupted run left its state.
        on_stage, on_step, on_validation: told what is going on; there are no figures of validation rows.

    Raises:
        DataError: the validation rows are no part of the training rows but published by themselves; or the data are
            not those of the checkpoint.
        TrainingError: it is a language model, or its record does not say how it was trained; and as for `train`.
        CheckpointError: it cannot be saved.
    """
    tell = on_stage or (lambda message: None)
    share = _share_of_steps(checkpoint)
    config, chosen = checkpoint.config, choose_device(device)
    check_writable(out)
    tell(f"reading {config.data.dataset}")
    dataset = open_dataset(config.data, path=data_path)
    if dataset.has_validation:
        raise DataError(
            f"the validation rows of {dataset.info.name} are published by themselves; refit is for those that were "
            "held out of the training rows"
        )
    if dataset.classes != checkpoint.classes:
        raise DataError(
            f"{dataset.source} has the classes {', '.join(dataset.classes)}; {checkpoint.name} was trained on "
            f"{', '.join(checkpoint.classes)}"
        )
    rows = dataset.load("train")
    before = len(split_rows(rows, config.data)[0])
    wanted = checkpoint.metrics["data"]["train_rows"]
    if before != wanted:
        raise DataError(
            f"{dataset.source} gives {before:,} training rows; {checkpoint.name} was trained on {wanted:,}. Wanted the "
            "same data (--data)"
        )
    run = prepare(config, rows, None, init=init, tell=tell)
    total = config.train.epochs * math.ceil(len(rows) / config.train.batch_size)
    tell(f"training {sum(p.numel() for p in run.model.parameters()):,} parameters on {len(rows):,} rows on {chosen}")
    result = fit(
        run.model,
        run.texts,
        None,
        config.train,
        objective=run.objective,
        device=chosen,
        state_path=state_file(out),
        resume=resume,
        on_step=on_step,
        on_validation=on_validation,
        max_steps=max(round(share * total), 1),
    )
    if config.model.phrases:
        tell(f"fitting how {config.model.phrases:,} phrases vote")
        _let_phrases_vote(run, checkpoint.metrics["phrases"])
    as_stored(run.model.cpu(), config.stored_tables)
    facts = training_facts(result, config, command or f"txcls refit {checkpoint.name}", chosen)
    metrics: dict[str, Any] = {name: checkpoint.metrics[name] for name in KEPT if name in checkpoint.metrics}
    metrics["data"] = {name: value for name, value in metrics["data"].items() if name != "test_rows"}
    metrics["refit"] = {"rows": len(rows), **{name: value for name, value in facts.items() if name != "best_epoch"}}
    made = replace(checkpoint, path=out, encoder=run.encoder, model=run.model.eval(), metrics=metrics)
    return finished(made, state_file(out))


def _share_of_steps(checkpoint: Checkpoint) -> float:
    """After which share of all steps of its schedule the weights were best.

    Raises:
        TrainingError: it is a language model, or its record does not tell.
    """
    if not isinstance(checkpoint.model, TextClassifier):
        raise TrainingError(f"{checkpoint.name} is a language model; refit is for classifiers")
    best = [row["step"] for row in checkpoint.history if row.get("best") and "step" in row]
    rows = checkpoint.metrics.get("data", {}).get("train_rows")
    if not best or not rows or (checkpoint.config.model.phrases and "phrases" not in checkpoint.metrics):
        raise TrainingError(
            f"{checkpoint.name} does not say how it was trained: wanted a checkpoint of `train`, with its "
            "history.jsonl and metrics.json"
        )
    train = checkpoint.config.train
    total: int = train.epochs * math.ceil(rows / train.batch_size)
    return float(best[-1] / total)


def _let_phrases_vote(run: Prepared, chosen: dict[str, Any]) -> None:
    model = run.model
    fitted = here().from_first(
        lambda: fit_votes_again(
            run.texts,
            n_classes=model.head.out_features,
            strength=chosen["strength"],
            scale=chosen["scale"],
            **limits(model),
        )
    )
    fitted.teach(model)
