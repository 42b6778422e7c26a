from collections.abc import Sequence

import numpy as np
import pytest
import torch

from txcls.config import ModelConfig
from txcls.data.batches import TokenisedTexts
from txcls.model import TextClassifier
from txcls.text.vocabulary import PAD
from txcls.training import word_vectors
from txcls.training.word_vectors import initialise_from_texts

VOCAB_SIZE, WIDTH = 30, 6
"""Width of the vectors; the model has one dimension more, for the logarithms of their lengths."""

PIECES = [
    f"{start}{end}" for start in ("x", "un", "Ġkin", "Ġsand", "ĠÃ¤h") for end in ("", "d", "ly", "ness", "ing", "stone")
]
"""Names of the tokens, if they are pieces of words."""


def _texts(n: int) -> TokenisedTexts:
    random = np.random.default_rng(0)
    lengths = random.integers(4, 9, n)
    ids = random.integers(4, VOCAB_SIZE - 1, lengths.sum()).astype(np.int32)
    return TokenisedTexts(ids, np.concatenate([[0], np.cumsum(lengths)]), np.zeros(n, dtype=np.int64))


def _model() -> TextClassifier:
    torch.manual_seed(0)
    config = ModelConfig(
        d_model=WIDTH + 1, n_heads=1, n_layers=1, positions="none", scale_embeddings=True, init="xavier"
    )
    return TextClassifier(config, vocab_size=VOCAB_SIZE, n_classes=2).eval()


def _expected_vectors(texts: TokenisedTexts, pieces: Sequence[str] = ()) -> np.ndarray:
    """The tokens' vectors, (V, WIDTH), up to a rotation and a factor, by loops over tokens and their n-grams."""
    counts = np.zeros((len(texts), VOCAB_SIZE))
    for row in range(len(texts)):
        np.add.at(counts[row], texts[row], 1)
    logarithms = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0)
    kinds = [(logarithms, np.eye(VOCAB_SIZE))]
    if pieces:
        n_grams = [_n_grams(piece) for piece in pieces]
        distinct = sorted(set().union(*n_grams))
        of_tokens = np.array([[grams.count(n_gram) for n_gram in distinct] for grams in n_grams])
        kinds.append((counts @ of_tokens, of_tokens))
    features, parts = [], []
    for counted, of_tokens in kinds:
        idf = np.log((1 + len(texts)) / (1 + (counted > 0).sum(0)))
        lengths = np.linalg.norm(counted * idf, axis=1)
        features.append(counted * idf / lengths[:, None])
        parts.append(of_tokens * idf / lengths.mean())
    return np.hstack(parts) @ np.linalg.svd(np.hstack(features), full_matrices=False)[2][:WIDTH].T


def _n_grams(piece: str) -> list[str]:
    """The character n-grams of a piece between spaces; the whole, if it is shorter than all of them."""
    padded = f" {piece} "
    grams = [padded[start : start + n] for n in (3, 4, 5) for start in range(len(padded) - n + 1)]
    return grams or [padded]


@pytest.mark.parametrize("pieces", [(), PIECES])
def test_directions_and_pooling_weights_are_those_of_a_singular_value_decomposition(
    pieces: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_vectors, "N_ITERATIONS", 40)  # random texts have singular values close to one another
    texts, model = _texts(40), _model()
    before = model.embeddings.token.weight.detach().clone()
    initialise_from_texts(model, texts, seed=0, pieces=pieces or None)
    occurs = np.unique(texts.ids)
    weight = model.embeddings.token.weight.detach()
    expected = _expected_vectors(texts, pieces)[occurs]
    lengths = np.linalg.norm(expected, axis=1)

    vectors = weight[occurs, :-1].double().numpy() * model.embeddings.scale
    directions = expected / lengths[:, None]
    np.testing.assert_allclose(vectors @ vectors.T / WIDTH, directions @ directions.T, atol=1e-3)

    # Softmax of the scores of some tokens, without the norm before pooling, is their share of the sum of lengths.
    scores = weight[occurs] * model.embeddings.scale @ model.pool.score.weight.detach()[0]
    np.testing.assert_allclose(torch.softmax(scores, 0), lengths / lengths.sum(), rtol=1e-3)
    unseen = np.setdiff1d(np.arange(VOCAB_SIZE), occurs)
    assert torch.equal(weight[unseen, :-1], before[unseen, :-1])
    least = weight[unseen[unseen != PAD], -1] * model.embeddings.scale / word_vectors.LENGTH_SCALE
    assert least.tolist() == pytest.approx([np.log(word_vectors.MIN_LENGTH)] * len(least), rel=1e-5) and len(least) > 3
    assert not weight[PAD].any()


def test_with_few_texts_the_other_dimensions_stay_random() -> None:
    texts, model = _texts(3), _model()
    before = model.embeddings.token.weight.detach().clone()
    initialise_from_texts(model, texts, seed=0)
    weight, occurs = model.embeddings.token.weight.detach(), np.unique(texts.ids)
    assert torch.equal(weight[:, 3:-1], before[:, 3:-1])
    assert not torch.equal(weight[occurs, :3], before[occurs, :3])
    assert torch.isfinite(weight).all()


def test_embeddings_narrower_than_the_model_leave_its_pooling_alone() -> None:
    """The last dimension of the model is then not that of the embeddings, which holds the logarithms."""
    config = ModelConfig(d_model=8, d_embedding=WIDTH + 1, n_heads=1, n_layers=1, init="xavier")
    model = TextClassifier(config, vocab_size=VOCAB_SIZE, n_classes=2)
    before = model.pool.score.weight.detach().clone()
    initialise_from_texts(model, _texts(40), seed=0)
    assert torch.equal(model.pool.score.weight, before)
