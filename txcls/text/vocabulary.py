"""The tokens of a model in order of their ids: first the special ones, then the most frequent ones."""

from collections.abc import Iterable, Mapping

PAD, UNK, MASK, CLS = 0, 1, 2, 3
SPECIAL_TOKENS = ("<pad>", "<unk>", "<mask>", "<cls>")
BERT_TOKENS = ("[PAD]", "[UNK]", "[MASK]", "[CLS]", "[SEP]")
"""The special tokens of an imported model; [SEP] ends each text."""
SEP = 4
MAX_WORDS = 1_000_000
MAX_BYTE_PAIRS = 400_000
"""Maximum vocabulary sizes, limited by the size of a checkpoint's tokenizer.json (`txcls.checkpoint.json_files`)."""


class Vocabulary:
    """V tokens in order of their ids, beginning with the special ones."""

    def __init__(self, tokens: Iterable[str]) -> None:
        """Make a vocabulary from all its tokens, in order of their ids.

        Raises:
            ValueError: the special tokens do not come first, or a token occurs twice.
        """
        self.tokens: tuple[str, ...] = tuple(tokens)
        self._ids = {token: index for index, token in enumerate(self.tokens)}
        if self.tokens[: len(SPECIAL_TOKENS)] not in (SPECIAL_TOKENS, BERT_TOKENS[: len(SPECIAL_TOKENS)]):
            raise ValueError(f"tokens: expected {', '.join(SPECIAL_TOKENS)} first, got {', '.join(self.tokens[:4])}")
        if len(self._ids) != len(self.tokens):
            repeated = next(token for index, token in enumerate(self.tokens) if self._ids[token] != index)
            raise ValueError(f"tokens: {repeated!r} occurs twice")

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], *, max_size: int, min_frequency: int) -> "Vocabulary":
        """Make a vocabulary of the most frequent tokens; tokens with the same frequency are in alphabetical order.

        `max_size` is the maximum V, including the special tokens.
        """
        frequent = [(-n, token) for token, n in counts.items() if n >= min_frequency and token not in SPECIAL_TOKENS]
        room = max(max_size - len(SPECIAL_TOKENS), 0)
        return cls((*SPECIAL_TOKENS, *(token for _, token in sorted(frequent)[:room])))

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens)"

    def id_of(self, token: str) -> int:
        """The id of a token; UNK if it is not in the vocabulary."""
        return self._ids.get(token, UNK)

    def token_of(self, index: int) -> str:
        """The token with this id.

        Raises:
            IndexError: there is none.
        """
        if not 0 <= index < len(self.tokens):
            raise IndexError(f"token id {index}: expected 0 to {len(self.tokens) - 1}")
        return self.tokens[index]
