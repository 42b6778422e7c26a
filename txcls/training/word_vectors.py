"""Initial weights from latent semantic analysis of the training texts (Deerwester et al. 1990)."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from txcls.data.batches import TokenisedTexts
from txcls.model import TextClassifier
from txcls.text.vocabulary import PAD

MAX_TEXTS = 20_000
"""Number of texts used, evenly spaced."""
N_ITERATIONS = 3
"""Power iterations of the randomised singular value decomposition."""
N_GRAMS = (3, 5)
"""Lengths of the character n-grams of pieces of words; a space stands for the ends of a piece."""
LENGTH_SCALE = 0.5
"""Factor of the logarithms of lengths, so that their dimension is about as large as the others."""
MIN_LENGTH = 0.01
"""Lengths are at least this, relative to the mean: tokens that are in all texts have length zero."""
LAYER_SCALE = 0.1
"""Factor of the matrices that write to the residual stream."""


def initialise_from_texts(
    model: TextClassifier, texts: TokenisedTexts, *, seed: int, pieces: Sequence[str] | None = None
) -> None:
    """Initialise a model so that, before training, it pools the vectors that latent semantic analysis gives to texts.

    In latent semantic analysis, a text is the sum of its tokens' vectors, and long vectors belong to tokens that
    distinguish texts. LayerNorm removes lengths. So the embeddings have equal lengths, and their last dimension holds
    the logarithm of the length, from which attention pooling computes the weights, unless a matrix widens them first
    (`d_embedding`). The layers add little at first. Tokens that do not occur, such as the mask token, keep random
    directions, with the minimum length.

    If the tokens are pieces of words, `pieces` are their V names. The vector of a token is then the sum of its own and
    those of its character n-grams (as in Bojanowski et al. 2017), which rare words share with frequent ones.
    """
    width = model.embeddings.token.weight.shape[1] - 1
    vectors, occurs = _vectors(texts, len(model.embeddings.token.weight), width, pieces, seed=seed)
    lengths = (vectors.norm(dim=1, keepdim=True) * occurs[:, None]).clamp(min=1e-9)  # V 1
    log_lengths = (lengths / lengths[occurs].mean()).clamp(min=MIN_LENGTH).log()  # V 1
    with torch.no_grad():
        weight = model.embeddings.token.weight  # V D
        weight[occurs, : vectors.shape[1]] = (vectors / lengths)[occurs] * math.sqrt(width) / model.embeddings.scale
        weight[PAD + 1 :, -1:] = log_lengths[PAD + 1 :] * LENGTH_SCALE / model.embeddings.scale
        if model.config.pooling == "attention" and width + 1 == model.config.d_model:
            model.pool.score.weight.zero_()  # 1 D
            model.pool.score.weight[0, -1] = 1 / LENGTH_SCALE
        for name, matrix in model.named_parameters():
            if name.endswith(("attn.output.weight", "ff.contract.weight")):
                matrix.mul_(LAYER_SCALE)


def _vectors(
    texts: TokenisedTexts, vocab_size: int, width: int, pieces: Sequence[str] | None, *, seed: int
) -> tuple[Tensor, Tensor]:
    """The tokens' vectors, (V, at most `width`), and whether each token occurs, (V,).

    A text's vector is the projection of its TF-IDF features onto the right singular vectors of all texts' features; a
    token's vector is what the token contributes to it.
    """
    from scipy.sparse import csr_array, eye_array, hstack
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import CountVectorizer

    texts = texts.subset(range(0, len(texts), -(-len(texts) // MAX_TEXTS)))
    counts = csr_array(
        (np.ones(len(texts.ids), dtype=np.float32), texts.ids, texts.offsets), shape=(len(texts), vocab_size)
    )
    counts.sum_duplicates()
    logarithms = counts.copy()
    logarithms.data = 1 + np.log(counts.data)
    kinds = [_features(logarithms, eye_array(vocab_size, dtype=np.float32, format="csr"))]
    if pieces is not None:
        n_grams = CountVectorizer(analyzer="char_wb", ngram_range=N_GRAMS, lowercase=False, dtype=np.float32)
        kinds.append(_features(counts, csr_array(n_grams.fit_transform(pieces))))
    features, parts = (hstack(blocks, format="csr") for blocks in zip(*kinds, strict=True))
    svd = TruncatedSVD(min(width, *features.shape), n_iter=N_ITERATIONS, random_state=seed).fit(features)
    vectors = parts @ svd.components_.T
    # A random rotation gives every dimension the same variance; otherwise the first would dominate in LayerNorm.
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(vectors.shape[1],) * 2)).Q
    occurs = np.bincount(counts.indices, minlength=vocab_size) > 0  # V
    return torch.tensor(vectors @ rotation, dtype=torch.float32), torch.tensor(occurs)


def _features(counts: Any, of_tokens: Any) -> tuple[Any, Any]:
    """TF-IDF features of texts, (N, M), with rows of unit length, and what each token contributes to them, (V, M).

    `counts` (N, V) has the counts of tokens in texts, and `of_tokens` (V, M) those of features in tokens, as sparse
    arrays. IDF is zero for features that are in all texts.
    """
    from scipy.sparse import diags_array
    from sklearn.preprocessing import normalize

    n, features = counts.shape[0], counts @ of_tokens
    n_texts = np.bincount(features.indices, minlength=features.shape[1])  # M
    idf = diags_array(np.log((1 + n) / (1 + n_texts)).astype(np.float32))
    features = features @ idf
    lengths = np.sqrt(features.multiply(features).sum(axis=1))
    return normalize(features), of_tokens @ idf / max(lengths.mean(), 1e-9)
