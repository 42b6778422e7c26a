"""Tables that stand in for a head's attention: the weight of a key depends on its word, its distance, or both.

A table never looks at the query's word. A head that it can replace does one simple thing; a head that it cannot
replace attends to different tokens depending on the text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from txcls.data.batches import TokenisedTexts, batches_by_length, pad_batch
from txcls.inference.predictor import Predictor
from txcls.tap import trace
from txcls.text.vocabulary import PAD

TableKind = Literal["distance", "word", "both"]
KINDS: tuple[TableKind, ...] = ("distance", "word", "both")

MAX_DISTANCE = 8
"""Maximum distance with its own weight, in each direction; keys farther away share the weight of this distance."""
ROUNDS = 20
"""Number of rounds of iterative scaling."""
PRIOR = 3.0
"""Each word counts as if it had also occurred this often with the average weight, which moderates rare words."""
LIMIT = 12.0
"""Maximum magnitude of a log weight."""


@dataclass(frozen=True, eq=False)
class Tables:
    """One table for each of N heads: a query's weight on a key is proportional to exp(word + distance).

    Attributes:
        words: (N, V) log weights, with mean 0 over the tokens of the training texts; zeros if the table ignores words.
        distances: (N, 2 MAX_DISTANCE + 1) log weights, first those of keys before the query; zeros if ignored.
    """

    words: Tensor
    distances: Tensor

    @classmethod
    def zeros(cls, n_heads: int, n_words: int) -> "Tables":
        """Tables that give every key the same weight: uniform attention."""
        return cls(torch.zeros(n_heads, n_words), torch.zeros(n_heads, 2 * MAX_DISTANCE + 1))

    def scores(self, ids: Tensor, heads: Sequence[int]) -> Tensor:
        """The attention scores (B, N, T, T) of these heads for token ids (B, T), before masking."""
        rows = torch.as_tensor(heads)
        of_words = self.words[rows][:, ids].transpose(0, 1)  # B N T
        scores: Tensor = of_words[:, :, None] + self.distances[rows][:, distances(ids.shape[1])]  # B N T T
        return scores

    def shuffle(self, counts: Tensor, random: np.random.Generator) -> "Tables":
        """The control: word weights permuted among words of similar frequency, and distance weights permuted.

        Words have a similar frequency if their `counts` (V,) in the training texts lie between the same powers of two.
        """
        words = self.words.clone()
        octaves = np.frexp(counts.numpy())[1]
        for octave in np.unique(octaves):
            ids = np.flatnonzero(octaves == octave)
            for row in words:
                row[ids] = row[random.permutation(ids)]
        order = torch.from_numpy(random.permuted(np.tile(np.arange(self.distances.shape[1]), (len(words), 1)), axis=1))
        return Tables(words, self.distances.gather(1, order))


def distances(n: int) -> Tensor:
    """The index into a table's distances for each query (row) and key (column), (T, T)."""
    positions = torch.arange(n)
    return (positions - positions[:, None]).clamp(-MAX_DISTANCE, MAX_DISTANCE) + MAX_DISTANCE


@dataclass(frozen=True, eq=False)
class FittedTables:
    """The tables of each kind that best describe the heads, fitted to training texts.

    Attributes:
        of_kind: for each kind, one table per head, layer by layer.
        counts: (V,) occurrences of each word in these texts.
        pairs: (2 MAX_DISTANCE + 1,) number of query-key pairs at each distance.
        n: number of texts.
    """

    of_kind: dict[TableKind, Tables]
    counts: Tensor
    pairs: Tensor
    n: int


@torch.inference_mode()
def fit_tables(classifier: Predictor, texts: TokenisedTexts) -> FittedTables:
    """For every head, the tables whose weights are closest to its own attention on these texts.

    They minimise the cross-entropy between the head's weights and theirs, which depends on the head only through its
    total weight on each word and at each distance. The method is iterative scaling (Darroch & Ratcliff 1972,
    https://doi.org/10.1214/aoms/1177692379).
    """
    config = classifier.checkpoint.config.model
    batches = [torch.from_numpy(pad_batch(texts, rows)[0]) for rows in batches_by_length(texts.lengths, batch_size=64)]
    names = [f"layers.{layer}.attn.pattern" for layer in range(config.n_layers)]
    n_heads, n_words = config.n_layers * config.n_heads, classifier.tokenizer.vocab_size
    targets = Tables.zeros(n_heads, n_words)
    for ids in batches:
        with trace(record=names) as activations:
            classifier.logits(ids)
        n, real = ids.shape[1], (ids != PAD).float()  # B T
        patterns = torch.cat([activations[name][:, :, :n, :n] for name in names], dim=1)  # B N T T
        patterns = patterns * real[:, None, :, None] * real[:, None, None, :]
        _add(targets, ids, patterns.sum(dim=2).transpose(0, 1), patterns.sum(dim=0))
    counts = torch.bincount(torch.from_numpy(texts.ids.astype(np.int64)), minlength=n_words)
    fitted = {kind: _scale(targets, batches, kind, causal=config.causal) for kind in KINDS}
    shares = counts.float() / counts.sum()
    centred = {
        kind: Tables((tables.words - (tables.words @ shares)[:, None]).clamp(-LIMIT, LIMIT), tables.distances)
        for kind, tables in fitted.items()
    }
    lengths = torch.from_numpy(texts.lengths.astype(np.int64))
    steps = (torch.arange(2 * MAX_DISTANCE + 1) - MAX_DISTANCE).abs()
    pairs = (lengths[:, None] - steps).clamp(min=0).sum(dim=0)
    farther = (lengths - MAX_DISTANCE).clamp(min=0)
    pairs[[0, -1]] = int((farther * (farther + 1) // 2).sum())  # at the maximum distance or farther
    if config.causal:
        pairs[MAX_DISTANCE + 1 :] = 0
    return FittedTables(centred, counts, pairs, len(texts))


def _add(totals: Tables, ids: Tensor, on_keys: Tensor, on_pairs: Tensor) -> None:
    """Add the weights of a batch: on keys, (N, B, T) for ids (B, T), and on query-key pairs, (N, T, T)."""
    totals.words.index_add_(1, ids.flatten(), on_keys.flatten(1))
    totals.distances.index_add_(1, distances(ids.shape[1]).flatten(), on_pairs.flatten(1))


def _scale(targets: Tables, batches: Sequence[Tensor], kind: TableKind, *, causal: bool) -> Tables:
    """Tables of this kind whose totals over the texts approximate `targets`, after `ROUNDS` rounds."""
    tables = Tables.zeros(*targets.words.shape)
    for _ in range(ROUNDS):
        for is_word in {"word": (True,), "distance": (False,), "both": (True, False)}[kind]:
            totals = Tables.zeros(*targets.words.shape)
            for ids in batches:
                real = (ids != PAD).float()  # B T
                of_pairs = tables.distances.exp()[:, distances(ids.shape[1])]  # N T T: queries, keys
                of_pairs = of_pairs.tril() if causal else of_pairs
                of_keys = tables.words.exp()[:, ids] * real  # N B T
                norms = real / (of_keys @ of_pairs.mT).clamp(min=1e-30)  # N B T: 1 / sum of each query's weights
                _add(totals, ids, of_keys * (norms @ of_pairs), of_pairs * (norms.mT @ of_keys))
            if is_word:
                tables.words.add_(torch.log((targets.words + PRIOR) / (totals.words + PRIOR * tables.words.exp())))
            else:
                tables.distances.add_(torch.log((targets.distances + 1) / (totals.distances + 1)))
    return Tables(tables.words, tables.distances.clamp(-LIMIT, LIMIT))
