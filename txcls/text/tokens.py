"""Tokens with their offsets and labels, and the share of a text that a model does not know."""

from collections.abc import Sequence
from dataclasses import dataclass

SPACE = " "
"""The text of a token that is only the space before a word."""


@dataclass(frozen=True, slots=True)
class CharacterPart:
    """The character `text[at]` of a token's text, of which the token has only part `number` of `of`, from 1."""

    at: int
    number: int
    of: int


@dataclass(frozen=True, slots=True)
class Token:
    """One token: `text` after cleaning, and its offsets `start:end` in the original text (0:0 if special).

    `parts` are the characters of `text` whose bytes are split across tokens; only the first and the last can be.
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
        """The text for display: `é 1/2` for the first of two tokens of é, ␣ for a space."""
        if self.text == SPACE:
            return "␣"
        pieces, done = [], 0
        for part in self.parts:
            pieces += [self.text[done : part.at], f"{self.text[part.at]} {part.number}/{part.of}"]
            done = part.at + 1
        return " ".join(piece for piece in (*pieces, self.text[done:]) if piece)

    @property
    def parts_description(self) -> str:
        """`part 1 of 2 of é`; empty if every character is whole."""
        return ", ".join(f"part {part.number} of {part.of} of {self.text[part.at]}" for part in self.parts)


@dataclass(frozen=True, slots=True)
class Encoding:
    """A text and its tokens; `truncated_at` is the offset at which reading stopped, None if the whole text was read."""

    text: str
    tokens: tuple[Token, ...]
    truncated_at: int | None

    @property
    def ids(self) -> list[int]:
        """The token ids, T of them."""
        return [token.id for token in self.tokens]

    @property
    def has_words(self) -> bool:
        """Whether there is anything to classify, that is, a token that is not special."""
        return any(not token.is_special for token in self.tokens)


MIN_MEAN_PIECE_LENGTH = 2.0
"""A word with shorter pieces than this on average, in characters, counts as unknown."""


def unknown_share(text: str, tokens: Sequence[Token]) -> float:
    """The fraction of the characters in a text's words that belong to unknown words; 0 if there are none.

    A word is unknown if it became `<unk>`, or if byte-pair encoding can only spell it out: in single bytes, as for a
    script that was rare in the training texts, or in pieces of fewer than MIN_MEAN_PIECE_LENGTH characters on average.
    Numbers and punctuation are not counted.
    """
    n_known = n_unknown = 0
    for word in _words_of(text, tokens):
        n_characters = word[-1].end - word[0].start
        spelled_out = len(word) > 1 and n_characters / len(word) < MIN_MEAN_PIECE_LENGTH
        if spelled_out or any(token.is_unknown for token in word):
            n_unknown += n_characters
        else:
            n_known += n_characters
    return n_unknown / (n_known + n_unknown) if n_unknown else 0.0


def _words_of(text: str, tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens with letters or non-ASCII symbols, with adjacent ones grouped into words."""
    grouped: list[list[Token]] = []
    for token in tokens:
        first = text[token.start : token.start + 1]
        if token.is_special or not (first.isalpha() or (first and not first.isascii())):
            continue
        if grouped and token.start <= grouped[-1][-1].end:
            grouped[-1].append(token)
        else:
            grouped.append([token])
    return grouped


def character_parts(places: Sequence[tuple[int, int]], is_space: Sequence[bool]) -> dict[int, list[CharacterPart]]:
    """The split characters of each token, keyed by the token's index.

    A token that ends after the start of the next one shares a character with it: both contain some of its bytes.

    Args:
        places: start and end of each token in the cleaned text.
        is_space: whether a token is only the space before a word; at the start of a text, such a token has the offsets
            of the word's first character.
    """
    holders: dict[int, list[int]] = {}
    for token in range(1, len(places)):
        first, last = places[token][0], places[token - 1][1]
        if first < last and not is_space[token - 1]:
            holders.setdefault(first, [token - 1]).append(token)
    parts: dict[int, list[CharacterPart]] = {}
    for character, tokens in holders.items():
        for number, token in enumerate(tokens, start=1):
            part = CharacterPart(character - places[token][0], number, len(tokens))
            parts.setdefault(token, []).append(part)
    return parts
