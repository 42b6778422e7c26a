"""What does a language model predict? Masked tokens, next tokens, the surprisal of each token."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.inference.generation import Sampling, TextModel, next_token_probabilities
from txcls.text.subwords import spell
from txcls.text.vocabulary import MASK, UNK

FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class RankedTokens:
    """The most probable of the V tokens at one position.

    Attributes:
        ids, probabilities: the most probable tokens, in descending order.
        n_others: number of tokens not listed.
        other: total probability of the tokens not listed.
        true_id: the token at that position in the text; None if there is none, or if it is not in the vocabulary.
        true_rank, true_probability: its rank among all V tokens, from 1, and its probability; None if `true_id` is.
    """

    ids: tuple[int, ...]
    probabilities: tuple[float, ...]
    n_others: int
    other: float
    true_id: int | None
    true_rank: int | None
    true_probability: float | None


@dataclass(frozen=True)
class NextTokens:
    """The next tokens, with their probabilities before and after the sampling settings are applied.

    Attributes:
        ranked: the most probable tokens by the plain softmax.
        filtered: the probability of sampling each of them; 0 if filtered out.
        n_candidates: number of tokens that can be sampled.
        candidate_share: total probability of these tokens in the plain softmax.
    """

    ranked: RankedTokens
    filtered: tuple[float, ...]
    n_candidates: int
    candidate_share: float


@dataclass(frozen=True)
class Surprisal:
    """The surprisal of each token of a text under a causal model, given the preceding tokens.

    Attributes:
        bits: -log2 of the probability of each token, (T,); NaN for the first token.
        mean: mean over the predicted tokens; None if there is none.
    """

    bits: FloatArray
    mean: float | None

    @property
    def perplexity(self) -> float | None:
        """2 to the power of the mean: the number of equally probable tokens that would be equally hard to predict."""
        return None if self.mean is None else float(2.0 ** min(self.mean, 1000.0))


def token_names(model: TextModel) -> tuple[str, ...]:
    """The V tokens as text, by id; byte-pair tokens are written with ␣ for a space."""
    return tuple(spell(token) if model.kind == "bpe" else token for token in model.tokens)


def fill_blank(model: TextModel, ids: Sequence[int], position: int, *, top: int = 10) -> RankedTokens:
    """The tokens that a masked language model predicts at a position, with the token there masked."""
    masked = torch.tensor([[*ids[:position], MASK, *ids[position + 1 :]]])  # 1 T
    with torch.inference_mode():
        state = model.model.read(masked)[0, position]  # D
        probabilities = torch.softmax(model.model.unembed(state).double(), dim=-1)  # V
    truth = ids[position]
    return _ranked(probabilities.numpy(), top=top, truth=None if truth == UNK else truth)


def next_tokens(
    model: TextModel,
    ids: Sequence[int],
    *,
    sampling: Sampling | None = None,
    top: int = 10,
    truth: int | None = None,
) -> NextTokens:
    """The tokens that a causal model predicts after `ids` (at least one); `truth` is the actual next token."""
    with torch.inference_mode():
        logits = model.model.unembed(model.model.read(torch.tensor([ids]))[0, -1]).float()  # V
        filtered = next_token_probabilities(logits, sampling or Sampling()).double().numpy()  # V
        probabilities = torch.softmax(logits.double(), dim=-1).numpy()  # V
    ranked = _ranked(probabilities, top=top, truth=truth)
    can_be_sampled = filtered > 0
    return NextTokens(
        ranked=ranked,
        filtered=tuple(float(filtered[index]) for index in ranked.ids),
        n_candidates=int(can_be_sampled.sum()),
        candidate_share=min(float(probabilities[can_be_sampled].sum()), 1.0),
    )


def measure_surprisal(model: TextModel, ids: Sequence[int]) -> Surprisal:
    """The surprisal of each of T tokens under a causal model."""
    bits = torch.full((len(ids),), torch.nan)  # T
    with torch.inference_mode():
        states = model.model.read(torch.tensor([ids]))[0, :-1] if len(ids) > 1 else torch.zeros(0, 1)  # T-1 D
        # A few positions at a time: with a large vocabulary, the logits of all positions would take gigabytes.
        for start in range(0, len(states), 64):
            logits = model.model.unembed(states[start : start + 64]).double()  # n V
            following = torch.tensor(ids[start + 1 : start + 1 + len(logits)]).unsqueeze(1)  # n 1
            nats = -torch.log_softmax(logits, dim=-1).gather(1, following).squeeze(1)  # n
            bits[start + 1 : start + 1 + len(logits)] = (nats / np.log(2)).float()
    predicted = bits[~bits.isnan()]
    return Surprisal(bits.numpy(), float(predicted.double().mean()) if len(predicted) else None)


def _ranked(probabilities: NDArray[np.float64], *, top: int, truth: int | None) -> RankedTokens:
    """The `top` largest of V probabilities; ties are ordered by id."""
    order = np.argsort(-probabilities, kind="stable")  # V
    listed = order[:top]
    rank = None if truth is None else int(np.flatnonzero(order == truth)[0]) + 1
    return RankedTokens(
        ids=tuple(int(index) for index in listed),
        probabilities=tuple(float(probabilities[index]) for index in listed),
        n_others=len(order) - len(listed),
        other=max(float(probabilities[order[top:]].sum()), 0.0),
        true_id=truth,
        true_rank=rank,
        true_probability=None if truth is None else float(probabilities[truth]),
    )
