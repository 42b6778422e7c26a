"""Map labels to a classifier's classes, tokenise the texts, and compute the logits or the states."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.data.batches import TokenisedTexts, batches_by_length, pad_batch
from txcls.data.types import LabelledTexts, rows_in_classes
from txcls.errors import CheckpointError, DataError
from txcls.inference.interrupts import may_pause
from txcls.model import Encoder, TextClassifier
from txcls.text.vocabulary import PAD

Logits = NDArray[np.float32]
OnRows = Callable[[int, int], object]
"""Called with the number of rows done and the total number of rows."""


@torch.inference_mode()
def predict_logits(
    model: TextClassifier,
    texts: TokenisedTexts,
    *,
    device: torch.device | str = "cpu",
    batch_size: int = 256,
    on_batch: Callable[[int], None] | None = None,
) -> Tensor:
    """Logits (N, C) of all texts, in their original order, as float32 on the CPU.

    Each batch holds texts of similar length; `on_batch` is called after each batch with its number of rows.
    """
    model.eval()
    logits = torch.zeros(len(texts), model.head.out_features)  # N C
    for indices in batches_by_length(texts.lengths, batch_size=batch_size):
        ids, _ = pad_batch(texts, indices)
        logits[torch.from_numpy(indices)] = model(torch.from_numpy(ids).to(device)).float().cpu()
        may_pause()
        if on_batch is not None:
            on_batch(len(indices))
    return logits


@torch.inference_mode()
def mean_states(model: Encoder, texts: TokenisedTexts) -> NDArray[np.float64]:
    """Each text's final states, averaged over its tokens, (N, D)."""
    model.eval()
    means = np.zeros((len(texts), model.config.d_model))
    for indices in batches_by_length(texts.lengths, batch_size=64):
        ids = torch.from_numpy(pad_batch(texts, indices)[0])  # B T
        is_real = (ids != PAD).unsqueeze(-1)  # B T 1
        states = model.read(ids)[:, : ids.shape[1]]  # B T D
        means[indices] = ((states * is_real).sum(1) / is_real.sum(1)).double().numpy()
    return means


def in_classes_of(rows: LabelledTexts, checkpoint: Checkpoint) -> LabelledTexts:
    """The same rows, with labels as indices into the checkpoint's classes.

    Raises:
        DataError: some classes are unknown to the checkpoint.
    """
    if rows.classes == checkpoint.classes:
        return rows
    if unknown := sorted(set(rows.classes) - set(checkpoint.classes)):
        raise DataError(
            f"the data have classes that {checkpoint.name} does not know: {', '.join(unknown[:5])}; "
            f"it knows {', '.join(checkpoint.classes)}"
        )
    return rows_in_classes(rows, checkpoint.classes)[0]


def classifier_of(checkpoint: Checkpoint) -> TextClassifier:
    """The checkpoint's model.

    Raises:
        CheckpointError: it is a language model.
    """
    if not isinstance(checkpoint.model, TextClassifier):
        raise CheckpointError(f"{checkpoint.name} is a language model; its validation metrics are in its model card")
    return checkpoint.model


def tokenised_for(rows: LabelledTexts, checkpoint: Checkpoint) -> TokenisedTexts:
    """The rows as token ids, with labels as indices into the checkpoint's classes (`in_classes_of`)."""
    return TokenisedTexts.encode(checkpoint.tokenizer, in_classes_of(rows, checkpoint))
