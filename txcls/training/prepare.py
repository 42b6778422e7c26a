"""Everything a classifier needs before its first training step: vocabulary, token ids, initial weights, objective."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.config import RunConfig
from txcls.data.batches import TokenisedTexts
from txcls.data.types import LabelledTexts
from txcls.model import TextClassifier
from txcls.text.encoder import TextEncoder
from txcls.training.distributed import here
from txcls.training.from_pretrained import encoder_from, start_from
from txcls.training.objectives import Classify


@dataclass(frozen=True, eq=False)
class Prepared:
    """A run up to its first step.

    Attributes:
        encoder: text to ids.
        texts: the training rows, N of them.
        held_out: the validation rows.
        model: with initial weights.
        objective: its training loss.
    """

    encoder: TextEncoder
    texts: TokenisedTexts
    held_out: TokenisedTexts
    model: TextClassifier
    objective: Classify


def prepare(
    config: RunConfig,
    rows: LabelledTexts,
    held_out: LabelledTexts,
    *,
    init: Checkpoint | None,
    cache: Path | None,
    tell: Callable[[str], None],
) -> Prepared:
    """Build the vocabulary, tokenise the rows and initialise the model; under torchrun every process calls this.

    Args:
        config: all settings.
        rows: training rows; the vocabulary comes from these alone.
        held_out: validation rows.
        init: a pre-trained model to start from, whose settings `config` has; the head is initialised afresh.
        cache: folder for token ids (`TokenisedTexts.encode`).
        tell: called with a message at each stage.
    """
    if init is None:
        tell(f"building the vocabulary from {len(rows):,} training texts")
        encoder = TextEncoder.fit(
            rows.texts, config.text, max_length=config.model.max_length, class_token=config.reads_class_token
        )
    else:
        encoder = encoder_from(init, config)
    tell(f"turning texts into ids with a vocabulary of {encoder.vocab_size:,}")
    with here().one_before_others():
        texts = TokenisedTexts.encode(encoder, rows, cache=cache)
        validation = TokenisedTexts.encode(encoder, held_out, cache=cache)
    torch.manual_seed(config.train.seed)
    model = TextClassifier(config.model, vocab_size=encoder.vocab_size, n_classes=len(rows.classes))
    if init is not None:
        start_from(model, init)
    objective = Classify.of(texts, n_classes=len(rows.classes), config=config.train, dropped=encoder.blank)
    return Prepared(encoder, texts, validation, model, objective)
