"""How positions enter the model, and what the order of words does to its answer."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.inspection.tracing import FloatArray, readable
from txcls.predict import Classifier, Prediction


@dataclass(frozen=True)
class PositionEncoding:
    """A model's own encoding: `values` (T, D) is what it adds at each place, zeros where `kind` is "none"."""

    kind: str
    values: FloatArray


@dataclass(frozen=True)
class ShuffledPredictions:
    """The same words in other orders.

    `probabilities` (n, C) are in the order of the classifier's classes; `label_kept` is the share of the shuffles in
    which the original's winning class still wins.
    """

    original: Prediction
    texts: tuple[str, ...]
    probabilities: NDArray[np.float64]
    label_kept: float


def sinusoids(length: int, d_model: int) -> FloatArray:
    """The sinusoidal encoding (T, D) of Vaswani et al. 2017, section 3.5, as an array.

    Raises:
        ValueError: length below 1, or d_model not a positive even number.
    """
    from txcls.model import sinusoidal_encoding

    if length < 1 or d_model < 2 or d_model % 2:
        raise ValueError(f"got length {length} and d_model {d_model}; wanted at least 1 and a positive even number")
    values: FloatArray = sinusoidal_encoding(length, d_model).numpy()
    return values


def position_encoding(classifier: Classifier, length: int | None = None) -> PositionEncoding:
    """What the model adds at the first `length` places (all that it has where None).

    Raises:
        ValueError: length is below 1 or above the model's max_length.
    """
    config = classifier.checkpoint.config.model
    wanted = config.max_length if length is None else length
    if not 1 <= wanted <= config.max_length:
        raise ValueError(f"got length {wanted}; this model has 1 to {config.max_length} positions")
    if config.positions == "none":
        return PositionEncoding("none", np.zeros((wanted, config.d_model), dtype=np.float32))
    values = classifier.checkpoint.model.embeddings.positional[:wanted].detach().float().numpy().copy()
    return PositionEncoding(config.positions, values)


def position_products(values: FloatArray) -> FloatArray:
    """Dot product of every two positions, (T, T), of an encoding (T, D)."""
    products: FloatArray = values @ values.T
    return products


def shuffle_words(classifier: Classifier, text: str, *, n: int = 20, seed: int = 0) -> ShuffledPredictions:
    """Classify `n` random orders of the text's white-space separated words, next to the text itself.

    Only the words that the model read are shuffled (what is cut off stays out), so that every order has the same words.

    Raises:
        TraceError: the text holds no token to read.
        ValueError: n is below 1.
    """
    if n < 1:
        raise ValueError(f"got n = {n}; wanted at least 1")
    encoding = readable(classifier, text)
    words = text[: encoding.truncated_at].split()
    random = np.random.default_rng(seed)
    texts = tuple(" ".join(random.permutation(np.array(words, dtype=object))) for _ in range(n))
    original, *shuffled = classifier.predict([text, *texts])
    place = {name: index for index, name in enumerate(classifier.classes)}
    probabilities = np.zeros((n, len(place)))
    for row, prediction in enumerate(shuffled):
        for score in prediction.scores:
            probabilities[row, place[score.label]] = score.probability
    kept = float(np.mean([prediction.label == original.label for prediction in shuffled]))
    return ShuffledPredictions(original, texts, probabilities, kept)
