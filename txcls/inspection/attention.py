"""What do attention patterns show? Rollout, and how one score is computed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.config import ModelConfig
from txcls.errors import TraceError
from txcls.inspection.tracing import FloatArray, TracedText

Floats = NDArray[np.floating]


def attention_rollout(attention: Floats) -> Floats:
    """Attention rollout: how much each input token contributes to each token's last state, (T, T); rows sum to 1.

    Abnar & Zuidema 2020, https://aclanthology.org/2020.acl-main.385, equation 1: average the heads of a layer, give the
    residual connection half the weight (0.5 A + 0.5 I), and multiply the layers. Rollout ignores values, feed-forward
    blocks, and the size of a layer's output relative to the residual stream. `attention` holds patterns (L, H, T, T).
    """
    rollout: Floats = np.eye(attention.shape[-1])  # T T
    for layer in attention:  # H T T
        rollout = 0.5 * (layer.mean(axis=0) @ rollout + rollout)
    return rollout


def readout_weights(traced: TracedText, config: ModelConfig) -> FloatArray:
    """The weight of each token's last state in the text vector, (T,): pooling weights, or 1 for the first token only.

    Raises:
        TraceError: this kind of pooling has no weights.
    """
    if traced.pooling is not None:
        return traced.pooling
    if not config.reads_one_token:
        raise TraceError(f"Rollout is not available for {config.pooling} pooling, which has no weights of tokens")
    first = np.zeros(len(traced.tokens), dtype=np.float32)
    first[0] = 1.0
    return first


def strongest_weights(traced: TracedText) -> dict[str, str]:
    """Each head's largest attention weight with its query and key, as text, keyed by layer.head, from 1."""
    names, attention = [token.label for token in traced.tokens], traced.attention  # T, L H T T
    strongest = {}
    for layer, head in np.ndindex(attention.shape[:2]):
        query, key = np.unravel_index(int(attention[layer, head].argmax()), attention.shape[2:])
        strongest[f"{layer + 1}.{head + 1}"] = f"{names[query]} → {names[key]} {attention[layer, head, query, key]:.2f}"
    return strongest


@dataclass(frozen=True)
class QueryKey:
    """One attention score of one head: `products` (E,), the elementwise product of `query` and `key` divided by
    sqrt(E), sums to `score`; the softmax over the scores of all keys gives `weight`."""

    query: FloatArray
    key: FloatArray
    products: FloatArray
    score: float
    weight: float


def query_key(traced: TracedText, *, layer: int, head: int, query: int, key: int) -> QueryKey:
    """The score of a query and a key, decomposed by dimension of the head.

    Raises:
        TraceError: the model computes a score other than the sum of the products, such as one of rotated vectors.
    """
    prefix = f"layers.{layer}.attn"
    q, k = traced.values[f"{prefix}.q"][head, query], traced.values[f"{prefix}.k"][head, key]  # E
    products = q * k / np.float32(np.sqrt(len(q)))  # E
    score, weight = (float(traced.values[f"{prefix}.{name}"][head, query, key]) for name in ("scores", "pattern"))
    total = float(products.sum())
    if np.isfinite(score) and not np.isclose(total, score, rtol=1e-3, atol=1e-3):
        raise TraceError(
            f"Not available for this model: query times key, divided by √{len(products)}, is {total:.3f}, but its "
            f"score is {score:.3f}."
        )
    return QueryKey(q, k, products, score, weight)
