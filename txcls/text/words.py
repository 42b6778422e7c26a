"""Word tokens by NLTK's Penn Treebank rules, with their character offsets.

NLTK's `NLTKWordTokenizer` expects one sentence: it splits off the full stop at the end of the text only, and relies on
a sentence splitter, whose model must be downloaded, for the others. Here a full stop is split off wherever it ends a
word that is not an abbreviation. NLTK also rewrites double quotes as `` and ''; here a token is always a substring of
the text: `text[start:end] == token`.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

from txcls.text import treebank

ABBREVIATIONS = (
    "co|dr|ft|jr|lt|mr|ms|mt|no|sr|st|vs",
    "adm|apr|aug|ave|bro|col|cpl|dec|est|etc|feb|fri|gen|gov|hon|inc|jan|jul|jun|ltd|maj|mgr|mrs|nov|oct|pty|pvt|rep|rev|"
    "sen|sep|sgt|thu|tue|vol",
    "asst|bldg|bros|capt|cmdr|corp|dept|dist|pres|prof|sept|supt|thur|univ",
    "messrs",
)
"""Words that keep their full stop, grouped by length, as look-behinds need it; so do single letters and forms such as
U.S. and w.va."""

FULL_STOP = re.compile(
    r"""\.(?=["'”’»)\]}]*\s)(?:(?<=\d\.)|(?<=[^\W\d_]\.)(?<!\b(?<!['’])\w\.)(?<!\.\w\w\.)"""
    + "".join(rf"(?<!\b(?:{alike})\.)" for alike in ABBREVIATIONS)
    + ")",
    re.IGNORECASE,
)


SIMPLE = {
    "whitespace": re.compile(r"\S+"),
    # Words and the marks ' . , ( ) ! ? as tokens; double quotes, colons and semicolons only separate words.
    "basic_english": re.compile(r"['.,()!?]|[^\s'\".,()!?;:]+"),
}
"""Simpler tokenizers used by published systems: every match is a token."""


def separate_full_stops(text: str) -> str:
    """The text with a space before each full stop that ends a word inside the text."""
    return FULL_STOP.sub(" .", text)


def by_all_rules(text: str) -> list[str]:
    """The tokens of a text by running every rule over all of it: the same as `words`, but slow."""
    tokens = []
    end = 0
    for token in treebank.tokenize(separate_full_stops(text)):
        start = end
        while text[start].isspace():
            start += 1
        if not text.startswith(token, start):  # NLTK's `` or '' for a double quote, or `` for ''
            token = text[start] if text[start] == '"' else text[start : start + 2]
        end = start + len(token)
        tokens.append(token)
    return tokens


# No rule looks beyond the spaces around a run of other characters, except at the end of a text, where closing marks may
# follow a full stop. So each run is tokenized once, between two words that no rule changes, and cached; the end of a
# text starts with its last run that holds more than closing marks. Some rules match a space but no other white space,
# so a text with other white space gets all rules.
_RUN = re.compile(r"[^ ]+")
_OTHER_SPACE = re.compile(r"[^\S ]")
_END_REVERSED = re.compile(r"""[\s\])}>"'»”’]*+\S*+""")
_LONGEST_KEPT = 40


def _is_plain(run: str) -> bool:
    """Whether certainly no rule changes it: of letters and digits alone, rules split only "cannot", "gimme" etc."""
    return run.isalnum() and not 5 <= len(run) <= 6


@lru_cache(maxsize=1 << 16)
def _inside(run: str) -> tuple[str, ...]:
    if _is_plain(run):
        return (run,)
    if run[-1] == "," and _is_plain(run[:-1]):
        return (run[:-1], ",")
    return tuple(by_all_rules(f"x {run} x")[1:-1])


@lru_cache(maxsize=1 << 14)
def _at_end(end: str) -> tuple[str, ...]:
    if end[-1:] == "." and _is_plain(end[:-1]):
        return (end[:-1], ".")
    return tuple(by_all_rules(f"x {end}")[1:])


def _end(text: str) -> int:
    """Where the end of a text begins, to which the rules for the end apply."""
    found = _END_REVERSED.match(text[::-1])
    return len(text) - found.end() if found else 0


def _tokens_of(run: str) -> tuple[str, ...]:
    return (_inside if len(run) <= _LONGEST_KEPT else _inside.__wrapped__)(run)


def _tokens_at_end(end: str) -> tuple[str, ...]:
    return (_at_end if len(end) <= _LONGEST_KEPT else _at_end.__wrapped__)(end)


def _runs(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The start of each run of a text, and its tokens."""
    if _OTHER_SPACE.search(text):
        yield 0, tuple(by_all_rules(text))
        return
    last = _end(text)
    for match in _RUN.finditer(text, 0, last):
        yield match.start(), _tokens_of(match.group())
    yield last, _tokens_at_end(text[last:])


def words(text: str, kind: str = "word") -> list[str]:
    """The tokens of `tokenize_words` without their offsets, for training."""
    if kind != "word":
        return SIMPLE[kind].findall(text)
    if _OTHER_SPACE.search(text):
        return by_all_rules(text)
    last = _end(text)
    runs = text[:last].split()
    look_up = _inside if max(map(len, runs), default=0) <= _LONGEST_KEPT else _tokens_of
    return [*chain.from_iterable(map(look_up, runs)), *_tokens_at_end(text[last:])]


def tokenize_words(text: str, kind: str = "word") -> list[tuple[int, int, str]]:
    """Word tokens as (start, end, token), in order, with `token == text[start:end]`; white space is never part of one.

    `kind` is "word" for NLTK's rules, or one of `SIMPLE`.
    """
    if kind != "word":
        return [(*match.span(), match.group()) for match in SIMPLE[kind].finditer(text)]
    spans = []
    for start, tokens in _runs(text):
        for token in tokens:
            while text[start].isspace():  # only between closing marks at the end, or where all rules ran
                start += 1
            spans.append((start, start + len(token), token))
            start += len(token)
    return spans
