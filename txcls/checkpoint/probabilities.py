"""Calibrated probabilities and in-scope scores of logits, and how unusual a text is for a model.

A text is unusual if its tokens are rare in the training texts, such as a text in another language."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.json_files import PLAIN, Count, Many, Positive, read_json, validate
from txcls.config import Calibration
from txcls.errors import CheckpointError
from txcls.text.subwords import to_bytes
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import SPECIAL_TOKENS, UNK

Floats = NDArray[np.floating[Any]]


def log_softmax(logits: Floats) -> Floats:
    """Log-probabilities (N, C) of logits (N, C), as float64; importing SciPy's version would take 0.1 s."""
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)  # N C
    log_probabilities: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))  # N C
    return log_probabilities


def calibrated_probabilities(
    logits: Floats, calibration: Calibration, lengths: NDArray[np.integer[Any]] | int | None = None
) -> Floats:
    """Class probabilities (N, C) of logits (N, C) under `txcls.config.Calibration`; rows sum to 1.

    `lengths` are the texts' numbers of tokens, (N,) or one for all texts; if None, no text counts as short.
    """
    temperature = calibration.temperature if lengths is None else temperatures(calibration, lengths)[:, None]
    log_probabilities = calibrated_log_probabilities(log_softmax(logits), temperature, calibration.power)
    probabilities: Floats = np.exp(log_probabilities)
    return probabilities


def temperatures(calibration: Calibration, lengths: NDArray[np.integer[Any]] | int) -> Floats:
    """The temperature for each text, (N,), according to its number of tokens."""
    lengths = np.atleast_1d(lengths)
    result = np.full(lengths.shape, calibration.temperature)
    for up_to, temperature in reversed(calibration.short):
        result[lengths <= up_to] = temperature
    return result


def calibrated_log_probabilities(log_probabilities: Floats, temperature: Floats | float, power: float) -> Floats:
    """Calibrated log-probabilities (N, C) from uncalibrated ones (N, C)."""
    surprisal = np.maximum(-log_probabilities, 0.0)  # N C; rounding can make it slightly negative
    return log_softmax(-((surprisal / temperature) ** power))


def scope_scores(logits: Floats, *, calibration: Calibration, score: str) -> Floats:
    """In-scope scores (N,) of logits (N, C); higher means more like a text of the known classes.

    "max_probability" is the highest calibrated probability (Hendrycks & Gimpel 2017); "energy" is the log-sum-exp of
    the logits, the negative free energy of Liu et al. 2020. "standard_score" is the number of standard deviations by
    which the highest logit exceeds the mean of the text's logits. It depends on the direction of the pooled vector, but
    not on its length, like the cosine with the class head's row for the predicted class (Zhang & Xiang 2023,
    "MaxCosine").
    """
    if score == "energy":
        highest = logits.max(axis=1).astype(np.float64)  # N
        energy: Floats = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=1))
        return energy
    if score == "standard_score":
        centred = logits.astype(np.float64) - logits.mean(axis=1, keepdims=True, dtype=np.float64)  # N C
        deviation = centred.std(axis=1)  # N
        above: Floats = centred.max(axis=1) / np.where(deviation > 0, deviation, 1.0)  # 0 if all logits are equal
        return above
    confidence: Floats = calibrated_probabilities(logits, calibration).max(axis=1)
    return confidence


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
    """The token counts of a checkpoint with V tokens; None if it has none, like checkpoints of earlier versions.

    Raises:
        CheckpointError: the file cannot be read, or a field is invalid; the message names the field.
    """
    if not path.is_file():
        return None
    found = validate(TokenCounts, read_json(path, dict), where=str(path))
    if len(found.counts) != vocab_size:
        raise CheckpointError(f"{path}: counts: {len(found.counts):,} numbers for {vocab_size:,} tokens")
    return found


class CountSurprisal:
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
        else:  # count bytes that begin a character
            lengths = [sum(byte & 0xC0 != 0x80 for byte in to_bytes(token) or b"") for token in tokens]
        self._characters = np.array(lengths)  # V
        for token in range(len(SPECIAL_TOKENS)):
            self._bits[token] *= token == UNK
            self._characters[token] = token == UNK

    def per_character(self, ids: Sequence[int] | NDArray[Any]) -> float:
        """Bits per character of a text with these token ids, (T,)."""
        index = np.asarray(ids, dtype=np.int64)
        return float(self._bits[index].sum() / max(self._characters[index].sum(), 1))
