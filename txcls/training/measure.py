"""What a card says of a split's rows: how good, how sure, where it goes wrong, and what the order of words gives."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.config import Calibration
from txcls.data.batches import TokenisedTexts
from txcls.evaluation import predict_logits
from txcls.metrics import Metrics, Slice, accuracy_by, calibrated_probabilities, evaluate_probabilities
from txcls.model import TextClassifier
from txcls.text.encoder import TextEncoder
from txcls.text.vocabulary import UNK

LENGTHS = (10, 20, 40, 80, 160, 320)
"""Upper ends of the groups by tokens read; the last group has none."""
UNKNOWN_SHARES = (0.0, 0.05, 0.1, 0.2)
"""Upper ends of the groups by share of unknown tokens."""


@dataclass(frozen=True)
class Evaluation:
    """What was measured over the rows of the classes, and over rows of no class where there are some.

    `by_length` groups rows by tokens read and `by_unknown` by the share of them that is unknown. `order` holds
    accuracies with the order of words taken away (see `accuracy_without_order`).
    """

    metrics: Metrics
    by_length: tuple[Slice, ...]
    by_unknown: tuple[Slice, ...]
    order: Mapping[str, float] = field(default_factory=dict)
    scope: Mapping[str, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values of all but `scope`."""
        groups = {"by_length": self.by_length, "by_unknown": self.by_unknown}
        return {
            **self.metrics.to_dict(),
            **{name: [asdict(one) for one in slices] for name, slices in groups.items()},
            **({"order": dict(self.order)} if self.order else {}),
        }


def measure(
    logits: NDArray[np.float32], texts: TokenisedTexts, *, calibration: Calibration, classes: tuple[str, ...]
) -> Evaluation:
    """All figures that logits (N, C) of these texts and their labels give; without `order` and `scope`."""
    probabilities = calibrated_probabilities(logits, calibration)  # N C
    right = probabilities.argmax(axis=1) == texts.labels  # N
    unknown = np.add.reduceat(texts.ids == UNK, texts.offsets[:-1], dtype=np.int64) / texts.lengths  # N
    return Evaluation(
        evaluate_probabilities(probabilities, texts.labels, classes=classes),
        by_length=accuracy_by(texts.lengths, right, upper=LENGTHS),
        by_unknown=accuracy_by(unknown, right, upper=UNKNOWN_SHARES),
    )


def accuracy_without_order(
    model: TextClassifier, texts: TokenisedTexts, *, encoder: TextEncoder, device: torch.device | str = "cpu"
) -> dict[str, float]:
    """Accuracy over texts whose order is hidden from the model; what it loses by that is what it draws from order.

    `words_shuffled`: the words of each text in a random order (seeded). `positions_removed`: texts as they are,
    position vectors zero. Bigram vectors know each token's left neighbour, so that order is gone only with
    `positions_and_bigrams_removed`, where both are zero. Phrases know a few neighbours too: `phrases_removed` is the
    rest of the model, its order as it is, without their votes. What the model does not have is left out.
    """
    blind = deepcopy(model)  # the model itself may be shared
    looks = {"words_shuffled": predict_logits(model, shuffle_words(texts, encoder), device=device)}
    with torch.no_grad():
        if model.phrases is not None:
            phrases, blind.phrases = blind.phrases, None
            looks["phrases_removed"] = predict_logits(blind, texts, device=device)
            blind.phrases = phrases
        if model.config.positions != "none":
            blind.embeddings.positional.zero_()
            looks["positions_removed"] = predict_logits(blind, texts, device=device)
        if blind.embeddings.ngram is not None:
            blind.embeddings.ngram.project.weight.zero_()
            looks["positions_and_bigrams_removed"] = predict_logits(blind, texts, device=device)
    return {
        name: round(float((logits.argmax(-1).numpy() == texts.labels).mean()), 6)  # N C
        for name, logits in looks.items()
    }


def shuffle_words(texts: TokenisedTexts, encoder: TextEncoder, *, seed: int = 0) -> TokenisedTexts:
    """The same texts with their words in random order; sub-words of a word stay together, a class token stays first."""
    if encoder.byte_pairs is None:
        begins = np.ones(encoder.vocab_size, dtype=bool)  # V
    else:
        begins = np.array([token.startswith("Ġ") for token in encoder.vocabulary.tokens])  # V: Ġ is the space before
    starts = begins[texts.ids]
    starts[texts.offsets[:-1]] = True
    word = np.cumsum(starts)  # a number for each word of all texts, from 1
    chance = np.random.default_rng(seed).random(len(word) + 1)[word]
    if encoder.class_token:
        chance[texts.offsets[:-1]] = -1.0
    text = np.repeat(np.arange(len(texts)), texts.lengths)
    order = np.lexsort((np.arange(len(word)), chance, text))  # by text, then by chance, then as they stood
    return TokenisedTexts(texts.ids[order], texts.offsets, texts.labels)
