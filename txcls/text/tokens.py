"""Tokens with their offsets and labels, and the share of unknown words in a text."""

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


BYTES_WITHOUT_SPACES = range(0xE3, 0xEA)
"""The first UTF-8 byte of Chinese and Japanese characters, U+3000 to U+9FFF: a character is a word or a syllable."""
MIN_MEAN_PIECE_LENGTH = 2.0
"""A word that is split into pieces with a lower mean length, in characters, counts as unknown."""


def unknown_share(text: str, tokens: Sequence[Token]) -> float:
    """The fraction of the characters of a text's words that are in unknown words; 0 if there are none.

    A word is unknown if its token is `<unk>`, or if byte-pair encoding splits it into pieces with a mean length below
    MIN_MEAN_PIECE_LENGTH characters (into single bytes, for a script that was rare in the training texts). A Chinese or
    Japanese character that begins a token begins a word, so it is unknown only if it is split. Numbers and punctuation
    are not counted.
    """
    n_known = n_unknown = 0
    for word in _words_of(text, tokens):
        n_characters = word[-1].end - word[0].start
        is_spelled_out = len(word) > 1 and n_characters / len(word) < MIN_MEAN_PIECE_LENGTH
        if is_spelled_out or any(token.is_unknown for token in word):
            n_unknown += n_characters
        else:
            n_known += n_characters
    return n_unknown / (n_known + n_unknown) if n_unknown else 0.0


def _words_of(text: str, tokens: Sequence[Token]) -> list[list[Token]]:
    """The words of a text: groups of adjacent tokens that begin with a letter or a non-ASCII character."""
    words: list[list[Token]] = []
    for token in tokens:
        first = text[token.start : token.start + 1]
        if token.is_special or token.text == SPACE or not (first.isalpha() or (first and not first.isascii())):
            continue
        end = words[-1][-1].end if words else -1
        is_next = token.start == end and not (_is_without_spaces(first) or _is_without_spaces(text[words[-1][0].start]))
        if token.start < end or is_next:  # if it starts before the end, it has a part of the same character
            words[-1].append(token)
        else:
            words.append([token])
    return words


def _is_without_spaces(character: str) -> bool:
    """Whether it is a Chinese or Japanese character; its first byte is one of BYTES_WITHOUT_SPACES."""
    return character.encode(errors="replace")[0] in BYTES_WITHOUT_SPACES


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
