"""Which tokens and texts are similar? Their vectors in the plane of the first two principal components."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.data.batches import batches_by_length
from txcls.inference.predictor import Predictor, padded
from txcls.inspection.tracing import FloatArray, readable
from txcls.inspection.vocabulary import nearest_by_cosine, token_cosines, token_vectors
from txcls.tap import trace
from txcls.text.checks import check_texts
from txcls.text.vocabulary import SPECIAL_TOKENS


@dataclass(frozen=True)
class Plane:
    """The plane of the first two principal components of N vectors of width D (Pearson 1901).

    `points` (N, 2) are the projected vectors, `mean` (D,) is the origin, `axes` (2, D) are orthonormal, and `shares`
    (2,) is the fraction of the variance along each axis.
    """

    points: FloatArray
    mean: FloatArray
    axes: FloatArray
    shares: NDArray[np.float64]

    def project(self, vectors: FloatArray) -> FloatArray:
        """Other vectors (M, D) projected onto the plane, (M, 2)."""
        points: FloatArray = ((vectors - self.mean) @ self.axes.T).astype(np.float32)
        return points


def principal_plane(vectors: FloatArray) -> Plane:
    """The plane of N vectors (N, D); each axis has a positive largest component, to fix its sign.

    Raises:
        ValueError: there is no vector.
    """
    if not len(vectors):
        raise ValueError("got no vector; expected at least one")
    mean = vectors.mean(axis=0)
    centred = (vectors - mean).astype(np.float64)
    values, directions = np.linalg.eigh(centred.T @ centred)  # in ascending order
    axes = directions.T[:-3:-1]  # 2 D
    axes = axes * np.sign(np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1))
    shares = values[:-3:-1].clip(min=0.0) / max(values.sum(), 1e-12)
    return Plane((centred @ axes.T).astype(np.float32), mean.astype(np.float32), axes.astype(np.float32), shares)


@dataclass(frozen=True)
class TokenPlane:
    """N tokens of the vocabulary, and the M distinct tokens of a text, in the plane of the token embeddings.

    Attributes:
        ids, points: N tokens of the vocabulary, and their points (N, 2).
        shares: (2,) fraction of the variance along each axis.
        text_ids, text_points: the M tokens of the text, and their points (M, 2).
        nearest: for each of the M tokens, the nearest tokens with their cosine similarities.
    """

    ids: tuple[int, ...]
    points: FloatArray
    shares: NDArray[np.float64]
    text_ids: tuple[int, ...]
    text_points: FloatArray
    nearest: dict[int, tuple[tuple[int, float], ...]]


def vocabulary_plane(classifier: Predictor) -> Plane:
    """The plane of the token embeddings, excluding special tokens."""
    return principal_plane(token_vectors(classifier)[len(SPECIAL_TOKENS) :])


def token_plane(classifier: Predictor, text: str, plane: Plane) -> TokenPlane:
    """The 2,000 tokens with the lowest ids and the tokens of a text, projected onto `vocabulary_plane`; with the six
    nearest tokens, by cosine similarity, of each token of the text.

    Raises:
        TraceError: the text contains no word.
    """
    encoding = readable(classifier, text)
    vectors, first = token_vectors(classifier), len(SPECIAL_TOKENS)
    text_ids = tuple(
        dict.fromkeys(token.id for token in encoding.tokens if not token.is_special and not token.is_unknown)
    )
    ids = tuple(range(first, min(first + 2000, len(vectors))))
    rows = zip(text_ids, token_cosines(classifier, text_ids), strict=True)
    return TokenPlane(
        ids=ids,
        points=plane.points[: len(ids)],
        shares=plane.shares,
        text_ids=text_ids,
        text_points=plane.project(vectors[list(text_ids)]),
        nearest={index: tuple(nearest_by_cosine(row, index, 6)) for index, row in rows},
    )


@dataclass(frozen=True)
class PooledTexts:
    """The pooled vectors (N, D) of texts, which the class head reads, and the predicted class of each text."""

    vectors: FloatArray
    labels: tuple[str, ...]


def pool_texts(classifier: Predictor, texts: Sequence[str]) -> PooledTexts:
    """The pooled vectors of texts, in their original order.

    Raises:
        TraceError: a text contains no word.
    """
    rows = [readable(classifier, text).ids for text in check_texts(texts)]
    vectors = np.zeros((len(rows), classifier.checkpoint.config.model.d_model), dtype=np.float32)
    labels = [""] * len(rows)
    for indices in batches_by_length(map(len, rows), batch_size=64):
        batch = indices.tolist()
        with trace(record=["pooled"]) as activations:
            predicted = classifier.logits(padded([rows[n] for n in batch])).argmax(dim=-1).tolist()
        vectors[batch] = activations["pooled"].float().numpy()
        for n, index in zip(batch, predicted, strict=True):
            labels[n] = classifier.classes[index]
    return PooledTexts(vectors, tuple(labels))


@dataclass(frozen=True)
class TextPlane:
    """A text among N other texts, in the plane of the other texts' pooled vectors.

    Attributes:
        points: (N, 2) the other texts.
        shares: (2,) fraction of the variance along each axis.
        text_point, text_label: the point (2,) of the text, and its predicted class.
        cosines: (N,) cosine similarities of the text's pooled vector with those of the other texts.
    """

    points: FloatArray
    shares: NDArray[np.float64]
    text_point: FloatArray
    text_label: str
    cosines: NDArray[np.float64]


def text_plane(classifier: Predictor, text: str, others: PooledTexts) -> TextPlane:
    """A text projected onto the plane of other texts; the plane does not depend on the text.

    Raises:
        TraceError: the text contains no word.
    """
    pooled = pool_texts(classifier, [text])
    vector, plane = pooled.vectors[0], principal_plane(others.vectors)
    lengths = np.maximum(np.linalg.norm(others.vectors, axis=1) * np.linalg.norm(vector), 1e-12)
    return TextPlane(
        points=plane.points,
        shares=plane.shares,
        text_point=plane.project(pooled.vectors)[0],
        text_label=pooled.labels[0],
        cosines=(others.vectors @ vector / lengths).astype(np.float64),
    )
