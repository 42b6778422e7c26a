"""List the available checkpoints without reading their weights; a damaged one does not affect the others."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from txcls.checkpoint.folders import (
    FILES,
    GPT2_FILES,
    SNAPSHOTS,
    checkpoint_root,
    fingerprint,
    names_in,
    recover_saves,
    shared_lock,
)
from txcls.checkpoint.json_files import LFS_POINTER, read_json, refuse_pointer
from txcls.checkpoint.schema import read_checkpoint_json
from txcls.errors import CheckpointError, one_line, reason_of

MAX_REASON_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Summary:
    """A checkpoint's name, purpose and main metric.

    `accuracy` is the accuracy on test rows, or on validation rows if there is none on test rows; `perplexity` is a
    language model's perplexity on validation texts.
    """

    name: str
    title: str = ""
    dataset: str = ""
    accuracy: float | None = None
    objective: str = "classify"
    perplexity: float | None = None
    has_snapshots: bool = False
    imported: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """All checkpoints in a folder, each kind sorted by name.

    Published GPT-2 folders are language models with the objective "causal". `left_out` has the name of each unreadable
    checkpoint folder, with a one-line reason.
    """

    classifiers: tuple[Summary, ...] = ()
    language_models: tuple[Summary, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


def list_checkpoints(*, recover: bool = True) -> Listing:
    """The checkpoints in `checkpoint_root()`; only changed ones are read again.

    Hidden folders and folders without a config.json are ignored; broken links are reported in `left_out`. Damaged
    folders never raise an error. Interrupted saves are completed or rolled back first, unless `recover` is false.
    """
    root = checkpoint_root().absolute()
    if recover:
        recover_saves(root)
    summaries: list[Summary] = []
    left_out: dict[str, str] = {}
    with shared_lock(root):
        for name in names_in(root):
            result = None if name.startswith(".") else _summary_or_reason(root / name)
            try:
                name.encode()
            except UnicodeEncodeError:
                name = os.fsencode(name).decode("utf-8", "backslashreplace")
                result = result and "the folder's name is not UTF-8; rename it"
            if isinstance(result, Summary):
                summaries.append(result)
            elif result is not None:
                left_out[name] = result
    return Listing(
        classifiers=tuple(summary for summary in summaries if summary.objective == "classify"),
        language_models=tuple(summary for summary in summaries if summary.objective != "classify"),
        left_out=left_out,
    )


def _summary_or_reason(path: Path) -> Summary | str | None:
    """A folder's summary, or the reason why it cannot be read; None if it is not a checkpoint folder."""
    try:
        if path.is_symlink() and not path.exists():
            return "a broken link"
        if not path.is_dir() or not os.path.lexists(path / "config.json"):
            return None
        return _cached_summary_or_reason(path, fingerprint(path))
    except (CheckpointError, OSError, ValueError) as error:  # removed in the meantime, or not readable
        return one_line(reason_of(error), limit=MAX_REASON_LENGTH)


@lru_cache(maxsize=1000)
def _cached_summary_or_reason(path: Path, fingerprint: str) -> Summary | str:
    """The summary of a checkpoint folder, or a reason; `fingerprint` is only part of the cache key."""
    try:
        return _summary(path)
    except CheckpointError as error:
        return one_line(str(error).replace(f"{path}{os.sep}", ""), limit=MAX_REASON_LENGTH)


def _summary(path: Path) -> Summary:
    values = read_json(path / "config.json", dict)
    if values.get("model_type") == "gpt2":
        _check_complete(path, GPT2_FILES)
        return Summary(path.name, title="next token (a published GPT-2)", objective="causal")
    _check_complete(path, FILES)
    record = read_checkpoint_json(path)
    config, measured = record.config, record.metrics.get("test") or record.metrics.get("validation") or {}
    return Summary(
        name=path.name,
        title=config.title,
        dataset=config.data.dataset,
        accuracy=measured.get("accuracy"),
        objective=config.objective,
        perplexity=record.metrics.get("language", {}).get("perplexity"),
        has_snapshots=(path / SNAPSHOTS).is_file(),
        imported=bool(config.imported),
    )


def _check_complete(path: Path, files: tuple[str, ...]) -> None:
    if missing := [name for name in files if not (path / name).is_file()]:
        raise CheckpointError(f"it lacks {', '.join(missing)}")
    weights = "model.safetensors"
    with (path / weights).open("rb") as file:
        refuse_pointer(file.read(len(LFS_POINTER)), where=weights)


def checkpoint_names(*, language_models: bool = False) -> tuple[str, ...]:
    """Names of the readable classifiers (or language models) in `checkpoint_root()`, sorted."""
    listing = list_checkpoints()
    return tuple(summary.name for summary in (listing.language_models if language_models else listing.classifiers))
