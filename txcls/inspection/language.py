"""What a language model expects: fillers of a blank, ranked next tokens, surprise at each token, who may see whom."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.generation import Sampling, TextModel, generate, next_token_probabilities
from txcls.text.subwords import spell
from txcls.text.vocabulary import MASK, UNK

FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class RankedTokens:
    """The most probable tokens at one place, out of the whole vocabulary.

    Attributes:
        ids: the best first.
        probabilities: of these, from the softmax over all V tokens.
        n_others: how many tokens are not listed.
        other: their probability together.
        true_id: the token that stands there in the text; None where none does, or where it is not in the vocabulary.
        true_rank: its rank among all V, counted from 1; None with it.
        true_probability: None with it.
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
    """The ranked next tokens, and what the settings of sampling make of them.

    Attributes:
        ranked: by the plain softmax.
        filtered: probabilities of the ranked tokens by which the next one is drawn; 0 for those left out.
        n_kept: how many of the V tokens can be drawn.
        kept: what these held together in the plain softmax.
    """

    ranked: RankedTokens
    filtered: tuple[float, ...]
    n_kept: int
    kept: float


@dataclass(frozen=True)
class Surprise:
    """How unexpected each token of a text was to a causal model that had read those before it.

    Attributes:
        bits: -log2 of the probability that each token had, (T,); NaN for a first one, which nothing came before.
        mean: over the tokens that have one; None where none has.
    """

    bits: FloatArray
    mean: float | None

    @property
    def perplexity(self) -> float | None:
        """2 to the power of the mean: the model was as unsure as if choosing among so many tokens, all alike."""
        return None if self.mean is None else float(2.0 ** min(self.mean, 1000.0))


@dataclass(frozen=True)
class Sight:
    """Who may look at whom, and who does, over the same tokens.

    Attributes:
        allowed: (T, T), True where the token of the row may look at the token of the column.
        attention: patterns (L, H, T, T); each row sums to 1 over what is allowed in it.
    """

    allowed: NDArray[np.bool_]
    attention: FloatArray


def token_names(model: TextModel) -> tuple[str, ...]:
    """The V tokens as people read them, by id: of byte pairs ␣ for a space, words as they are."""
    return tuple(spell(token) if model.kind == "bpe" else token for token in model.tokens)


def fill_blank(model: TextModel, ids: Sequence[int], place: int, *, top: int = 10) -> RankedTokens:
    """What a masked-token model expects at one place, which it does not see.

    Args:
        model: of masked tokens.
        ids: T token ids of the text.
        place: index of the token to blank out.
        top: how many tokens to rank.
    """
    import torch

    blanked = torch.tensor([[*ids[:place], MASK, *ids[place + 1 :]]])  # 1 T
    with torch.inference_mode():
        states = model.model.read(blanked)[0, place]  # D
        probabilities = torch.softmax(model.model.unembed(states).double(), dim=-1)  # V
    truth = ids[place]
    return _ranked(probabilities.numpy(), top=top, truth=None if truth == UNK else truth)


def next_tokens(
    model: TextModel,
    ids: Sequence[int],
    *,
    sampling: Sampling | None = None,
    top: int = 10,
    truth: int | None = None,
) -> NextTokens:
    """What a causal model expects after `ids`, and what sampling leaves of it.

    Args:
        model: of next tokens.
        ids: at least one token.
        sampling: how the next one would be drawn; None for the plain softmax.
        top: how many tokens to rank.
        truth: the token that does come next in the text, if one does.
    """
    import torch

    with torch.inference_mode():
        logits = model.model.unembed(model.model.read(torch.tensor([ids]))[0, -1]).float()  # V
        filtered = next_token_probabilities(logits, sampling or Sampling()).double().numpy()  # V
        probabilities = torch.softmax(logits.double(), dim=-1).numpy()  # V
    ranked = _ranked(probabilities, top=top, truth=truth)
    drawable = filtered > 0
    return NextTokens(
        ranked=ranked,
        filtered=tuple(float(filtered[index]) for index in ranked.ids),
        n_kept=int(drawable.sum()),
        kept=min(float(probabilities[drawable].sum()), 1.0),
    )


def continue_ids(
    model: TextModel, ids: Sequence[int], *, n: int, sampling: Sampling, drawn: int = 0
) -> tuple[int, ...]:
    """The `n` tokens that sampling adds to `ids`, fewer where the model reads no more; `drawn` as for `generate`."""
    steps = generate(model.model, ids, n=n, sampling=sampling, drawn=drawn)
    return tuple(step.id for step in steps)


def surprise(model: TextModel, ids: Sequence[int]) -> Surprise:
    """How unexpected each of the T tokens was to a causal model.

    A token that the model begins every text with is not asked for, nor is the first token of a text without one.
    """
    import torch

    bits = torch.full((len(ids),), torch.nan)  # T
    with torch.inference_mode():
        states = model.model.read(torch.tensor([ids]))[0, :-1] if len(ids) > 1 else torch.zeros(0, 1)  # T-1 D
        # A few places at a time: their scores for a large vocabulary would take up gigabytes together.
        for start in range(0, len(states), 64):
            scores = model.model.unembed(states[start : start + 64]).double()  # n V
            asked = torch.tensor(ids[start + 1 : start + 1 + len(scores)]).unsqueeze(1)  # n 1
            nats = -torch.log_softmax(scores, dim=-1).gather(1, asked).squeeze(1)  # n
            bits[start + 1 : start + 1 + len(scores)] = (nats / np.log(2)).float()
    asked_for = bits[~bits.isnan()]
    return Surprise(bits.numpy(), float(asked_for.double().mean()) if len(asked_for) else None)


def sight(model: TextModel, ids: Sequence[int]) -> Sight:
    """The attention mask as the model applied it, and the patterns of every head."""
    import torch

    from txcls.tap import trace

    n = len(ids)
    with torch.inference_mode(), trace(record=["layers.*.attn.scores", "layers.*.attn.pattern"]) as opened:
        model.model.read(torch.tensor([ids]))
    layers = range(model.model.config.n_layers)
    patterns = torch.stack([opened[f"layers.{layer}.attn.pattern"][0, :, :n, :n] for layer in layers])  # L H T T
    allowed = opened["layers.0.attn.scores"][0, 0, :n, :n] > -torch.inf  # T T
    return Sight(allowed.numpy(), patterns.float().numpy())


def _ranked(probabilities: NDArray[np.float64], *, top: int, truth: int | None) -> RankedTokens:
    """The first `top` of V probabilities; equal ones in the order of their ids."""
    order = np.argsort(-probabilities, kind="stable")  # V
    shown = order[:top]
    rank = None if truth is None else int(np.flatnonzero(order == truth)[0]) + 1
    return RankedTokens(
        ids=tuple(int(index) for index in shown),
        probabilities=tuple(float(probabilities[index]) for index in shown),
        n_others=len(order) - len(shown),
        other=max(float(probabilities[order[top:]].sum()), 0.0),
        true_id=truth,
        true_rank=rank,
        true_probability=None if truth is None else float(probabilities[truth]),
    )
