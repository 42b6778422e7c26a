"""Supervised training: from a configuration and labelled rows to a checkpoint folder.

python -m txcls train ag_news
python -m txcls train ag_news --init encoder      # starting from a pre-trained model
"""

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.schema import HistoryRow, labels_problem
from txcls.checkpoint.weights import round_as_stored
from txcls.config import RunConfig
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import open_dataset
from txcls.data.generated.who_won import pattern_of
from txcls.data.hashes import sketch
from txcls.data.splits import training_and_validation
from txcls.data.types import Dataset, LabelledTexts
from txcls.errors import DataError, TrainingError
from txcls.evaluation.fit_calibration import fit_token_counts, with_calibration
from txcls.inference.device import choose_device
from txcls.model import TextClassifier
from txcls.text.tokenizer import Tokenizer
from txcls.training.from_pretrained import check_unread, copy_pretrained_weights, settings_from, tokenizer_from
from txcls.training.loop import Progress, fit, training_facts
from txcls.training.objectives import Classify
from txcls.training.run_folder import one_run_per_folder, save_finished, state_file
from txcls.training.speed import MEASURED_TEXTS, measure_speed, processors
from txcls.training.word_vectors import initialise_from_texts


@dataclass(frozen=True, eq=False)
class Head:
    """The weights (C, D) and biases (C,) of a classifier's head."""

    weight: NDArray[np.float64]
    bias: NDArray[np.float64]

    def write_to(self, model: TextClassifier) -> None:
        """Replace the model's head."""
        with torch.no_grad():
            model.head.weight.copy_(torch.from_numpy(self.weight))
            model.head.bias.copy_(torch.from_numpy(self.bias))


@one_run_per_folder
def train(
    config: RunConfig,
    *,
    out: Path | None,
    data_path: Path | None = None,
    dataset: Dataset | None = None,
    init: Checkpoint | None = None,
    head: Head | None = None,
    command: str = "",
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    max_steps: int | None = None,
    max_seconds: float | None = None,
    measure_threads: bool = False,
    on_stage: Callable[[str], None] | None = None,
    on_step: Callable[[Progress], None] | None = None,
    on_validation: Callable[[HistoryRow], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Checkpoint:
    """Train the model that `config` describes and save it as the checkpoint folder `out`; test rows are not read.

    During training, the state is saved in the folder `OUT.training` next to `out`.

    Args:
        out: the checkpoint folder to write; if None, the checkpoint is only returned.
        data_path: folder or file in the data set's published format; None for the places where `open_dataset` looks.
        dataset: an opened data set to use instead.
        init: a pre-trained model to start from; its text and model settings are used (`settings_from`).
        head: the head to start from; None for random weights.
        command: the command line, for the model card.
        device: "cpu", "cuda", …; if None, CUDA where available.
        resume: continue an interrupted run with the same settings.
        overwrite: discard the saved state of an interrupted run.
        max_steps: stop after this many optimiser steps in total, for trials; with 0, the model is not trained.
        max_seconds: maximum time for preparation, optimiser steps and validations.
        measure_threads: on a CPU, first find and use the fastest number of threads.
        on_stage, on_step, on_validation: called with a message, after each step, and after each validation.
        should_stop: called after each step; once it returns true, training ends and the weights so far are saved.

    Raises:
        DataError, TrainingError, CheckpointError: see their messages.
    """
    if config.objective != "classify":
        raise TrainingError(f"{config.name} is a preset for pre-training; use `pretrain {config.name}`")
    if init is not None:
        config = settings_from(init, config)
    started = time.monotonic()
    report = on_stage or (lambda message: None)
    torch_device = choose_device(device)
    if dataset is None:
        report(f"reading {config.data.dataset}")
        dataset = open_dataset(config.data, path=data_path)
    if problem := labels_problem(dataset.classes):
        raise DataError(f"{dataset.source}: {problem}; is it the right label column?")
    if init is not None:
        check_unread(init, dataset, config)
    training_rows, validation_rows = training_and_validation(dataset, config.data)
    run = prepare(config, training_rows, validation_rows, init=init, report=report)
    model = run.model
    if head is not None:
        head.write_to(model)
    report(f"training {model.n_parameters:,} parameters on {torch_device}")
    if measure_threads and torch_device.type == "cpu":
        _use_fastest_threads(run, config, report)
    result = fit(
        model,
        run.training,
        run.validation,
        config.train,
        objective=run.objective,
        device=torch_device,
        state_path=None if out is None else state_file(out),
        resume=resume,
        on_step=on_step,
        on_validation=on_validation,
        max_steps=max_steps,
        max_seconds=None if max_seconds is None else max(max_seconds - (time.monotonic() - started), 0.0),
        should_stop=should_stop,
    )
    metrics = {
        "data": data_facts(dataset, training_rows, validation_rows),
        "training": training_facts(result, config, command, torch_device) | ({"init": init.name} if init else {}),
    }
    report("fitting the calibration and saving")
    round_as_stored(model.cpu())
    history = [asdict(row) for row in result.history]
    checkpoint = Checkpoint(
        out,
        config,
        run.tokenizer,
        dataset.classes,
        model.eval(),
        metrics=metrics,
        history=history,
        snapshots=result.snapshots,
        token_counts=None
        if pattern_of(config.data.dataset)
        else fit_token_counts(run.training, run.validation, run.tokenizer),
    )
    return save_finished(with_calibration(checkpoint, dataset, run.validation, device="cpu"))


@dataclass(frozen=True, eq=False)
class PreparedRun:
    """A run that is ready for its first step."""

    tokenizer: Tokenizer
    training: TokenisedTexts
    validation: TokenisedTexts
    model: TextClassifier
    objective: Classify


def prepare(
    config: RunConfig,
    rows: LabelledTexts,
    validation_rows: LabelledTexts,
    *,
    init: Checkpoint | None,
    report: Callable[[str], None],
) -> PreparedRun:
    """Build the vocabulary from the training rows, tokenise, and initialise the model.

    `init` is a pre-trained model to start from; its settings are already in `config`.
    """
    if init is None:
        report(f"building the vocabulary from {len(rows):,} training texts")
        tokenizer = Tokenizer.fit(
            rows.texts, config.text, max_length=config.model.max_length, class_token=config.reads_class_token
        )
    else:
        tokenizer = tokenizer_from(init, config)
    report(f"turning texts into ids with a vocabulary of {tokenizer.vocab_size:,}")
    training = TokenisedTexts.encode(tokenizer, rows)
    validation = TokenisedTexts.encode(tokenizer, validation_rows)
    torch.manual_seed(config.train.seed)
    model = TextClassifier(config.model, vocab_size=tokenizer.vocab_size, n_classes=len(rows.classes))
    if init is not None:
        copy_pretrained_weights(model, init)
    elif config.train.embeddings_from_texts:
        report("computing the initial weights from the training texts")
        pieces = tokenizer.vocabulary.tokens if tokenizer.byte_pairs is not None else None
        initialise_from_texts(model, training, seed=config.train.seed, pieces=pieces)
    objective = Classify.of(training, n_classes=len(rows.classes), config=config.train, dropped=tokenizer.blank)
    return PreparedRun(tokenizer, training, validation, model, objective)


def _use_fastest_threads(run: PreparedRun, config: RunConfig, report: Callable[[str], None]) -> None:
    """Set torch to the fastest number of threads, without changing the model or torch's random state."""
    if processors() == 1:
        return
    random_state = torch.get_rng_state()
    sample = run.training.subset(range(min(len(run.training), MEASURED_TEXTS)))
    speed = measure_speed(deepcopy(run.model), sample, config.train)
    torch.set_rng_state(random_state)
    torch.set_num_threads(speed.threads)
    report(f"processor threads: {speed.threads}, as measured")


def data_facts(dataset: Dataset, training_rows: LabelledTexts, validation_rows: LabelledTexts) -> dict[str, Any]:
    """The "data" entry of a classifier's metrics.json."""
    info = dataset.info
    if "validation" in dataset.splits:
        note = f"{len(training_rows):,} training rows were used"
        validation = "given beside the training rows" if info.name == "table" else "published with the set"
    else:
        note = f"{len(training_rows) + len(validation_rows):,} training rows were used, validation rows included"
        validation = "held out of the training rows"
    return {
        "dataset": info.name,
        "title": info.title,
        "terms": info.terms,
        "note": note + (f": {dataset.description}." if dataset.description else "."),
        "validation": validation,
        "train_rows": len(training_rows),
        "train_rows_by_class": np.bincount(training_rows.labels, minlength=len(training_rows.classes)).tolist(),
        "validation_rows": len(validation_rows),
        **({"sketch": sketch([*training_rows.texts, *validation_rows.texts])} if info.name == "table" else {}),
    }
