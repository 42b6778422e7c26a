"""Logits of many labelled rows, in the class order of a checkpoint."""

import torch
from torch import Tensor

from txcls.checkpoint import Checkpoint
from txcls.data.batches import TokenisedTexts, batches_by_length, pad_batch
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.model import TextClassifier


@torch.inference_mode()
def predict_logits(
    model: TextClassifier, texts: TokenisedTexts, *, device: torch.device | str = "cpu", batch_size: int = 256
) -> Tensor:
    """Logits (N, C) of all texts in their order, on the CPU as float32; long and short texts never share a batch."""
    model.eval()
    logits = torch.zeros(len(texts), model.head.out_features)  # N C
    for indices in batches_by_length(texts.lengths, batch_size=batch_size):
        ids, _ = pad_batch(texts, indices)
        logits[torch.from_numpy(indices)] = model(torch.from_numpy(ids).to(device)).float().cpu()
    return logits


def in_classes_of(rows: LabelledTexts, checkpoint: Checkpoint) -> LabelledTexts:
    """The same rows with their labels as indices into the checkpoint's classes.

    Raises:
        DataError: the rows have classes that the checkpoint has not.
    """
    if rows.classes == checkpoint.classes:
        return rows
    if unknown := sorted(set(rows.classes) - set(checkpoint.classes)):
        raise DataError(
            f"the data have classes that {checkpoint.name} does not know: {', '.join(unknown[:5])}; "
            f"it knows {', '.join(checkpoint.classes)}"
        )
    place = {name: index for index, name in enumerate(checkpoint.classes)}
    return LabelledTexts(rows.texts, [place[rows.classes[label]] for label in rows.labels], checkpoint.classes)
