"""Word tokens by NLTK's Penn Treebank rules, with their places in the text, and without any NLTK data.

NLTK's `NLTKWordTokenizer` expects one sentence: it splits the full stop off at the end of the text only, and leaves the
others to a sentence splitter whose model must be downloaded. Here a full stop is split off wherever it ends a word that
is no abbreviation. NLTK also rewrites double quotes as `` and ''; here a token is always the text as it stands, so that
`text[start:end] == token`.
"""

import __future__

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

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


def _rules() -> Any:
    """NLTK's tokenizer class with its tables of rules.

    `import nltk` takes more than a second, since it loads everything NLTK has, and scikit-learn and SciPy with it. The
    tokenizer is one file of two classes that need none of that, so these are run alone; where NLTK is packed or written
    otherwise, it is imported after all.
    """
    found = find_spec("nltk")
    source = Path(((found and found.submodule_search_locations) or ["nowhere"])[0]) / "tokenize" / "destructive.py"
    names: dict[str, Any] = {"re": re, "redos": re, "TokenizerI": object}
    try:
        tree = ast.parse(source.read_text(encoding="utf-8"))
        classes = ast.Module([node for node in tree.body if isinstance(node, ast.ClassDef)], [])
        exec(compile(classes, source, "exec", __future__.annotations.compiler_flag, dont_inherit=True), names)
        return names["NLTKWordTokenizer"]
    except (OSError, SyntaxError, NameError, KeyError, AttributeError, TypeError):
        from nltk.tokenize.destructive import NLTKWordTokenizer

        return NLTKWordTokenizer


@cache
def _treebank() -> Callable[[str], list[str]]:
    """NLTK's own rules, in its order, on the standard library's engine: NLTK's runs under a wall-clock limit."""
    rules = _rules()

    def standard(table: list[tuple[re.Pattern[str], str]]) -> list[tuple[re.Pattern[str], str]]:
        return [(re.compile(rule.pattern, rule.flags & re.IGNORECASE), by) for rule, by in table]

    splits = standard([*rules.STARTING_QUOTES, *rules.PUNCTUATION, rules.PARENS_BRACKETS, rules.DOUBLE_DASHES])
    endings = standard(rules.ENDING_QUOTES)
    endings += [(re.compile(rule.pattern), r" \1 \2 ") for rule in (*rules.CONTRACTIONS2, *rules.CONTRACTIONS3)]

    def tokenize(text: str) -> list[str]:
        for rule, by in splits:
            text = rule.sub(by, text)
        text = f" {text} "
        for rule, by in endings:
            text = rule.sub(by, text)
        return text.split()

    return tokenize


def by_all_rules(text: str) -> list[str]:
    """The tokens of a text as every rule, run over all of it, leaves them: what `words` gives too, but slowly."""
    tokens = []
    end = 0
    for token in _treebank()(separate_full_stops(text)):
        start = end
        while text[start].isspace():
            start += 1
        if not text.startswith(token, start):  # NLTK's `` or '' for a double quote, or `` for ''
            token = text[start] if text[start] == '"' else text[start : start + 2]
        end = start + len(token)
        tokens.append(token)
    return tokens


# No rule looks further than across the space beside a stretch of other characters, except at the end of a text, where
# closing marks may follow a full stop. So each stretch is tokenized once, between two words that no rule touches, and
# looked up from then on; the end of a text begins with its last stretch that holds more than closing marks. Some rules
# want a space and no other white space: a text with any other is left to all rules.
_STRETCH = re.compile(r"[^ ]+")
_OTHER_SPACE = re.compile(r"[^\S ]")
_END_REVERSED = re.compile(r"""[\s\])}>"'»”’]*+\S*+""")
_LONGEST_KEPT = 40


def _is_plain(stretch: str) -> bool:
    """Whether for sure no rule touches it: of letters and digits alone they split "cannot", "gimme" and the like."""
    return stretch.isalnum() and not 5 <= len(stretch) <= 6


@lru_cache(maxsize=1 << 16)
def _inside(stretch: str) -> tuple[str, ...]:
    if _is_plain(stretch):
        return (stretch,)
    if stretch[-1] == "," and _is_plain(stretch[:-1]):
        return (stretch[:-1], ",")
    return tuple(by_all_rules(f"x {stretch} x")[1:-1])


@lru_cache(maxsize=1 << 14)
def _at_end(end: str) -> tuple[str, ...]:
    if end[-1:] == "." and _is_plain(end[:-1]):
        return (end[:-1], ".")
    return tuple(by_all_rules(f"x {end}")[1:])


def _end(text: str) -> int:
    """Where the end of a text begins, of which other rules hold."""
    found = _END_REVERSED.match(text[::-1])
    return len(text) - found.end() if found else 0


def _tokens_of(stretch: str) -> tuple[str, ...]:
    return (_inside if len(stretch) <= _LONGEST_KEPT else _inside.__wrapped__)(stretch)


def _tokens_at_end(end: str) -> tuple[str, ...]:
    return (_at_end if len(end) <= _LONGEST_KEPT else _at_end.__wrapped__)(end)


def _stretches(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Where each stretch of a text begins, and its tokens."""
    if _OTHER_SPACE.search(text):
        yield 0, tuple(by_all_rules(text))
        return
    last = _end(text)
    for match in _STRETCH.finditer(text, 0, last):
        yield match.start(), _tokens_of(match.group())
    yield last, _tokens_at_end(text[last:])


def words(text: str, kind: str = "word") -> list[str]:
    """The tokens of `tokenize_words` without their places: what training reads."""
    if kind != "word":
        return SIMPLE[kind].findall(text)
    if _OTHER_SPACE.search(text):
        return by_all_rules(text)
    last = _end(text)
    stretches = text[:last].split()
    look_up = _inside if max(map(len, stretches), default=0) <= _LONGEST_KEPT else _tokens_of
    return [*chain.from_iterable(map(look_up, stretches)), *_tokens_at_end(text[last:])]


def tokenize_words(text: str, kind: str = "word") -> list[tuple[int, int, str]]:
    """Word tokens as (start, end, token), in order, where `token == text[start:end]`; white space belongs to none.

    `kind` is "word" for NLTK's rules, or one of `SIMPLE`.
    """
    if kind != "word":
        return [(*match.span(), match.group()) for match in SIMPLE[kind].finditer(text)]
    spans = []
    for start, tokens in _stretches(text):
        for token in tokens:
            while text[start].isspace():  # only among the closing marks at the end, or where all rules ran
                start += 1
            spans.append((start, start + len(token), token))
            start += len(token)
    return spans
