"""Which tokens and texts are close to each other? Their vectors in the plane of the first two principal components."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.data.batches import batches_by_length
from txcls.inspection.tracing import FloatArray, readable
from txcls.inspection.vocabulary import nearest_by_cosine, token_cosines, token_vectors
from txcls.predictor import Predictor, padded
from txcls.tap import trace
from txcls.text.checks import check_texts
from txcls.text.vocabulary import SPECIAL_TOKENS


@dataclass(frozen=True)
class Plane:
    """The plane of the first two principal components of N vectors of width D (Pearson 1901).

    `points` (N, 2) are the projected vectors, `mean` (D,) is the origin, `axes` (2, D) are the orthonormal directions,
    and `shares` (2,) is the fraction of the variance along each.
    """

    points: FloatArray
    mean: FloatArray
    axes: FloatArray
    shares: NDArray[np.float64]

    def place(self, vectors: FloatArray) -> FloatArray:
        """Other vectors (M, D) projected onto the plane, (M, 2)."""
        places: FloatArray = ((vectors - self.mean) @ self.axes.T).astype(np.float32)
        return places


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
    """The vocabulary in the plane: `ids`, their `points` (N, 2), and the `shares` of the variance along the axes; and
    the ids of the text's distinct tokens, `own`, and the nearest tokens of each with their cosine similarities."""

    ids: tuple[int, ...]
    points: FloatArray
    shares: NDArray[np.float64]
    own: tuple[int, ...]
    own_points: FloatArray
    nearest: dict[int, tuple[tuple[int, float], ...]]


def vocabulary_plane(classifier: Predictor) -> Plane:
    """The plane of the token embeddings, excluding special tokens."""
    return principal_plane(token_vectors(classifier)[len(SPECIAL_TOKENS) :])


def token_plane(classifier: Predictor, text: str, plane: Plane) -> TokenPlane:
    """The 2,000 tokens with the lowest ids and the tokens of a text, projected onto `vocabulary_plane`.

    Includes the six nearest tokens, by cosine similarity, of each token of the text.

    Raises:
        TraceError: the text contains no token that the model reads.
    """
    encoding = readable(classifier, text)
    vectors, first = token_vectors(classifier), len(SPECIAL_TOKENS)
    own = tuple(dict.fromkeys(token.id for token in encoding.tokens if not token.is_special and not token.is_unknown))
    ids = tuple(range(first, min(first + 2000, len(vectors))))
    rows = zip(own, token_cosines(classifier, own), strict=True)
    return TokenPlane(
        ids=ids,
        points=plane.points[: len(ids)],
        shares=plane.shares,
        own=own,
        own_points=plane.place(vectors[list(own)]),
        nearest={index: tuple(nearest_by_cosine(row, index, 6)) for index, row in rows},
    )


@dataclass(frozen=True)
class PooledTexts:
    """The pooled `vectors` (N, D) of texts, which the head classifies, and the predicted class of each text."""

    vectors: FloatArray
    labels: tuple[str, ...]


def pool_texts(classifier: Predictor, texts: Sequence[str]) -> PooledTexts:
    """The pooled vectors of texts, in their original order.

    Raises:
        TraceError: a text contains no token that the model reads.
    """
    rows = [readable(classifier, text).ids for text in check_texts(texts)]
    vectors = np.zeros((len(rows), classifier.checkpoint.config.model.d_model), dtype=np.float32)
    labels = [""] * len(rows)
    for places in batches_by_length(map(len, rows), batch_size=64):
        batch = places.tolist()
        with trace(record=["pooled"]) as opened:
            winners = classifier.logits(padded([rows[n] for n in batch])).argmax(dim=-1).tolist()
        vectors[batch] = opened["pooled"].float().numpy()
        for n, winner in zip(batch, winners, strict=True):
            labels[n] = classifier.classes[winner]
    return PooledTexts(vectors, tuple(labels))


@dataclass(frozen=True)
class TextPlane:
    """A text among other texts, in the plane of their pooled vectors, which the head classifies.

    `points` (N, 2) are the other texts, `own` (2,) is the text and `own_label` its predicted class; `cosines` (N,) are
    the cosine similarities of its vector to those of the other texts.
    """

    points: FloatArray
    shares: NDArray[np.float64]
    own: FloatArray
    own_label: str
    cosines: NDArray[np.float64]


def text_plane(classifier: Predictor, text: str, others: PooledTexts) -> TextPlane:
    """A text among other texts, in the plane of the other texts, which does not change with the text.

    Raises:
        TraceError: the text contains no token that the model reads.
    """
    pooled = pool_texts(classifier, [text])
    own, plane = pooled.vectors[0], principal_plane(others.vectors)
    lengths = np.maximum(np.linalg.norm(others.vectors, axis=1) * np.linalg.norm(own), 1e-12)
    return TextPlane(
        points=plane.points,
        shares=plane.shares,
        own=plane.place(pooled.vectors)[0],
        own_label=pooled.labels[0],
        cosines=(others.vectors @ own / lengths).astype(np.float64),
    )
