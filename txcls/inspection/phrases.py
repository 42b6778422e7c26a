"""The known phrases of a text: where they stand, how they vote, and what part each token has in that."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from txcls.inspection.tracing import FloatArray

if TYPE_CHECKING:
    from txcls.bigrams_and_phrases import Phrases


@dataclass(frozen=True)
class Phrase:
    """A known phrase at one place of a text: its tokens are those from `first` to `last`, and `votes` (C,) its numbers
    before they are divided by the square root of how many there are."""

    first: int
    last: int
    votes: FloatArray


def phrases_of(phrases: "Phrases", ids: Sequence[int]) -> tuple[Phrase, ...]:
    """The known phrases of ids (T,), by the token they end at, the shorter first."""
    import torch

    rows = phrases.rows(torch.tensor([ids]))[0]  # T longest
    found = [(end, n) for end, n in torch.nonzero(rows >= 0).tolist()]
    return tuple(Phrase(end - n, end, phrases.table[rows[end, n]].detach().float().numpy()) for end, n in found)


def votes_by_token(phrases: "Phrases", ids: Sequence[int]) -> FloatArray:
    """The votes that a text's phrases add to the logits, (T, C), every phrase's shared by its tokens in equal parts."""
    votes = np.zeros((len(ids), phrases.table.shape[1]), dtype=np.float32)
    found = phrases_of(phrases, ids)
    for one in found:
        votes[one.first : one.last + 1] += one.votes / (one.last + 1 - one.first)
    shared: FloatArray = votes / np.sqrt(np.float32(max(len(found), int(phrases.fewest))))
    return shared
