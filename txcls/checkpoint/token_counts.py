"""Which texts are unusual for a model: their tokens are rare in its training texts, as in another language."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.json_files import PLAIN, Count, Many, Positive, read_json, validate
from txcls.errors import CheckpointError
from txcls.text.subwords import to_bytes
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import SPECIAL_TOKENS, UNK


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """token_counts.json: how often each token occurs in a sample of training texts.

    Attributes:
        bound: a text whose tokens have a higher mean surprisal, in bits per character, is unusual.
        counts: the number of occurrences of each token, (V,).
    """

    __pydantic_config__ = PLAIN
    bound: Positive
    counts: Many[Count]


def read_token_counts(path: Path, vocab_size: int) -> TokenCounts | None:
    """The token counts of a checkpoint with V tokens; None if it has none, as those of earlier versions.

    Raises:
        CheckpointError: the file cannot be read, or a field is invalid; the message names the field.
    """
    if not path.is_file():
        return None
    found = validate(TokenCounts, read_json(path, dict), where=str(path))
    if len(found.counts) != vocab_size:
        raise CheckpointError(f"{path}: counts: {len(found.counts):,} numbers for {vocab_size:,} tokens")
    return found


class Surprisal:
    """The surprisal of tokens, from their counts: log2((N + V) / (n + 1)) for a token with n of N occurrences.

    Unknown words have the surprisal of a token that does not occur, and count as one character; the other special
    tokens do not count.
    """

    def __init__(self, counts: Sequence[int] | NDArray[Any], tokenizer: Tokenizer) -> None:
        n = np.array(counts, dtype=np.float64)  # V
        n[: len(SPECIAL_TOKENS)] = 0
        self._bits = np.log2((n.sum() + len(n)) / (n + 1))  # V
        tokens = tokenizer.vocabulary.tokens
        if tokenizer.byte_pairs is None:
            lengths = [len(token) for token in tokens]
        else:  # other bytes continue a character
            lengths = [sum(byte & 0xC0 != 0x80 for byte in to_bytes(token) or b"") for token in tokens]
        self._characters = np.array(lengths)  # V
        for token in range(len(SPECIAL_TOKENS)):
            self._bits[token] *= token == UNK
            self._characters[token] = token == UNK

    def per_character(self, ids: Sequence[int] | NDArray[Any]) -> float:
        """Bits per character of a text with these token ids, (T,)."""
        index = np.asarray(ids, dtype=np.int64)
        return float(self._bits[index].sum() / max(self._characters[index].sum(), 1))
