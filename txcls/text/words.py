"""Word tokens according to NLTK's `NLTKWordTokenizer` (Penn Treebank rules), with their character offsets.

NLTK expects one sentence and splits off only the full stop at its end, so those inside a text are split off here. NLTK
rewrites double quotes as `` and ''; here, a token is always a substring of the text.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

ABBREVIATIONS = (
    "co|dr|ft|jr|lt|mr|ms|mt|no|sr|st|vs",
    "adm|apr|aug|ave|bro|col|cpl|dec|est|etc|feb|fri|gen|gov|hon|inc|jan|jul|jun|ltd|maj|mgr|mrs|nov|oct|pty|pvt|rep|rev|"
    "sen|sep|sgt|thu|tue|vol",
    "asst|bldg|bros|capt|cmdr|corp|dept|dist|pres|prof|sept|supt|thur|univ",
    "messrs",
)
"""Words that keep their full stop, grouped by length, since a look-behind needs a fixed length. Single letters and
abbreviations such as U.S. and w.va. also keep it."""

FULL_STOP = re.compile(
    r"""\.(?=["'”’»)\]}]*\s)(?:(?<=\d\.)|(?<=[^\W\d_]\.)(?<!\b(?<!['’])\w\.)(?<!\.\w\w\.)"""
    + "".join(rf"(?<!\b(?:{same_length})\.)" for same_length in ABBREVIATIONS)
    + ")",
    re.IGNORECASE,
)

SIMPLE = {
    "whitespace": re.compile(r"\S+"),
    # Words and the characters ' . , ( ) ! ? as tokens; double quotes, colons and semicolons only separate words.
    "basic_english": re.compile(r"['.,()!?]|[^\s'\".,()!?;:]+"),
}
"""Simpler tokenizers of published systems; each match is a token."""


@cache
def nltk_tokenizer() -> Any:
    """NLTK's tokenizer; it needs no downloaded data."""
    # Importing NLTK takes a second or more, and most classifiers use byte pairs.
    from nltk.tokenize import NLTKWordTokenizer

    return NLTKWordTokenizer()


def separate_full_stops(text: str) -> str:
    """The text with a space before each full stop that ends a word inside the text."""
    return FULL_STOP.sub(" .", text)


MAX_WORD_LENGTH = 12
"""If words have more characters than this on average, the texts seem to have no spaces between words."""


def have_spaces(texts: Iterable[str]) -> bool:
    """Whether the words of the texts seem to be separated by spaces, unlike in Chinese, Japanese and Thai."""
    n_words = n_characters = 0
    for text in texts:
        words_of_text = text.split()
        n_words += len(words_of_text)
        n_characters += sum(map(len, words_of_text))
    return n_characters <= MAX_WORD_LENGTH * n_words


def tokenize_words(text: str, kind: str = "word") -> list[tuple[int, int, str]]:
    """Word tokens as (start, end, token), in order, with `token == text[start:end]` and without whitespace.

    `kind` is "word" for NLTK's rules, or one of `SIMPLE`.
    """
    if kind != "word":
        return [(*match.span(), match.group()) for match in SIMPLE[kind].finditer(text)]
    spans = []
    end = 0
    for token in nltk_tokenizer().tokenize(separate_full_stops(text)):
        start = end
        while text[start].isspace():
            start += 1
        if not text.startswith(token, start):  # NLTK's `` or '' for a double quote, or `` for ''
            token = text[start] if text[start] == '"' else text[start : start + 2]
        end = start + len(token)
        spans.append((start, end, token))
    return spans


def words(text: str, kind: str = "word") -> list[str]:
    """The tokens of `tokenize_words` without their offsets."""
    return SIMPLE[kind].findall(text) if kind != "word" else [token for _, _, token in tokenize_words(text)]
