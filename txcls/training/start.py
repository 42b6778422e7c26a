"""What embeddings start from, counted in the training texts themselves: words that keep the same company are alike.

Random start vectors have to learn from the labels alone that "striker" and "goalkeeper" are related, and rare words
never do. Which words stand near which is there to be counted beforehand, without labels.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from txcls.bigrams_and_phrases import FrequentBigrams
from txcls.config import DataConfig, TrainConfig
from txcls.data.batches import TokenisedTexts
from txcls.data.texts import open_texts
from txcls.model import Embeddings
from txcls.text.encoder import TextEncoder
from txcls.text.vocabulary import PAD, SPECIAL_TOKENS, UNK
from txcls.training.setup import encode_unlabelled

WINDOW = 5
"""Neighbours counted on either side; one at distance k counts 1 / k."""
SMOOTHING = 0.75
"""Exponent on neighbours' frequencies, so that rare neighbours do not dominate (Levy et al. 2015)."""
SPREAD = 0.1
"""Standard deviation of the vectors' numbers: small enough that training can still turn them."""
OWN_WEIGHT = 5.0
"""What a pair in the training texts counts, where a pair in another set's texts counts 1."""
LONGEST = 512
"""Tokens that are read of another set's text."""


def company_vectors(
    texts: TokenisedTexts, *, vocab_size: int, d_model: int, others: TokenisedTexts | None = None
) -> NDArray[np.float32]:
    """Vectors (V, D) from positive pointwise mutual information and a truncated singular value decomposition.

    PPMI(a, b) = max(0, log P(a, b) / (P(a) P(b))) over pairs of tokens near each other; the decomposition U S V^T of
    that matrix, cut to D columns, gives U sqrt(S). It is what word2vec's skip-gram factorises implicitly (Levy &
    Goldberg 2014, "Neural Word Embedding as Implicit Matrix Factorization"), in seconds and the same at each run.
    Special tokens, and all where there are not more than D words, get zeros.

    Args:
        texts: the training texts; labels are not looked at.
        vocab_size: V.
        d_model: D.
        others: further texts in the same ids, in which the same words keep much the same company; a pair counts
            `OWN_WEIGHT` times less there.
    """
    from sklearn.utils.extmath import randomized_svd

    vectors = np.zeros((vocab_size, d_model), dtype=np.float32)
    counts = _pair_counts(texts, vocab_size)
    if others is not None:
        counts = np.float32(OWN_WEIGHT) * counts + _pair_counts(others, vocab_size)
    information = _ppmi(counts)
    if vocab_size - len(SPECIAL_TOKENS) <= d_model or not information.nnz:
        return vectors
    left, singular, _ = randomized_svd(information, d_model, n_iter=3, random_state=0)
    found = left * np.sqrt(singular)  # V D
    ordinary = slice(len(SPECIAL_TOKENS), None)
    vectors[ordinary] = found[ordinary] * (SPREAD / max(float(found[ordinary].std()), 1e-12))
    return vectors


def add_company_vectors(
    embedding: nn.Embedding, texts: TokenisedTexts, *, others: Sequence[str], encoder: TextEncoder
) -> None:
    """Add the company vectors of these texts to token embeddings (V, width), whatever their width.

    Args:
        embedding: changed in place.
        texts: the training texts.
        others: further texts to count, their first `LONGEST` tokens each.
        encoder: what turns these into ids.
    """
    reader = TextEncoder.from_dict({**encoder.to_dict(), "max_length": LONGEST})
    vectors = company_vectors(
        texts,
        vocab_size=embedding.num_embeddings,
        d_model=embedding.embedding_dim,
        others=encode_unlabelled(reader, others) if others else None,
    )
    embedding.weight.data += torch.from_numpy(vectors)


def frequent_pairs(texts: TokenisedTexts, n: int) -> NDArray[np.int64]:
    """The n most frequent pairs of neighbouring tokens, (N, 2); fewer where there are no more.

    A text's first token makes a pair with padding, as the model reads it. Pairs with the unknown token are left out:
    its neighbour alone says as much.

    Args:
        texts: the training texts; labels are not looked at.
        n: how many.
    """
    right = texts.ids.astype(np.int64)
    left = np.roll(right, 1)
    left[texts.offsets[:-1]] = PAD
    pairs, counts = np.unique(left << 32 | right, return_counts=True)
    left, right = pairs >> 32, pairs & 0xFFFF_FFFF
    both = (left != UNK) & (right != UNK)
    left, right, counts = left[both], right[both], counts[both]
    most = np.argsort(-counts, kind="stable")[:n]
    return np.stack((left[most], right[most]), axis=1)


def start_embeddings(
    embeddings: Embeddings,
    texts: TokenisedTexts,
    config: TrainConfig,
    *,
    others: Sequence[str],
    encoder: TextEncoder,
    tell: Callable[[str], None],
) -> None:
    """What embeddings take from the training texts before training: known bigrams and start vectors, as configured.

    Args:
        embeddings: changed in place.
        texts: the training texts.
        config: whether there are start vectors.
        others: further texts to count for these.
        encoder: what turns these into ids.
        tell: told what is going on.
    """
    if isinstance(embeddings.ngram, FrequentBigrams):
        tell("counting which bigrams are frequent")
        embeddings.ngram.learn(torch.from_numpy(frequent_pairs(texts, len(embeddings.ngram.known))))
    if config.start_vectors == "company":
        tell("counting which words keep company, for start vectors")
        add_company_vectors(embeddings.token, texts, others=others, encoder=encoder)


def other_texts(names: Sequence[str]) -> list[str]:
    """The training texts of other data sets, one set after the other.

    Raises:
        DataError: there is no such data set, or it is not on this machine.
    """
    return [text for name in names for text in open_texts(DataConfig(dataset=name)).training]


def _pair_counts(texts: TokenisedTexts, vocab_size: int) -> Any:  # scipy has no types
    """How often two tokens stand near each other, (V, V), sparse and symmetric; one at distance k counts 1 / k."""
    from scipy.sparse import coo_matrix, csr_matrix

    # One long row of ids with a gap of padding after each text, so that no pair reaches from one text into the next.
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
    """The sparse matrix (V, V) of positive pointwise mutual information, from that of counts."""
    from scipy.sparse import csr_matrix

    token = np.asarray(counts.sum(axis=1)).ravel()  # V
    neighbour = token**SMOOTHING  # V; counts are symmetric
    neighbour = neighbour / max(neighbour.sum(), 1e-12)
    pairs = counts.tocoo()
    values = np.log(pairs.data / (token[pairs.row] * neighbour[pairs.col]))
    kept = values > 0
    return csr_matrix((values[kept].astype(np.float32), (pairs.row[kept], pairs.col[kept])), shape=counts.shape)
