"""How much of the difference between two predictions does one part carry at one token? Activation patching.

Two texts with the same number of tokens, one "clean" and one "corrupted", get different predictions. The activation of
one part at one token, recorded on one text, is patched into the forward pass on the other. The logit difference is the
logit of the clean text's class minus the logit of the corrupted text's class; each cell of the grid is the fraction of
it that the patch transfers, as in TransformerLens (Nanda & Bloom 2022) and Zhang & Nanda 2024,
https://arxiv.org/abs/2309.16042.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.checkpoint.card import card_part
from txcls.config import ModelConfig
from txcls.errors import TraceError, sanitize
from txcls.inference.predictor import Predictor
from txcls.inspection.tracing import encode_for_trace, max_texts_per_batch
from txcls.tap import trace
from txcls.text.formatting import decimals, head_name
from txcls.text.tokens import Encoding, Token

Direction = Literal["denoising", "noising"]
"""Denoising patches clean activations into the corrupted run (what is restored?), noising corrupted activations into
the clean run (what is lost?)."""
Index = tuple[Any, ...]
"""Which part of a tensor without its batch axis is patched."""
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
        parts += [Part(head_name(layer, head), f"layers.{layer}.attn.z", head) for head in range(config.n_heads)]
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
        """The fraction of the logit difference that each patch transfers, (P, T)."""
        return _fraction(self.clean, self.corrupted, self.logits, self.predicted, self.direction)


TokenGroup = Literal["changed", "others", "class token"]
"""The tokens that differ between two texts, the other words, and the class token if pooling reads only that."""


@dataclass(frozen=True)
class Route:
    """How the difference between two texts moves through the layers: all tokens of a group are patched together.

    All values are fractions of the logit difference that a patch transfers, as in `PatchGrid.values`.

    Attributes:
        tokens: the positions of each group's tokens.
        states: for each group, (L + 1,): its tokens' residual stream, patched before the first layer and after each.
        patterns: the attention patterns of all heads, patched together.
        values: the value vectors of all heads, patched together; the patterns stay.
    """

    tokens: Mapping[TokenGroup, tuple[int, ...]]
    states: Mapping[TokenGroup, tuple[float, ...]]
    patterns: float
    values: float


def patch_route(classifier: Predictor, clean: str, corrupted: str, *, direction: Direction = "denoising") -> Route:
    """Patch groups of tokens, all attention patterns, and all values.

    Raises:
        TraceError: as for `patch_grid`.
    """
    pair = _TextPair.read(classifier, clean, corrupted, direction)
    config = classifier.checkpoint.config.model
    first = {0} if config.reads_one_token else set()
    changed = {n for n, (old, new) in enumerate(zip(*(text.ids for text in pair.encodings), strict=True)) if old != new}
    tokens: dict[TokenGroup, tuple[int, ...]] = {
        "changed": tuple(sorted(changed - first)),
        "others": tuple(sorted(set(range(pair.length)) - changed - first)),
        "class token": tuple(first),
    }
    groups = [group for group, positions in tokens.items() if positions]
    layers = range(config.n_layers)
    taps = ["embeddings.out", *(f"layers.{layer}.resid_post" for layer in layers)]
    rows: list[list[tuple[str, Index]]] = [[(tap, (list(tokens[group]),))] for group in groups for tap in taps]
    rows += [[(f"layers.{layer}.attn.{name}", (...,)) for layer in layers] for name in ("pattern", "v")]
    moved = pair.fraction(pair.run(classifier, rows)).tolist()
    return Route(
        tokens={group: tokens[group] for group in groups},
        states={group: tuple(moved[n * len(taps) : (n + 1) * len(taps)]) for n, group in enumerate(groups)},
        patterns=moved[-2],
        values=moved[-1],
    )


def mean_route(classifier: Predictor, pairs: Iterable[tuple[str, str]]) -> dict[str, Any] | None:
    """The mean of `patch_route` over pairs of texts, as plain JSON values for `metrics["route"]`.

    Pairs that cannot be patched are left out; None if none is left. Patterns and values come with a 95 % interval over
    pairs: mean, low, high.
    """
    routes = []
    for clean, corrupted in pairs:
        with suppress(TraceError):
            routes.append(patch_route(classifier, clean, corrupted))
    if not routes:
        return None
    groups = [group for group in get_args(TokenGroup) if all(group in route.states for route in routes)]
    states = {group: np.mean([route.states[group] for route in routes], axis=0).round(4).tolist() for group in groups}
    patterns, values = (_interval([getattr(route, name) for route in routes]) for name in ("patterns", "values"))
    found = {"n": len(routes), "states": states, "patterns": patterns, "values": values}
    return found | {"card": _route_card(len(routes), states, patterns, values)}


def _interval(values: Sequence[float]) -> list[float]:
    """The mean, and the low and the high end of its 95 % interval."""
    mean = float(np.mean(values))
    half = 1.96 * float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return [round(end, 4) for end in (mean, mean - half, mean + half)]


def _route_card(
    n: int, states: Mapping[TokenGroup, Sequence[float]], patterns: Sequence[float], values: Sequence[float]
) -> list[dict[str, Any]]:
    text = (
        f"How the number gets from the subject to the answer, on {n} ordered pairs of these texts that differ only in "
        "the number of the subject, have equally many tokens and different answers: the mean share of the difference "
        "between the two answers (in logits) that moves with the states of a group of tokens, copied from one text "
        "into the other after each layer."
    )
    names = {"changed": "the subject", "others": "the other words", "class token": "the class token"}
    layers = range(1, len(states["changed"]))
    rows = [(names[group], *(decimals(share, 2) for share in shares)) for group, shares in states.items()]
    moved, with_values = (
        f"{decimals(mean, 2)} ({note}{decimals(low, 2)} to {decimals(high, 2)})"
        for note, (mean, low, high) in (("95 % interval over pairs ", patterns), ("", values))
    )
    return [
        card_part(text, ("copied", "before layer 1", *(f"after layer {layer}" for layer in layers)), rows),
        card_part(
            f"Of the difference, {moved} moves with the attention patterns of all heads, and {with_values} with their "
            "value vectors."
        ),
    ]


@dataclass(frozen=True)
class _TextPair:
    """Two texts that can be patched into each other, and their forward passes."""

    direction: Direction
    encodings: tuple[Encoding, Encoding]
    logits: tuple[Tensor, Tensor]
    source: Mapping[str, Tensor]
    patched_ids: Tensor

    @property
    def length(self) -> int:
        return len(self.encodings[0].ids)

    @property
    def predicted(self) -> tuple[int, int]:
        return int(self.logits[0].argmax()), int(self.logits[1].argmax())

    def fraction(self, logits: NDArray[np.floating]) -> NDArray[np.float64]:
        """The fraction of the logit difference that a patch transfers, from the logits (…, C) with the patch."""
        return _fraction(self.logits[0].numpy(), self.logits[1].numpy(), logits, self.predicted, self.direction)

    def run(self, classifier: Predictor, rows: Sequence[Sequence[tuple[str, Index]]]) -> NDArray[np.float32]:
        """Logits (N, C) of one text with patches from the other; row n has the n-th list of patches (tap, index)."""
        config = classifier.checkpoint.config.model
        batch_size = max_texts_per_batch(config.max_length if config.fixed_length else self.length)
        logits = []
        for first in range(0, len(rows), batch_size):
            batch = rows[first : first + batch_size]
            by_tap: dict[str, list[tuple[int, Index]]] = {}
            for row, patches in enumerate(batch):
                for tap, index in patches:
                    by_tap.setdefault(tap, []).append((row, index))
            edit = {tap: partial(_substitute, self.source[tap][0], patches) for tap, patches in by_tap.items()}
            with trace(record=(), edit=edit):
                logits.append(classifier.logits(self.patched_ids.expand(len(batch), -1)))
        return torch.cat(logits).numpy()

    @classmethod
    def read(cls, classifier: Predictor, clean: str, corrupted: str, direction: Direction) -> "_TextPair":
        encodings = (encode_for_trace(classifier, clean), encode_for_trace(classifier, corrupted))
        lengths = [len(encoding.ids) for encoding in encodings]
        if lengths[0] != lengths[1]:
            raise TraceError(
                f"one text has {lengths[0]} tokens and the other {lengths[1]}; a token is patched from the same "
                "position in the other text, so both need the same number of tokens"
            )
        if lengths[0] > MAX_TOKENS:
            raise TraceError(f"the texts have {lengths[0]} tokens; the grid is computed for up to {MAX_TOKENS}")
        ids = [torch.tensor([encoding.ids]) for encoding in encodings]  # 1 T
        runs = []
        for text in ids:
            with trace() as run:
                classifier.logits(text)
            runs.append(run.values)
        logits = runs[0]["logits"][0], runs[1]["logits"][0]  # C
        if int(logits[0].argmax()) == int(logits[1].argmax()):
            label = sanitize(classifier.classes[int(logits[0].argmax())], limit=40)
            raise TraceError(
                f"both texts are classified as {label}; patching needs two texts with different predictions"
            )
        source, patched = (0, 1) if direction == "denoising" else (1, 0)
        return cls(direction, encodings, logits, runs[source], ids[patched])


def _fraction(
    clean: NDArray[np.floating],
    corrupted: NDArray[np.floating],
    patched: NDArray[np.floating],
    predicted: tuple[int, int],
    direction: Direction,
) -> NDArray[np.float64]:
    """Denoising: (patched - corrupted) / (clean - corrupted); noising: (clean - patched) / (clean - corrupted)."""
    of_clean, of_corrupted, of_patched = (
        logits[..., predicted[0]].astype(float) - logits[..., predicted[1]].astype(float)
        for logits in (clean, corrupted, patched)
    )
    transferred = of_patched - of_corrupted if direction == "denoising" else of_clean - of_patched
    fraction: NDArray[np.float64] = transferred / (of_clean - of_corrupted)
    return fraction


def patch_grid(classifier: Predictor, clean: str, corrupted: str, *, direction: Direction = "denoising") -> PatchGrid:
    """Patch every part at every token, one at a time.

    Raises:
        TraceError: a text contains no word or is longer than MAX_TOKENS, or the texts have different numbers of tokens
            or the same predicted class.
    """
    pair = _TextPair.read(classifier, clean, corrupted, direction)
    parts = parts_of(classifier.checkpoint.config.model)
    rows = [
        [(part.tap, (token,) if part.head is None else (part.head, token))]
        for part in parts
        for token in range(pair.length)
    ]
    return PatchGrid(
        direction=direction,
        parts=parts,
        clean_tokens=pair.encodings[0].tokens,
        corrupted_tokens=pair.encodings[1].tokens,
        predicted=pair.predicted,
        clean=pair.logits[0].numpy(),
        corrupted=pair.logits[1].numpy(),
        logits=pair.run(classifier, rows).reshape(len(parts), pair.length, -1),
    )


def _substitute(source: Tensor, patches: Sequence[tuple[int, Index]], value: Tensor) -> Tensor:
    """The value (N, …) at a tap, with each (row, index) in `patches` replaced by its value in `source`."""
    changed = value.clone()
    for row, index in patches:
        changed[(row, *index)] = source[index]
    return changed
