"""What a classifying run starts from: vocabulary, token ids, a model with its first weights, a teacher's answers."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from txcls.checkpoint import Checkpoint
from txcls.config import RunConfig
from txcls.data.batches import TokenisedTexts
from txcls.data.cache import cache_folder
from txcls.data.datasets import LabelledTexts
from txcls.model import TextClassifier
from txcls.text.encoder import TextEncoder
from txcls.training.distributed import here
from txcls.training.from_pretrained import encoder_from, start_from
from txcls.training.objectives import Classify
from txcls.training.start import other_texts, start_embeddings
from txcls.training.teacher import linear_probabilities


@dataclass(frozen=True, eq=False)
class Prepared:
    """A run up to its first step.

    Attributes:
        encoder: text to ids.
        texts: the training rows, N of them.
        held_out: the validation rows, where there are any.
        model: with first weights.
        objective: what it is to learn.
    """

    encoder: TextEncoder
    texts: TokenisedTexts
    held_out: TokenisedTexts | None
    model: TextClassifier
    objective: Classify


def prepare(
    config: RunConfig,
    rows: LabelledTexts,
    held_out: LabelledTexts | None,
    *,
    init: Checkpoint | None,
    tell: Callable[[str], None],
) -> Prepared:
    """Everything that comes before the first step; in a process of several all of them call it alike.

    Args:
        config: all settings.
        rows: training rows, from which vocabulary, start vectors and teacher are made.
        held_out: validation rows, where there are any.
        init: a pre-trained model to start from, whose settings `config` has; the head starts anew.
        tell: told what is going on.
    """
    others = [] if init is not None else other_texts(config.train.start_texts)
    if init is None:
        tell(f"building the vocabulary from {len(rows):,} training texts")
        encoder = TextEncoder.fit(
            rows.texts,
            config.text,
            max_length=config.model.max_length,
            class_token=config.reads_class_token,
            others=others,
        )
    else:
        encoder = encoder_from(init, config)
    tell(f"turning texts into ids with a vocabulary of {encoder.vocab_size:,}")
    cache = cache_folder() / "tokens"
    with here().one_before_others():
        texts = TokenisedTexts.encode(encoder, rows, cache=cache)
        asked = None if held_out is None else TokenisedTexts.encode(encoder, held_out, cache=cache)
    torch.manual_seed(config.train.seed)
    model = TextClassifier(config.model, vocab_size=encoder.vocab_size, n_classes=len(rows.classes))
    if init is not None:
        start_from(model, init)
    else:
        start_embeddings(model.embeddings, texts, config.train, others=others, encoder=encoder, tell=tell)
    teacher = _teacher(config, rows, tell) if config.train.teacher == "linear" else None
    objective = Classify.of(texts, n_classes=len(rows.classes), config=config.train, teacher=teacher)
    return Prepared(encoder, texts, asked, model, objective)


def _teacher(config: RunConfig, rows: LabelledTexts, tell: Callable[[str], None]) -> Tensor:
    """What linear models say of each of N training texts that they have not seen: (N, C)."""
    tell("asking linear models about the training texts that they have not seen")
    return torch.from_numpy(
        here().from_first(
            lambda: linear_probabilities(rows.texts, rows.labels, config.text, cache=cache_folder() / "teacher")
        )
    )
