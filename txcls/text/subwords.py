"""Subwords with the `tokenizers` library: byte pairs, and the WordPiece tokens of imported models.

Byte-pair encoding (Sennrich et al. 2016) merges bytes rather than characters, as in GPT-2: the 256 bytes can encode any
text, so no token is unknown. The tokenizer does not know the special tokens: its ids are shifted by their number, and a
typed `<cls>` is ordinary text.

WordPiece (Wu et al. 2016, as published with BERT) normalises the text first: control characters are removed, Chinese
characters become words, and, in an uncased model, letters become lower case without accents. A typed [SEP] becomes
that token, as in the published tokenizer; only a typed [PAD] is ordinary text, since padding is not read.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, StrictBool

from txcls.config import TextConfig
from txcls.errors import ConfigError
from txcls.text.vocabulary import BERT_TOKENS, MAX_BYTE_PAIRS, SPECIAL_TOKENS, Vocabulary

BYTES = 256
_SPACE = "Ġ"
"""The space in GPT-2's byte alphabet."""
_BATCH_SIZE = 4096
PREFIX = "##"
"""The start of a WordPiece token that continues a word."""
MAX_WORD = 100
"""In WordPiece, words with more characters become the unknown token."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge of two adjacent pieces of a word.

    `pieces` are the pieces after the merge, `new_piece` is the index of the merged one, and `rank` is the position of
    `pair` in the learned order, from 1. In a word, the pair with the lowest rank is merged first.
    """

    pieces: tuple[str, ...]
    new_piece: int
    pair: Pair
    rank: int


class BytePairs:
    """A byte-pair tokenizer; a token at the beginning of a word includes the space before it."""

    def __init__(self, tokens: Sequence[str], merges: Sequence[tuple[str, str]]) -> None:
        """Restore a tokenizer from its tokens (in order of id, in GPT-2's byte alphabet) and merges (in learned order).

        Raises:
            ValueError: tokens and merges do not match.
        """
        from tokenizers import Tokenizer, models, pre_tokenizers

        self.vocabulary = Vocabulary(tokens)
        self._merges = list(merges)
        self._ranks = {pair: rank for rank, pair in enumerate(self._merges, start=1)}
        ids = {token: index for index, token in enumerate(self.vocabulary.tokens[len(SPECIAL_TOKENS) :])}
        if missing := sorted(set(pre_tokenizers.ByteLevel.alphabet()) - ids.keys()):
            raise ValueError(f"tokens: the byte {missing[0]!r} is missing")
        for pair in self._merges:
            if not {*pair, "".join(pair)} <= ids.keys():
                raise ValueError(f"merges: {pair} does not join two tokens into a third")
        self.space = self.vocabulary.id_of(_SPACE)  # a token that is only the space before a word
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
                f"text.max_vocabulary: {config.max_vocabulary} is too small for byte-pair encoding, which starts with "
                f"{BYTES} bytes and {len(SPECIAL_TOKENS)} special tokens; use {BYTES + len(SPECIAL_TOKENS)} or more"
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
        """The tokens and merges as JSON values."""
        return {"tokens": list(self.vocabulary.tokens), "merges": [list(pair) for pair in self._merges]}

    def tokenize(self, text: str) -> list[tuple[int, int, int]]:
        """The start, end and id of each token, without whitespace around the token.

        If a multi-byte character is split into several tokens, they all have its offsets.
        """
        stripped = text.strip()
        if not stripped:
            return []
        encoding = self._tokenizer.encode(stripped)
        offset = len(text) - len(text.lstrip())
        tokens = []
        for index, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            piece = stripped[start:end]
            if inner := piece.strip():
                start += piece.index(inner[0])
                end = start + len(inner)
            tokens.append((offset + start, offset + end, index + len(SPECIAL_TOKENS)))
        return tokens

    def decode(self, ids: Sequence[int]) -> str:
        """The text that ids stand for, without special tokens; invalid bytes become U+FFFD."""
        from tokenizers import decoders

        pieces = [self.vocabulary.token_of(index) for index in ids if index >= len(SPECIAL_TOKENS)]
        text: str = decoders.ByteLevel().decode(pieces)
        return text.removeprefix(" ")

    @property
    def merges(self) -> Sequence[Pair]:
        """The pairs, in the order in which they were learned."""
        return self._merges

    def parts(self, text: str) -> list[str]:
        """The parts of a cleaned text (in the byte alphabet) that are never merged with each other.

        They are words with a leading space, runs of punctuation, and so on.
        """
        stripped = text.strip()
        return [part for part, _ in self._tokenizer.pre_tokenizer.pre_tokenize_str(stripped)] if stripped else []

    def merges_of(self, part: str) -> list[Merge]:
        """The merges that build one of `parts` from its bytes (Sennrich et al. 2016, section 3.2).

        The pair that was learned first is merged first, at its leftmost occurrence. The pieces after the last merge are
        the tokens; without merges, the bytes are.
        """
        pieces, merges = list(part), []
        while ranked := [(self._ranks[pair], n) for n, pair in enumerate(pairwise(pieces)) if pair in self._ranks]:
            rank, index = min(ranked)
            pair = (pieces[index], pieces[index + 1])
            pieces[index : index + 2] = ["".join(pair)]
            merges.append(Merge(tuple(pieces), index, pair, rank))
        return merges

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of `tokenize` for many texts."""
        shift = len(SPECIAL_TOKENS)
        ids: list[list[int]] = []
        for first in range(0, len(texts), _BATCH_SIZE):
            batch = [text.strip() for text in texts[first : first + _BATCH_SIZE]]
            for text, encoding in zip(batch, self._tokenizer.encode_batch_fast(batch), strict=True):
                ids.append([index + shift for index in encoding.ids] if text else [])
        return ids


@cache
def _byte_alphabet() -> dict[str, int]:
    """The byte for each character of GPT-2's alphabet: printable Latin-1 as itself, other bytes from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    unprintable = [byte for byte in range(BYTES) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(BYTES + n): byte for n, byte in enumerate(unprintable)}


def to_bytes(piece: str) -> bytes | None:
    """The bytes of a byte-pair token; None for a special token or another string."""
    alphabet = _byte_alphabet()
    return bytes(alphabet[character] for character in piece) if alphabet.keys() >= set(piece) else None


def spell(piece: str) -> str:
    """A byte-pair token in readable form, with ␣ for a space and `\\xf0` for a byte that is part of a character."""
    raw = to_bytes(piece)
    return piece if raw is None else raw.decode("utf-8", "backslashreplace").replace(" ", "␣")


class Normalizer(BaseModel):
    """What happens to a text before it is split."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lowercase: StrictBool = True
    strip_accents: StrictBool = True
    handle_chinese_chars: StrictBool = True
    """Put spaces around each Chinese character."""


class WordPieces:
    """A WordPiece tokenizer; has the same methods as BytePairs."""

    def __init__(self, tokens: Sequence[str], normalizer: Normalizer) -> None:
        """Restore a tokenizer from its tokens, in order of id.

        Raises:
            ValueError: the special tokens do not come first, or a token occurs twice.
        """
        from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

        self.vocabulary = Vocabulary(tokens)
        if self.vocabulary.tokens[: len(BERT_TOKENS)] != BERT_TOKENS:
            raise ValueError(f"tokens: WordPiece expects {', '.join(BERT_TOKENS)} first")
        self.normalizer = normalizer
        ids = {token: index for index, token in enumerate(self.vocabulary.tokens)}
        words = models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=MAX_WORD)
        self._tokenizer = Tokenizer(words)
        self._tokenizer.normalizer = normalizers.BertNormalizer(clean_text=True, **normalizer.model_dump())
        self._tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        typed = [AddedToken(token, special=True, normalized=False) for token in BERT_TOKENS[1:]]
        self._tokenizer.add_special_tokens(typed)

    def to_dict(self) -> dict[str, Any]:
        """The tokens and the normaliser's settings as JSON values."""
        return {"tokens": list(self.vocabulary.tokens), "normalizer": self.normalizer.model_dump()}

    def normalize(self, text: str) -> str:
        """The normalised text, which is then split into words."""
        return str(self._tokenizer.normalizer.normalize_str(text.encode("utf-8", "replace").decode("utf-8")))

    def tokenize(self, text: str) -> list[tuple[int, int, int]]:
        """The start, end and id of each token."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return [(*offsets, index) for offsets, index in zip(encoding.offsets, encoding.ids, strict=True)]

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of `tokenize` for many texts."""
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Sequence[int]) -> str:
        """The text that ids stand for, without special tokens; words are joined by spaces."""
        pieces = [self.vocabulary.token_of(index) for index in ids if index >= len(BERT_TOKENS)]
        return " ".join(pieces).replace(f" {PREFIX}", "")
