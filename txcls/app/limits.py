"""What a host may set by environment variables: how much memory caches take, and how much of a text is read."""

import os
from dataclasses import dataclass
from functools import cache

from txcls.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Limits:
    """The app's limits.

    Attributes:
        cache_megabytes: of everything that is kept for all sessions, loaded checkpoints included (TXCLS_CACHE_MB). The
            default fits a host with 1 GB.
        cache_seconds: how long something is kept that nobody asked for again (TXCLS_CACHE_SECONDS).
        characters: of a text that are read (TXCLS_MAX_CHARACTERS).
        waiting: computations that may wait for their turn (TXCLS_MAX_WAITING); more are turned away.
    """

    cache_megabytes: int = 160
    cache_seconds: int = 3600
    characters: int = 20_000
    waiting: int = 40


@cache
def limits() -> Limits:
    """Those of this process.

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
