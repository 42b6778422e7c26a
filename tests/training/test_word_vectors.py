"""Initial embeddings from the training texts: the same vectors as a plain singular value decomposition."""

import numpy as np
import torch

from txcls.config import ModelConfig
from txcls.data.batches import TokenisedTexts
from txcls.model import Embeddings
from txcls.training.word_vectors import start_from_texts

VOCAB_SIZE, WIDTH = 30, 6


def _texts(n: int) -> TokenisedTexts:
    random = np.random.default_rng(0)
    lengths = random.integers(4, 9, n)
    ids = random.integers(4, VOCAB_SIZE - 1, lengths.sum()).astype(np.int32)
    return TokenisedTexts(ids, np.concatenate([[0], np.cumsum(lengths)]), np.zeros(n, dtype=np.int64))


def _embeddings() -> Embeddings:
    torch.manual_seed(0)
    return Embeddings(ModelConfig(d_model=WIDTH, n_heads=1, scale_embeddings=True), VOCAB_SIZE)


def _expected_products(texts: TokenisedTexts) -> np.ndarray:
    """Scalar products of the tokens' vectors, (V, V), up to a factor: a rotation does not change them."""
    counts = np.zeros((len(texts), VOCAB_SIZE))
    for row in range(len(texts)):
        np.add.at(counts[row], texts[row], 1)
    idf = np.log((1 + len(texts)) / (1 + (counts > 0).sum(0)))
    features = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * idf
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    _, values, vectors = np.linalg.svd(features, full_matrices=False)
    vectors = vectors[:WIDTH].T * np.sqrt(values[:WIDTH]) * idf[:, None]
    return vectors @ vectors.T


def test_vectors_are_those_of_a_singular_value_decomposition() -> None:
    texts, embeddings = _texts(40), _embeddings()
    before = embeddings.token.weight.detach().clone()
    start_from_texts(embeddings, texts, seed=0)
    occurs = np.unique(texts.ids)
    weight = embeddings.token.weight.detach()
    vectors = weight[occurs].double().numpy() * embeddings.scale
    assert np.isclose(np.sqrt((vectors**2).mean()), 1, atol=1e-5)
    products, expected = vectors @ vectors.T, _expected_products(texts)[np.ix_(occurs, occurs)]
    np.testing.assert_allclose(products / products.max(), expected / expected.max(), atol=0.02)
    unseen = np.setdiff1d(np.arange(VOCAB_SIZE), occurs)
    assert torch.equal(weight[unseen], before[unseen])


def test_with_few_texts_the_other_dimensions_stay_random() -> None:
    texts, embeddings = _texts(3), _embeddings()
    before = embeddings.token.weight.detach().clone()
    start_from_texts(embeddings, texts, seed=0)
    weight, occurs = embeddings.token.weight.detach(), np.unique(texts.ids)
    assert torch.equal(weight[:, 3:], before[:, 3:])
    assert not torch.equal(weight[occurs, :3], before[occurs, :3])
    assert torch.isfinite(weight).all()
