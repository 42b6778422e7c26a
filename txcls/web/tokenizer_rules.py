"""Patterns and NLTK's rules as JSON, for tokenisation in the browser."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from txcls.text import cleaning, words
from txcls.web.regex_to_javascript import to_javascript, to_replacement

WORDPIECE = Path(__file__).with_name("engine") / "wordpiece.json"
"""What WordPiece does with each character, written by tests/web/test_wordpiece_tables.py."""
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
        | {"composed": to_javascript(cleaning.composable())}
    }
    if "word" in tokenizers:
        tables["words"] = {"full_stop": to_javascript(words.FULL_STOP)} | _nltk_rules()
    if "wordpiece" in tokenizers:
        tables["wordpiece"] = json.loads(WORDPIECE.read_text("utf-8"))
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
