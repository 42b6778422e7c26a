"""The token ids of a data set, and batches of texts of similar length."""

import contextlib
import hashlib
import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from txcls.data.types import LabelledTexts
from txcls.runtime.files import replacing
from txcls.text.encoder import TextEncoder
from txcls.text.vocabulary import PAD, UNK

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

CACHED_SETS = 32
"""Most tokenised sets in a cache folder."""


@dataclass(frozen=True, eq=False)
class TokenisedTexts:
    """The ids of N texts in one flat array: text i is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: Int32
    """All ids, concatenated."""
    offsets: Int64
    """(N + 1,): start of each text, and the end of the last."""
    labels: Int64
    """(N,): class index of each text."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> Int64:
        """(N,): tokens of each text."""
        return np.diff(self.offsets)

    def __getitem__(self, index: int) -> Int32:
        """The ids of one text."""
        if not 0 <= index < len(self):
            raise IndexError(f"text {index}: wanted 0 to {len(self) - 1}")
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def subset(self, indices: npt.NDArray[np.int64] | Sequence[int]) -> "TokenisedTexts":
        """The texts with these indices, in this order."""
        rows = np.asarray(indices, dtype=np.int64)
        return _flatten([self[int(row)] for row in rows], self.labels[rows])

    def windows(self, length: int, *, first: int | None = None) -> "TokenisedTexts":
        """Texts of more than `length` tokens split into pieces of nearly equal length, each with its text's label.

        Args:
            length: most tokens of a piece, `first` included.
            first: an id to prepend to every piece, such as the class token's; None for none.

        Raises:
            ValueError: `length` leaves no room for a token.
        """
        room = length - (first is not None)
        if room < 1:
            raise ValueError(f"length: {length} leaves no room for a token")
        pieces = np.maximum(-(-self.lengths // room), 1)  # of each text
        text = np.repeat(np.arange(len(self)), pieces)
        number = np.arange(len(text)) - np.repeat(np.cumsum(pieces) - pieces, pieces)  # of a piece in its text, from 0
        starts = self.offsets[text] + number * self.lengths[text] // pieces[text]
        offsets = np.append(starts, len(self.ids))
        if first is None:
            return TokenisedTexts(self.ids, offsets, self.labels[text])
        ids = np.insert(self.ids, starts, first)
        return TokenisedTexts(ids, offsets + np.arange(len(offsets)), self.labels[text])

    @classmethod
    def encode(cls, encoder: TextEncoder, data: LabelledTexts, *, cache: Path | None = None) -> "TokenisedTexts":
        """Tokenise texts, or read their ids from the cache.

        Args:
            encoder: turns text into ids.
            data: the texts and labels.
            cache: folder for cached ids, keyed by encoder and texts; None for no cache. If it cannot be read or
                written, texts are tokenised again.
        """
        labels = np.asarray(data.labels, dtype=np.int64)
        if cache is None:
            return _flatten(_never_empty(encoder.encode_ids(data.texts)), labels)
        file = cache / f"{_key(encoder, data.texts)}.npz"
        if (kept := _read(file, labels)) is not None:
            return kept
        tokenised = _flatten(_never_empty(encoder.encode_ids(data.texts)), labels)
        _write(file, tokenised)
        return tokenised


def _key(encoder: TextEncoder, texts: Sequence[str]) -> str:
    digest = hashlib.sha256(json.dumps(encoder.to_dict(), sort_keys=True).encode())
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(raw))
        digest.update(raw)
    return digest.hexdigest()


def _read(file: Path, labels: Int64) -> TokenisedTexts | None:
    try:
        with file.open("rb") as source, np.load(source, allow_pickle=False) as arrays:
            ids, offsets = arrays["ids"], arrays["offsets"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    fits = (ids.dtype, offsets.dtype, offsets.shape) == (np.int32, np.int64, (len(labels) + 1,))
    if not (fits and offsets[0] == 0 and offsets[-1] == len(ids) and (np.diff(offsets) >= 0).all()):
        return None
    with contextlib.suppress(OSError):
        file.touch()  # for removing the least recently used
    return TokenisedTexts(ids, offsets, labels)


def _write(file: Path, tokenised: TokenisedTexts) -> None:
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file, flush=False) as temporary, temporary.open("wb") as target:
            np.savez(target, ids=tokenised.ids, offsets=tokenised.offsets)
        files = sorted(file.parent.glob("*.npz"), key=lambda cached: cached.stat().st_mtime, reverse=True)
        for old in files[CACHED_SETS:]:
            old.unlink(missing_ok=True)


def _never_empty(rows: Iterable[Int32]) -> list[Int32]:
    """Replace rows without tokens by one unknown token: they have a label, so evaluation must count them."""
    nothing = np.array([UNK], dtype=np.int32)
    return [row if len(row) else nothing for row in rows]


def _flatten(rows: Sequence[Int32], labels: Int64) -> TokenisedTexts:
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    ids = np.concatenate(rows) if len(rows) else np.zeros(0, dtype=np.int32)
    return TokenisedTexts(ids.astype(np.int32, copy=False), offsets, labels)


def length_bucketed_batches(
    lengths: Iterable[int], *, batch_size: int, seed: int, epoch: int, batch_tokens: int = 0
) -> list[Int64]:
    """All rows in random batches of similar length; (seed, epoch) determines batches and order.

    Rows are shuffled, split into chunks of fifty batches, sorted by length within each chunk, and the batches shuffled:
    little padding, and different batches in every epoch.

    Args:
        lengths: tokens of each row.
        batch_size: rows per batch; the last batch of the last chunk may be smaller.
        seed: the run's seed.
        epoch: from zero.
        batch_tokens: if not 0, the most tokens of a batch of several rows, padding included, in place of `batch_size`.
    """
    of_row = np.fromiter(lengths, dtype=np.int64)
    if batch_tokens:
        batch_size = max(1, round(batch_tokens * len(of_row) / max(int(of_row.sum()), 1)))  # on average
    rng = np.random.default_rng((seed, epoch))
    order = rng.permutation(len(of_row))
    batches = []
    for first in range(0, len(order), chunk := 50 * batch_size):
        rows = order[first : first + chunk]
        rows = rows[np.argsort(of_row[rows], kind="stable")]
        if batch_tokens:
            batches += _of_tokens(rows, of_row[rows], batch_tokens)
        else:
            batches += [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def _of_tokens(rows: Int64, lengths: Int64, most: int, *, most_rows: int | None = None) -> list[Int64]:
    """Rows, given from the shortest, in batches from the longest: `most` tokens each, padding included, or one row."""
    batches = []
    end = len(rows)
    while end:  # from the longest: a batch is padded to its length
        n_rows = max(1, min(most // max(1, int(lengths[end - 1])), most_rows or end, end))
        batches.append(rows[end - n_rows : end])
        end -= n_rows
    return batches


MAX_TOKENS = 16_384
"""Most tokens of an inference batch; the activations of more do not fit the processor's caches."""


def batches_by_length(lengths: Iterable[int], *, batch_size: int) -> Iterator[Int64]:
    """All rows, shortest first, in batches of similar length; batches of long rows are smaller.

    Args:
        lengths: tokens of each row.
        batch_size: most rows per batch; a batch of several rows has at most `MAX_TOKENS` tokens, padding included.
    """
    of_row = np.fromiter(lengths, dtype=np.int64)
    order = np.argsort(of_row, kind="stable")
    return reversed(_of_tokens(order, of_row[order], MAX_TOKENS, most_rows=batch_size))


def pad_batch(tokenised: TokenisedTexts, indices: npt.NDArray[np.int64] | Sequence[int]) -> tuple[Int64, Int64]:
    """(ids, labels) of these rows: ids (B, T) padded with PAD to the longest of them (T at least 1), labels (B,)."""
    rows = np.asarray(indices, dtype=np.int64)
    starts = tokenised.offsets[rows]
    lengths = tokenised.offsets[rows + 1] - starts
    width = max(int(lengths.max(initial=0)), 1)
    ids = np.full((len(rows), width), PAD, dtype=np.int64)
    filled = np.arange(width) < lengths[:, None]  # B T
    ids[filled] = tokenised.ids[(starts[:, None] + np.arange(width))[filled]]
    return ids, tokenised.labels[rows]
