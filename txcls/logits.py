"""Logits of many tokenised texts, in batches of similar length."""

import torch
from torch import Tensor

from txcls.data.batches import TokenisedTexts, batches_by_length, pad_batch
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
