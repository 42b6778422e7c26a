"""Word tokens by NLTK's Penn Treebank rules, with their places in the text, and without any NLTK data.

NLTK's `NLTKWordTokenizer` expects one sentence: it splits the full stop off at the end of the text only, and leaves the
others to a sentence splitter whose model must be downloaded. Here a full stop is split off wherever it ends a word that
is no abbreviation. NLTK also rewrites double quotes as `` and ''; here a token is always the text as it stands, so that
`text[start:end] == token`.
"""

import re
from collections.abc import Callable
from functools import cache

ABBREVIATIONS = (
    "co|dr|ft|jr|lt|mr|ms|mt|no|sr|st|vs",
    "adm|apr|aug|ave|bro|col|cpl|dec|est|etc|feb|fri|gen|gov|hon|inc|jan|jul|jun|ltd|maj|mgr|mrs|nov|oct|pty|pvt|rep|rev|"
    "sen|sep|sgt|thu|tue|vol",
    "asst|bldg|bros|capt|cmdr|corp|dept|dist|pres|prof|sept|supt|thur|univ",
    "messrs",
)
"""Words that keep their full stop, grouped by length; so do single letters, and forms such as U.S. and w.va."""

_FULL_STOP = re.compile(
    r"""\.(?=["'”’»)\]}]*\s)(?:(?<=\d\.)|(?<=[^\W\d_]\.)(?<!\b(?<!['’])\w\.)(?<!\.\w\w\.)"""
    + "".join(rf"(?<!\b(?:{alike})\.)" for alike in ABBREVIATIONS)
    + ")",
    re.IGNORECASE,
)


SIMPLE = {
    "whitespace": re.compile(r"\S+"),
    # Words and the marks ' . , ( ) ! ? one by one; double quotes, colons and semicolons only part words.
    "basic_english": re.compile(r"['.,()!?]|[^\s'\".,()!?;:]+"),
}
"""Plainer ways to part words, as some published systems do it: every match is a token."""


def separate_full_stops(text: str) -> str:
    """The text with a space before each full stop that ends a word, and more text follows."""
    return _FULL_STOP.sub(" .", text)


@cache
def _treebank() -> Callable[[str], list[str]]:
    """NLTK's own rules, in its order, on the standard library's engine: NLTK's runs under a wall-clock limit."""
    from nltk.tokenize.destructive import NLTKWordTokenizer as Rules  # importing NLTK takes a second: only where needed

    def standard(rules: list[tuple[re.Pattern[str], str]]) -> list[tuple[re.Pattern[str], str]]:
        return [(re.compile(rule.pattern, rule.flags & re.IGNORECASE), by) for rule, by in rules]

    splits = standard([*Rules.STARTING_QUOTES, *Rules.PUNCTUATION, Rules.PARENS_BRACKETS, Rules.DOUBLE_DASHES])
    endings = standard(Rules.ENDING_QUOTES)
    endings += [(re.compile(rule.pattern), r" \1 \2 ") for rule in (*Rules.CONTRACTIONS2, *Rules.CONTRACTIONS3)]

    def tokenize(text: str) -> list[str]:
        for rule, by in splits:
            text = rule.sub(by, text)
        text = f" {text} "
        for rule, by in endings:
            text = rule.sub(by, text)
        return text.split()

    return tokenize


def _tokens(text: str) -> list[str]:
    """Tokens, with double quotes still as NLTK writes them."""
    return _treebank()(separate_full_stops(text))


def words(text: str, kind: str = "word") -> list[str]:
    """The tokens of `tokenize_words` without their places: what training reads."""
    if kind != "word":
        return SIMPLE[kind].findall(text)
    if '"' in text or "''" in text:
        return [token for _, _, token in tokenize_words(text)]
    return _tokens(text)


def tokenize_words(text: str, kind: str = "word") -> list[tuple[int, int, str]]:
    """Word tokens as (start, end, token), in order, where `token == text[start:end]`; white space belongs to none.

    `kind` is "word" for NLTK's rules, or one of `SIMPLE`.
    """
    if kind != "word":
        return [(*match.span(), match.group()) for match in SIMPLE[kind].finditer(text)]
    spans = []
    end = 0
    for token in _tokens(text):
        start = end
        while text[start].isspace():
            start += 1
        if not text.startswith(token, start):  # NLTK's `` or '' for a double quote, or `` for ''
            token = text[start] if text[start] == '"' else text[start : start + 2]
        end = start + len(token)
        spans.append((start, end, token))
    return spans
