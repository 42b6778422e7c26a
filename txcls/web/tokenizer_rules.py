"""Patterns and NLTK's rules as JSON, for tokenisation in the browser."""

import unicodedata
from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

from txcls.text import cleaning, composition, words
from txcls.web.regex_to_javascript import to_javascript, to_replacement

PATTERNS = {
    "entity": cleaning.ENTITY,
    "tag": cleaning.TAG,
    "url": cleaning.URL,
    "word_apostrophe": cleaning.WORD_APOSTROPHE,
    "punctuation": cleaning.PUNCTUATION,
    "spaces": cleaning.SPACES,
    **words.SIMPLE,
}


def reading_tables(*, tokenizers: Collection[str]) -> dict[str, Any]:
    """The tables for these tokenizers, named as in `txcls.config.TextConfig`."""
    tables: dict[str, Any] = {
        "patterns": {name: to_javascript(pattern) for name, pattern in PATTERNS.items()}
        | {"composed": to_javascript(composition.pieces())}
    }
    if "word" in tokenizers:
        tables["words"] = {"full_stop": to_javascript(words.FULL_STOP)} | _nltk_rules()
    if "wordpiece" in tokenizers:
        tables["wordpiece"] = _wordpiece_tables()
    return tables


def _nltk_rules() -> dict[str, Any]:
    """The rules of the installed NLTK as (pattern, replacement) pairs, in the order of its `tokenize`.

    "splits" run before `tokenize` adds a space at both ends of the text, "endings" run afterwards.
    """
    import nltk

    nltk_words = words.nltk_tokenizer()
    contractions = [*nltk_words.CONTRACTIONS2, *nltk_words.CONTRACTIONS3]
    rules = {
        "splits": [
            *nltk_words.STARTING_QUOTES,
            *nltk_words.PUNCTUATION,
            nltk_words.PARENS_BRACKETS,
            nltk_words.DOUBLE_DASHES,
        ],
        "endings": [*nltk_words.ENDING_QUOTES, *((pattern, r" \1 \2 ") for pattern in contractions)],
    }
    return {"source": f"NLTK {nltk.__version__}, https://www.nltk.org, Apache License 2.0"} | {
        name: [(to_javascript(pattern), to_replacement(template)) for pattern, template in pairs]
        for name, pairs in rules.items()
    }


_TRIED = (*composition.CODE_POINTS, *range(0xE0000, 0xE1000))
"""All others are in the next two, or change in no way except by Hangul's rules."""
_PRIVATE = [(0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD)]
"""Ranges of characters for private use, which WordPiece removes."""
_IDEOGRAPHS = [(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
               (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F)]  # fmt: skip
"""Ranges of characters that are words (BERT's tokenization.py, where the next to last one begins 256 earlier)."""
_SEPARATOR = "0"
"""A character that no normalisation changes, removes or joins with another."""


@cache
def _wordpiece_tables() -> dict[str, Any]:
    """What the `tokenizers` library's BertNormalizer and BertPreTokenizer do, by trying each character."""
    from tokenizers import normalizers, pre_tokenizers

    characters = [chr(code) for code in _TRIED if chr(code) != _SEPARATOR]

    def ranges(some: Iterable[str]) -> list[list[int]]:
        return composition.ranges_of(map(ord, some))

    def changed(step: str) -> dict[str, str]:
        steps = dict.fromkeys(("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"), False)
        normalizer = normalizers.BertNormalizer(**(steps | {step: True}))
        results = normalizer.normalize_str(_SEPARATOR.join(characters)).split(_SEPARATOR)
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
    split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str(_SEPARATOR.join(characters))
    alone = [piece for piece, _ in split if len(piece) == 1 and piece != _SEPARATOR]
    between = set(characters) - {character for piece, _ in split for character in piece}
    return {
        "removed": [*ranges(one for one, new in cleaned.items() if not new), *_PRIVATE],
        "spaces": ranges(one for one, new in cleaned.items() if new),
        "ideographs": _IDEOGRAPHS,
        "marks": ranges(one for one, new in accents.items() if not new),
        "punctuation": ranges(alone),
        "between": ranges(between),
        "ranks": {mark: unicodedata.combining(mark) for mark in sorted_marks},
        "letters": {one: new for one, new in accents.items() if new and not "가" <= one <= "힣"},
        "lower": changed("lowercase"),
    }
