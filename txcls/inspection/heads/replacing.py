"""Replace parts of the model on a batch of texts, and compare the output distribution with the unchanged one."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from txcls.inference.interrupts import may_pause
from txcls.inference.predictor import pad_rows
from txcls.inspection.ablation import Means
from txcls.inspection.heads.tables import Tables
from txcls.model import TextClassifier
from txcls.tap import Edit, trace

HeadGroup = Mapping[int, Sequence[int]]
"""Heads of one model that are replaced together, by layer."""


class Batch:
    """A batch of texts with the states of the unchanged model, from which it can run with some parts replaced."""

    @torch.inference_mode()
    def __init__(self, model: TextClassifier, ids: Tensor, labels: Tensor, random: np.random.Generator) -> None:
        self.model, self.labels = model, labels
        self.n_ids = ids.shape[1]
        self.ids = model.pad(ids)  # B T
        self.mask = model.attention_mask(self.ids)
        self.real = model.real(self.ids)
        names = [f"layers.{n}.{tap}" for n in range(len(model.layers)) for tap in ("attn.z", "ff_out", "resid_post")]
        with trace(record=["embeddings.out", *names]) as activations:
            logits = model(ids)
        self.states = activations.values
        self.log_probabilities = F.log_softmax(logits.double(), dim=-1)  # B C
        self.is_correct = logits.argmax(dim=-1) == labels
        n = len(ids)
        self.donors = (torch.arange(n) + int(random.integers(1, max(n, 2)))) % n  # B: never the text itself if B > 1
        self.donor_tokens = _align(self.ids, self.real, self.donors)  # B T

    @torch.inference_mode()
    def run(self, edit: Mapping[str, Edit], *, first_layer: int) -> tuple[Tensor, Tensor]:
        """The KL divergence from the unchanged output (B,), and which predictions are right (B,), with these edits."""
        model = self.model
        x = self.states["embeddings.out" if first_layer == 0 else f"layers.{first_layer - 1}.resid_post"]
        with trace(record=(), edit=edit):
            for layer in model.layers[first_layer:]:
                x = layer(x, self.mask)
            logits = model.head(model.pool(model.norm(x), None if model.config.pool_padding else self.real))
        changed = F.log_softmax(logits.double(), dim=-1)
        kl = (self.log_probabilities.exp() * (self.log_probabilities - changed)).sum(dim=-1)
        return kl.clamp(min=0.0), logits.argmax(dim=-1) == self.labels

    def with_tables(self, tables: Tables, group: HeadGroup, *, n_heads: int) -> tuple[Tensor, Tensor]:
        """`run` with the attention of these heads replaced by their tables."""
        edit: dict[str, Edit] = {}
        for layer, heads in group.items():
            rows = [layer * n_heads + head for head in heads]
            edit[f"layers.{layer}.attn.scores"] = partial(_with_scores, heads, partial(tables.scores, self.ids, rows))
        return self.run(edit, first_layer=min(group))

    def with_means(self, means: Means, group: HeadGroup) -> tuple[Tensor, Tensor]:
        """`run` with the output of these heads replaced by its mean over many texts."""
        return self._with_outputs(group, lambda tap: torch.from_numpy(means.taps[tap])[None, :, None])

    def with_resampled(self, group: HeadGroup) -> tuple[Tensor, Tensor]:
        """`run` with the output of these heads at each token replaced by their output at a token of another text."""
        return self._with_outputs(
            group,
            lambda tap: self.states[tap][self.donors].gather(
                2, self.donor_tokens[:, None, :, None].expand(self.states[tap].shape)
            ),
        )

    def with_feed_forward_replaced(self, layer: int, means: Means | None) -> tuple[Tensor, Tensor]:
        """`run` with the output of a feed-forward block averaged, or resampled if there are no `means`."""
        tap = f"layers.{layer}.ff_out"
        if means is not None:
            other = torch.from_numpy(means.taps[tap]).expand(self.states[tap].shape)
        else:
            other = self.states[tap][self.donors].gather(1, self.donor_tokens[..., None].expand(self.states[tap].shape))
        return self.run({tap: lambda value: other.to(value)}, first_layer=layer)

    def _with_outputs(self, group: HeadGroup, other: Callable[[str], Tensor]) -> tuple[Tensor, Tensor]:
        """`run` with the output of the heads replaced by `other`, which maps a tap to values like (B, H, T, E)."""
        edit: dict[str, Edit] = {}
        for layer, heads in group.items():
            tap = f"layers.{layer}.attn.z"
            edit[tap] = partial(_with_output, heads, other(tap))
        return self.run(edit, first_layer=min(group))


def measure_worth(
    model: TextClassifier, rows: Sequence[Sequence[int]], means: Means, layer: int
) -> NDArray[np.float64]:
    """How much the model's output changes without each head of a layer: KL divergences (H, 2), averaged over texts.

    Column 0 is with the head's output averaged, column 1 with another text's. `rows` has the ids (T,) of each text.
    """
    batch = Batch(model, pad_rows(rows), torch.zeros(len(rows), dtype=torch.long), np.random.default_rng(0))
    worths = np.zeros((model.config.n_heads, 2))
    for head in range(model.config.n_heads):
        may_pause()
        group = {layer: [head]}
        worths[head] = batch.with_means(means, group)[0].mean(), batch.with_resampled(group)[0].mean()
    return worths


def _align(ids: Tensor, real: Tensor | None, donors: Tensor) -> Tensor:
    """For each token, the position of the donor's token that stands in for it, (B, T).

    It is the same position; a donor with fewer tokens is repeated from its second token on.
    """
    positions = torch.arange(ids.shape[1]).expand(ids.shape)  # B T
    if real is None:
        return positions
    lengths = real.sum(dim=1)[donors][:, None]  # B 1
    again = 1 + (positions - 1) % (lengths - 1).clamp(min=1)
    return torch.where(positions < lengths, positions, torch.where(lengths > 1, again, 0))


def _with_scores(heads: Sequence[int], table: Callable[[], Tensor], scores: Tensor) -> Tensor:
    """Scores (B, H, T, T) with those of some heads replaced; masked keys stay masked.

    The table's scores are computed here, so that only those of one layer are in memory.
    """
    changed = scores.clone()
    changed[:, heads] = table().to(scores).masked_fill(torch.isinf(scores[:, heads]), -torch.inf)
    return changed


def _with_output(heads: Sequence[int], other: Tensor, z: Tensor) -> Tensor:
    """Outputs (B, H, T, E) with those of some heads replaced."""
    changed = z.clone()
    changed[:, heads] = other.to(z).expand(z.shape)[:, heads]
    return changed
