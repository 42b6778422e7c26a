"""Initial token embeddings from co-occurrence counts in the training texts: words with similar contexts start similar.

From random vectors, a model must learn from labels alone that "striker" and "goalkeeper" are related, which never
happens for rare words. Co-occurrence is counted beforehand, without labels.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.config import TrainConfig
from txcls.data.batches import TokenisedTexts
from txcls.model import Embeddings
from txcls.text.vocabulary import SPECIAL_TOKENS

WINDOW = 5
"""Neighbours counted on each side; one at distance k counts 1 / k."""
SMOOTHING = 0.75
"""Exponent on neighbours' frequencies, so that rare neighbours do not dominate (Levy et al. 2015)."""
SPREAD = 0.1
"""Standard deviation of the vectors' components: small enough for training to change their directions."""


def cooccurrence_vectors(texts: TokenisedTexts, *, vocab_size: int, d_model: int) -> NDArray[np.float32]:
    """Vectors (V, D) from positive pointwise mutual information and a truncated singular value decomposition.

    PPMI(a, b) = max(0, log P(a, b) / (P(a) P(b))) over pairs of nearby tokens; with its decomposition U S V^T cut to
    D columns, the vectors are U sqrt(S). Word2vec's skip-gram factorises this matrix implicitly (Levy & Goldberg
    2014, "Neural Word Embedding as Implicit Matrix Factorization"); this takes seconds and is deterministic. Special
    tokens get zeros, and so do all tokens if there are at most D words.

    Args:
        texts: the training texts; labels are not used.
        vocab_size: V.
        d_model: D.
    """
    from sklearn.utils.extmath import randomized_svd

    vectors = np.zeros((vocab_size, d_model), dtype=np.float32)
    information = _ppmi(_pair_counts(texts, vocab_size))
    if vocab_size - len(SPECIAL_TOKENS) <= d_model or not information.nnz:
        return vectors
    left, singular, _ = randomized_svd(information, d_model, n_iter=3, random_state=0)
    found = left * np.sqrt(singular)  # V D
    ordinary = slice(len(SPECIAL_TOKENS), None)
    vectors[ordinary] = found[ordinary] * (SPREAD / max(float(found[ordinary].std()), 1e-12))
    return vectors


def start_embeddings(
    embeddings: Embeddings, texts: TokenisedTexts, config: TrainConfig, *, tell: Callable[[str], None]
) -> None:
    """Add start vectors from the training texts to the token embeddings, if so configured.

    Args:
        embeddings: changed in place.
        texts: the training texts.
        config: whether there are start vectors.
        tell: called with a message.
    """
    if config.start_vectors == "company":
        tell("computing start vectors from word co-occurrence")
        width = embeddings.token.embedding_dim
        vectors = cooccurrence_vectors(texts, vocab_size=embeddings.token.num_embeddings, d_model=width)
        embeddings.token.weight.data += torch.from_numpy(vectors)


def _pair_counts(texts: TokenisedTexts, vocab_size: int) -> Any:  # scipy has no types
    """Co-occurrence counts (V, V), sparse and symmetric; a pair at distance k counts 1 / k."""
    from scipy.sparse import coo_matrix, csr_matrix

    # All ids in one row, with a gap of padding after each text so that no pair spans two texts.
    gap = np.arange(len(texts)) * WINDOW
    place = np.arange(len(texts.ids)) + np.repeat(gap, texts.lengths)
    row = np.zeros(len(texts.ids) + len(texts) * WINDOW, dtype=np.int64)
    row[place] = texts.ids
    counts = csr_matrix((vocab_size, vocab_size), dtype=np.float32)
    for distance in range(1, WINDOW + 1):
        left, right = row[:-distance], row[distance:]
        both = (left >= len(SPECIAL_TOKENS)) & (right >= len(SPECIAL_TOKENS))
        weights = np.full(int(both.sum()), 1.0 / distance, dtype=np.float32)
        pairs = coo_matrix((weights, (left[both], right[both])), shape=counts.shape).tocsr()
        counts = counts + pairs + pairs.T
    return counts


def _ppmi(counts: Any) -> Any:
    """The sparse matrix (V, V) of positive pointwise mutual information of counts (V, V)."""
    from scipy.sparse import csr_matrix

    token = np.asarray(counts.sum(axis=1)).ravel()  # V
    neighbour = token**SMOOTHING  # V; counts are symmetric
    neighbour = neighbour / max(neighbour.sum(), 1e-12)
    pairs = counts.tocoo()
    values = np.log(pairs.data / (token[pairs.row] * neighbour[pairs.col]))
    kept = values > 0
    return csr_matrix((values[kept].astype(np.float32), (pairs.row[kept], pairs.col[kept])), shape=counts.shape)
