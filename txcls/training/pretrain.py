"""Learn language before classes: train a language model on a set's own training texts, and start a classifier from it.

    python -m txcls pretrain lm --data PATH            # a preset whose objective is masked or causal
    python -m txcls train ag_news --init checkpoints/lm

It learns from the training rows alone, with the same split as a classifier's; validation texts only say which weights
to keep, and test texts are never read.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from txcls.checkpoint import Checkpoint
from txcls.config import RunConfig
from txcls.data.texts import open_texts
from txcls.errors import TrainingError
from txcls.model import Encoder, LanguageModel
from txcls.text.encoder import TextEncoder
from txcls.training.distributed import here
from txcls.training.loop import HistoryRow, Progress, fit
from txcls.training.objectives import FillMasked, SayNext
from txcls.training.setup import (
    check_writable,
    choose_device,
    encode_unlabelled,
    finished,
    one_run_per_folder,
    state_file,
    training_facts,
)
from txcls.training.start import other_texts, start_embeddings


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
    on_stage: Callable[[str], None] | None = None,
    on_step: Callable[[Progress], None] | None = None,
    on_validation: Callable[[HistoryRow], None] | None = None,
) -> Checkpoint:
    """Train a language model and save it as the checkpoint folder `out`; arguments as those of `train`.

    Texts longer than the model's max_length are cut. What it reports is the loss per token that is asked for, and its
    exponential, perplexity: with the masked objective over the masked tokens, which is not comparable with the causal
    one.

    Raises:
        DataError, TrainingError, CheckpointError: see their messages.
    """
    if config.objective == "classify":
        raise TrainingError(f"{config.name} classifies; give --set objective=masked, or a preset made for pre-training")
    tell = on_stage or (lambda message: None)
    chosen = choose_device(device)
    check_writable(out)
    tell(f"reading {config.data.dataset}")
    texts = open_texts(config.data, path=data_path)
    others = other_texts(config.train.start_texts)
    tell(f"building the vocabulary from {len(texts.training):,} training texts")
    encoder = TextEncoder.fit(
        texts.training, config.text, max_length=config.model.max_length, class_token=True, others=others
    )
    tell(f"turning texts into ids with a vocabulary of {encoder.vocab_size:,}")
    with here().one_before_others():
        train, held_out = (encode_unlabelled(encoder, part) for part in (texts.training, texts.validation))
    torch.manual_seed(config.train.seed)
    model = LanguageModel(config.model, vocab_size=encoder.vocab_size)
    start_embeddings(model.embeddings, train, config.train, others=others, encoder=encoder, tell=tell)
    tell(f"training {sum(p.numel() for p in model.parameters()):,} parameters on {chosen}")
    result = fit(
        model,
        train,
        held_out,
        config.train,
        objective=FillMasked(encoder.vocab_size) if config.objective == "masked" else SayNext(),
        device=chosen,
        state_path=state_file(out),
        resume=resume,
        on_step=on_step,
        on_validation=on_validation,
        max_steps=max_steps,
    )
    metrics: dict[str, Any] = {
        "data": {
            "dataset": texts.info.name,
            "title": texts.info.title,
            "terms": texts.info.terms,
            "train_rows": len(texts.training),
            "validation_rows": len(texts.validation),
        },
        "training": training_facts(result, config, command, chosen),
        "language": {
            "loss": round(result.best.validation_loss, 6),
            "perplexity": round(math.exp(min(result.best.validation_loss, 700.0)), 4),
            "accuracy": round(result.best.validation_accuracy, 6),
        },
    }
    history = [asdict(row) for row in result.history]
    checkpoint = Checkpoint(out, config, encoder, (), model.cpu().eval(), metrics=metrics, history=history)
    return finished(checkpoint, state_file(out))


def encoder_from(init: Checkpoint, config: RunConfig) -> TextEncoder:
    """The language model's vocabulary, for texts as long as the classifier reads them.

    Raises:
        TrainingError: it is no language model, or it cleans and parts texts otherwise than the configuration says.
    """
    if init.config.objective == "classify":
        raise TrainingError(f"--init {init.name}: it is a classifier; wanted a language model made by `pretrain`")
    if init.config.text != config.text:
        raise TrainingError(f"--init {init.name}: its text settings differ; wanted {init.config.text!r}")
    changes = {"max_length": config.model.max_length, "class_token": config.reads_class_token}
    return TextEncoder.from_dict({**init.encoder.to_dict(), **changes})


def start_from(model: Encoder, init: Checkpoint) -> None:
    """Copy the embeddings, blocks and last norm of a language model; positions as far as both have them.

    Raises:
        TrainingError: their shapes differ; the message names them.
    """
    ours, theirs = model.state_dict(), init.model.state_dict()
    shared = [name for name in ours if name.startswith(("embeddings.", "layers.", "norm."))]
    problems = [name for name in shared if name not in theirs]
    for name in (name for name in shared if name in theirs):
        if name == "embeddings.positional":
            n = min(len(ours[name]), len(theirs[name]))
            if ours[name].shape[1] == theirs[name].shape[1]:
                ours[name][:n] = theirs[name][:n]
                continue
        if ours[name].shape == theirs[name].shape:
            ours[name].copy_(theirs[name])
        else:
            problems.append(f"{name} {tuple(theirs[name].shape)}, wanted {tuple(ours[name].shape)}")
    if problems:
        raise TrainingError(f"--init {init.name}: its model has another form: {'; '.join(problems[:5])}")
