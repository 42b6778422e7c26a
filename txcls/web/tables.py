"""What reading a text depends on in Python and its libraries, as JSON: patterns, Unicode classes, entities.

A browser's own classes (`\\p{L}`, `toLowerCase`) follow its version of Unicode, not Python's, nor that of the
`tokenizers` library; and its `\\w`, `\\s` and `\\b` mean something else. So a page carries Python's regular expressions
as they are, which txcls/web/regex.js translates, and their classes as ranges of code points.
"""

import html
import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from html.entities import html5
from typing import Any

from txcls.text import cleaning, composition, treebank, words

END = 0x110000
"""One more than the last code point."""
SURROGATES = range(0xD800, 0xE000)
_SCRIPTS = (*range(0x20000), *range(0xE0000, 0xE1000))
"""Code points that may have case or be marks: the others are ideographs, private, or not in use."""
_DIGITS = string.digits + string.ascii_lowercase


def reading_tables(*, steps: Iterable[str], tokenizers: Iterable[str]) -> dict[str, Any]:
    """The tables for these cleaning steps and tokenizers, by the names of `txcls.config.TextConfig`."""
    steps, tokenizers = set(steps), set(tokenizers)
    classes = {"word": r"\w", "digit": r"\d", "space": r"\s"}
    tables: dict[str, Any] = {
        "classes": {name: _ranges(_runs(pattern)) for name, pattern in classes.items()},
        "letters": _letters(),
        "patterns": {
            "composed": _pattern(composition.pieces()),
            "entity": _pattern(cleaning.ENTITY),
            "tag": _pattern(cleaning.TAG),
            "url": _pattern(cleaning.URL),
            "word_apostrophe": _pattern(cleaning.WORD_APOSTROPHE),
            "punctuation": _pattern(cleaning.PUNCTUATION),
            "spaces": _pattern(cleaning.SPACES),
            **{name: _pattern(pattern) for name, pattern in words.SIMPLE.items()},
        },
    }
    if "html_entities" in steps:
        tables["entities"] = _entities()
    if "lowercase" in steps:
        tables["lower"] = _lower()
    if "punctuation" in steps:
        tables["classes"]["mark"] = _ranges(_where(lambda one: unicodedata.category(one)[0] == "M"))
    if "word" in tokenizers:
        tables["treebank"] = {
            "full_stop": _pattern(words.FULL_STOP),
            "starting_quotes": treebank.STARTING_QUOTES,
            "punctuation": treebank.PUNCTUATION,
            "parens_brackets": [treebank.PARENS_BRACKETS],
            "double_dashes": [treebank.DOUBLE_DASHES],
            "ending_quotes": treebank.ENDING_QUOTES,
            "contractions": [(pattern, r" \1 \2 ") for pattern in (*treebank.CONTRACTIONS2, *treebank.CONTRACTIONS3)],
        }
    if "bpe" in tokenizers:
        tables["byte_level"] = {name: _ranges(spans) for name, spans in _byte_level().items()}
    return tables


def _pattern(pattern: re.Pattern[str]) -> tuple[str, str]:
    """Source and flags: i for IGNORECASE, s for DOTALL, x for VERBOSE."""
    flags = {"i": re.IGNORECASE, "s": re.DOTALL, "x": re.VERBOSE}
    return pattern.pattern, "".join(letter for letter, flag in flags.items() if pattern.flags & flag)


@cache
def _everything() -> str:
    """All code points in their order."""
    return "".join(map(chr, range(END)))


@cache
def _runs(pattern: str) -> tuple[tuple[int, int], ...]:
    return tuple(match.span() for match in re.finditer(f"{pattern}+", _everything()))


def _where(holds: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """The ranges of characters of `_SCRIPTS` for which something holds."""
    start = end = -1
    for code in filter(lambda code: holds(chr(code)), _SCRIPTS):
        if code != end:
            if start >= 0:
                yield start, end
            start = code
        end = code + 1
    if start >= 0:
        yield start, end


def _ranges(spans: Iterable[tuple[int, int]]) -> str:
    """Ranges (start, end) as the gap before each and its length, in base 36."""
    numbers, at = [], 0
    for start, end in spans:
        numbers += [start - at, end - start]
        at = end
    return " ".join(map(_base36, numbers))


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits


@cache
def _letters() -> dict[str, str]:
    """What each letter from a to z matches where case is ignored."""
    return {letter: "".join(re.findall(letter, _everything(), re.IGNORECASE)) for letter in string.ascii_lowercase}


def _entities() -> dict[str, Any]:
    """HTML's named characters, and what `html.unescape` makes of numbers that name none."""
    odd = {}
    for number in [*range(0x20), *range(0x7F, 0xA0), *SURROGATES, *range(0xFDD0, 0xFDF0), *range(0xFFFE, END, 0x10000)]:
        for code in (number, number + 1) if number & 0xFFFF == 0xFFFE else (number,):
            if code not in SURROGATES and (found := html.unescape(f"&#{code};")) != chr(code):
                odd[code] = found
    return {"names": html5, "numbers": odd}


@cache
def _lower() -> dict[str, Any]:
    """Lower-case letters: runs of (first, step, how many, shift), longer ones, and the classes that final sigma needs.

    A capital sigma becomes a final one after a cased letter and before none, case-ignorable characters between left
    out. No function of Python tells these two classes, but how it lowers a sigma beside them does.
    """
    runs: list[list[int]] = []
    longer = {}
    for code in _SCRIPTS:
        character = chr(code)
        lower = character.lower()
        if lower == character:
            continue
        if len(lower) > 1:
            longer[character] = lower
            continue
        shift = ord(lower) - code
        last = runs[-1] if runs else None
        if last and last[3] == shift and last[2] == 1 and code - last[0] in (1, 2):
            last[1:3] = [code - last[0], 2]
        elif last and last[3] == shift and code == last[0] + last[1] * last[2]:
            last[2] += 1
        else:
            runs.append([code, 1, 1, shift])
    return {
        "runs": [number for run in runs for number in run],
        "longer": longer,
        "cased": _ranges(_where(_is_cased)),
        "ignorable": _ranges(_where(lambda one: f"a{one}Σ".lower().endswith("ς") and not _is_cased(one))),
    }


def _is_cased(character: str) -> bool:
    return f"{character}Σ".lower().endswith("ς")


@cache
def _byte_level() -> dict[str, list[tuple[int, int]]]:
    """Letters, numbers and white space as the `tokenizers` library has them, which splits words before byte pairs.

    It splits the string of all code points where their kind changes, and the kind of each piece shows in what its first
    character is joined to. A space, which is joined to what follows, is left out of that string.
    """
    from tokenizers import pre_tokenizers

    split = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str
    found: dict[str, list[tuple[int, int]]] = {"letter": [], "number": [], "space": [(32, 33)]}
    for first, last in ((0, 32), (33, SURROGATES.start), (SURROGATES.stop, END)):
        for _, (start, end) in split(_everything()[first:last]):
            character = chr(first + start)
            if len(split(f"a{character}b")) == 1:
                kind = "letter"
            elif len(split(f"1{character}2")) == 1:
                kind = "number"
            elif len(split(f"!{character}?")) > 1:
                kind = "space"
            else:
                continue
            found[kind].append((first + start, first + end))
    return {kind: sorted(spans) for kind, spans in found.items()}
