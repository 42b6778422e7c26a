"""Hashes of texts, used to assign rows to splits."""

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


def normalised(text: str) -> str:
    """The text in NFC and lower case, with single spaces, so that small differences do not matter."""
    folded = unicodedata.normalize("NFC", text).lower()
    return " ".join(unicodedata.normalize("NFC", folded).split())


def hashed_share(text: str, *, salt: str) -> float:
    """A number in [0, 1), uniformly distributed, the same for texts that `normalised` makes equal.

    Numbers with different salts are independent; with a linear hash, such as CRC-32, they would not be.
    """
    raw = normalised(text).encode("utf-8", "surrogatepass")
    key = hashlib.blake2b(salt.encode()).digest()
    return int.from_bytes(hashlib.blake2b(raw, digest_size=6, key=key).digest(), "big") / 2.0**48


def fingerprint(text: str) -> bytes:
    """Sixteen bytes, equal for texts that `normalised` makes equal and different for all others."""
    return hashlib.blake2b(normalised(text).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def repeats(texts: Sequence[str], known: Iterable[str]) -> NDArray[np.bool_]:
    """(N,): whether each text is among the known texts, ignoring case and whitespace."""
    seen = {normalised(text) for text in known}
    return np.array([normalised(text) in seen for text in texts], dtype=bool)


SKETCH_SIZE = 200
"""Number of hashes from which the share of known texts is estimated, with a standard error of at most 0.035."""


def sketch(texts: Iterable[str]) -> list[str]:
    """The lowest SKETCH_SIZE hashes of the texts (a bottom-k sketch, Cohen & Kaplan 2007), in hexadecimal."""
    return sorted({fingerprint(text).hex()[:12] for text in texts})[:SKETCH_SIZE]


def known_share(texts: Sequence[str], of_known: Sequence[str]) -> float:
    """The estimated share of texts that are among those of a sketch."""
    if not of_known:
        return 0.0
    end = of_known[-1] if len(of_known) == SKETCH_SIZE else "g"
    hashes = [name for name in (fingerprint(text).hex()[:12] for text in texts) if name <= end]
    known = set(of_known)
    return sum(name in known for name in hashes) / max(len(hashes), 1)
