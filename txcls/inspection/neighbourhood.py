"""Vectors in the plane: token embeddings and the vectors of whole texts, by principal components."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.classifier import Classifier, padded
from txcls.data.batches import batches_by_length
from txcls.inspection.tracing import FloatArray, readable
from txcls.text.vocabulary import SPECIAL_TOKENS


@dataclass(frozen=True)
class Plane:
    """The plane in which N vectors of width D spread the most (Pearson 1901, principal component analysis).

    `points` (N, 2) are the vectors in it, `mean` (D,) is its origin, `axes` (2, D) its directions, of length 1 and at
    right angles; `shares` (2,) is how much of all variance lies along each.
    """

    points: FloatArray
    mean: FloatArray
    axes: FloatArray
    shares: NDArray[np.float64]

    def place(self, vectors: FloatArray) -> FloatArray:
        """Where further vectors (M, D) lie in the plane, (M, 2)."""
        places: FloatArray = ((vectors - self.mean) @ self.axes.T).astype(np.float32)
        return places


def principal_plane(vectors: FloatArray) -> Plane:
    """The plane of N vectors (N, D); directions without any spread are zero, and their share too.

    Each axis points so that its largest component is positive: the same vectors always give the same picture.

    Raises:
        ValueError: there is no vector.
    """
    if vectors.ndim != 2 or not len(vectors):
        raise ValueError(f"got an array of shape {vectors.shape}; wanted (N, D) with at least one vector")
    mean = vectors.mean(axis=0)
    centred = (vectors - mean).astype(np.float64)
    spread = centred.T @ centred  # D D; its eigenvectors are the principal directions
    values, directions = np.linalg.eigh(spread)
    axes = np.zeros((2, vectors.shape[1]))
    shares = np.zeros(2)
    total = float(np.trace(spread))
    for n in range(min(2, len(values))):
        value, direction = float(values[-1 - n]), directions[:, -1 - n]
        if value > 1e-12 * max(total, 1e-12):
            axes[n] = direction * np.sign(direction[np.abs(direction).argmax()])
            shares[n] = value / total
    axes32 = axes.astype(np.float32)
    return Plane((centred @ axes.T).astype(np.float32), mean.astype(np.float32), axes32, shares)


@dataclass(frozen=True)
class TokenPlane:
    """The vocabulary in the plane: `ids` and their `points` (N, 2), with the shares of variance along the axes; the ids
    of the text's own tokens, each once, and the nearest words of each with their cosines."""

    ids: tuple[int, ...]
    points: FloatArray
    shares: NDArray[np.float64]
    own: tuple[int, ...]
    own_points: FloatArray
    nearest: dict[int, tuple[tuple[int, float], ...]]


def vocabulary_plane(classifier: Classifier) -> Plane:
    """The plane of the trained vectors of all tokens but the special ones."""
    return principal_plane(_token_vectors(classifier)[len(SPECIAL_TOKENS) :])


def _token_vectors(classifier: Classifier) -> FloatArray:
    vectors: FloatArray = classifier.checkpoint.model.embeddings.token.weight.detach().float().numpy()  # V D
    return vectors


def unit_token_vectors(classifier: Classifier) -> FloatArray:
    """The token embeddings at length 1, (V, D): their products are cosines."""
    vectors = _token_vectors(classifier)  # V D
    units: FloatArray = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return units


def token_plane(
    classifier: Classifier, text: str, *, plane: Plane | None = None, n_tokens: int = 2000, n_nearest: int = 6
) -> TokenPlane:
    """The first tokens of the vocabulary and those of a text, in the plane of the vocabulary.

    Args:
        classifier: a classifier.
        text: whose tokens are to be found in the plane.
        plane: `vocabulary_plane` of this classifier, where it was made before.
        n_tokens: how many of the vocabulary to return: the most frequent ones, of byte pairs the first learned.
        n_nearest: nearest words for each token of the text, by cosine.

    Raises:
        TraceError: the text holds no token to read.
    """
    encoding = readable(classifier, text)
    vectors, first = _token_vectors(classifier), len(SPECIAL_TOKENS)
    plane = plane or vocabulary_plane(classifier)
    own = tuple(dict.fromkeys(token.id for token in encoding.tokens if not token.is_special and not token.is_unknown))
    ids = tuple(range(first, min(first + n_tokens, len(vectors))))
    units = unit_token_vectors(classifier)  # V D
    cosines = units[list(own)] @ units.T  # O V
    cosines[:, :first] = -np.inf
    nearest = {}
    for index, row in zip(own, cosines, strict=True):
        row[index] = -np.inf
        best = np.argsort(-row, kind="stable")[:n_nearest]
        nearest[index] = tuple((int(one), float(row[one])) for one in best if np.isfinite(row[one]))
    return TokenPlane(
        ids=ids,
        points=plane.points[: len(ids)],
        shares=plane.shares,
        own=own,
        own_points=plane.place(vectors[list(own)]),
        nearest=nearest,
    )


@dataclass(frozen=True)
class PooledTexts:
    """Texts as the one vector each that is classified: `vectors` (N, D), and the class that wins on each."""

    vectors: FloatArray
    labels: tuple[str, ...]


def pool_texts(classifier: Classifier, texts: Sequence[str], *, batch_size: int = 64) -> PooledTexts:
    """The pooled vectors of texts, in their order.

    Raises:
        TraceError: a text holds no token to read.
        ValueError: there is no text.
    """
    from txcls.tap import trace

    if not texts:
        raise ValueError("got no text; wanted at least one")
    rows = [readable(classifier, text).ids for text in texts]
    vectors = np.zeros((len(rows), classifier.checkpoint.config.model.d_model), dtype=np.float32)
    labels = [""] * len(rows)
    for places in batches_by_length(map(len, rows), batch_size=batch_size):
        batch = places.tolist()
        with trace(record=["pooled"]) as opened:
            winners = classifier.logits(padded([rows[n] for n in batch])).argmax(dim=-1).tolist()
        vectors[batch] = opened["pooled"].float().numpy()
        for n, winner in zip(batch, winners, strict=True):
            labels[n] = classifier.classes[winner]
    return PooledTexts(vectors, tuple(labels))


@dataclass(frozen=True)
class TextPlane:
    """A text among others in the plane of their pooled vectors: what the head reads to name a class.

    `points` (N, 2) are the others', `own` (2,) is the text's and `own_label` its class; `cosines` (N,) is how nearly
    each of the others' vectors points its way.
    """

    points: FloatArray
    shares: NDArray[np.float64]
    own: FloatArray
    own_label: str
    cosines: NDArray[np.float64]


def text_plane(classifier: Classifier, text: str, others: PooledTexts) -> TextPlane:
    """Where a text lies among others. The plane is that of the others: it stays as it is while the text changes.

    Raises:
        TraceError: the text holds no token to read.
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
