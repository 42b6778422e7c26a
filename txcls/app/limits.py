"""Limits that a host sets by environment variables: memory of the cache, length of texts, length of the queue."""

import os
from dataclasses import dataclass
from functools import cache

from txcls.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Limits:
    """The app's limits.

    Attributes:
        cache_megabytes: memory for everything that sessions share, loaded checkpoints included (TXCLS_CACHE_MB). The
            default fits a host with 1 GB.
        cache_seconds: how long an entry of the cache is kept after its last use (TXCLS_CACHE_SECONDS).
        characters: how many characters of a text are read (TXCLS_MAX_CHARACTERS).
        waiting: how many computations may wait in the queue (TXCLS_MAX_WAITING); further ones are refused.
    """

    cache_megabytes: int = 160
    cache_seconds: int = 3600
    characters: int = 20_000
    waiting: int = 40


@cache
def limits() -> Limits:
    """The limits of this process.

    Raises:
        ConfigError: a variable is not a whole number of at least 1.
    """
    named = {
        "cache_megabytes": "TXCLS_CACHE_MB",
        "cache_seconds": "TXCLS_CACHE_SECONDS",
        "characters": "TXCLS_MAX_CHARACTERS",
        "waiting": "TXCLS_MAX_WAITING",
    }
    return Limits(**{field: _whole(name) for field, name in named.items() if os.environ.get(name)})


def _whole(name: str) -> int:
    raw = os.environ[name]
    if raw.isascii() and raw.isdigit() and 1 <= len(raw) <= 9 and int(raw):
        return int(raw)
    raise ConfigError(f"{name}={raw[:40]!r}: wanted a whole number from 1 to 999999999; correct it, or unset it")
