"""Tokens with their offsets and labels."""

from collections.abc import Sequence
from dataclasses import dataclass

SPACE = " "
"""The text of a token that is only the space before a word."""


@dataclass(frozen=True, slots=True)
class CharacterPart:
    """A part of a character that is split across `n_parts` tokens: part `number`, from 1, of `text[index]`."""

    index: int
    number: int
    n_parts: int


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its `text` after cleaning, and its offsets `start:end` in the original text (0:0 if special).

    `parts` are the characters of `text` that are split across tokens; only the first and the last one can be.
    """

    text: str
    id: int
    start: int
    end: int
    is_unknown: bool
    is_special: bool
    parts: tuple[CharacterPart, ...] = ()

    @property
    def label(self) -> str:
        """The text for display: `é 1/2` for the first of two tokens of é, and ␣ for a space."""
        if self.text == SPACE:
            return "␣"
        pieces, end = [], 0
        for part in self.parts:
            pieces += [self.text[end : part.index], f"{self.text[part.index]} {part.number}/{part.n_parts}"]
            end = part.index + 1
        return " ".join(piece for piece in (*pieces, self.text[end:]) if piece)

    @property
    def parts_description(self) -> str:
        """The parts in words (`part 1 of 2 of é`); "" if all characters are whole."""
        return ", ".join(f"part {part.number} of {part.n_parts} of {self.text[part.index]}" for part in self.parts)


@dataclass(frozen=True, slots=True)
class Encoding:
    """A text and its tokens; `truncated_at` is the offset of the first token that did not fit, None if all fit."""

    text: str
    tokens: tuple[Token, ...]
    truncated_at: int | None

    @property
    def ids(self) -> list[int]:
        """The T token ids."""
        return [token.id for token in self.tokens]

    @property
    def has_words(self) -> bool:
        """Whether there is a token that is not special."""
        return any(not token.is_special for token in self.tokens)


def character_parts(spans: Sequence[tuple[int, int]], is_space: Sequence[bool]) -> dict[int, list[CharacterPart]]:
    """The split characters of each token, keyed by the token's index.

    A token that ends after the start of the next token shares a character with it: both contain some of its bytes.

    Args:
        spans: the start and end of each token in the cleaned text.
        is_space: whether a token is only the space before a word; at the beginning of a text, such a token has the
            offsets of the word's first character.
    """
    tokens_with: dict[int, list[int]] = {}  # keyed by the position of the split character
    for token in range(1, len(spans)):
        start, previous_end = spans[token][0], spans[token - 1][1]
        if start < previous_end and not is_space[token - 1]:
            tokens_with.setdefault(start, [token - 1]).append(token)
    parts: dict[int, list[CharacterPart]] = {}
    for position, tokens in tokens_with.items():
        for number, token in enumerate(tokens, start=1):
            part = CharacterPart(position - spans[token][0], number, len(tokens))
            parts.setdefault(token, []).append(part)
    return parts
