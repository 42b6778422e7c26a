"""Count the tokens of training texts, from which a model tells texts that are unusual for it."""

import math

import numpy as np

from txcls.checkpoint.token_counts import Surprisal, TokenCounts
from txcls.data.batches import TokenisedTexts
from txcls.text.tokenizer import Tokenizer

COUNTED_TEXTS = 8_000
"""Maximum number of training texts whose tokens are counted."""
USUAL = 0.98
"""The share of held-out texts, and of their beginnings, of which at least as many are not unusual."""


def fit_token_counts(training: TokenisedTexts, held_out: TokenisedTexts, tokenizer: Tokenizer) -> TokenCounts:
    """Count tokens in training texts, and set the bound on texts that were held out from training."""
    chosen = np.random.default_rng(0).permutation(len(training))[:COUNTED_TEXTS]
    counts = np.bincount(training.subset(chosen).ids, minlength=tokenizer.vocab_size)  # V
    surprisal = Surprisal(counts, tokenizer)
    bits = [
        [surprisal.per_character(texts[n]) for n in range(len(texts))] for texts in (held_out, beginnings(held_out))
    ]
    bound = float(np.quantile(bits, USUAL, axis=1, method="higher").max())
    return TokenCounts(math.ceil(1e4 * bound) / 1e4, tuple(counts.tolist()))


def beginnings(texts: TokenisedTexts) -> TokenisedTexts:
    """The first 8 to 24 tokens of each text: about as much as visitors type, which varies more than whole texts do."""
    return texts.truncated(np.random.default_rng(0).integers(8, 25, size=len(texts)))
