"""What a model is trained to do: classify a text, fill in masked tokens, or say the next token."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from txcls.config import TrainConfig
from txcls.data.batches import TokenisedTexts, pad_batch
from txcls.evaluation import predict_logits
from txcls.model import Encoder, LanguageModel, TextClassifier
from txcls.text.vocabulary import MASK, PAD, SPECIAL_TOKENS, UNK

MASKED_SHARE = 0.15
"""Tokens that masked-token training asks for (Devlin et al. 2019, section 3.1)."""


@dataclass(frozen=True)
class Outcome:
    """The mean loss of a batch, how many of its predictions are right, and out of how many (texts, or tokens)."""

    loss: Tensor
    right: Tensor
    n: int
    weight: Tensor | float
    """What `loss` was divided by (n, or the sum of class weights): the share that it has in a larger batch's mean."""


@dataclass(frozen=True)
class Validated:
    """Mean loss and accuracy over held-out texts, and over how many texts (or tokens) these are means."""

    loss: float
    accuracy: float
    n: int


class Objective(Protocol):
    """What the training loop needs to know of a task."""

    def batch(self, model: Encoder, ids: Tensor, labels: Tensor, rows: Tensor) -> Outcome:
        """The outcome of ids (B, T) with labels (B,), while training; rows (B,) are their places in the data."""

    def validate(self, model: Encoder, texts: TokenisedTexts, device: torch.device) -> Validated:
        """Loss and accuracy over held-out texts; the same for the same model whenever it is asked."""


class Classify:
    """One class per text: cross-entropy, with class weights, label smoothing and token dropout as configured.

    With a `teacher`, whose class probabilities of the training texts are (N, C), cross-entropy to these has its share
    of the loss (knowledge distillation, Hinton et al. 2015).
    """

    def __init__(self, config: TrainConfig, class_weights: Tensor, teacher: Tensor | None = None) -> None:
        self.config, self.class_weights, self.teacher = config, class_weights, teacher

    @classmethod
    def of(cls, texts: TokenisedTexts, *, n_classes: int, config: TrainConfig, teacher: Tensor | None = None) -> Self:
        """The objective for these training texts, whose labels say how much each of the C classes weighs."""
        return cls(config, class_weights(texts.labels, n_classes=n_classes, config=config), teacher)

    def batch(self, model: Encoder, ids: Tensor, labels: Tensor, rows: Tensor) -> Outcome:
        dropped = drop_tokens(ids, self.config.token_dropout)
        logits = model(dropped).float()  # B C
        weights = self.class_weights.to(ids.device)
        loss = F.cross_entropy(logits, labels, weight=weights, label_smoothing=self.config.label_smoothing)
        if self.teacher is not None:
            share = self.config.teacher_weight
            loss = (1 - share) * loss + share * F.cross_entropy(logits, self.teacher[rows].to(ids.device))
        right = (logits.detach().argmax(-1) == labels).sum()
        return Outcome(loss, right, len(labels), weights[labels].sum())

    def validate(self, model: Encoder, texts: TokenisedTexts, device: torch.device) -> Validated:
        assert isinstance(model, TextClassifier)
        logits = predict_logits(model, texts, device=device)  # N C
        labels = torch.from_numpy(np.asarray(texts.labels, dtype=np.int64))  # N
        accuracy = float((logits.argmax(-1) == labels).float().mean())
        return Validated(float(F.cross_entropy(logits, labels)), accuracy, len(labels))


class LanguageObjective(ABC):
    """What objectives without labels share: validation as the mean over all tokens that are asked for."""

    def batch(self, model: Encoder, ids: Tensor, labels: Tensor, rows: Tensor) -> Outcome:
        return self._outcome(model, ids, None)

    @torch.inference_mode()
    def validate(self, model: Encoder, texts: TokenisedTexts, device: torch.device) -> Validated:
        model.eval()
        random = torch.Generator().manual_seed(0)  # its own, so that asking does not change training
        order = np.argsort(texts.lengths, kind="stable")
        loss, right, n = 0.0, 0, 0
        for start in range(0, len(order), 64):
            ids, _ = pad_batch(texts, order[start : start + 64])
            outcome = self._outcome(model, torch.from_numpy(ids).to(device), random)
            if outcome.n:
                loss, right, n = loss + float(outcome.loss) * outcome.n, right + int(outcome.right), n + outcome.n
        return Validated(loss / max(n, 1), right / max(n, 1), n)

    @abstractmethod
    def _outcome(self, model: Encoder, ids: Tensor, random: torch.Generator | None) -> Outcome:
        """The outcome of ids (B, T); chance comes from `random`, from torch's own generator where None."""


class FillMasked(LanguageObjective):
    """Masked tokens: 15 % are asked for; of these 80 % are masked, 10 % replaced, 10 % left (Devlin et al. 2019)."""

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size

    def _outcome(self, model: Encoder, ids: Tensor, random: torch.Generator | None) -> Outcome:
        assert isinstance(model, LanguageModel)
        changed, asked = mask_tokens(ids, vocab_size=self.vocab_size, random=random)
        scores = model.unembed(model.read(changed)[:, : ids.shape[1]][asked]).float()  # N V: not of the others
        return _asked_for(scores, ids[asked])


class SayNext(LanguageObjective):
    """The next token at every place (Radford et al. 2018); the first is asked for after the class token."""

    def _outcome(self, model: Encoder, ids: Tensor, random: torch.Generator | None) -> Outcome:
        assert isinstance(model, LanguageModel)
        real = ids[:, 1:] != PAD  # B T-1
        read = model.read(ids[:, : max(real.shape[1], 1)])  # B T-1 D
        scores = model.unembed(read[:, : real.shape[1]][real]).float()  # N V
        return _asked_for(scores, ids[:, 1:][real])


def _asked_for(scores: Tensor, targets: Tensor) -> Outcome:
    """The outcome of scores (N, V) for the tokens that were asked for (N,)."""
    if not len(targets):  # a batch of very short texts: nothing to learn from it, but a gradient of zero
        return Outcome(scores.sum(), torch.zeros(()), 0, 0)
    right = (scores.detach().argmax(-1) == targets).sum()
    return Outcome(F.cross_entropy(scores, targets), right, len(targets), len(targets))


def drop_tokens(ids: Tensor, probability: float) -> Tensor:
    """Replace ordinary tokens of `ids` (B, T) by the unknown token, each with that probability ("word dropout")."""
    if not probability:
        return ids
    dropped = (torch.rand(ids.shape, device=ids.device) < probability) & (ids >= len(SPECIAL_TOKENS))  # B T
    return ids.masked_fill(dropped, UNK)  # B T


def mask_tokens(ids: Tensor, *, vocab_size: int, random: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Ids (B, T) with some tokens masked or replaced, and where tokens are asked for (B, T), those left alone included.

    Args:
        ids: token ids; special ones are never asked for.
        vocab_size: V, to draw replacements from.
        random: where chance comes from; None for torch's own.
    """
    chance = torch.rand(ids.shape, generator=random).to(ids.device)  # B T
    asked = (chance < MASKED_SHARE) & (ids >= len(SPECIAL_TOKENS))  # B T
    others = torch.randint(len(SPECIAL_TOKENS), max(vocab_size, len(SPECIAL_TOKENS) + 1), ids.shape, generator=random)
    changed = torch.where(asked & (chance < 0.8 * MASKED_SHARE), MASK, ids)  # B T
    replaced = asked & (chance >= 0.9 * MASKED_SHARE)  # B T
    return torch.where(replaced, others.to(ids.device), changed), asked


def class_weights(labels: np.ndarray, *, n_classes: int, config: TrainConfig) -> Tensor:
    """Loss weight of each class, (C,): ones, or 1 / count normalised to sum to C (a class without rows gets 0)."""
    if config.class_weights == "none":
        return torch.ones(n_classes)
    counts = torch.bincount(torch.from_numpy(np.asarray(labels, dtype=np.int64)), minlength=n_classes).float()
    inverse = torch.where(counts > 0, 1.0 / counts.clamp(min=1), torch.zeros(n_classes))
    return inverse * n_classes / inverse.sum()
