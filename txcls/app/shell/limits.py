"""Limits that a host sets with environment variables: memory, length of texts, waiting computations."""

import os
from dataclasses import dataclass, field, fields
from functools import cache

from txcls.errors import ConfigError, TxclsError


class BusyError(TxclsError):
    """The queue of this server is full."""


def _set_by(variable: str, default: int) -> int:
    """A field that an environment variable sets to a whole number."""
    value: int = field(default=default, metadata={"variable": variable})
    return value


@dataclass(frozen=True, slots=True)
class Limits:
    """The app's limits.

    Attributes:
        cache_megabytes: memory for everything that sessions share, including loaded checkpoints. The default suits a
            host with 1 GB.
        cache_seconds: time after its last use at which an entry of the cache expires.
        characters: maximum number of characters of a text that are read.
        waiting: maximum number of computations waiting in the queue; further ones are refused.
    """

    cache_megabytes: int = _set_by("TXCLS_CACHE_MB", 160)
    cache_seconds: int = _set_by("TXCLS_CACHE_SECONDS", 3600)
    characters: int = _set_by("TXCLS_MAX_CHARACTERS", 20_000)
    waiting: int = _set_by("TXCLS_MAX_WAITING", 40)


@cache
def limits() -> Limits:
    """The limits of this process.

    Raises:
        ConfigError: a variable is not a whole number of at least 1.
    """
    variables = {limit.name: limit.metadata["variable"] for limit in fields(Limits)}
    return Limits(**{name: _value(variable) for name, variable in variables.items() if os.environ.get(variable)})


def _value(variable: str) -> int:
    raw = os.environ[variable]
    if raw.isascii() and raw.isdigit() and len(raw) <= 9 and int(raw):
        return int(raw)
    raise ConfigError(f"{variable}={raw[:40]!r}: expected a whole number from 1 to 999999999; correct it, or unset it")
