"""`Tokenizer` converts texts to token ids, with each token's character offsets in the original text."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError

from txcls.config import TextConfig
from txcls.errors import CheckpointError, ConfigError, sanitize
from txcls.text.cleaning import clean, clean_aligned
from txcls.text.subwords import BytePairs, Normalizer, WordPieces
from txcls.text.tokens import SPACE, Encoding, Token, character_parts
from txcls.text.vocabulary import CLS, MASK, MAX_WORDS, SEP, SPECIAL_TOKENS, UNK, Vocabulary
from txcls.text.words import tokenize_words, words

WINDOW = 32_768
"""Texts with more characters are not tokenised whole: a prefix that gives `max_length` tokens is enough."""
MARGIN = 8_192
"""Tokens that end within this many characters of a prefix's end are ignored, since the following text may change them.
"""


class _Words:
    """A word tokenizer with a vocabulary; has the same methods as BytePairs."""

    def __init__(self, tokens: Sequence[str], kind: str) -> None:
        self.vocabulary = Vocabulary(tokens)
        self._kind = kind
        self._ids = {token: index for index, token in enumerate(tokens) if index >= len(SPECIAL_TOKENS)}

    @classmethod
    def fit(cls, texts: Iterable[str], config: TextConfig) -> Self:
        counts = Counter(token for text in texts for token in words(text, config.tokenizer))
        limit = min(config.max_vocabulary, MAX_WORDS)
        vocabulary = Vocabulary.from_counts(counts, max_size=limit, min_frequency=config.min_frequency)
        return cls(vocabulary.tokens, config.tokenizer)

    def to_dict(self) -> dict[str, Any]:
        return {"tokens": list(self.vocabulary.tokens)}

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.vocabulary.token_of(index) for index in ids if index >= len(SPECIAL_TOKENS))

    def tokenize(self, text: str) -> list[tuple[int, int, int]]:
        return [(start, end, self._ids.get(token, UNK)) for start, end, token in tokenize_words(text, self._kind)]

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        get = self._ids.get
        return [[get(token, UNK) for token in words(text, self._kind)] for text in texts]


class _Description(BaseModel):
    """The schema of `Tokenizer.to_dict`."""

    model_config = ConfigDict(extra="forbid")

    format_version: Literal[1]
    config: TextConfig
    max_length: StrictInt = Field(ge=1)
    class_token: StrictBool
    tokens: list[StrictStr]
    merges: list[tuple[StrictStr, StrictStr]] = []
    normalizer: Normalizer = Normalizer()


class Tokenizer:
    """Cleaning, words or byte pairs, and the vocabulary: fitted to training texts, or restored by `from_dict`."""

    def __init__(
        self, model: _Words | BytePairs | WordPieces, config: TextConfig, *, max_length: int, class_token: bool = False
    ) -> None:
        self._model = model
        self.config = config
        self.max_length = max_length
        self.class_token = class_token
        self._ends = isinstance(model, WordPieces)
        self._room = max_length - self.n_added
        self._space = model.space if isinstance(model, BytePairs) else None
        if self._room < 1:
            raise ValueError(f"max_length: {max_length} leaves no room for a token")

    @classmethod
    def fit(
        cls, texts: Iterable[str], config: TextConfig, *, max_length: int, class_token: bool = False
    ) -> "Tokenizer":
        """Learn the vocabulary (or the byte pairs to merge) from training texts, after cleaning them.

        `max_length` is the maximum number of tokens of a text, including `<cls>`, which begins every text if
        `class_token` is set.

        Raises:
            ConfigError: `max_vocabulary` is too small for the tokenizer, or only imported models have this tokenizer.
        """
        if config.tokenizer == "wordpiece":
            raise ConfigError("text.tokenizer: wordpiece is only for imported models; use bpe")
        cleaned = (clean(text, config.cleaning) for text in texts)
        model = BytePairs.fit(cleaned, config) if config.tokenizer == "bpe" else _Words.fit(cleaned, config)
        return cls(model, config, max_length=max_length, class_token=class_token)

    @property
    def vocabulary(self) -> Vocabulary:
        """The V tokens in order of their ids."""
        return self._model.vocabulary

    @property
    def byte_pairs(self) -> BytePairs | None:
        """The byte-pair tokenizer; None for word tokens."""
        return self._model if isinstance(self._model, BytePairs) else None

    @property
    def word_pieces(self) -> WordPieces | None:
        """The WordPiece tokenizer of an imported model; None for others."""
        return self._model if isinstance(self._model, WordPieces) else None

    @property
    def n_added(self) -> int:
        """The number of special tokens that are added to each text: a class token, and in imported models [SEP]."""
        return self.class_token + self._ends

    @property
    def blank(self) -> int:
        """The id that replaces dropped and hidden tokens.

        For words, it is the unknown token, so that the model learns to handle unknown words. For subwords, which are
        never unknown, it is the mask token, which the model knows from pre-training.
        """
        return UNK if isinstance(self._model, _Words) else MASK

    @property
    def vocab_size(self) -> int:
        """V: the number of tokens, including the special ones."""
        return len(self.vocabulary)

    def encode(self, text: str) -> Encoding:
        """The first `max_length` tokens of a text with their offsets; accepts any string."""
        length = len(text)
        if length > WINDOW:
            length = min(max(WINDOW, 32 * self.max_length), length)
        while True:
            trusted_end = len(text) if length >= len(text) else length - MARGIN
            tokens, truncated_at = self._encode_prefix(text[:length], trusted_end)
            if length >= len(text) or truncated_at is not None:
                break
            length *= 8
        if self.class_token:
            tokens.insert(0, self._added(CLS))
        if self._ends:
            tokens.append(self._added(SEP))
        return Encoding(text, tuple(tokens), truncated_at)

    def _added(self, index: int) -> Token:
        return Token(self.vocabulary.token_of(index), index, 0, 0, is_unknown=False, is_special=True)

    def _text(self, index: int, cleaned: str) -> str:
        """A token's text: for WordPiece, its entry in the vocabulary (with ##), otherwise the cleaned text."""
        return self.vocabulary.token_of(index) if self._ends and index != UNK else cleaned

    def _encode_prefix(self, prefix: str, trusted_end: int) -> tuple[list[Token], int | None]:
        """The tokens that end before `trusted_end`, as many as fit, and the offset of the next one if not all fit."""
        cleaned = clean_aligned(prefix, self.config.cleaning)
        spans = self._model.tokenize(cleaned.text)
        is_space = [token_id == self._space for _, _, token_id in spans]
        needed = self._room + 4  # a character has up to four bytes, so the last token may share one with three more
        parts = {} if self._ends else character_parts([(first, last) for first, last, _ in spans[:needed]], is_space)
        tokens: list[Token] = []
        for index, (first, last, token_id) in enumerate(spans):
            start, end = cleaned.starts[first], cleaned.ends[last - 1]
            if end > trusted_end:
                break
            if len(tokens) == self._room:
                return tokens, start
            text = SPACE if is_space[index] else self._text(token_id, cleaned.text[first:last])
            is_unknown, token_parts = token_id == UNK, tuple(parts.get(index, ()))
            tokens.append(Token(text, token_id, start, end, is_unknown, is_special=False, parts=token_parts))
        return tokens, None

    def encode_ids(self, texts: Iterable[str]) -> list[npt.NDArray[np.int32]]:
        """The ids of `encode` for many texts, computed faster: int32 arrays (T,)."""
        texts = list(texts)
        short = [index for index, text in enumerate(texts) if len(text) <= WINDOW]
        encoded: list[Sequence[int]] = [()] * len(texts)
        prefix, end = [CLS] if self.class_token else [], [SEP] if self._ends else []
        cleaned = [clean(texts[index], self.config.cleaning) for index in short]
        for index, ids in zip(short, self._model.ids(cleaned), strict=True):
            encoded[index] = prefix + ids[: self._room] + end
        for index, text in enumerate(texts):
            if len(text) > WINDOW:
                encoded[index] = self.encode(text).ids
        return [np.array(ids, dtype=np.int32) for ids in encoded]

    def decode(self, ids: Sequence[int]) -> str:
        """The cleaned text that ids stand for, without special tokens; word tokens are joined by spaces."""
        return self._model.decode(ids)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-compatible description for `from_dict`."""
        return {
            "format_version": 1,
            "config": self.config.model_dump(mode="json"),
            "max_length": self.max_length,
            "class_token": self.class_token,
            **self._model.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Tokenizer":
        """Restore a tokenizer from its description by `to_dict`.

        Raises:
            CheckpointError: a field is missing, unknown or invalid; the message names the field.
        """
        try:
            saved = _Description.model_validate(values)
            kind = saved.config.tokenizer
            model: _Words | BytePairs | WordPieces
            if kind == "bpe":
                model = BytePairs(saved.tokens, saved.merges)
            elif kind == "wordpiece":
                model = WordPieces(saved.tokens, saved.normalizer)
            else:
                model = _Words(saved.tokens, kind)
            return cls(
                model,
                saved.config,
                max_length=saved.max_length,
                class_token=saved.class_token,
            )
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            where = ".".join(map(str, problem["loc"]))
            raise CheckpointError(
                f"tokenizer: {where}: {problem['msg']}, got {sanitize(problem['input'], limit=60)}; train the model "
                "again, or restore the file"
            ) from None
        except ValueError as error:
            raise CheckpointError(f"tokenizer: {error}; train the model again, or restore the file") from None
