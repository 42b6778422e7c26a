"""Limits that a host sets with environment variables: memory, length of texts, queues, uploads and training."""

import os
from dataclasses import dataclass
from functools import cache
from typing import Any

from txcls.errors import ConfigError, TxclsError


class BusyError(TxclsError):
    """A queue of this server is full."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The app's limits.

    Attributes:
        cache_megabytes: memory for everything that sessions share, including loaded checkpoints. The default suits a
            host with 1 GB.
        cache_seconds: time after its last use at which an entry of the cache expires.
        characters: maximum number of characters of a text that are read.
        waiting: maximum number of computations waiting in the queue; further ones are refused.
        uploads: whether visitors may upload files.
        training: whether visitors may train.
        upload_megabytes: maximum size of a file.
        rows: maximum number of rows in a table to train on or classify.
        minutes: maximum time for one training run, or for one file to classify.
        queued: maximum number of jobs waiting in one queue (half as many from one address); further ones are refused.
        keep_seconds: time after the last visit at which a visitor's files are deleted.
        session_megabytes: disk space for one visitor's files.
        disk_megabytes: disk space for all visitors' files together.
        job_megabytes: memory for a job's process; a job that needs more fails.
    """

    cache_megabytes: int = 160
    cache_seconds: int = 3600
    characters: int = 20_000
    waiting: int = 40
    uploads: bool = True
    training: bool = True
    upload_megabytes: int = 20
    rows: int = 100_000
    minutes: int = 15
    queued: int = 8
    keep_seconds: int = 3600
    session_megabytes: int = 500
    disk_megabytes: int = 5000
    job_megabytes: int = 2000


NAMES = {
    "cache_megabytes": "TXCLS_CACHE_MB",
    "cache_seconds": "TXCLS_CACHE_SECONDS",
    "characters": "TXCLS_MAX_CHARACTERS",
    "waiting": "TXCLS_MAX_WAITING",
    "uploads": "TXCLS_UPLOADS",
    "training": "TXCLS_TRAINING",
    "upload_megabytes": "TXCLS_MAX_UPLOAD_MB",
    "rows": "TXCLS_MAX_ROWS",
    "minutes": "TXCLS_MAX_MINUTES",
    "queued": "TXCLS_MAX_QUEUED",
    "keep_seconds": "TXCLS_KEEP_SECONDS",
    "session_megabytes": "TXCLS_SESSION_MB",
    "disk_megabytes": "TXCLS_DISK_MB",
    "job_megabytes": "TXCLS_JOB_MB",
}
"""The environment variable of each limit: on or off for `uploads` and `training`, otherwise a whole number."""
_SWITCHES = {"on": True, "1": True, "true": True, "off": False, "0": False, "false": False}


@cache
def limits() -> Limits:
    """The limits of this process.

    Raises:
        ConfigError: a variable is not a whole number of at least 1, or a switch is neither on nor off.
    """
    return Limits(**{field: _value(field, name) for field, name in NAMES.items() if os.environ.get(name)})


def _value(field: str, name: str) -> Any:
    raw = os.environ[name]
    if field in ("uploads", "training"):
        expected = "on or off"
        if raw.strip().lower() in _SWITCHES:
            return _SWITCHES[raw.strip().lower()]
    else:
        expected = "a whole number from 1 to 999999999"
        if raw.isascii() and raw.isdigit() and len(raw) <= 9 and int(raw):
            return int(raw)
    raise ConfigError(f"{name}={raw[:40]!r}: expected {expected}; correct it, or unset it")
