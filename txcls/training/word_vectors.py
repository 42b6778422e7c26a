"""Initial token embeddings from the training texts by latent semantic analysis (Deerwester et al. 1990)."""

import numpy as np
import torch
from torch import Tensor

from txcls.data.batches import TokenisedTexts
from txcls.model import Embeddings

MAX_TEXTS = 20_000
"""Number of texts used, evenly spaced."""
N_ITERATIONS = 3
"""Power iterations of the randomised singular value decomposition."""


def start_from_texts(embeddings: Embeddings, texts: TokenisedTexts, *, seed: int) -> None:
    """Set the embedding of each token that occurs in the texts to its vector of latent semantic analysis.

    Tokens that occur in similar texts get similar vectors. With fewer texts than dimensions, the other dimensions stay
    random.
    """
    vectors, occurs = _vectors(texts, *embeddings.token.weight.shape, seed=seed)
    with torch.no_grad():
        embeddings.token.weight[occurs, : vectors.shape[1]] = vectors[occurs] / embeddings.scale


def _vectors(texts: TokenisedTexts, vocab_size: int, width: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """Vectors (V, at most width) with a root mean square of 1, and whether each token occurs, (V,).

    They are the right singular vectors of the texts' TF-IDF matrix (logarithms of counts, rows of unit length), times
    the square root of the singular values and the tokens' IDF. IDF is zero for tokens that are in all texts.
    """
    from scipy.sparse import csr_array, diags_array
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    texts = texts.subset(range(0, len(texts), -(-len(texts) // MAX_TEXTS)))
    n = len(texts)
    counts = csr_array((np.ones(len(texts.ids), dtype=np.float32), texts.ids, texts.offsets), shape=(n, vocab_size))
    counts.sum_duplicates()
    n_texts = np.bincount(counts.indices, minlength=vocab_size)  # V
    idf = np.log((1 + n) / (1 + n_texts)).astype(np.float32)  # V
    counts.data = 1 + np.log(counts.data)
    features = normalize(counts @ diags_array(idf))  # N V
    svd = TruncatedSVD(min(width, n, vocab_size), n_iter=N_ITERATIONS, random_state=seed).fit(features)
    vectors = svd.components_.T * np.sqrt(svd.singular_values_) * idf[:, None]
    # A random rotation gives every dimension the same variance; otherwise the first would dominate in LayerNorm.
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(vectors.shape[1],) * 2)).Q
    occurs = n_texts > 0
    vectors = vectors @ rotation / max(float(np.sqrt(np.mean(vectors[occurs] ** 2))), 1e-9)
    return torch.tensor(vectors, dtype=torch.float32), torch.tensor(occurs)
