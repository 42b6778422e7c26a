"""Training objectives: class labels, masked tokens, or the next token."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from txcls.config import TrainConfig
from txcls.data.batches import TokenisedTexts, pad_batch
from txcls.evaluation.predict_logits import predict_logits
from txcls.model import Encoder, LanguageModel, TextClassifier
from txcls.text.vocabulary import MASK, PAD, SPECIAL_TOKENS, UNK


@dataclass(frozen=True)
class Outcome:
    """A batch's mean loss, and the number of correct predictions out of `n` (texts or tokens)."""

    loss: Tensor
    right: Tensor
    n: int


@dataclass(frozen=True)
class Validated:
    """Mean loss and accuracy over `n` held-out texts (or tokens)."""

    loss: float
    accuracy: float
    n: int


class Objective(Protocol):
    """The interface between the training loop and a task."""

    def batch_loss(self, model: Encoder, ids: Tensor, labels: Tensor) -> Outcome:
        """Loss and accuracy of ids (B, T) with labels (B,), in training mode."""

    def validate(self, model: Encoder, texts: TokenisedTexts, device: torch.device) -> Validated:
        """Loss and accuracy over held-out texts; deterministic."""


class Classify:
    """One class per text: cross-entropy, with class weights (C,), label smoothing and token dropout.

    `dropped` is the id that replaces dropped tokens.
    """

    def __init__(self, config: TrainConfig, class_weights: Tensor, *, dropped: int = UNK) -> None:
        self.config, self.class_weights, self.dropped = config, class_weights, dropped

    @classmethod
    def of(cls, texts: TokenisedTexts, *, n_classes: int, config: TrainConfig, dropped: int = UNK) -> Self:
        """The objective for these training texts, with class weights computed from their labels."""
        return cls(config, class_weights(texts.labels, n_classes=n_classes, config=config), dropped=dropped)

    def batch_loss(self, model: Encoder, ids: Tensor, labels: Tensor) -> Outcome:
        passes = 2 if self.config.consistency else 1
        seen = drop_tokens(ids.repeat(passes, 1), self.config.token_dropout, dropped=self.dropped)  # passes*B T
        logits = model(seen).float()  # passes*B C
        weights, targets = self.class_weights.to(ids.device), labels.repeat(passes)  # C, passes*B
        loss = F.cross_entropy(logits, targets, weight=weights, label_smoothing=self.config.label_smoothing)
        if self.config.consistency:
            loss = loss + self.config.consistency * disagreement(*logits.chunk(2))
        right = (logits[: len(labels)].detach().argmax(-1) == labels).sum()
        return Outcome(loss, right, len(labels))

    def validate(self, model: Encoder, texts: TokenisedTexts, device: torch.device) -> Validated:
        assert isinstance(model, TextClassifier)
        logits = predict_logits(model, texts, device=device)  # N C
        labels = torch.from_numpy(np.asarray(texts.labels, dtype=np.int64))  # N
        accuracy = float((logits.argmax(-1) == labels).float().mean())
        return Validated(float(F.cross_entropy(logits, labels)), accuracy, len(labels))


class LanguageObjective(ABC):
    """Base class of objectives without labels; validation averages over all predicted tokens."""

    def batch_loss(self, model: Encoder, ids: Tensor, labels: Tensor) -> Outcome:
        return self._outcome(model, ids, None)

    @torch.inference_mode()
    def validate(self, model: Encoder, texts: TokenisedTexts, device: torch.device) -> Validated:
        model.eval()
        random = torch.Generator().manual_seed(0)  # not torch's global generator, to leave training unaffected
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
        """The outcome of ids (B, T); random numbers come from `random`, or from torch's generator if None."""


class FillMasked(LanguageObjective):
    """Predict masked tokens: of the chosen tokens, 80 % are masked, 10 % replaced, 10 % unchanged (Devlin et al. 2019).

    In the paper, 15 % of the tokens are predicted; a larger share gives more predictions per text (Wettig et al. 2023).
    """

    def __init__(self, vocab_size: int, *, share: float) -> None:
        self.vocab_size, self.share = vocab_size, share

    def _outcome(self, model: Encoder, ids: Tensor, random: torch.Generator | None) -> Outcome:
        assert isinstance(model, LanguageModel)
        changed, predicted = mask_tokens(ids, vocab_size=self.vocab_size, share=self.share, random=random)
        return _token_outcome(model, model.read(changed)[:, : ids.shape[1]][predicted], ids[predicted])


class PredictNext(LanguageObjective):
    """Predict the next token at every position (Radford et al. 2018), the first one from the class token."""

    def _outcome(self, model: Encoder, ids: Tensor, random: torch.Generator | None) -> Outcome:
        assert isinstance(model, LanguageModel)
        is_real = ids[:, 1:] != PAD  # B T-1
        states = model.read(ids[:, : max(is_real.shape[1], 1)])  # B T-1 D
        return _token_outcome(model, states[:, : is_real.shape[1]][is_real], ids[:, 1:][is_real])


def _token_outcome(model: LanguageModel, states: Tensor, targets: Tensor) -> Outcome:
    """The outcome for the final states (N, D) of the predicted tokens and their target ids (N,)."""
    if not len(targets):  # only very short texts: a zero loss that still has a gradient
        return Outcome(model.unembed(states).sum(), torch.zeros(()), 0)
    loss, right = token_loss(model.narrow(states), model.output_matrix, model.bias, targets)
    return Outcome(loss, right, len(targets))


def disagreement(first: Tensor, second: Tensor) -> Tensor:
    """Mean over texts of half the sum of both Kullback-Leibler divergences between the predictions of two passes.

    Liang et al. 2021, equation 2; logits (B, C).
    """
    p, q = first.log_softmax(-1), second.log_softmax(-1)  # B C
    return ((p.exp() - q.exp()) * (p - q)).sum(-1).mean() / 2


def drop_tokens(ids: Tensor, probability: float, *, dropped: int = UNK) -> Tensor:
    """Replace each ordinary token of `ids` (B, T) by the token `dropped` with this probability (word dropout)."""
    if not probability:
        return ids
    chosen = (torch.rand(ids.shape, device=ids.device) < probability) & (ids >= len(SPECIAL_TOKENS))  # B T
    return ids.masked_fill(chosen, dropped)  # B T


def mask_tokens(
    ids: Tensor, *, vocab_size: int, share: float, random: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Mask or replace some of the ids (B, T); also return which tokens to predict, (B, T), including unchanged ones.

    Special tokens are never predicted. `random` is a generator on the CPU; None for the global generator of the ids'
    device.
    """
    device = ids.device if random is None else random.device
    chance = torch.rand(ids.shape, generator=random, device=device).to(ids.device)  # B T
    predicted = (chance < share) & (ids >= len(SPECIAL_TOKENS))  # B T
    first, end = len(SPECIAL_TOKENS), max(vocab_size, len(SPECIAL_TOKENS) + 1)
    others = torch.randint(first, end, ids.shape, generator=random, device=device)  # B T
    changed = torch.where(predicted & (chance < 0.8 * share), MASK, ids)  # B T
    replaced = predicted & (chance >= 0.9 * share)  # B T
    return torch.where(replaced, others.to(ids.device), changed), predicted


def class_weights(labels: np.ndarray, *, n_classes: int, config: TrainConfig) -> Tensor:
    """Loss weight of each class, (C,): ones, or 1 / count normalised to sum to C (a class without rows gets 0)."""
    if config.class_weights == "none":
        return torch.ones(n_classes)
    counts = torch.bincount(torch.from_numpy(np.asarray(labels, dtype=np.int64)), minlength=n_classes).float()
    inverse = torch.where(counts > 0, 1.0 / counts.clamp(min=1), torch.zeros(n_classes))
    return inverse * n_classes / inverse.sum()


LOGITS_PER_CHUNK = 1 << 19
"""Number of logits per chunk on a CPU; they take 2 MB in float32."""
LOGITS_PER_CHUNK_ON_GPU = 1 << 26
"""The same on a GPU, where small chunks would leave it idle; they take 256 MB in float32."""


def token_loss(states: Tensor, matrix: Tensor, bias: Tensor | None, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy of the logits `states @ matrix.T + bias`, and how many targets have the highest logit.

    Shapes: states (N, D) with N at least 1, matrix (V, D), bias (V,), targets (N,).
    """
    outcome: tuple[Tensor, Tensor] = _TokenLoss.apply(  # type: ignore[no-untyped-call]
        states, matrix, bias, targets, torch.is_grad_enabled()
    )
    return outcome


class _TokenLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, matrix: Tensor, bias: Tensor | None, targets: Tensor, needs_gradient: bool
    ) -> tuple[Tensor, Tensor]:
        device = states.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else states.dtype
        x, w = states.to(dtype), matrix.to(dtype)  # N D, V D
        b = None if bias is None else bias.to(dtype)  # V
        n, vocab_size = len(targets), len(matrix)
        logit_gradient = torch.empty(n if needs_gradient else 0, vocab_size, dtype=dtype, device=states.device)  # N V
        total = torch.zeros((), device=states.device)
        right = torch.zeros((), dtype=torch.int64, device=states.device)
        bias_gradient = None if bias is None else torch.zeros(vocab_size, device=states.device)  # V
        rows = max(1, (LOGITS_PER_CHUNK if device == "cpu" else LOGITS_PER_CHUNK_ON_GPU) // vocab_size)
        for start in range(0, n, rows):
            chunk = slice(start, start + rows)
            chunk_targets = targets[chunk, None]  # R 1
            logits = torch.nn.functional.linear(x[chunk], w, b).float()  # R V
            highest = logits.amax(-1, keepdim=True)  # R 1
            target_logits = logits.gather(-1, chunk_targets)  # R 1
            right += (target_logits == highest).sum()
            exponentials = logits.sub_(highest).exp_()  # R V
            denominator = exponentials.sum(-1, keepdim=True)  # R 1
            total += (highest + denominator.log() - target_logits).sum()
            if not needs_gradient:
                continue
            # In place, to stay in cache: (softmax - one-hot target) / N.
            chunk_gradient = exponentials.mul_(1.0 / (n * denominator)).scatter_add_(
                -1, chunk_targets, exponentials.new_full(chunk_targets.shape, -1.0 / n)
            )
            if bias_gradient is not None:
                bias_gradient += chunk_gradient.sum(0)
            logit_gradient[chunk] = chunk_gradient
        ctx.save_for_backward(x, w, logit_gradient, bias_gradient)
        ctx.dtypes = states.dtype, matrix.dtype
        ctx.mark_non_differentiable(right)
        return total / n, right

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None, None]:
        x, w, logit_gradient, bias_gradient = ctx.saved_tensors
        states_dtype, matrix_dtype = ctx.dtypes
        scale = outputs[0]
        states_gradient = (logit_gradient @ w).to(states_dtype) * scale
        matrix_gradient = (logit_gradient.T @ x).to(matrix_dtype) * scale
        return states_gradient, matrix_gradient, None if bias_gradient is None else bias_gradient * scale, None, None
