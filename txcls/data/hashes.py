"""Hashes of texts, used to assign rows to splits."""

import hashlib
import unicodedata


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
