"""The pre-trained encoder for the browser, where the playground trains it on a visitor's table."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from txcls.checkpoint.folders import encoder_folder, fingerprint, shared_lock
from txcls.checkpoint.load import load_checkpoint
from txcls.errors import CheckpointError
from txcls.web.export import SETTINGS, join_json_and_weights

MAX_LENGTH = 128
"""Maximum number of tokens of a text in the browser."""


@dataclass(frozen=True, eq=False)
class BrowserEncoder:
    """The encoder as the playground reads it."""

    content: bytes
    """A description and model.safetensors, in the format of `txcls.web.export.pack`."""
    summary: dict[str, Any]
    """Its name and settings, which the page shows before it has the encoder."""
    hash: str
    """The hash of the content, for its address."""


def browser_encoder() -> BrowserEncoder | None:
    """The shipped encoder, read again when its files change; None if this installation has none.

    Raises:
        CheckpointError: it cannot be read.
    """
    folder = encoder_folder()
    return None if folder is None else _read(folder.absolute(), fingerprint(folder))


def packed_encoder() -> bytes:
    """The encoder's description (settings, tokenizer, name) and weights, in the format of `txcls.web.export.pack`.

    Raises:
        CheckpointError: there is no encoder, or it cannot be read.
    """
    encoder = browser_encoder()
    if encoder is None:
        raise CheckpointError(
            "no pre-trained encoder: expected the folder checkpoints/encoder, which is part of the repository"
        )
    return encoder.content


@lru_cache(maxsize=1)
def _read(folder: Path, fingerprint: str) -> BrowserEncoder:
    """The encoder in a folder; `fingerprint` is only part of the cache key."""
    with shared_lock(folder.parent):
        checkpoint = load_checkpoint(folder)
        weights = (folder / "model.safetensors").read_bytes()
    changes = {"pooling": "mean", "max_length": min(MAX_LENGTH, checkpoint.config.model.max_length)}
    settings = checkpoint.config.model.model_copy(update=changes).model_dump(mode="json")
    tokenizer = checkpoint.tokenizer.to_dict()
    tokenizer |= {"max_length": changes["max_length"], "class_token": False}
    config = {name: settings[name] for name in SETTINGS}
    description = {"name": checkpoint.name, "config": config, "tokenizer": tokenizer}
    content = join_json_and_weights(description, weights)
    summary = {"name": checkpoint.name, "config": config}
    return BrowserEncoder(content, summary, hashlib.sha256(content).hexdigest()[:20])
