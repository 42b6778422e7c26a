"""From maps of single heads to tokens: attention rollout, how much each token reaches what is classified, and what a
head's map is like in two numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.inspection.tracing import FloatArray, TracedText

Floats = NDArray[np.floating]


def attention_rollout(attention: Floats) -> Floats:
    """How much of each input token is in each token after the last layer, (T, T); rows sum to 1.

    Abnar & Zuidema 2020, https://aclanthology.org/2020.acl-main.385, equation 1: the heads of a layer are averaged,
    the residual connection counts as half (0.5 A + 0.5 I), and the layers are multiplied. It knows nothing of values,
    feed-forward blocks, or of how much a layer writes beside what is there.

    Args:
        attention: patterns (L, H, T, T), each row summing to 1.
    """
    mixed = 0.5 * attention.mean(axis=1) + 0.5 * np.eye(attention.shape[-1])  # L T T
    reached: Floats = mixed[0]  # T T
    for layer in mixed[1:]:
        reached = layer @ reached
    return reached


def read_out(traced: TracedText) -> FloatArray:
    """How much each token's last state counts in the text's vector, (T,): the pooling weights, or all on the first."""
    if traced.pooling is not None:
        return traced.pooling
    first = np.zeros(len(traced.tokens), dtype=np.float32)
    first[0] = 1.0
    return first


@dataclass(frozen=True)
class HeadStatistics:
    """For each head (L, H), the mean over the tokens that look.

    `entropy` in bits says how widely a token spreads its attention: 0 for all on one token, log2(T) for all alike.
    `distance` is how many tokens away it looks on average.
    """

    entropy: Floats
    distance: Floats


def head_statistics(attention: Floats) -> HeadStatistics:
    """Entropy and mean distance of every head's pattern.

    Args:
        attention: patterns (L, H, T, T), each row summing to 1.
    """
    pattern = attention.astype(np.float64)
    logs = np.log2(pattern, out=np.zeros_like(pattern), where=pattern > 0)
    place = np.arange(pattern.shape[-1])
    apart = np.abs(place[:, None] - place[None, :])  # T T
    return HeadStatistics(
        entropy=-(pattern * logs).sum(axis=-1).mean(axis=-1) + 0.0,  # never -0
        distance=(pattern * apart).sum(axis=-1).mean(axis=-1),
    )


@dataclass(frozen=True)
class QueryKey:
    """Why one token looks at another in one head: `query`, `key` and `products` (E,), their product by dimension over
    sqrt(E). The products add up to `score`; softmax over the scores of all tokens makes it `weight`."""

    query: FloatArray
    key: FloatArray
    products: FloatArray
    score: float
    weight: float


def query_key(traced: TracedText, *, layer: int, head: int, query: int, key: int) -> QueryKey:
    """The query of one token against the key of another, dimension by dimension.

    Raises:
        KeyError, IndexError: there is no such layer, head or token.
    """
    prefix = f"layers.{layer}.attn"
    q, k = traced.values[f"{prefix}.q"][head, query], traced.values[f"{prefix}.k"][head, key]  # E
    products = q * k / np.float32(np.sqrt(len(q)))  # E
    return QueryKey(q, k, products, float(products.sum()), float(traced.attention[layer, head, query, key]))
