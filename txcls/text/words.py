"""Word tokens by NLTK's Penn Treebank rules, with their places in the text, and without any NLTK data.

NLTK's `NLTKWordTokenizer` expects one sentence: it splits the full stop off at the end of the text only, and leaves the
others to a sentence splitter whose model must be downloaded. Here a full stop is split off wherever it ends a word that
is no abbreviation. NLTK also rewrites double quotes as `` and ''; here a token is always the text as it stands, so that
`text[start:end] == token`.
"""

import re
from collections.abc import Callable
from functools import cache

ABBREVIATION = re.compile(
    "adm|apr|asst|aug|ave|bldg|brig|bros|capt|cmdr|co|col|corp|cpl|dec|dept|dist|dr|est|etc|feb|fri|ft|gen|gov|hon|inc|jan|"
    "jr|jul|jun|lt|ltd|maj|messrs|mgr|mr|mrs|ms|mt|no|nov|oct|pres|prof|pty|pvt|rep|rev|sen|sep|sept|sgt|sr|st|supt|thu|"
    "thur|tue|univ|vol|vs|wed",
    re.IGNORECASE,
)
"""Words that keep their full stop; so do single letters and forms such as u.s. and w.va."""


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


def _ends_sentence(token: str) -> bool:
    """Whether the full stop at the end of this token is a token of its own."""
    stem = token[:-1]
    _, inner, last = stem.rpartition(".")
    if stem[-1].isdigit():
        return True
    return len(last) > (2 if inner else 1) and stem[-1].isalnum() and not ABBREVIATION.fullmatch(stem)


def _tokens(text: str) -> list[str]:
    """Tokens, with double quotes still as NLTK writes them."""
    tokens: list[str] = []
    for token in _treebank()(text):
        if token[-1] == "." and len(token) > 1 and _ends_sentence(token):
            tokens += (token[:-1], ".")
        else:
            tokens.append(token)
    return tokens


def words(text: str) -> list[str]:
    """The tokens of `tokenize_words` without their places: what training reads."""
    if '"' in text or "''" in text:
        return [token for _, _, token in tokenize_words(text)]
    return _tokens(text)


def tokenize_words(text: str) -> list[tuple[int, int, str]]:
    """Word tokens as (start, end, token), in order, where `token == text[start:end]`; white space belongs to none."""
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
