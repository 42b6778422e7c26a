"""How much attention each kind of query gives to each kind of key, against what chance would give."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.data.batches import batches_by_length
from txcls.inspection.stories.kinds import TextKinds, key_kinds, keys_of, queries_of, query_kinds
from txcls.predictor import Predictor, padded
from txcls.tap import trace

Floats = NDArray[np.float64]

BATCH = 32
"""Texts of a batch, fewer if they are long."""


@dataclass(frozen=True)
class KindsTable:
    """Attention by kind of query (Q of them) and kind of key (K), over the queries whose text holds such a key.

    Attributes:
        queries: names of the kinds of queries.
        keys: names of the kinds of keys.
        held: (Q, K) share of the texts that hold such a query with such a key.
        chance: (Q, K) what even attention would give to the keys of the kind; 0 where there are none.
        attention: (L, H, Q, K) what each head gives to them.
        entropy: (L, H) entropy of a query's weights divided by that of even weights, mean over all queries: 0 with all
            weight on one key, 1 for even weights.
    """

    queries: tuple[str, ...]
    keys: tuple[str, ...]
    held: Floats
    chance: Floats
    attention: Floats
    entropy: Floats


def measure_kinds(classifier: Predictor, texts: Sequence[TextKinds]) -> KindsTable:
    """The attention of every head on these texts, by kinds.

    Args:
        classifier: nothing in it is changed.
        texts: at least one.

    Raises:
        ValueError: there are no texts.
    """
    if not texts:
        raise ValueError("got no texts; wanted at least one")
    config = classifier.checkpoint.config.model
    queries, keys = query_kinds(texts), key_kinds(texts)
    shape = (len(queries), len(keys))
    held, n, chance = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    attention = np.zeros((config.n_layers, config.n_heads, *shape))
    entropy, n_queries = np.zeros((config.n_layers, config.n_heads)), 0
    names = [f"layers.{layer}.attn.pattern" for layer in range(config.n_layers)]
    for batch in batches_by_length(map(len, texts), batch_size=BATCH):
        with trace(record=names) as opened:
            classifier.logits(padded([texts[place].ids.tolist() for place in batch]))
        patterns = torch.stack([opened[name] for name in names], dim=1).numpy()  # B L H T T
        for pattern, text in zip(patterns, (texts[place] for place in batch), strict=True):
            size = len(text)
            own = pattern[..., :size, :size].astype(np.float64)  # L H T T
            rows = np.stack([queries_of(kind, text) for kind in queries])  # Q T
            visible = np.tril(np.ones((size, size))) if config.causal else np.ones((size, size))
            columns = np.stack([keys_of(kind, text) for kind in keys]) * visible  # K T T
            share = columns.sum(axis=-1) / visible.sum(axis=-1)  # K T: of the keys that each query may attend to
            pairs = rows[:, None] & (share > 0)  # Q K T: queries with such a key
            held += pairs.any(axis=-1)
            n += pairs.sum(axis=-1)
            chance += (pairs * share).sum(axis=-1)
            given = np.einsum("lhqt,kqt->lhkq", own, columns)  # L H K T
            attention += np.einsum("lhkt,qkt->lhqk", given, pairs)
            if size > 1:
                logs = np.log(own, out=np.zeros_like(own), where=own > 0)
                most = np.log(np.maximum(visible.sum(axis=-1), 2))  # T
                entropy += (-(own * logs).sum(axis=-1) / most).sum(axis=-1)
                n_queries += size
    pairs_n = np.maximum(n, 1)
    return KindsTable(
        queries, keys, held / len(texts), chance / pairs_n, attention / pairs_n, entropy / max(n_queries, 1)
    )
