"""Initial weights from latent semantic analysis of the training texts (Deerwester et al. 1990)."""

import math

import numpy as np
import torch
from torch import Tensor

from txcls.data.batches import TokenisedTexts
from txcls.model import TextClassifier

MAX_TEXTS = 20_000
"""Number of texts used, evenly spaced."""
N_ITERATIONS = 3
"""Power iterations of the randomised singular value decomposition."""
LENGTH_SCALE = 0.5
"""Factor of the logarithms of lengths, so that their dimension is about as large as the others."""
MIN_LENGTH = 0.01
"""Lengths are at least this, relative to the mean: tokens that are in all texts have length zero."""
LAYER_SCALE = 0.1
"""Factor of the matrices that write to the residual stream."""


def start_from_texts(model: TextClassifier, texts: TokenisedTexts, *, seed: int) -> None:
    """Initialise a model so that, before training, it pools the vectors that latent semantic analysis gives to texts.

    In latent semantic analysis, a text is the sum of its tokens' vectors, and long vectors belong to tokens that
    distinguish texts. LayerNorm removes lengths. So the embeddings have equal lengths, and their last dimension holds
    the logarithm of the length, from which attention pooling computes the weights, unless a matrix widens them first
    (`d_embedding`). The layers add little at first. Tokens that do not occur stay random; so do dimensions beyond the
    number of texts.
    """
    width = model.embeddings.token.weight.shape[1] - 1
    vectors, occurs = _vectors(texts, len(model.embeddings.token.weight), width, seed=seed)
    lengths = vectors.norm(dim=1, keepdim=True).clamp(min=1e-9)  # V 1
    log_lengths = (lengths / lengths[occurs].mean()).clamp(min=MIN_LENGTH).log()  # V 1
    with torch.no_grad():
        weight = model.embeddings.token.weight  # V D
        weight[occurs, : vectors.shape[1]] = (vectors / lengths)[occurs] * math.sqrt(width) / model.embeddings.scale
        weight[occurs, -1:] = log_lengths[occurs] * LENGTH_SCALE / model.embeddings.scale
        if model.config.pooling == "attention" and width + 1 == model.config.d_model:
            model.pool.score.weight.zero_()  # 1 D
            model.pool.score.weight[0, -1] = 1 / LENGTH_SCALE
        for name, matrix in model.named_parameters():
            if name.endswith(("attn.output.weight", "ff.contract.weight")):
                matrix.mul_(LAYER_SCALE)


def _vectors(texts: TokenisedTexts, vocab_size: int, width: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """Vectors (V, at most width), and whether each token occurs, (V,).

    They are the right singular vectors of the texts' TF-IDF matrix (logarithms of counts, rows of unit length), times
    the tokens' IDF. IDF is zero for tokens that are in all texts.
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
    vectors = svd.components_.T * idf[:, None]
    # A random rotation gives every dimension the same variance; otherwise the first would dominate in LayerNorm.
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(vectors.shape[1],) * 2)).Q
    return torch.tensor(vectors @ rotation, dtype=torch.float32), torch.tensor(n_texts > 0)
