"""Byte-pair encoding (Sennrich et al. 2016) over bytes, through the `tokenizers` library.

Bytes rather than characters, as in GPT-2: 256 of them spell every script and emoji, so that no token is ever unknown.
The special tokens are not known to the tokenizer at all: its ids are shifted past theirs, and a `<cls>` that someone
types is read as the five characters it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from txcls.config import TextConfig
from txcls.errors import ConfigError
from txcls.text.vocabulary import SPECIAL_TOKENS, Vocabulary

BYTES = 256
_AT_ONCE = 4096


class BytePairs:
    """Sub-words by merging the most frequent pairs; a token at the start of a word carries the space before it."""

    def __init__(self, tokens: Sequence[str], merges: Sequence[tuple[str, str]]) -> None:
        """`tokens` by id, special ones first, bytes written as GPT-2 writes them; `merges` in the order learning.

        Raises:
            ValueError: the two do not belong together.
        """
        from tokenizers import Tokenizer, models, pre_tokenizers

        self.vocabulary = Vocabulary(tokens)
        self._merges = list(merges)
        learned = self.vocabulary.tokens[len(SPECIAL_TOKENS) :]
        if missing := sorted(set(pre_tokenizers.ByteLevel.alphabet()) - set(learned)):
            raise ValueError(f"tokens: the byte {missing[0]!r} is missing")
        ids = {token: index for index, token in enumerate(learned)}
        for pair in self._merges:
            if not {*pair, "".join(pair)} <= ids.keys():
                raise ValueError(f"merges: {pair} does not join two tokens into a third")
        self._tokenizer = Tokenizer(models.BPE(vocab=ids, merges=self._merges))
        self._tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)

    @classmethod
    def fit(cls, texts: Iterable[str], config: TextConfig) -> Self:
        """Learn the merges from cleaned texts.

        Raises:
            ConfigError: `max_vocabulary` has no room for the 256 bytes and the special tokens.
        """
        import json

        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        room = config.max_vocabulary - len(SPECIAL_TOKENS)
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

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """What `to_dict` wrote.

        Raises:
            ValueError: a field holds something else; the field is named.
        """
        tokens, merges = values["tokens"], values["merges"]
        if not (isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)):
            raise ValueError("tokens: wanted a list of strings")
        if not isinstance(merges, list):
            raise ValueError("merges: wanted a list of pairs of strings")
        for pair in merges:
            if not (isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
                raise ValueError(f"merges: wanted pairs of strings, got {pair!r}")
        return cls(tokens, [(left, right) for left, right in merges])

    def to_dict(self) -> dict[str, Any]:
        """Tokens and merges, as JSON can hold them."""
        return {"tokens": list(self.vocabulary.tokens), "merges": [list(pair) for pair in self._merges]}

    def tokenize(self, text: str) -> list[tuple[int, int, int]]:
        """(start, end, id) of each token; white space around a token, and around the text, is left out.

        A character of several bytes may be several tokens, which then share its place.
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
        """The text that ordinary ids spell; bytes that make no character come out as U+FFFD."""
        from tokenizers import decoders

        pieces = [self.vocabulary.token_of(index) for index in ids if index >= len(SPECIAL_TOKENS)]
        text: str = decoders.ByteLevel().decode(pieces)
        return text.removeprefix(" ")

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of `tokenize` for many texts."""
        shift = len(SPECIAL_TOKENS)
        stripped = [text.strip() for text in texts]
        rows: list[list[int]] = []
        for first in range(0, len(stripped), _AT_ONCE):
            chunk = stripped[first : first + _AT_ONCE]
            for text, encoding in zip(chunk, self._tokenizer.encode_batch_fast(chunk), strict=True):
                rows.append([index + shift for index in encoding.ids] if text else [])
        return rows
