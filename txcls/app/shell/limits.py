"""Limits that a host sets with environment variables: memory, length of texts, queues, uploads and training."""

import os
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from txcls.errors import ConfigError, TxclsError


class BusyError(TxclsError):
    """A queue of this server is full."""


def _set_by(variable: str, default: Any) -> Any:
    """A field that an environment variable sets: on or off for a switch, otherwise a whole number."""
    return field(default=default, metadata={"variable": variable})


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
        session_megabytes: disk space for one visitor's files (`jobs.disk_quota`).
        disk_megabytes: disk space for all visitors' files together.
        job_megabytes: memory for a job's process; a job that needs more fails.
    """

    cache_megabytes: int = _set_by("TXCLS_CACHE_MB", 160)
    cache_seconds: int = _set_by("TXCLS_CACHE_SECONDS", 3600)
    characters: int = _set_by("TXCLS_MAX_CHARACTERS", 20_000)
    waiting: int = _set_by("TXCLS_MAX_WAITING", 40)
    uploads: bool = _set_by("TXCLS_UPLOADS", True)
    training: bool = _set_by("TXCLS_TRAINING", True)
    upload_megabytes: int = _set_by("TXCLS_MAX_UPLOAD_MB", 20)
    rows: int = _set_by("TXCLS_MAX_ROWS", 100_000)
    minutes: int = _set_by("TXCLS_MAX_MINUTES", 15)
    queued: int = _set_by("TXCLS_MAX_QUEUED", 8)
    keep_seconds: int = _set_by("TXCLS_KEEP_SECONDS", 3600)
    session_megabytes: int = _set_by("TXCLS_SESSION_MB", 500)
    disk_megabytes: int = _set_by("TXCLS_DISK_MB", 5000)
    job_megabytes: int = _set_by("TXCLS_JOB_MB", 2500)


_SWITCHES = {"on": True, "1": True, "true": True, "off": False, "0": False, "false": False}


@cache
def limits() -> Limits:
    """The limits of this process.

    Raises:
        ConfigError: a variable is not a whole number of at least 1, or a switch is neither on nor off.
    """
    variables = {limit.name: limit.metadata["variable"] for limit in fields(Limits)}
    return Limits(**{name: _value(name, variable) for name, variable in variables.items() if os.environ.get(variable)})


def _value(name: str, variable: str) -> Any:
    raw = os.environ[variable]
    if name in ("uploads", "training"):
        expected = "on or off"
        if raw.strip().lower() in _SWITCHES:
            return _SWITCHES[raw.strip().lower()]
    else:
        expected = "a whole number from 1 to 999999999"
        if raw.isascii() and raw.isdigit() and len(raw) <= 9 and int(raw):
            return int(raw)
    raise ConfigError(f"{variable}={raw[:40]!r}: expected {expected}; correct it, or unset it")
