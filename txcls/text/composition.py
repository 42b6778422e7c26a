"""Unicode's composed form (NFC, Unicode Standard Annex 15), computed piece by piece.

`unicodedata.normalize` gives no alignment, and its time is quadratic in the length of a run of combining marks.
Therefore, a piece ends after MAX_COMBINING_MARKS marks, as in the annex's Stream-Safe Text Format.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

MAX_COMBINING_MARKS = 30
"""Maximum number of combining marks in a piece; natural text has only a few in a row."""
_HANGUL = range(0xAC00, 0xD7A4)
_CODE_POINTS = (*range(0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x20000), *range(0x2F800, 0x2FA20))
"""Code points that may combine or decompose, except Hangul; the rest are ideographs, private or unassigned."""


def is_composed(text: str) -> bool:
    """Whether a text is in NFC."""
    return unicodedata.is_normalized("NFC", text)


def compose(piece: re.Match[str]) -> str:
    """The composed form of a piece, a match of `pieces`."""
    return unicodedata.normalize("NFC", piece[0])


@cache
def pieces() -> re.Pattern[str]:
    """A pattern that matches each piece that NFC may change."""
    marks, beginnings, decomposed = set[int](), set[int](), set[int]()
    marks.update(range(0x1161, 0x1176), range(0x11A8, 0x11C3))  # Hangul vowels and final consonants
    beginnings.update(range(0x1100, 0x1113), _HANGUL)
    for code in _CODE_POINTS:
        character = chr(code)
        if unicodedata.combining(unicodedata.normalize("NFD", character)[0]):
            marks.add(code)
        mapping = unicodedata.decomposition(character)
        if not mapping or mapping.startswith("<"):  # "<" marks a compatibility mapping, which NFC ignores
            continue
        beginnings.add(code)
        if is_composed(character):
            first, second = (int(number, 16) for number in mapping.split())
            beginnings.add(first)
            marks.add(second)
        else:
            decomposed.add(code)
    beginning, mark, single = (_character_class(codes) for codes in (beginnings - marks, marks, decomposed - marks))
    return re.compile(f"{beginning}?{mark}{{1,{MAX_COMBINING_MARKS}}}|{single}")


def _character_class(codes: Iterable[int]) -> str:
    """The character class of a regular expression for these code points."""
    ranges: list[list[int]] = []
    for code in sorted(codes):
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return f"[{''.join(chr(first) if first == last else f'{chr(first)}-{chr(last)}' for first, last in ranges)}]"
