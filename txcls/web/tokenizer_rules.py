r"""Patterns and NLTK's rules as JSON for tokenisation in the browser, translated from Python's regular expressions.

The same syntax has different meanings in the two languages: in JavaScript, `\w` is ASCII only, `\s` includes U+FEFF,
and `$` does not match before a final newline. Patterns are therefore translated when a page is exported, for
`new RegExp(source, "gv")`, with character classes written as Unicode properties. NLTK uses the `regex` library, whose
classes follow Unicode Technical Standard 18.
"""

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from txcls.text import cleaning, words

PYTHON = {"w": r"\p{L}\p{N}_", "d": r"\p{Nd}", "s": r"\p{White_Space}\x1c-\x1f"}
"""The characters that `\\w`, `\\d` and `\\s` match in Python's `re`."""
UTS18 = {"w": r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d", "d": r"\p{Nd}", "s": r"\p{White_Space}"}
"""The characters that they match in the `regex` library."""
CASES = {"i": "Iiİı", "k": "Kk\u212a", "s": "Ssſ"}
"""Letters that match more than their lower and upper case in Python when case is ignored, and their matches."""

_BRACKETS = re.compile(r"\[(\^?)(\]?(?:\\.|[^\]\\])*)\]", re.DOTALL)
_CHARACTER = r"\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|\\.|[^\\]"
_IN_BRACKETS = re.compile(rf"({_CHARACTER})(?:-({_CHARACTER}))?", re.DOTALL)
_ITEM = re.compile(
    rf"{_BRACKETS.pattern}|\(\?#[^)]*\)|\((?:\?(?:[:=!]|<[=!]))?|[*+?]\+|\{{[\d,]+\}}|{_CHARACTER}", re.DOTALL
)
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


def to_javascript(pattern: Any) -> str:
    """Translate a compiled pattern of `re` or of the `regex` library to the source of a JavaScript pattern.

    Raises:
        ValueError: the pattern cannot be translated, for example because it is VERBOSE, has a possessive group, or has
            a range of letters and ignores case.
    """
    return _Translation(pattern).source()


def to_replacement(template: str) -> str:
    r"""Translate a template of `re.sub` (`\1`, `\g<0>`) for JavaScript's `String.replace`."""
    return re.sub(
        r"\\g<0>|\\(\d)|(\$)", lambda match: f"${match[1]}" if match[1] else "$$" if match[2] else "$&", template
    )


class _Translation:
    def __init__(self, pattern: Any) -> None:
        if pattern.flags & re.VERBOSE:
            raise ValueError(f"cannot translate a verbose pattern: {pattern.pattern}")
        self.python = pattern.pattern.removeprefix("(?i)")
        self.ignores_case = bool(pattern.flags & re.IGNORECASE)
        self.dot = "[^]" if pattern.flags & re.DOTALL else r"[^\n]"
        self.classes: Mapping[str, str] = PYTHON if isinstance(pattern, re.Pattern) else UTS18

    def source(self) -> str:
        items: list[str] = []
        for match in _ITEM.finditer(self.python):
            item = match[0]
            if item.startswith("(?#"):
                continue
            if re.fullmatch(r"[*+?]\+", item):  # possessive: in JavaScript, a look-ahead and a back-reference
                if items[-1] == ")":
                    raise ValueError(f"cannot translate a possessive group: {self.python}")
                name = f"possessive{len(items)}"
                items[-1] = rf"(?=(?<{name}>{items[-1]}{item[0]}))\k<{name}>"
            else:
                items.append(self._brackets(match) if item[0] == "[" else self._item(item, match))
        return "".join(items)

    def _item(self, item: str, match: re.Match[str]) -> str:
        if item == r"\b":
            return self._boundary(self.python[: match.start()], self.python[match.end() :])
        if item == ".":
            return self.dot
        if item == "$":
            return r"(?=\n?$)"
        if item[0] in "(^*+?|)" or (item[0] == "{" and len(item) > 1):
            return item
        is_set = self._is_class(item) or self._has_case(item)
        return f"[{self._member(item)}]" if is_set else self._member(item)

    def _brackets(self, match: re.Match[str]) -> str:
        content = ""
        for first, last in _IN_BRACKETS.findall(match[2]):
            if last and self.ignores_case and (first + last).isalpha():
                raise ValueError(f"cannot translate a range of letters in a case-insensitive pattern: {self.python}")
            content += f"{_literal(first)}-{_literal(last)}" if last else self._member(first)
        return f"[{match[1]}{content}]"

    def _member(self, item: str) -> str:
        """A character or character class, as written inside [ ]."""
        if self._is_class(item):
            members = self.classes[item[1].lower()]
            return members if item[1].islower() else f"[^{members}]"
        if self._has_case(item):
            return CASES.get(item.lower(), item.upper() + item.lower())
        return _literal(item)

    def _is_class(self, item: str) -> bool:
        return len(item) == 2 and item[0] == "\\" and item[1].lower() in self.classes

    def _has_case(self, item: str) -> bool:
        return self.ignores_case and item.isascii() and item.isalpha()

    def _boundary(self, before: str, after: str) -> str:
        """`\\b`, shorter next to a letter, since each Unicode class takes the browser a millisecond or two."""
        word = f"[{self.classes['w']}]"
        if re.match(r"(?:\((?:\?:)?)*[A-Za-z]", after):
            return f"(?<!{word})"
        if re.search(r"(?<!\\)[A-Za-z]\)*$", before):
            return f"(?!{word})"
        return f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"


def _literal(item: str) -> str:
    """A literal character, escaped if necessary."""
    if item.startswith((r"\u", r"\x")):
        return item
    if item[0] == "\\":
        if item[1].isalnum():
            raise ValueError(f"cannot translate {item}")
        item = item[1]
    return f"\\x{ord(item):02x}" if item.isascii() and not item.isalnum() and item not in " _" else item
