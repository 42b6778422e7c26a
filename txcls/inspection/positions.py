"""How do positions enter the model, and does word order matter for its predictions?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.inference.predictor import Prediction, Predictor
from txcls.inspection.tracing import FloatArray, encode_for_trace


@dataclass(frozen=True)
class ShuffledPredictions:
    """Predictions for a text and for n shuffles of its words.

    The classes of `probabilities` (n, C) are in the classifier's order; `share_unchanged` is the fraction of shuffles
    with the same predicted class as the original.
    """

    original: Prediction
    texts: tuple[str, ...]
    probabilities: NDArray[np.float64]
    share_unchanged: float


def position_vectors(classifier: Predictor, length: int | None = None) -> FloatArray:
    """The position vectors of the first `length` positions (None for all), (T, D); zeros if the model has none."""
    config = classifier.checkpoint.config.model
    n_positions = config.max_length if length is None else length
    if not config.adds_positions:
        return np.zeros((n_positions, config.d_model), dtype=np.float32)
    vectors: FloatArray = classifier.checkpoint.model.embeddings.positional[:n_positions].detach().float().numpy()
    return vectors.copy()


def arrange_words(text: str, order: Sequence[int]) -> str:
    """The N whitespace-separated words of a text in another order, beginning with word order[0].

    Raises:
        ValueError: `order` is not a permutation of 0 to N - 1.
    """
    words = text.split()
    if sorted(order) != list(range(len(words))):
        raise ValueError(f"got the order {list(order)}; expected each of 0 to {len(words) - 1} once")
    return " ".join(words[index] for index in order)


def predict_shuffled(classifier: Predictor, text: str, *, n: int = 20, seed: int = 0) -> ShuffledPredictions:
    """Classify the text and `n` shuffles of its whitespace-separated words, without the truncated part.

    Raises:
        TraceError: the text contains no word.
        ValueError: n is below 1.
    """
    if n < 1:
        raise ValueError(f"got n = {n}; expected at least 1")
    encoding = encode_for_trace(classifier, text)
    words = text[: encoding.truncated_at].split()
    random = np.random.default_rng(seed)
    texts = tuple(" ".join(random.permutation(np.array(words, dtype=object))) for _ in range(n))
    original, *shuffled = classifier.predict([text, *texts])
    probabilities = np.zeros((n, len(classifier.classes)))
    for row, prediction in zip(probabilities, shuffled, strict=True):
        by_label = {ranked.label: ranked.probability for ranked in prediction.ranked}
        row[:] = [by_label[name] for name in classifier.classes]
    share_unchanged = float(np.mean([prediction.label == original.label for prediction in shuffled]))
    return ShuffledPredictions(original, texts, probabilities, share_unchanged)
