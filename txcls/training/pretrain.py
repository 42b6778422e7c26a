"""Pre-training on the unlabelled training texts of one or several data sets.

    python -m txcls pretrain encoder                   # masked tokens
    python -m txcls train ag_news --init encoder       # a classifier that starts from it
    python -m txcls pretrain lm                        # the next token, for `txcls generate`

Only training rows are used, with a classifier's split. Held-out texts decide which weights are kept; test texts are
never read, nor are the validation texts of a mixture's sources.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.config import RunConfig
from txcls.data.batches import TokenisedTexts
from txcls.data.cache import cache_folder
from txcls.data.texts import open_texts
from txcls.data.types import LabelledTexts
from txcls.errors import TrainingError
from txcls.model import LanguageModel
from txcls.text.encoder import TextEncoder
from txcls.text.vocabulary import CLS
from txcls.training.distributed import here, training_device
from txcls.training.facts import training_facts
from txcls.training.loop import HistoryRow, Progress, fit
from txcls.training.objectives import FillMasked, Objective, PredictNext
from txcls.training.run_folder import check_writable, finished, one_run_per_folder, state_file

LONGEST = 1_000_000
"""Most tokens read from one text."""


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
    """Pre-train a model and save it as the checkpoint folder `out`; arguments as those of `train`.

    Texts longer than the model's max_length are split into windows. Language models report the loss per predicted token
    and its exponential, the perplexity; those of masked and causal models are not comparable.

    Raises:
        DataError, TrainingError, CheckpointError: see their messages.
    """
    if config.objective == "classify":
        raise TrainingError(
            f"{config.name} is a classifier preset; use one for pre-training, or --set objective=masked"
        )
    tell = on_stage or (lambda message: None)
    chosen = training_device(device)
    check_writable(out)
    tell(f"reading {config.data.dataset}")
    texts = open_texts(config.data, path=data_path)
    tell(f"building the vocabulary from {len(texts.training):,} training texts")
    encoder = TextEncoder.fit(
        texts.training, config.text, max_length=config.model.max_length, class_token=config.reads_class_token
    )
    tell(f"turning texts into ids with a vocabulary of {encoder.vocab_size:,}")
    with here().one_before_others():
        train, held_out = (windows(encoder, part) for part in (texts.training, texts.validation))
    torch.manual_seed(config.train.seed)
    model, objective = _task(config, encoder.vocab_size, train)
    tell(f"training {sum(p.numel() for p in model.parameters()):,} parameters on {chosen}")
    result = fit(
        model,
        train,
        held_out,
        config.train,
        objective=objective,
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
        "language": _figures(result.best),
    }
    history = [asdict(row) for row in result.history]
    checkpoint = Checkpoint(out, config, encoder, (), model.cpu().eval(), metrics=metrics, history=history)
    return finished(checkpoint)


def windows(encoder: TextEncoder, texts: Sequence[str]) -> TokenisedTexts:
    """The ids of texts, those longer than the model reads split into windows."""
    whole = TextEncoder.from_dict({**encoder.to_dict(), "class_token": False, "max_length": LONGEST})
    first = CLS if encoder.class_token else None
    rows = LabelledTexts(texts, [0] * len(texts), ("text",))
    return TokenisedTexts.encode(whole, rows, cache=cache_folder() / "tokens").windows(encoder.max_length, first=first)


def _task(config: RunConfig, vocab_size: int, train: TokenisedTexts) -> tuple[LanguageModel, Objective]:
    """A model with its initial weights, and its training objective."""
    share = config.train.masked_share
    model = LanguageModel(config.model, vocab_size=vocab_size)
    objective = FillMasked(vocab_size, share=share) if config.objective == "masked" else PredictNext()
    if model.bias is not None:
        counts = np.bincount(train.ids, minlength=vocab_size) + 1.0  # V
        model.bias.data.copy_(torch.from_numpy(np.log(counts / counts.sum())))
    return model, objective


def _figures(best: HistoryRow) -> dict[str, float]:
    """The figures of the kept weights on held-out texts."""
    perplexity = math.exp(min(best.validation_loss, 700.0))
    figures = {"loss": best.validation_loss, "accuracy": best.validation_accuracy}
    return {**{name: round(value, 6) for name, value in figures.items()}, "perplexity": round(perplexity, 4)}
