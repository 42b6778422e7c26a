"""Attention that ignores the query token: the weight of a key depends on its word and its distance from the query."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.data.batches import TokenisedTexts, batches_by_length, pad_batch
from txcls.inference.predictor import Predictor
from txcls.tap import trace

Floats = NDArray[np.floating]

MAX_DISTANCE = 16
"""Maximum distance with its own weight, in each direction; keys farther away have the weight of this distance."""
ROUNDS = 20
"""Number of rounds of iterative scaling."""
PRIOR = 3.0
"""Each word counts as if it had also occurred this often with the average weight, which avoids extreme weights for rare
words."""
LOG_WEIGHT_STEP = 0.1
"""Log weights are rounded to multiples of this, to store exactly the weights that were tested."""
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

    @property
    def names(self) -> list[str]:
        """Names of the lists that there are."""
        parts = (("word list", self.words), ("distance", self.distances))
        return [name for name, weights in parts if weights is not None]

    def __str__(self) -> str:
        return " and ".join(self.names)

    def weights(self, ids: NDArray[np.int64], *, causal: bool = False) -> Floats:
        """The attention pattern (T, T) for the ids (T,) of a text."""
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
        """The control: word weights permuted among words of similar frequency, and distance weights permuted.

        Words have a similar frequency if their `counts` (V,) in the training texts are between the same powers of two.
        """
        words, distances = self.words, self.distances
        if words is not None:
            words = words.copy()
            octaves = np.frexp(counts)[1]
            for octave in np.unique(octaves):
                ids = np.flatnonzero(octaves == octave)
                words[ids] = words[random.permutation(ids)]
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

    They minimise the cross-entropy between the head's attention weights and their own, to which the head contributes
    only its total weight on each word and at each distance. The method is iterative scaling (Darroch & Ratcliff 1972,
    https://doi.org/10.1214/aoms/1177692379).
    """
    config = classifier.checkpoint.config.model
    batches = [torch.from_numpy(pad_batch(texts, rows)[0]) for rows in batches_by_length(texts.lengths, batch_size=64)]
    names = [f"layers.{layer}.attn.pattern" for layer in range(config.n_layers)]
    n_heads, n_words = config.n_layers * config.n_heads, classifier.tokenizer.vocab_size
    targets = _Totals.zeros(n_heads, n_words)
    for ids in batches:
        with trace(record=names) as activations:
            classifier.logits(ids)
        n, real = ids.shape[1], (ids != 0).float()  # B T
        patterns = torch.cat([activations[name][:, :, :n, :n] for name in names], dim=1)  # B LH T T
        patterns = patterns * real[:, None, :, None] * real[:, None, None, :]
        targets.add(ids, patterns.sum(dim=2).transpose(0, 1), patterns.sum(dim=0))
    fitted = [
        _scaled(targets, batches, by_word=by_word, by_distance=by_distance, causal=config.causal)
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
        """Add the weights of a batch: on keys, (N, B, T) for ids (B, T), and on query–key pairs, (N, T, T)."""
        self.words.index_add_(1, ids.flatten(), on_keys.flatten(1))
        self.distances.index_add_(1, torch.from_numpy(_distance(ids.shape[1])).flatten(), on_pairs.flatten(1))


def _scaled(
    targets: _Totals, batches: Sequence[Tensor], *, by_word: bool, by_distance: bool, causal: bool
) -> list[Lists]:
    """Lists whose totals over the texts approximate `targets`, after `ROUNDS` rounds of iterative scaling."""
    words, distances = torch.zeros_like(targets.words), torch.zeros_like(targets.distances)  # N V, N 2 MAX_DISTANCE + 1
    for _ in range(ROUNDS):
        for is_word in ([True] * by_word) + ([False] * by_distance):
            totals = _Totals.zeros(*words.shape)
            for ids in batches:
                real = (ids != 0).float()  # B T
                of_pairs = distances.exp()[:, torch.from_numpy(_distance(ids.shape[1]))]  # N T T: queries, keys
                of_pairs = of_pairs.tril() if causal else of_pairs
                of_keys = words.exp()[:, ids] * real  # N B T
                norms = real / (of_keys @ of_pairs.mT).clamp(min=1e-30)  # N B T: 1 / sum of each query's weights
                totals.add(ids, of_keys * (norms @ of_pairs), of_pairs * (norms.mT @ of_keys))
            if is_word:
                words += torch.log((targets.words + PRIOR) / (totals.words + PRIOR * words.exp()))
            else:
                distances += torch.log((targets.distances + 1) / (totals.distances + 1))
    counts = torch.bincount(torch.cat([ids.flatten() for ids in batches]), minlength=words.shape[1]).float()
    counts[0] = 0  # padding
    words -= (words @ counts / counts.sum())[:, None]
    rounded = [weights.clamp(-LIMIT, LIMIT).double().numpy().round(1) for weights in (words, distances)]
    return [Lists(w if by_word else None, d if by_distance else None) for w, d in zip(*rounded, strict=True)]


def _distance(n: int) -> NDArray[np.int64]:
    """The index into `Lists.distances` for each query (row) and key (column), (T, T)."""
    positions = np.arange(n)
    distance: NDArray[np.int64] = np.clip(positions - positions[:, None], -MAX_DISTANCE, MAX_DISTANCE) + MAX_DISTANCE
    return distance
