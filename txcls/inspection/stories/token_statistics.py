"""Which tokens are typical of a class and which are rare, counted in training texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.data.batches import TokenisedTexts
from txcls.data.types import Roles
from txcls.inspection.stories.kinds import TextKinds, kinds_of_text
from txcls.text.encoder import TextEncoder
from txcls.text.vocabulary import SPECIAL_TOKENS

TYPICAL = 20
"""Tokens most typical of a class, for each class."""
LEAST_Z = 4.0
"""Least z-score of a typical token."""
RARE_SHARE = 0.05
"""Rare tokens are the least frequent ones that together make up this share of the training texts' tokens."""


@dataclass(frozen=True)
class TokenStatistics:
    """Counts of the V ids in training texts, and the ids that are typical of a class or rare.

    Attributes:
        counts: (V,) occurrences.
        typical: up to TYPICAL ids for each class, those with the largest z-scores of their log-odds ratio between the
            texts of the class and the other texts (Monroe et al. 2008, "Fightin' Words", equation 22, with a uniform
            prior of one text per token), a token counted once per text.
        rare: ids that together make up RARE_SHARE of all tokens.
    """

    counts: NDArray[np.int64]
    typical: frozenset[int]
    rare: frozenset[int]

    @classmethod
    def of(cls, texts: TokenisedTexts, *, n_classes: int, vocab_size: int) -> "TokenStatistics":
        """Those of labelled training texts."""
        counts = np.bincount(texts.ids, minlength=vocab_size)
        held = np.zeros((n_classes, vocab_size))  # C V: texts of the class that hold the token
        for number, label in enumerate(texts.labels):
            held[label, np.unique(texts[number])] += 1
        return cls(counts, _typical(held, np.bincount(texts.labels, minlength=n_classes)), _rare(counts))

    def read(
        self,
        encoder: TextEncoder,
        texts: Sequence[str],
        labels: Sequence[int],
        *,
        roles: Sequence[Roles] | None = None,
    ) -> list[TextKinds]:
        """The texts with the kinds of their tokens; those without a word are left out."""
        of_text = roles or [{}] * len(texts)
        encoded = [
            (encoder.encode(text), label, role) for text, label, role in zip(texts, labels, of_text, strict=True)
        ]
        return [
            kinds_of_text(one, label, counts=self.counts, typical=self.typical, rare=self.rare, roles=role)
            for one, label, role in encoded
            if one.has_words
        ]


def _typical(held: NDArray[np.float64], n_texts: NDArray[np.int64]) -> frozenset[int]:
    """From the texts of each class that hold each token, (C, V), and the texts of each class, (C,)."""
    inside, outside = held + 1, held.sum(axis=0) - held + 1  # C V
    without_inside = n_texts[:, None] - held + 1
    without_outside = (n_texts.sum() - n_texts)[:, None] - (held.sum(axis=0) - held) + 1
    log_odds = np.log(inside / without_inside) - np.log(outside / without_outside)
    z = log_odds / np.sqrt(1 / inside + 1 / outside)
    z[:, : len(SPECIAL_TOKENS)] = -np.inf
    best = np.argsort(-z, axis=1)[:, :TYPICAL]  # C TYPICAL
    return frozenset(
        int(token) for row, tokens in zip(z, best, strict=True) for token in tokens if row[token] > LEAST_Z
    )


def _rare(counts: NDArray[np.int64]) -> frozenset[int]:
    ordinary = counts.copy()
    ordinary[: len(SPECIAL_TOKENS)] = 0
    order = np.argsort(ordinary, kind="stable")
    few = np.cumsum(ordinary[order]) <= RARE_SHARE * ordinary.sum()
    return frozenset(int(token) for token in order[few] if token >= len(SPECIAL_TOKENS))
