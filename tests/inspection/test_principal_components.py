"""Principal components, compared with scikit-learn, and pooled vectors, compared with a loop."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from tests.conftest import TEXTS, Untrained
from txcls.inspection.principal_components import (
    pool_texts,
    principal_plane,
    token_plane,
    vocabulary_plane,
)
from txcls.inspection.tracing import trace_text
from txcls.inspection.vocabulary import nearest_tokens


@pytest.mark.parametrize("shape", [(50, 8), (5, 30), (3, 2)])
def test_the_plane_agrees_with_scikit_learn(shape: tuple[int, int]) -> None:
    vectors = np.random.default_rng(1).normal(size=shape).astype(np.float32) * np.linspace(3, 0.2, shape[1])
    vectors = vectors.astype(np.float32)
    plane, theirs = principal_plane(vectors), PCA(2).fit(vectors)
    signs = np.sign((plane.axes * theirs.components_).sum(axis=1))
    np.testing.assert_allclose(plane.axes, theirs.components_ * signs[:, None], atol=1e-4)
    np.testing.assert_allclose(plane.shares, theirs.explained_variance_ratio_, atol=1e-5)
    np.testing.assert_allclose(plane.points, theirs.transform(vectors) * signs, atol=1e-3)
    new = np.random.default_rng(2).normal(size=(4, shape[1])).astype(np.float32)
    np.testing.assert_allclose(plane.project(new), theirs.transform(new) * signs, atol=1e-3)


@pytest.mark.parametrize("model", [{}, {"d_embedding": 6}, {"positions": "none"}])
def test_the_plane_holds_a_texts_tokens_and_their_nearest_tokens(
    untrained: Untrained, model: dict[str, object]
) -> None:
    classifier = untrained(**model)
    plane = vocabulary_plane(classifier)
    tokens = token_plane(classifier, "the bank zyzzyva the rates", plane)
    assert tokens.ids == tuple(range(4, classifier.tokenizer.vocab_size))
    assert [classifier.tokenizer.decode([index]) for index in tokens.text_ids] == ["the", "bank", "rates"]
    vectors = classifier.checkpoint.model.embeddings.token.weight.detach().numpy()
    np.testing.assert_array_equal(tokens.points, principal_plane(vectors[4:]).points)
    for index, point in zip(tokens.text_ids, tokens.text_points, strict=True):
        np.testing.assert_allclose(point, tokens.points[index - 4], atol=1e-5)
        nearest, expected = dict(tokens.nearest[index]), dict(nearest_tokens(classifier, index, n=6))
        assert list(nearest) == list(expected) and nearest == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "model", [{}, {"pooling": "class_token"}, {"fixed_length": True, "pooling": "mean"}, {"pooling": "first"}]
)
def test_pooled_vectors_of_a_batch_equal_those_of_single_texts(untrained: Untrained, model: dict[str, object]) -> None:
    classifier = untrained(**model)
    pooled = pool_texts(classifier, TEXTS)
    for text, vector, label in zip(TEXTS, pooled.vectors, pooled.labels, strict=True):
        np.testing.assert_allclose(vector, trace_text(classifier, text).values["pooled"], atol=1e-5)
        assert label == classifier.predict([text])[0].label
