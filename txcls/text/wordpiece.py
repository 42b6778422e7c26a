"""WordPiece (Wu et al. 2016, as published with BERT) with the `tokenizers` library, for imported models.

The library also normalises the text: control characters go, Chinese characters become words, and, in an uncased model,
letters become lower case without accents. A typed [SEP] is that token, as in the published tokenizer; only a typed
[PAD] is ordinary text, since padding is not read.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, StrictBool

from txcls.text.vocabulary import BERT_TOKENS, Vocabulary

PREFIX = "##"
"""The start of a piece that continues a word."""
MAX_WORD = 100
"""Words with more characters are unknown."""


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

    def normalized(self, text: str) -> str:
        """The text as it is before it is split into words."""
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
