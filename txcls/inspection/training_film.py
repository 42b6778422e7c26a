"""How did the prediction for one text develop during training? The text in every training snapshot."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, vmap

from txcls.checkpoint.snapshots import SnapshotRow
from txcls.checkpoint.weights import build_without_memory
from txcls.errors import TraceError
from txcls.inference.interrupts import may_pause
from txcls.inference.predictor import Predictor
from txcls.inspection.lens import residual_states
from txcls.inspection.tracing import FloatArray, encode_for_trace, max_texts_per_batch
from txcls.model import TextClassifier
from txcls.tap import trace
from txcls.text.tokens import Token

Floats = NDArray[np.float64]

MAX_BATCH_WEIGHTS = 32_000_000
"""Maximum number of weights of the snapshots in one pass: 128 MB in float32."""


@dataclass(frozen=True)
class TrainingFilm:
    """One text in N snapshots of the model during training.

    Attributes:
        rows: step, loss and accuracy of each snapshot.
        tokens: the tokens of the text.
        logits: (N, C).
        probabilities: (N, C), with the trained model's calibration, which was not fitted to the other snapshots.
        attention: patterns (N, L, H, t, t), limited to the t tokens that `training_film` was asked to show.
        states: names of the S residual states to which the class lens is applied.
        lens: (N, S, C) class probabilities from applying a snapshot's final norm, pooling and head to each state.
    """

    rows: tuple[SnapshotRow, ...]
    tokens: tuple[Token, ...]
    logits: FloatArray
    probabilities: Floats
    attention: FloatArray
    states: tuple[str, ...]
    lens: Floats

    @property
    def predicted(self) -> NDArray[np.intp]:
        """The class that each snapshot predicts, (N,)."""
        predicted: NDArray[np.intp] = self.logits.argmax(axis=-1)
        return predicted


class _TracedClassifier(nn.Module):
    """A classifier whose forward pass also returns its attention patterns and its class lens."""

    def __init__(self, model: TextClassifier) -> None:
        super().__init__()
        self.model = model
        self.taps, self.states = residual_states(model.config.n_layers)
        self.patterns = [f"layers.{layer}.attn.pattern" for layer in range(model.config.n_layers)]

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Ids (1, T) to logits (C,), patterns (L, H, T, T) and the logits of the lens (S, C)."""
        with trace(record=[*self.taps, *self.patterns]) as activations:
            logits = self.model(ids)[0]  # C
        patterns = torch.cat([activations[name] for name in self.patterns])  # L H T T
        states = torch.cat([activations[name] for name in self.taps])  # S T D
        real = None if self.model.config.pool_padding else self.model.real(self.model.pad(ids))  # 1 T
        lens = self.model.head(self.model.pool(self.model.norm(states), real))  # S C
        return logits, patterns, lens


def training_film(classifier: Predictor, text: str, *, shown: slice = slice(None)) -> TrainingFilm:
    """Run one text through every snapshot of the model.

    One pass covers many snapshots: `torch.func.vmap` maps the forward pass over the first axis of the stacked weights,
    which `functional_call` substitutes for the model's weights. The returned attention is limited to `shown` tokens.

    Raises:
        TraceError: the checkpoint has no snapshots, or the text contains no word.
    """
    checkpoint = classifier.checkpoint
    if checkpoint.snapshots is None:
        raise TraceError(f"{checkpoint.name} has no snapshots of its training; train it with --set train.snapshots=N")
    encoding = encode_for_trace(classifier, text)
    ids = torch.tensor([encoding.ids])  # 1 T
    # A separate model, since `functional_call` replaces the weights of its model, and other threads may be using ours.
    empty = build_without_memory(
        checkpoint.config, vocab_size=classifier.tokenizer.vocab_size, n_classes=len(classifier.classes)
    )
    assert isinstance(empty, TextClassifier)
    traced = _TracedClassifier(empty.eval())

    def forward(weights: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        result: tuple[Tensor, Tensor, Tensor] = functional_call(traced, weights, (ids,))
        return result

    n_read = empty.pad(ids).shape[1]  # more than the text's tokens if the length is fixed
    batch_size = max(1, min(max_texts_per_batch(n_read), MAX_BATCH_WEIGHTS // checkpoint.model.n_parameters))
    positions = np.arange(len(encoding.tokens))[shown]
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    for start in range(0, len(checkpoint.snapshots), batch_size):
        may_pause()
        weights = {
            f"model.{name}": tensor[start : start + batch_size].float()  # n …
            for name, tensor in checkpoint.snapshots.weights.items()
        }
        with torch.inference_mode():
            logits, patterns, lens = vmap(forward)(weights)  # n C, n L H T T, n S C
        parts.append((logits, patterns[..., positions, :][..., positions], lens))
    logits, patterns, lens = map(torch.cat, zip(*parts, strict=True))
    n, n_states, n_classes = lens.shape
    n_tokens = len(encoding.ids)
    calibrated = classifier.calibrate(lens.reshape(n * n_states, n_classes), n_tokens=n_tokens).numpy()
    return TrainingFilm(
        rows=checkpoint.snapshots.rows,
        tokens=encoding.tokens,
        logits=logits.numpy(),
        probabilities=classifier.calibrate(logits, n_tokens=n_tokens).numpy(),
        attention=patterns.numpy(),
        states=traced.states,
        lens=calibrated.reshape(n, n_states, n_classes),
    )


def class_changes(predicted: Sequence[int] | NDArray[np.intp]) -> tuple[int, ...]:
    """The snapshots, from 1, at which the prediction is another class than before."""
    return tuple(int(n) + 1 for n in np.flatnonzero(np.diff(predicted)))


def snapshots_to_ask_about(predicted: Sequence[int] | NDArray[np.intp]) -> tuple[int, ...]:
    """The snapshots to ask about before they are shown: each of `class_changes`, and the one halfway from the change
    before, so that the correct answer is not always the same."""
    changes = class_changes(predicted)
    halfway = ((before + flip) // 2 for before, flip in zip((0, *changes), changes, strict=False))
    return tuple(sorted({*changes, *(n for n in halfway if n > 0)}))
