"""How known phrases vote: a linear model of phrase counts, fitted once the deep model beside it is trained."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from txcls.calibration import log_softmax
from txcls.data.batches import TokenisedTexts
from txcls.text.vocabulary import SPECIAL_TOKENS

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from txcls.model import TextClassifier

Floats = NDArray[np.float64]

STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Values of C to try, the inverse strength of the logistic regression's regularisation, until the next one is worse."""
SCALES = (0.0, *np.geomspace(0.05, 20.0, 49).tolist())
"""What votes may be multiplied by; 0 where they do no good."""
TEMPERATURES = np.geomspace(0.2, 5.0, 33)
"""What logits may be divided by before their log loss is compared: they are calibrated in the end."""
FEWEST_TEXTS = 2
"""Training texts that a phrase must stand in to be known."""
SHORT = 0.1
"""A text counts as short that holds fewer known phrases than all but this share of the training texts."""


@dataclass(frozen=True, eq=False)
class PhraseVotes:
    """P phrases and how they vote: what `txcls.bigrams_and_phrases.Phrases` learns.

    Attributes:
        phrases: (P, longest) token ids, with padding on the left of shorter ones.
        votes: (P, C) numbers to be added up over a text and divided by the square root of how many there are.
        fewest: by whose root the votes of texts with fewer are divided.
        bias: (C,) what every text gets on top.
        strength: C of the logistic regression they come from.
        scale: what its weights were multiplied by.
        log_loss: of validation texts, at their best temperature: of the deep model alone, and with the votes.
    """

    phrases: NDArray[np.int64]
    votes: NDArray[np.float32]
    fewest: int
    bias: NDArray[np.float32]
    strength: float
    scale: float
    log_loss: tuple[float, float]

    def teach(self, model: "TextClassifier") -> None:
        """Let the model's phrases vote so."""
        import torch

        assert model.phrases is not None
        phrases, votes, bias = (torch.from_numpy(one) for one in (self.phrases, self.votes, self.bias))
        model.phrases.learn(phrases, votes, bias=bias, fewest=self.fewest)


def limits(model: "TextClassifier") -> dict[str, int]:
    """How many phrases a model has room for, how long, and of how many tokens: what `fit_votes` asks for."""
    config = model.config
    return {"n": config.phrases, "longest": config.phrase_length, "vocab_size": model.embeddings.token.num_embeddings}


def fit_votes(
    texts: TokenisedTexts,
    held_out: TokenisedTexts,
    logits: NDArray[np.floating],
    *,
    n: int,
    longest: int,
    vocab_size: int,
) -> PhraseVotes:
    """The most frequent phrases of the training texts, and a vote of each for every class.

    Each phrase's count is weighed by how few texts it stands in (inverse document frequency) and by how much more often
    in those of the class than in others, the log-count ratio of naive Bayes; logistic regression, one class against the
    rest, weighs all of them once more (Wang and Manning 2012, "Baselines and Bigrams"). Validation texts say how much
    regularisation is best and what all votes are to be multiplied by: what gives the lowest log loss together with the
    deep model's logits. Two models that were fitted each by itself are right together more often than either, and more
    often than a deep model that is trained on what the votes leave over: the training texts hardly leave any.

    Args:
        texts: the training texts.
        held_out: M validation texts.
        logits: (M, C) what the deep model says of these.
        n: phrases at most.
        longest: tokens of the longest.
        vocab_size: V.
    """
    counted = _Counted.of(texts, n=n, longest=longest, vocab_size=vocab_size)
    asked = counted.again(held_out)  # M P
    deep = logits.astype(np.float64)
    alone = _log_loss(deep, held_out.labels)
    best: tuple[float, PhraseVotes] | None = None
    for strength in STRENGTHS:
        votes, bias = _fit(counted.counts, texts.labels, deep.shape[1], strength)
        said = asked @ votes + bias  # M C
        loss, scale = min((_log_loss(deep + scale * said, held_out.labels), scale) for scale in SCALES)
        if best is not None and loss > best[0]:
            break
        if best is None or loss < best[0]:
            best = loss, counted.votes(votes, bias, strength=strength, scale=scale, log_loss=(alone, loss))
    assert best is not None
    return best[1]


@dataclass(frozen=True, eq=False)
class _Counted:
    """The phrases to know, and how often each text holds them.

    Attributes:
        known: (P,) keys, sorted.
        counts: (N, P), each text's divided by the root of how many phrases it holds, at least of `fewest`.
        fewest: see `PhraseVotes`.
    """

    known: NDArray[np.int64]
    counts: "csr_array"
    fewest: int
    longest: int
    vocab_size: int

    @classmethod
    def of(cls, texts: TokenisedTexts, *, n: int, longest: int, vocab_size: int) -> Self:
        """The n most frequent phrases of these texts."""
        keys, text = _occurrences(texts, longest=longest, vocab_size=vocab_size)
        known = _most_frequent(keys, text, n=n, n_texts=len(texts))  # P
        counts = _counts(keys, text, known, n_texts=len(texts))  # N P
        fewest = max(int(np.quantile(counts.sum(axis=1), SHORT)), 1)
        return cls(known, _shared_out(counts, fewest), fewest, longest, vocab_size)

    def again(self, texts: TokenisedTexts) -> "csr_array":
        """Other texts' counts of the same phrases, divided alike, (M, P)."""
        keys, text = _occurrences(texts, longest=self.longest, vocab_size=self.vocab_size)
        return _shared_out(_counts(keys, text, self.known, n_texts=len(texts)), self.fewest)

    def votes(
        self,
        votes: Floats,
        bias: Floats,
        *,
        strength: float,
        scale: float,
        log_loss: tuple[float, float],
    ) -> PhraseVotes:
        """These phrases with such votes (P, C) and bias (C,), made louder by `scale`."""
        powers = self.vocab_size ** np.arange(self.longest - 1, -1, -1)
        return PhraseVotes(
            phrases=self.known[:, None] // powers % self.vocab_size,
            votes=(scale * votes).astype(np.float32),
            fewest=self.fewest,
            bias=(scale * bias).astype(np.float32),
            strength=strength,
            scale=scale,
            log_loss=log_loss,
        )


def _shared_out(counts: "csr_array", fewest: int) -> "csr_array":
    """Each text's counts, (N, P), divided by the root of their sum, at least of `fewest`; changed in place."""
    counts.data /= np.sqrt(np.repeat(np.maximum(counts.sum(axis=1), fewest), np.diff(counts.indptr)))
    return counts


def _occurrences(
    texts: TokenisedTexts, *, longest: int, vocab_size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The key of every phrase at every place, as `txcls.bigrams_and_phrases` makes it, and the number of its text.

    Phrases with special tokens are left out: what is unknown is not the same twice.
    """
    ids = texts.ids.astype(np.int64)
    place = np.arange(len(ids)) - np.repeat(texts.offsets[:-1], texts.lengths)  # in its text
    number = np.repeat(np.arange(len(texts)), texts.lengths)
    keys, found, numbers = np.zeros(len(ids), dtype=np.int64), [], []
    whole = np.ones(len(ids), dtype=bool)
    for n in range(longest):
        earlier = np.roll(ids, n)
        whole &= (place >= n) & (earlier >= len(SPECIAL_TOKENS))
        keys = keys + earlier * vocab_size**n
        found.append(keys[whole])
        numbers.append(number[whole])
    return np.concatenate(found), np.concatenate(numbers)


def _most_frequent(keys: NDArray[np.int64], text: NDArray[np.int64], *, n: int, n_texts: int) -> NDArray[np.int64]:
    """The n phrases that stand in the most texts, at least in `FEWEST_TEXTS`: their keys, sorted."""
    phrases, which = np.unique(keys, return_inverse=True)
    once = np.unique(which * n_texts + text)  # each phrase of each text
    frequency = np.bincount(once // n_texts, minlength=len(phrases))
    most = np.argsort(-frequency, kind="stable")[:n]
    return np.sort(phrases[most[frequency[most] >= FEWEST_TEXTS]])


def _counts(keys: NDArray[np.int64], text: NDArray[np.int64], known: NDArray[np.int64], *, n_texts: int) -> "csr_array":
    """How often each text holds each known phrase, (N, P)."""
    from scipy.sparse import csr_array

    column = np.searchsorted(known, keys).clip(max=max(len(known) - 1, 0))
    is_known = known[column] == keys if len(known) else np.zeros(len(keys), dtype=bool)
    ones = np.ones(int(is_known.sum()))
    places = (text[is_known].astype(np.int32), column[is_known].astype(np.int32))  # liblinear takes no wider ones
    counts = csr_array((ones, places), shape=(n_texts, len(known)))
    counts.sum_duplicates()
    return counts


def _log_count_ratio(features: "csr_array", own: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Naive Bayes log-count ratio of each feature (P,): its share in a class's own texts (N,) against all others."""
    width = features.shape[1]
    inside, outside = (  # P
        1 + np.bincount(features[part].indices, minlength=width).astype(np.float32) for part in (own, ~own)
    )
    ratio: NDArray[np.float32] = np.log(inside / inside.sum()) - np.log(outside / outside.sum())
    return ratio


def _weighted(features: "csr_array", weights: NDArray[np.floating]) -> "csr_array":
    """A copy of features (N, P) with each column multiplied by its weight (P,)."""
    weighted = features.copy()
    weighted.data *= weights[weighted.indices]
    return weighted


def _fit(counts: "csr_array", labels: NDArray[np.int64], n_classes: int, strength: float) -> tuple[Floats, Floats]:
    """Votes (P, C) and bias (C,) of a model fitted to these texts; zeros for a class of none or of all of them."""
    from sklearn.linear_model import LogisticRegression

    texts_with = np.bincount(counts.indices, minlength=counts.shape[1])  # P
    rarity = np.log((1 + len(labels)) / (1 + texts_with)) + 1  # P: inverse document frequency
    votes, bias = np.zeros((counts.shape[1], n_classes)), np.zeros(n_classes)
    for c in range(1 if n_classes == 2 else 0, n_classes):
        own = labels == c  # N
        if own.all() or not own.any() or not counts.shape[1]:
            continue
        weights = rarity * _log_count_ratio(counts, own)  # P
        model = LogisticRegression(C=strength, solver="liblinear").fit(_weighted(counts, weights), own)
        votes[:, c], bias[c] = model.coef_[0] * weights, model.intercept_[0]
    if n_classes == 2:  # one model says both: half for the one class, half against the other
        votes, bias = votes[:, 1:] * [-0.5, 0.5], bias[1] * np.array([-0.5, 0.5])
    return votes, bias


def _log_loss(logits: Floats, labels: NDArray[np.int64]) -> float:
    """At the temperature where it is lowest."""
    rows = np.arange(len(labels))
    return min(float(-log_softmax(logits / one)[rows, labels].mean()) for one in TEMPERATURES)
