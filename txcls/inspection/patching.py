"""How much of the difference between two texts moves with one part at one token? Activation patching.

Two texts with the same number of tokens, one "clean" and one "corrupted", get different predictions. The activation of
one part at one token, recorded on one text, is patched into the forward pass on the other. The logit difference is the
logit of the clean text's class minus the logit of the corrupted text's class; each cell of the grid is the fraction of
it that the patch transfers, as in TransformerLens (Nanda & Bloom 2022) and Zhang & Nanda 2024,
https://arxiv.org/abs/2309.16042.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.config import ModelConfig
from txcls.errors import TraceError
from txcls.inference.predictor import Predictor
from txcls.inspection.tracing import max_texts_per_batch, readable
from txcls.tap import trace
from txcls.text.tokens import Token
from txcls.wording import shown

Direction = Literal["denoising", "noising"]
"""Denoising patches clean activations into the corrupted run (what is restored?), noising corrupted activations into
the clean run (what is lost?)."""
MAX_TOKENS = 64
"""Maximum number of tokens in a text, since a grid needs a forward pass for each part and token."""


@dataclass(frozen=True, slots=True)
class Part:
    """An activation to patch: the tensor at a tap, or, at `layers.N.attn.z`, one head of it."""

    name: str
    tap: str
    head: int | None = None


def parts_of(config: ModelConfig) -> tuple[Part, ...]:
    """The parts in the order of the forward pass: the embeddings, then for each layer its heads, the outputs of
    attention and feed-forward, and the residual stream after it."""
    parts = [Part("embeddings", "embeddings.out")]
    for layer in range(config.n_layers):
        parts += [
            Part(f"head {layer + 1}.{head + 1}", f"layers.{layer}.attn.z", head) for head in range(config.n_heads)
        ]
        parts += [
            Part(f"attention {layer + 1}", f"layers.{layer}.attn_out"),
            Part(f"feed-forward {layer + 1}", f"layers.{layer}.ff_out"),
            Part(f"residual after {layer + 1}", f"layers.{layer}.resid_post"),
        ]
    return tuple(parts)


@dataclass(frozen=True)
class PatchGrid:
    """Every part patched at every token, one at a time.

    Attributes:
        parts: P parts.
        clean_tokens, corrupted_tokens: T tokens of each text.
        predicted: the predicted classes of the clean and the corrupted text.
        clean, corrupted: logits (C,) of the two texts without patching.
        logits: (P, T, C) with one part patched at one token.
    """

    direction: Direction
    parts: tuple[Part, ...]
    clean_tokens: tuple[Token, ...]
    corrupted_tokens: tuple[Token, ...]
    predicted: tuple[int, int]
    clean: NDArray[np.float32]
    corrupted: NDArray[np.float32]
    logits: NDArray[np.float32]

    @property
    def values(self) -> NDArray[np.float64]:
        """The fraction of the logit difference that each patch transfers, (P, T).

        Denoising: (patched - corrupted) / (clean - corrupted). Noising: (clean - patched) / (clean - corrupted).
        """
        clean, corrupted, patched = (
            logits[..., self.predicted[0]].astype(float) - logits[..., self.predicted[1]].astype(float)
            for logits in (self.clean, self.corrupted, self.logits)
        )
        transferred = patched - corrupted if self.direction == "denoising" else clean - patched
        values: NDArray[np.float64] = transferred / (clean - corrupted)
        return values


def patch_grid(classifier: Predictor, clean: str, corrupted: str, *, direction: Direction = "denoising") -> PatchGrid:
    """Patch every part at every token, one at a time.

    Raises:
        TraceError: a text contains no word or is longer than MAX_TOKENS, or the texts have different numbers of tokens
            or the same predicted class.
    """
    encodings = [readable(classifier, text) for text in (clean, corrupted)]
    lengths = [len(encoding.ids) for encoding in encodings]
    if lengths[0] != lengths[1]:
        raise TraceError(
            f"one text has {lengths[0]} tokens and the other {lengths[1]}; a token is patched from the same position "
            "in the other text, so both need the same number of tokens"
        )
    if lengths[0] > MAX_TOKENS:
        raise TraceError(f"the texts have {lengths[0]} tokens; the grid is computed for up to {MAX_TOKENS}")
    config = classifier.checkpoint.config.model
    parts = parts_of(config)
    ids = [torch.tensor([encoding.ids]) for encoding in encodings]  # 1 T
    with trace(record={part.tap for part in parts} | {"logits"}) as clean_run:
        classifier.logits(ids[0])
    with trace(record={part.tap for part in parts} | {"logits"}) as corrupted_run:
        classifier.logits(ids[1])
    logits = [run["logits"][0] for run in (clean_run, corrupted_run)]  # C
    predicted = int(logits[0].argmax()), int(logits[1].argmax())
    if predicted[0] == predicted[1]:
        label = shown(classifier.classes[predicted[0]], limit=40)
        raise TraceError(f"both texts are classified as {label}; patching needs two texts with different predictions")
    patched_ids, source = (ids[1], clean_run) if direction == "denoising" else (ids[0], corrupted_run)
    cells = [(part, token) for part in parts for token in range(lengths[0])]
    batch_size = max_texts_per_batch(config.max_length if config.fixed_length else lengths[0])
    patched = [
        _patched(classifier, patched_ids, source.values, cells[first : first + batch_size])
        for first in range(0, len(cells), batch_size)
    ]
    return PatchGrid(
        direction=direction,
        parts=parts,
        clean_tokens=encodings[0].tokens,
        corrupted_tokens=encodings[1].tokens,
        predicted=predicted,
        clean=logits[0].numpy(),
        corrupted=logits[1].numpy(),
        logits=torch.cat(patched).unflatten(0, (len(parts), lengths[0])).numpy(),
    )


def _patched(
    classifier: Predictor, ids: Tensor, source: dict[str, Tensor], cells: Sequence[tuple[Part, int]]
) -> Tensor:
    """Logits (N, C) of ids (1, T), row n with only the n-th of N cells patched from the values (1, …) of `source`."""
    by_tap: dict[str, list[tuple[int, Part, int]]] = {}
    for row, (part, token) in enumerate(cells):
        by_tap.setdefault(part.tap, []).append((row, part, token))
    edits = {tap: partial(_substitute, source[tap][0], patches) for tap, patches in by_tap.items()}
    with trace(record=(), edit=edits):
        return classifier.logits(ids.expand(len(cells), -1))


def _substitute(source: Tensor, patches: Sequence[tuple[int, Part, int]], value: Tensor) -> Tensor:
    """The value (N, …) at a tap, with each (row, part, token) in `patches` replaced by its value in `source`."""
    rows, tokens = torch.tensor([(row, token) for row, _, token in patches]).T
    changed = value.clone()
    heads = [part.head for _, part, _ in patches if part.head is not None]
    if heads:
        changed[rows, heads, tokens] = source[heads, tokens]
    else:
        changed[rows, tokens] = source[tokens]
    return changed
