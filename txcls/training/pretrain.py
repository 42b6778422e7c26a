"""Pre-training on the unlabelled training texts of one or several data sets.

    python -m txcls pretrain encoder                   # masked tokens
    python -m txcls train ag_news --init encoder       # a classifier that starts from it
    python -m txcls pretrain lm                        # the next token, for `txcls generate`
    torchrun --nproc-per-node 2 -m txcls pretrain lm   # in several processes: see distributed.py

Only training rows are used, except texts that also occur in the validation or test rows. The checkpoint gets the
weights that do best on held-out texts.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.schema import HistoryRow
from txcls.config import RunConfig
from txcls.data.batches import TokenisedTexts
from txcls.data.unlabelled_texts import open_texts
from txcls.errors import TrainingError
from txcls.model import LanguageModel
from txcls.training.corpus import Corpus, make_corpus, read_corpus
from txcls.training.distributed import join_processes, rank, wait_for_others
from txcls.training.loop import Progress, fit, training_facts
from txcls.training.objectives import FillMasked, Objective, PredictNext
from txcls.training.run_folder import one_run_per_folder, save_finished, state_file

COUNT_BATCH = 1 << 24
"""Number of ids counted at once; each takes eight bytes of memory."""


@one_run_per_folder
def pretrain(
    config: RunConfig,
    *,
    out: Path,
    data_path: Path | None = None,
    command: str = "",
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    max_steps: int | None = None,
    minutes: float | None = None,
    on_stage: Callable[[str], None] | None = None,
    on_step: Callable[[Progress], None] | None = None,
    on_validation: Callable[[HistoryRow], None] | None = None,
) -> Checkpoint:
    """Pre-train a model and save it as the checkpoint folder `out`; for arguments and errors see `train`.

    Texts longer than the model's max_length are split into windows.

    Args:
        minutes: stop after this training time in total, interruptions excluded; the learning rate falls to zero by
            then. It may be set or changed when the run is resumed.
    """
    if config.objective == "classify":
        raise TrainingError(
            f"{config.name} is a classifier preset; use one for pre-training, or --set objective=masked"
        )
    with join_processes(device) as torch_device:
        return _pretrain(
            config,
            _corpus(config, out, data_path, resume=resume, report=on_stage or (lambda message: None)),
            out=out,
            command=command,
            device=torch_device,
            report=on_stage or (lambda message: None),
            state_path=state_file(out),
            resume=resume,
            on_step=on_step,
            on_validation=on_validation,
            max_steps=max_steps,
            max_seconds=None if minutes is None else 60 * minutes,
        )


def _corpus(
    config: RunConfig, out: Path, data_path: Path | None, *, resume: bool, report: Callable[[str], None]
) -> Corpus:
    """The token ids: the first process makes them unless an interrupted run did, and all processes read them."""
    folder = state_file(out).with_name("corpus")
    corpus = read_corpus(folder, config) if resume else None
    if corpus is None and not rank():
        report(f"reading {config.data.dataset}")
        corpus = make_corpus(folder, config, open_texts(config.data, path=data_path), on_stage=report)
    wait_for_others()
    corpus = corpus or read_corpus(folder, config)
    if corpus is None:
        raise TrainingError(f"no {folder} in process {rank()}; all machines need a common folder")
    return corpus


def _pretrain(
    config: RunConfig,
    corpus: Corpus,
    *,
    out: Path,
    command: str,
    device: torch.device,
    report: Callable[[str], None],
    **options: Any,
) -> Checkpoint:
    torch.manual_seed(config.train.seed)
    model, objective = _model_and_objective(config, corpus.tokenizer.vocab_size, corpus.training)
    report(f"training {model.n_parameters:,} parameters on {device}")
    result = fit(model, corpus.training, corpus.validation, config.train, objective=objective, device=device, **options)
    loss = result.best.validation_loss
    metrics: dict[str, Any] = {
        "data": corpus.facts,
        "training": training_facts(result, config, command, device),
        "language": {
            "loss": round(loss, 6),
            "accuracy": round(result.best.validation_accuracy, 6),
            "perplexity": round(math.exp(min(loss, 700.0)), 4),
        },
    }
    history = [asdict(row) for row in result.history]
    checkpoint = Checkpoint(out, config, corpus.tokenizer, (), model.cpu().eval(), metrics=metrics, history=history)
    return checkpoint if rank() else save_finished(checkpoint)


def _model_and_objective(config: RunConfig, vocab_size: int, train: TokenisedTexts) -> tuple[LanguageModel, Objective]:
    """A model with its initial weights, and its training objective."""
    share = config.train.masked_share
    model = LanguageModel(config.model, vocab_size=vocab_size)
    objective = FillMasked(vocab_size, share=share) if config.objective == "masked" else PredictNext()
    if model.bias is not None:
        counts = np.ones(vocab_size)  # V
        for start in range(0, len(train.ids), COUNT_BATCH):
            counts += np.bincount(train.ids[start : start + COUNT_BATCH], minlength=vocab_size)
        model.bias.data.copy_(torch.from_numpy(np.log(counts / counts.sum())))
    return model, objective
