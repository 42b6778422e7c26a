"""The token ids for pre-training, stored in files next to the run's state.

Texts are encoded once; a resumed run maps the files into memory and starts in seconds. When the run has finished, the
files are removed together with the state.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from txcls.config import RunConfig
from txcls.data.batches import TokenisedTexts
from txcls.data.types import LabelledTexts
from txcls.data.unlabelled_texts import UnlabelledTexts
from txcls.errors import CheckpointError, TrainingError, reason_of
from txcls.text.tokenizer import WINDOW, Tokenizer
from txcls.text.vocabulary import CLS

MAX_TOKENS = 1_000_000
"""Maximum number of tokens read from one text."""
MAX_CHARACTERS_FOR_VOCABULARY = 150_000_000
"""If the texts have more characters than this, the vocabulary is learned from every second (third, …) text only."""
BATCH_CHARACTERS = 4_000_000
"""Number of characters encoded at once; encoding takes about 40 bytes of memory per character."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Windows of training and validation texts, their tokenizer, and the "data" entry of metrics.json."""

    tokenizer: Tokenizer
    training: TokenisedTexts
    validation: TokenisedTexts
    facts: dict[str, Any]


def make_corpus(folder: Path, config: RunConfig, texts: UnlabelledTexts, *, on_stage: Callable[[str], None]) -> Corpus:
    """Learn the vocabulary from training texts, and write the ids of all texts to `folder`, replacing its contents.

    Raises:
        TrainingError: the folder cannot be written to.
    """
    stride = -(-sum(map(len, texts.training)) // MAX_CHARACTERS_FOR_VOCABULARY) or 1
    learned_from = texts.training[::stride]
    on_stage(f"building the vocabulary from {len(learned_from):,} training texts")
    tokenizer = Tokenizer.fit(
        learned_from, config.text, max_length=config.model.max_length, class_token=config.reads_class_token
    )
    on_stage(f"turning texts into ids with a vocabulary of {tokenizer.vocab_size:,}")
    facts = {
        "dataset": texts.info.name,
        "title": texts.info.title,
        "terms": texts.info.terms,
        "train_rows": len(texts.training),
        "validation_rows": len(texts.validation),
        **({"rows": dict(texts.rows)} if texts.rows else {}),
    }
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, part in (("training", texts.training), ("validation", texts.validation)):
            _write_windows(folder / name, tokenizer, part)
        description = {"settings": _settings(config), "encoder": tokenizer.to_dict(), "facts": facts}
        # Written last: its presence means that the other files are complete.
        (folder / "corpus.json").write_text(json.dumps(description), encoding="utf-8")
    except OSError as error:
        raise TrainingError(f"cannot write to {folder}: {reason_of(error)}; choose another folder with --out") from None
    corpus = read_corpus(folder, config)
    assert corpus is not None, f"{folder} was changed while it was written"
    return corpus


def read_corpus(folder: Path, config: RunConfig) -> Corpus | None:
    """Read the corpus that `make_corpus` wrote with the same settings; None if there is none."""
    try:
        description = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
        if description["settings"] != _settings(config):
            return None
        tokenizer = Tokenizer.from_dict(description["encoder"])
        training, validation = (_read_windows(folder / name) for name in ("training", "validation"))
    except (OSError, ValueError, KeyError, TypeError, CheckpointError):
        return None
    return Corpus(tokenizer, training, validation, description["facts"])


def encode_windows(tokenizer: Tokenizer, texts: Sequence[str]) -> TokenisedTexts:
    """Encode texts, splitting those longer than the model's maximum length into windows."""
    chunks = [chunk for text in texts for chunk in _chunks(text)]
    untruncated = Tokenizer.from_dict({**tokenizer.to_dict(), "class_token": False, "max_length": MAX_TOKENS})
    rows = LabelledTexts(chunks, [0] * len(chunks), ("text",))
    first = CLS if tokenizer.class_token else None
    return TokenisedTexts.encode(untruncated, rows).split_windows(tokenizer.max_length, first=first)


def _chunks(text: str) -> Iterator[str]:
    """Yield the whole text or, if it is longer than `WINDOW`, chunks of as many whole lines as fit, at least one."""
    if len(text) <= WINDOW:
        yield text
        return
    lines: list[str] = []
    size = 0
    for line in text.splitlines(keepends=True):
        if lines and size + len(line) > WINDOW:
            yield "".join(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    yield "".join(lines)


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield the texts in lists of about `BATCH_CHARACTERS` characters."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _write_windows(file: Path, tokenizer: Tokenizer, texts: Sequence[str]) -> None:
    """Write the windows' ids to `file`.ids as consecutive int32, and their lengths to `file`.npy."""
    lengths = [np.zeros(0, dtype=np.int64)]
    with file.with_suffix(".ids").open("wb") as target:
        for batch in _batches(chunk for text in texts for chunk in _chunks(text)):
            encoded = encode_windows(tokenizer, batch)
            target.write(encoded.ids.tobytes())
            lengths.append(encoded.lengths)
    np.save(file.with_suffix(".npy"), np.concatenate(lengths))


def _read_windows(file: Path) -> TokenisedTexts:
    """Read the windows that `_write_windows` wrote; OSError or ValueError if the files are missing or inconsistent."""
    lengths = np.load(file.with_suffix(".npy"), allow_pickle=False)
    offsets = np.append(0, np.cumsum(lengths))
    if file.with_suffix(".ids").stat().st_size != 4 * offsets[-1]:
        raise ValueError(f"{file}: ids and lengths do not fit together")
    # Copy-on-write, because torch expects writable arrays; nothing writes to them.
    is_empty = not offsets[-1]
    ids = np.zeros(0, np.int32) if is_empty else np.memmap(file.with_suffix(".ids"), dtype=np.int32, mode="c")
    return TokenisedTexts(ids, offsets, np.zeros(len(lengths), dtype=np.int64))


def _settings(config: RunConfig) -> dict[str, Any]:
    """The settings that the ids depend on."""
    return {
        "data": config.data.model_dump(mode="json"),
        "text": config.text.model_dump(mode="json"),
        "max_length": config.model.max_length,
        "class_token": config.reads_class_token,
    }
