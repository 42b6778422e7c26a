"""The token ids of a data set, and batches of texts of similar length."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from txcls.data.types import LabelledTexts
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import PAD, UNK

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

MAX_TOKENS = 16_384
"""Maximum number of tokens in an inference batch; the activations of larger batches do not fit into the CPU caches."""


@dataclass(frozen=True, eq=False)
class TokenisedTexts:
    """The token ids of N texts in one flat array: text i has `ids[offsets[i]:offsets[i + 1]]`."""

    ids: Int32
    """All ids, concatenated."""
    offsets: Int64
    """The start of each text, and the end of the last one, (N + 1,)."""
    labels: Int64
    """The class index of each text, (N,)."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> Int64:
        """The number of tokens in each text, (N,)."""
        return np.diff(self.offsets)

    def __getitem__(self, index: int) -> Int32:
        """The ids of one text."""
        if not 0 <= index < len(self):
            raise IndexError(f"text {index}: expected 0 to {len(self) - 1}")
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def subset(self, indices: npt.NDArray[np.int64] | Sequence[int]) -> "TokenisedTexts":
        """The texts with these indices, in this order."""
        rows = np.asarray(indices, dtype=np.int64)
        return TokenisedTexts.of([self[int(row)] for row in rows], self.labels[rows])

    def truncate(self, lengths: npt.NDArray[np.int64] | int) -> "TokenisedTexts":
        """The texts cut to at most `lengths` tokens: an array (N,), or one number for all texts."""
        new_lengths = np.minimum(self.lengths, lengths)
        position = np.arange(len(self.ids)) - np.repeat(self.offsets[:-1], self.lengths)  # of each token in its text
        ids = self.ids[position < np.repeat(new_lengths, self.lengths)]
        return TokenisedTexts(ids, np.concatenate([[0], np.cumsum(new_lengths)]), self.labels)

    def split_windows(self, length: int, *, first: int | None = None) -> "TokenisedTexts":
        """Split texts of more than `length` tokens into windows of nearly equal length, each with its text's label.

        If given, the id `first` (the class token's, for example) begins every window and counts towards its length.

        Raises:
            ValueError: `length` leaves no room for a token.
        """
        room = length - (first is not None)
        if room < 1:
            raise ValueError(f"length: {length} leaves no room for a token")
        n_windows = np.maximum(-(-self.lengths // room), 1)  # of each text
        text = np.repeat(np.arange(len(self)), n_windows)
        number = np.arange(len(text)) - np.repeat(np.cumsum(n_windows) - n_windows, n_windows)  # within the text
        starts = self.offsets[text] + number * self.lengths[text] // n_windows[text]
        offsets = np.append(starts, len(self.ids))
        if first is None:
            return TokenisedTexts(self.ids, offsets, self.labels[text])
        ids = np.insert(self.ids, starts, first)
        return TokenisedTexts(ids, offsets + np.arange(len(offsets)), self.labels[text])

    @classmethod
    def encode(cls, tokenizer: Tokenizer, data: LabelledTexts) -> "TokenisedTexts":
        """Encode labelled texts; a text without tokens becomes one unknown token, since evaluation must count it."""
        unknown = np.array([UNK], dtype=np.int32)
        rows = [ids if len(ids) else unknown for ids in tokenizer.encode_ids(data.texts)]
        return cls.of(rows, np.asarray(data.labels, dtype=np.int64))

    @classmethod
    def of(cls, rows: Sequence[Int32], labels: Int64) -> "TokenisedTexts":
        """The texts with these ids, (T,) each, and labels (N,)."""
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        ids = np.concatenate(rows) if len(rows) else np.zeros(0, dtype=np.int32)
        return cls(ids.astype(np.int32, copy=False), offsets, labels)


def length_bucketed_batches(
    lengths: Iterable[int], *, batch_size: int, seed: int, epoch: int, batch_tokens: int = 0
) -> list[Int64]:
    """Random batches of rows of similar length; (seed, epoch) determines the batches and their order.

    Rows are shuffled, split into chunks of fifty batches and sorted by length within each chunk; then the batches are
    shuffled. This needs little padding and gives different batches in every epoch. If not 0, `batch_tokens` replaces
    `batch_size`: a batch has at most that many tokens, including padding, or a single row.
    """
    row_lengths = np.fromiter(lengths, dtype=np.int64)
    if batch_tokens:
        batch_size = max(1, round(batch_tokens * len(row_lengths) / max(int(row_lengths.sum()), 1)))  # on average
    rng = np.random.default_rng((seed, epoch))
    order = rng.permutation(len(row_lengths))
    batches = []
    for first in range(0, len(order), chunk_size := 50 * batch_size):
        rows = order[first : first + chunk_size]
        rows = rows[np.argsort(row_lengths[rows], kind="stable")]
        if batch_tokens:
            batches += _split_by_tokens(rows, row_lengths[rows], batch_tokens)
        else:
            batches += [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def _split_by_tokens(rows: Int64, lengths: Int64, limit: int, *, max_rows: int | None = None) -> list[Int64]:
    """Split rows sorted by length into batches of at most `limit` tokens with padding (or one row), longest first."""
    batches = []
    end = len(rows)
    while end:  # start with the longest rows, since a batch is padded to the length of its longest row
        n_rows = max(1, min(limit // max(1, int(lengths[end - 1])), max_rows or end, end))
        batches.append(rows[end - n_rows : end])
        end -= n_rows
    return batches


def batches_by_length(lengths: Iterable[int], *, batch_size: int) -> Iterator[Int64]:
    """Yield all rows, shortest first, in batches of at most `batch_size` rows and MAX_TOKENS tokens (or one row)."""
    row_lengths = np.fromiter(lengths, dtype=np.int64)
    order = np.argsort(row_lengths, kind="stable")
    return reversed(_split_by_tokens(order, row_lengths[order], MAX_TOKENS, max_rows=batch_size))


def pad_batch(
    tokenised: TokenisedTexts, indices: npt.NDArray[np.int64] | Sequence[int], *, multiple: int = 1
) -> tuple[Int64, Int64]:
    """The ids (B, T) of these rows, padded with PAD to the longest one (T at least 1), and their labels (B,).

    If T is more than twice `multiple`, it is rounded up to a multiple of it, but not beyond the longest of all rows.
    """
    rows = np.asarray(indices, dtype=np.int64)
    starts = tokenised.offsets[rows]
    lengths = tokenised.offsets[rows + 1] - starts
    width = max(int(lengths.max(initial=0)), 1)
    if width > 2 * multiple:
        width = min(width + -width % multiple, int(tokenised.lengths.max()))
    ids = np.full((len(rows), width), PAD, dtype=np.int64)
    is_token = np.arange(width) < lengths[:, None]  # B T
    ids[is_token] = tokenised.ids[(starts[:, None] + np.arange(width))[is_token]]
    return ids, tokenised.labels[rows]
