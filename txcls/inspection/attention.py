"""What do attention patterns say? Rollout, entropy and distance of heads, and why a query attends to a key."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.inspection.tracing import FloatArray, TracedText

Floats = NDArray[np.floating]


def attention_rollout(attention: Floats) -> Floats:
    """How much of each input token is in each token after the last layer, (T, T); rows sum to 1.

    Abnar & Zuidema 2020, https://aclanthology.org/2020.acl-main.385, equation 1: the heads of a layer are averaged,
    the residual connection counts for half (0.5 A + 0.5 I), and the layers are multiplied. It ignores values,
    feed-forward blocks, and how much a layer adds relative to the residual stream. Takes patterns (L, H, T, T).
    """
    rollout: Floats = np.eye(attention.shape[-1])  # T T
    for layer in attention:  # H T T
        rollout = 0.5 * (layer.mean(axis=0) @ rollout + rollout)
    return rollout


def readout_weights(traced: TracedText) -> FloatArray:
    """How much each token's final state counts in the text's vector, (T,): the pooling weights, or 1 for the first."""
    if traced.pooling is not None:
        return traced.pooling
    first = np.zeros(len(traced.tokens), dtype=np.float32)
    first[0] = 1.0
    return first


@dataclass(frozen=True)
class HeadStatistics:
    """For each head (L, H), the mean over queries.

    `entropy` in bits is that of a query's weights: 0 with all weight on one key, log2(T) with equal weights.
    `distance` is the mean number of tokens between query and key, by weight.
    """

    entropy: Floats
    distance: Floats


def head_statistics(attention: Floats) -> HeadStatistics:
    """Entropy and mean distance of every head's pattern, (L, H, T, T)."""
    place = np.arange(attention.shape[-1])
    distances = np.abs(place[:, None] - place[None, :])  # T T
    entropy, distance = np.zeros(attention.shape[:2]), np.zeros(attention.shape[:2])  # L H
    for head in np.ndindex(entropy.shape):  # the maps of a long text are large
        pattern = attention[head].astype(np.float64)  # T T
        distance[head] = (pattern * distances).sum(axis=-1).mean()
        logs = np.log2(pattern, out=np.zeros_like(pattern), where=pattern > 0)
        entropy[head] = -(pattern * logs).sum(axis=-1).mean() + 0.0  # never -0
    return HeadStatistics(entropy, distance)


@dataclass(frozen=True)
class QueryKey:
    """Why a token attends to another in one head: `query`, `key` and `products` (E,), their products by dimension
    divided by sqrt(E). The products sum to `score`; softmax over the scores of all keys turns it into `weight`."""

    query: FloatArray
    key: FloatArray
    products: FloatArray
    score: float
    weight: float


def query_key(traced: TracedText, *, layer: int, head: int, query: int, key: int) -> QueryKey:
    """The query of one token times the key of another, dimension by dimension."""
    prefix = f"layers.{layer}.attn"
    q, k = traced.values[f"{prefix}.q"][head, query], traced.values[f"{prefix}.k"][head, key]  # E
    products = q * k / np.float32(np.sqrt(len(q)))  # E
    return QueryKey(q, k, products, float(products.sum()), float(traced.values[f"{prefix}.pattern"][head, query, key]))
