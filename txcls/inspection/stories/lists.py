"""Attention without queries: each key's weight depends on its word and its distance, but not on the query token."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.data.batches import TokenisedTexts, batches_by_length, pad_batch
from txcls.predictor import Predictor
from txcls.tap import trace

Floats = NDArray[np.floating]

MAX_DISTANCE = 16
"""Each distance up to this has its own weight in each direction; keys farther away use the weight of the last one."""
ROUNDS = 20
"""Number of rounds of iterative scaling."""
PRIOR = 3.0
"""Pseudo-count: each word is fitted as if it had this many additional occurrences with average weight, to avoid
extreme weights for words that are rare in the training texts."""
LOG_WEIGHT_STEP = 0.1
"""Log weights are rounded to multiples of this, so that a checkpoint stores exactly the weights that were tested."""
LIMIT = 12.0
"""Maximum magnitude of a log weight."""


@dataclass(frozen=True, eq=False)
class Lists:
    """A query's weight on a key is proportional to exp(words[id of the key] + distances[MAX_DISTANCE + key - query]).

    Attributes:
        words: (V,) log weights, with mean 0 over the tokens of the training texts; None to ignore the word.
        distances: (2 MAX_DISTANCE + 1,) log weights, starting with keys before the query; None to ignore the distance.
    """

    words: Floats | None
    distances: Floats | None

    def __str__(self) -> str:
        parts = (("word list", self.words), ("distance", self.distances))
        return " and ".join(name for name, weights in parts if weights is not None)

    def weights(self, ids: NDArray[np.int64], *, causal: bool = False) -> Floats:
        """The attention pattern for the ids (T,) of a text, (T, T)."""
        n = len(ids)
        scores = np.zeros((n, n)) if self.words is None else np.tile(self.words[ids], (n, 1))
        if self.distances is not None:
            scores = scores + self.distances[_distance(n)]
        if causal:
            scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights: Floats = powers / powers.sum(axis=1, keepdims=True)
        return weights

    def shuffled(self, counts: NDArray[np.int64], random: np.random.Generator) -> "Lists":
        """The control: the same weights permuted among words of similar frequency, and the distances permuted.

        Args:
            counts: (V,) number of occurrences of each id in the training texts; words whose counts are in the same
                power-of-two bucket have their weights permuted among them.
            random: source of the permutations.
        """
        words, distances = self.words, self.distances
        if words is not None:
            words = words.copy()
            octaves = np.frexp(counts)[1]
            for octave in np.unique(octaves):
                alike = np.flatnonzero(octaves == octave)
                words[alike] = words[random.permutation(alike)]
        return Lists(words, None if distances is None else random.permutation(distances))


@dataclass(frozen=True, eq=False)
class FittedLists:
    """The lists that best describe a head: by word only, by distance only, and by both."""

    words: Lists
    distances: Lists
    both: Lists


@torch.inference_mode()
def fit_lists(classifier: Predictor, texts: TokenisedTexts) -> list[FittedLists]:
    """For every head, layer by layer, the lists that best describe its attention on these texts.

    They maximise the likelihood of the attention weights (minimum cross-entropy), which depends on the texts only
    through the total weight on each word and at each distance. The method is iterative scaling (Darroch & Ratcliff
    1972, https://doi.org/10.1214/aoms/1177692379).

    Args:
        texts: training texts, at least one.
    """
    config = classifier.checkpoint.config.model
    batches = [torch.from_numpy(pad_batch(texts, rows)[0]) for rows in batches_by_length(texts.lengths, batch_size=64)]
    names = [f"layers.{layer}.attn.pattern" for layer in range(config.n_layers)]
    n_heads, n_words = config.n_layers * config.n_heads, classifier.encoder.vocab_size
    given = _Totals.zeros(n_heads, n_words)
    for ids in batches:
        with trace(record=names) as opened:
            classifier.logits(ids)
        n, real = ids.shape[1], (ids != 0).float()  # B T
        patterns = torch.cat([opened[name][:, :, :n, :n] for name in names], dim=1)  # B LH T T
        patterns = patterns * real[:, None, :, None] * real[:, None, None, :]
        given.add(ids, patterns.sum(dim=2).transpose(0, 1), patterns.sum(dim=0))
    fitted = [
        _scaled(given, batches, by_word=by_word, by_distance=by_distance, causal=config.causal)
        for by_word, by_distance in ((True, False), (False, True), (True, True))
    ]
    return [FittedLists(*of_head) for of_head in zip(*fitted, strict=True)]


@dataclass(frozen=True)
class _Totals:
    """The total weight that each of N heads puts on each word, (N, V), and each distance, (N, 2 MAX_DISTANCE + 1)."""

    words: Tensor
    distances: Tensor

    @classmethod
    def zeros(cls, n_heads: int, n_words: int) -> "_Totals":
        return cls(torch.zeros(n_heads, n_words), torch.zeros(n_heads, 2 * MAX_DISTANCE + 1))

    def add(self, ids: Tensor, on_keys: Tensor, on_pairs: Tensor) -> None:
        """Add a batch's weight on keys, (N, B, T) for ids (B, T), and on query–key pairs, (N, T, T)."""
        self.words.index_add_(1, ids.flatten(), on_keys.flatten(1))
        self.distances.index_add_(1, torch.from_numpy(_distance(ids.shape[1])).flatten(), on_pairs.flatten(1))


def _scaled(
    given: _Totals, batches: Sequence[Tensor], *, by_word: bool, by_distance: bool, causal: bool
) -> list[Lists]:
    """Log weights whose totals over the texts match the given totals, as closely as `ROUNDS` rounds get."""
    words, distances = torch.zeros_like(given.words), torch.zeros_like(given.distances)  # N V, N 2 MAX_DISTANCE + 1
    for _ in range(ROUNDS):
        for is_word in ([True] * by_word) + ([False] * by_distance):
            now = _Totals.zeros(*words.shape)
            for ids in batches:
                real = (ids != 0).float()  # B T
                place = torch.from_numpy(_distance(ids.shape[1]))  # T T
                by_place = distances.exp()[:, place]  # N T T: queries, keys
                by_place = by_place.tril() if causal else by_place
                by_id = words.exp()[:, ids] * real  # N B T
                per_weight = real / (by_id @ by_place.mT).clamp(min=1e-30)  # N B T: 1 / sum of each query's weights
                now.add(ids, by_id * (per_weight @ by_place), by_place * (per_weight.mT @ by_id))
            if is_word:
                words += torch.log((given.words + PRIOR) / (now.words + PRIOR * words.exp()))
            else:
                distances += torch.log((given.distances + 1) / (now.distances + 1))
    seen = torch.bincount(torch.cat([ids.flatten() for ids in batches]), minlength=words.shape[1]).float()
    seen[0] = 0  # padding
    words -= (words @ seen / seen.sum())[:, None]
    rounded = [weights.clamp(-LIMIT, LIMIT).double().numpy().round(1) for weights in (words, distances)]
    return [Lists(w if by_word else None, d if by_distance else None) for w, d in zip(*rounded, strict=True)]


def _distance(n: int) -> NDArray[np.int64]:
    """The index into `Lists.distances` for each query (row) and key (column), (T, T)."""
    places = np.arange(n)
    distance: NDArray[np.int64] = np.clip(places - places[:, None], -MAX_DISTANCE, MAX_DISTANCE) + MAX_DISTANCE
    return distance
