"""Byte-pair encoding (Sennrich et al. 2016) over bytes, through the `tokenizers` library.

Bytes rather than characters, as in GPT-2: the 256 bytes can encode any text, so no token is ever unknown. The tokenizer
does not know the special tokens: its ids are shifted past theirs, and a typed `<cls>` is five ordinary characters.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Self

from txcls.config import TextConfig
from txcls.errors import ConfigError
from txcls.runtime.pause import may_pause
from txcls.text.vocabulary import MAX_BYTE_PAIRS, SPECIAL_TOKENS, Vocabulary

BYTES = 256
_SPACE = "Ġ"
"""A space in GPT-2's byte alphabet."""
_BATCH_ROWS = 4096

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Merge:
    """One merge in building a word: two neighbouring pieces become one.

    `pieces` are the pieces after the merge, `place` is the index of the new one, and `rank` is the position of `pair`
    in the learned order, from 1: the pair in a word with the lowest rank is merged first.
    """

    pieces: tuple[str, ...]
    place: int
    pair: Pair
    rank: int


class BytePairs:
    """Subwords made by merging the most frequent pairs; a token at the start of a word includes the space before it."""

    def __init__(self, tokens: Sequence[str], merges: Sequence[tuple[str, str]]) -> None:
        """`tokens` in order of id, special ones first, in GPT-2's byte alphabet; `merges` in the order of learning.

        Raises:
            ValueError: tokens and merges do not match.
        """
        from tokenizers import Tokenizer, models, pre_tokenizers

        self.vocabulary = Vocabulary(tokens)
        self._merges = list(merges)
        self._ranks = {pair: rank for rank, pair in enumerate(self._merges, start=1)}
        learned = self.vocabulary.tokens[len(SPECIAL_TOKENS) :]
        if missing := sorted(set(pre_tokenizers.ByteLevel.alphabet()) - set(learned)):
            raise ValueError(f"tokens: the byte {missing[0]!r} is missing")
        ids = {token: index for index, token in enumerate(learned)}
        for pair in self._merges:
            if not {*pair, "".join(pair)} <= ids.keys():
                raise ValueError(f"merges: {pair} does not join two tokens into a third")
        self.space = self.vocabulary.id_of(_SPACE)  # the token for only the space before a word
        self._tokenizer = Tokenizer(models.BPE(vocab=ids, merges=self._merges))
        self._tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)

    @classmethod
    def fit(cls, texts: Iterable[str], config: TextConfig) -> Self:
        """Learn the merges from cleaned texts.

        Raises:
            ConfigError: `max_vocabulary` has no room for the 256 bytes and the special tokens.
        """
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        room = min(config.max_vocabulary, MAX_BYTE_PAIRS) - len(SPECIAL_TOKENS)
        if room < BYTES:
            raise ConfigError(
                f"text.max_vocabulary: {config.max_vocabulary} is too small for byte-pair encoding, which starts from "
                f"{BYTES} bytes and {len(SPECIAL_TOKENS)} special tokens; give {BYTES + len(SPECIAL_TOKENS)} or more"
            )
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        trainer = trainers.BpeTrainer(
            vocab_size=room,
            min_frequency=config.min_frequency,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        model = json.loads(tokenizer.to_str())["model"]
        tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
        return cls((*SPECIAL_TOKENS, *tokens), [(left, right) for left, right in model["merges"]])

    def to_dict(self) -> dict[str, Any]:
        """Tokens and merges as JSON values."""
        return {"tokens": list(self.vocabulary.tokens), "merges": [list(pair) for pair in self._merges]}

    def tokenize(self, text: str) -> list[tuple[int, int, int]]:
        """(start, end, id) of each token; whitespace around a token and around the text is left out.

        A multi-byte character may be split into several tokens, which then share its offsets.
        """
        stripped = text.strip()
        if not stripped:
            return []
        encoding = self._tokenizer.encode(stripped)
        skipped = len(text) - len(text.lstrip())
        tokens = []
        for index, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            piece = stripped[start:end]
            if inner := piece.strip():
                start += piece.index(inner[0])
                end = start + len(inner)
            tokens.append((skipped + start, skipped + end, index + len(SPECIAL_TOKENS)))
        return tokens

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, ignoring special tokens; invalid bytes become U+FFFD."""
        from tokenizers import decoders

        pieces = [self.vocabulary.token_of(index) for index in ids if index >= len(SPECIAL_TOKENS)]
        text: str = decoders.ByteLevel().decode(pieces)
        return text.removeprefix(" ")

    @property
    def merges(self) -> Sequence[Pair]:
        """The pairs in the order in which they were learned."""
        return self._merges

    def parts(self, text: str) -> list[str]:
        """The parts of a cleaned text, as bytes, that are never merged with each other: words with a leading space,
        runs of punctuation, …"""
        stripped = text.strip()
        return [part for part, _ in self._tokenizer.pre_tokenizer.pre_tokenize_str(stripped)] if stripped else []

    def build(self, part: str) -> list[Merge]:
        """How one of `parts` is built from its bytes, merge by merge (Sennrich et al. 2016, section 3.2).

        The pair that was learned first is merged first, its leftmost occurrence before others. The pieces after the
        last merge are the tokens; a part without merges stays as its bytes.
        """
        pieces, steps = list(part), []
        while ready := [(self._ranks[pair], at) for at, pair in enumerate(pairwise(pieces)) if pair in self._ranks]:
            rank, at = min(ready)
            pair = (pieces[at], pieces[at + 1])
            pieces[at : at + 2] = ["".join(pair)]
            steps.append(Merge(tuple(pieces), at, pair, rank))
        return steps

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of `tokenize` for many texts."""
        shift = len(SPECIAL_TOKENS)
        stripped = [text.strip() for text in texts]
        rows: list[list[int]] = []
        for first in range(0, len(stripped), _BATCH_ROWS):
            chunk = stripped[first : first + _BATCH_ROWS]
            for text, encoding in zip(chunk, self._tokenizer.encode_batch_fast(chunk), strict=True):
                rows.append([index + shift for index in encoding.ids] if text else [])
        return rows


def count_merges(parts: Mapping[str, int], merges: Sequence[Pair]) -> list[int]:
    """How often each pair occurred when it was merged, which is why it was chosen.

    `parts` are the `BytePairs.parts` of the training texts, with their counts.
    """
    pieces, weights = [list(part) for part in parts], list(parts.values())
    frequency: Counter[Pair] = Counter()
    where: defaultdict[Pair, set[int]] = defaultdict(set)

    def count(n: int, sign: int) -> None:
        for pair in pairwise(pieces[n]):
            frequency[pair] += sign * weights[n]
            where[pair].add(n)

    for n in range(len(pieces)):
        count(n, +1)
    frequencies = []
    for pair in merges:
        may_pause()
        frequencies.append(frequency[pair])
        for n in where.pop(pair, ()):
            count(n, -1)
            pieces[n] = _merged(pieces[n], pair)
            count(n, +1)
    return frequencies


def _merged(pieces: Sequence[str], pair: Pair) -> list[str]:
    """The pieces with every occurrence of the pair merged, from left to right."""
    joined: list[str] = []
    at = 0
    while at < len(pieces):
        width = 2 if tuple(pieces[at : at + 2]) == pair else 1
        joined.append("".join(pieces[at : at + width]))
        at += width
    return joined


@cache
def _bytes() -> dict[str, int]:
    """The byte for each character of GPT-2's alphabet: printable Latin-1 as itself, other bytes from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(BYTES) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(BYTES + n): byte for n, byte in enumerate(others)}


def to_bytes(piece: str) -> bytes | None:
    """The bytes of a byte-pair token; None for a special or foreign one."""
    if not all(character in _bytes() for character in piece):
        return None
    return bytes(_bytes()[character] for character in piece)


def spell(piece: str) -> str:
    """A byte-pair token in readable form: ␣ for a space, `\\xf0` for a byte that is only part of a character."""
    read = to_bytes(piece)
    return piece if read is None else read.decode("utf-8", "backslashreplace").replace(" ", "␣")
