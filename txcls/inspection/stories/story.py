"""A head's story: which kind of key its queries of some kind attend to."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from txcls.data.batches import batches_by_length
from txcls.inspection.stories.kinds import Bools, TextKinds, keys_of, queries_of
from txcls.predictor import Predictor, padded
from txcls.tap import trace

BATCH = 128
"""Texts of a batch, fewer if they are long."""


@dataclass(frozen=True, slots=True)
class Clause:
    """Queries of one kind attend to keys of another (`txcls.inspection.stories.kinds`)."""

    query: str
    key: str

    def __str__(self) -> str:
        return f"{self.query} → {self.key}"


@dataclass(frozen=True, slots=True)
class Story:
    """What one head does: a clause for each kind of query that the story is about."""

    layer: int
    head: int
    clauses: tuple[Clause, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.clauses))


def clause_masks(clauses: Sequence[Clause], text: TextKinds, *, causal: bool = False) -> list[Bools]:
    """For each clause which keys (columns) it names for each query (row), (T, T).

    A query of two kinds follows the first clause that names a key for it. With `causal`, later keys are left out.
    """
    free = np.ones(len(text), dtype=bool)  # T: queries that no clause has named a key for
    found = []
    for clause in clauses:
        keys = keys_of(clause.key, text)  # T T
        named = (queries_of(clause.query, text) & free)[:, None] & (np.tril(keys) if causal else keys)
        free = free & ~named.any(axis=1)
        found.append(named)
    return found


def story_masks(clauses: Sequence[Clause], text: TextKinds, *, causal: bool = False) -> Bools:
    """The same of all clauses together, (T, T); a row without any key is not part of the story."""
    named: Bools = np.any(clause_masks(clauses, text, causal=causal), axis=0)
    return named


def even_masks(named: Bools, *, causal: bool = False) -> Bools:
    """All keys for the queries that a story is about, (T, T)."""
    every = np.broadcast_to(named.any(axis=1, keepdims=True), named.shape)
    return np.tril(every) if causal else every


def right_answers(
    classifier: Predictor,
    texts: Sequence[TextKinds],
    *,
    layer: int = 0,
    head: int = 0,
    masks: Sequence[Bools] | None = None,
) -> Bools:
    """Which texts are classified correctly, (N,), with a head's weights spread evenly over the keys in `masks`.

    Args:
        classifier: nothing in it is changed.
        texts: with their labels.
        layer, head: whose weights are replaced.
        masks: for each text the keys (columns) of each query (row), (T, T); rows without a key keep the head's own
            weights. None to replace nothing.
    """
    found = np.zeros(len(texts), dtype=bool)
    for batch in batches_by_length(map(len, texts), batch_size=BATCH):
        ids = padded([texts[n].ids.tolist() for n in batch])  # B T
        edit = {}
        if masks is not None:
            edit = {f"layers.{layer}.attn.pattern": _Replaced(head, _spread([masks[n] for n in batch]))}
        with trace(record=(), edit=edit):
            answers = classifier.logits(ids).argmax(dim=-1).numpy()  # B
        found[batch] = answers == np.array([texts[n].label for n in batch])
    return found


def attention_of(classifier: Predictor, texts: Sequence[TextKinds], story: Story) -> list[tuple[float, float]]:
    """For each clause the weight that the head puts on the keys it names, and what even weights would put there.

    Both are means over the queries for which it names a key; nan where there are none.
    """
    name = f"layers.{story.layer}.attn.pattern"
    causal = classifier.checkpoint.config.model.causal
    sums = np.zeros((len(story.clauses), 3))  # weight, even weight, queries
    for batch in batches_by_length(map(len, texts), batch_size=BATCH):
        with trace(record=[name]) as opened:
            classifier.logits(padded([texts[place].ids.tolist() for place in batch]))
        for pattern, place in zip(opened[name][:, story.head].numpy(), batch, strict=True):  # T T
            for row, named in zip(sums, clause_masks(story.clauses, texts[place], causal=causal), strict=True):
                every = even_masks(named, causal=causal)
                even = named.sum(axis=1) / np.maximum(every.sum(axis=1), 1)  # T
                row += pattern[: len(named), : len(named)][named].sum(), even.sum(), named.any(axis=1).sum()
    return [(float(weight / n), float(even / n)) if n else (np.nan, np.nan) for weight, even, n in sums]


class _Replaced:
    """An edit of an attention pattern, (B, H, T, T): one head's rows become those of `weights` (B, N, N) with a sum.

    The pattern is larger than the weights where the model pads all texts to one length.
    """

    def __init__(self, head: int, weights: Tensor) -> None:
        self.head, self.weights = head, weights
        self.rows = weights.sum(dim=-1, keepdim=True) > 0  # B N 1

    def __call__(self, pattern: Tensor) -> Tensor:
        n = self.weights.shape[-1]
        wide = torch.nn.functional.pad(self.weights.to(pattern), (0, pattern.shape[-1] - n))  # B N T
        changed = pattern.clone()
        changed[:, self.head, :n] = torch.where(self.rows, wide, pattern[:, self.head, :n])
        return changed


def _spread(masks: Sequence[Bools]) -> Tensor:
    """Weights (B, T, T) that are even over the keys of each row, zero in rows without a key and in padding."""
    length = max(len(mask) for mask in masks)
    weights = np.zeros((len(masks), length, length), dtype=np.float32)
    for n, mask in enumerate(masks):
        weights[n, : len(mask), : len(mask)] = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    return torch.from_numpy(weights)
