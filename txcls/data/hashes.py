"""Hashes of texts, used to assign rows to splits and to recognise them."""

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from txcls.text.formatting import percentage


def normalise_text(text: str) -> str:
    """The text in NFC and lower case with single spaces; texts that differ only in these respects become equal."""
    lowered = unicodedata.normalize("NFC", text).lower()
    return " ".join(unicodedata.normalize("NFC", lowered).split())


def hashed_share(text: str, *, salt: str) -> float:
    """A uniformly distributed number in [0, 1), the same for texts that are equal after `normalise_text`.

    Numbers with different salts are independent, unlike those from a linear hash such as CRC-32.
    """
    raw = normalise_text(text).encode("utf-8", "surrogatepass")
    key = hashlib.blake2b(salt.encode()).digest()
    return int.from_bytes(hashlib.blake2b(raw, digest_size=6, key=key).digest(), "big") / 2.0**48


def hash_text(text: str) -> bytes:
    """A hash of 16 bytes, the same for texts that are equal after `normalise_text`, and different for all others."""
    return hashlib.blake2b(normalise_text(text).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def repeats(texts: Sequence[str], known: Iterable[str]) -> NDArray[np.bool_]:
    """Whether each text is among the known texts, ignoring case and whitespace, (N,)."""
    seen = {normalise_text(text) for text in known}
    return np.array([normalise_text(text) in seen for text in texts], dtype=bool)


SKETCH_SIZE = 2000
"""Maximum number of hashes in a sketch, enough to recognise most small parts of a file."""


def sketch(texts: Iterable[str]) -> list[str]:
    """The SKETCH_SIZE lowest hashes of the texts in hexadecimal (a bottom-k sketch, Cohen & Kaplan 2007)."""
    return sorted(set(map(_short_hash, texts)))[:SKETCH_SIZE]


MIN_KNOWN = 0.05
"""A warning is given if at least this share of the texts is known."""


class KnownShare:
    """The share of texts that are among known texts, of which only a sketch is stored."""

    def __init__(self, sketch_of_known: Sequence[str], texts: Iterable[str] = ()) -> None:
        self._known, self._compared = set(sketch_of_known), set[str]()
        is_whole = len(sketch_of_known) not in (0, SKETCH_SIZE)
        self._highest = "g" if is_whole else max(sketch_of_known, default="")  # "g": above all hashes
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        """Compare more texts with the known ones."""
        self._compared.update(value for value in map(_short_hash, texts) if value <= self._highest)

    @property
    def share(self) -> float:
        """The share of the distinct texts that are known; an estimate if the sketch lacks some known texts."""
        return len(self._compared & self._known) / max(len(self._compared), 1)

    def __str__(self) -> str:
        return f"about {percentage(self.share, 0)} of the different texts of these rows"


def _short_hash(text: str) -> str:
    return hash_text(text).hex()[:12]
