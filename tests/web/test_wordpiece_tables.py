"""The table of what WordPiece does with each character is what the `tokenizers` library does.

After an update of the library, `python -m tests.web.test_wordpiece_tables` writes it again.
"""

import json
import unicodedata
from collections.abc import Iterable
from typing import Any

from tokenizers import normalizers, pre_tokenizers

from txcls.web.tokenizer_rules import WORDPIECE

TRIED = (
    *range(0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x20000), *range(0x2F800, 0x2FA20), *range(0xE0000, 0xE1000),
)  # fmt: skip
"""All others are in the next two, or change in no way except by Hangul's rules."""
PRIVATE = [(0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD)]
"""Ranges of characters for private use, which WordPiece removes."""
IDEOGRAPHS = [(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
               (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F)]  # fmt: skip
"""Ranges of characters that are words (BERT's tokenization.py, where the next to last one begins 256 earlier)."""
SEPARATOR = "0"
"""A character that no normalisation changes, removes or joins with another."""


def wordpiece_tables() -> dict[str, Any]:
    """What the `tokenizers` library's BertNormalizer and BertPreTokenizer do, by trying each character."""
    characters = [chr(code) for code in TRIED if chr(code) != SEPARATOR]

    def changed(step: str) -> dict[str, str]:
        steps = dict.fromkeys(("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"), False)
        normalizer = normalizers.BertNormalizer(**(steps | {step: True}))
        results = normalizer.normalize_str(SEPARATOR.join(characters)).split(SEPARATOR)
        return {old: new for old, new in zip(characters, results, strict=True) if new != old}

    cleaned, accents = changed("clean_text"), changed("strip_accents")
    decomposed = normalizers.NFD().normalize_str
    # A mark moves before a neighbour of a higher class, U+0301, or behind one of a lower class, U+0334.
    sorted_marks = [
        mark
        for mark in characters
        if unicodedata.combining(mark)
        and (decomposed(f"\u0301{mark}")[0] == mark or decomposed(f"{mark}\u0334")[0] != mark)
    ]
    split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str(SEPARATOR.join(characters))
    alone = [piece for piece, _ in split if len(piece) == 1 and piece != SEPARATOR]
    between = set(characters) - {character for piece, _ in split for character in piece}
    return {
        "removed": [*ranges(one for one, new in cleaned.items() if not new), *PRIVATE],
        "spaces": ranges(one for one, new in cleaned.items() if new),
        "ideographs": IDEOGRAPHS,
        "marks": ranges(one for one, new in accents.items() if not new),
        "punctuation": ranges(alone),
        "between": ranges(between),
        "ranks": {mark: unicodedata.combining(mark) for mark in sorted_marks},
        "letters": {one: new for one, new in accents.items() if new and not "가" <= one <= "힣"},
        "lower": changed("lowercase"),
    }


def ranges(characters: Iterable[str]) -> list[list[int]]:
    """The first and the last code point of each run."""
    found: list[list[int]] = []
    for code in sorted(map(ord, characters)):
        if found and code == found[-1][1] + 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def as_text(tables: dict[str, Any]) -> str:
    """The tables as JSON, one per line."""
    lines = (f"{json.dumps(name)}: {json.dumps(table, ensure_ascii=False)}" for name, table in tables.items())
    return "{" + ",\n".join(lines) + "}\n"


def test_the_stored_tables_are_those_of_the_library() -> None:
    assert WORDPIECE.read_text("utf-8") == as_text(wordpiece_tables()), __doc__


if __name__ == "__main__":
    WORDPIECE.write_text(as_text(wordpiece_tables()), encoding="utf-8")
