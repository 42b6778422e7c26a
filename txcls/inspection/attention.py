"""What do attention patterns show? Rollout, entropy and distance of heads, and why a query attends to a key."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.inspection.tracing import FloatArray, TracedText

Floats = NDArray[np.floating]


def attention_rollout(attention: Floats) -> Floats:
    """How much each input token contributes to each token after the last layer, (T, T); rows sum to 1.

    Abnar & Zuidema 2020, https://aclanthology.org/2020.acl-main.385, equation 1: average the heads of a layer, give the
    residual connection half the weight (0.5 A + 0.5 I), and multiply the layers. This ignores values, feed-forward
    blocks, and how much a layer adds relative to the residual stream. Takes patterns (L, H, T, T).
    """
    rollout: Floats = np.eye(attention.shape[-1])  # T T
    for layer in attention:  # H T T
        rollout = 0.5 * (layer.mean(axis=0) @ rollout + rollout)
    return rollout


def readout_weights(traced: TracedText) -> FloatArray:
    """Weight of each token's final state in the text vector, (T,): its pooling weight, or 1 for the first token."""
    if traced.pooling is not None:
        return traced.pooling
    first = np.zeros(len(traced.tokens), dtype=np.float32)
    first[0] = 1.0
    return first


@dataclass(frozen=True)
class HeadStatistics:
    """Statistics of each head, (L, H), averaged over queries.

    `entropy` is the entropy of a query's weights in bits: 0 if all weight is on one key, log2(T) if it is uniform.
    `distance` is the mean distance in tokens from query to key, weighted by attention.
    """

    entropy: Floats
    distance: Floats


def head_statistics(attention: Floats) -> HeadStatistics:
    """Entropy and mean distance of every head's pattern, (L, H, T, T)."""
    place = np.arange(attention.shape[-1])
    distances = np.abs(place[:, None] - place[None, :])  # T T
    entropy, distance = np.zeros(attention.shape[:2]), np.zeros(attention.shape[:2])  # L H
    for head in np.ndindex(entropy.shape):  # one head at a time: the patterns of a long text are large
        pattern = attention[head].astype(np.float64)  # T T
        distance[head] = (pattern * distances).sum(axis=-1).mean()
        logs = np.log2(pattern, out=np.zeros_like(pattern), where=pattern > 0)
        entropy[head] = -(pattern * logs).sum(axis=-1).mean() + 0.0  # never -0
    return HeadStatistics(entropy, distance)


@dataclass(frozen=True)
class QueryKey:
    """Why a token attends to another in one head. `products` (E,) is the elementwise product of `query` and `key`,
    divided by sqrt(E). It sums to `score`; softmax over the scores of all keys gives `weight`."""

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
