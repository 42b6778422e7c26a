"""The tokenizer tables of a page: Python's patterns in JavaScript, and NLTK's rules."""

import re

import pytest

from txcls.web.patterns import to_javascript, to_replacement
from txcls.web.tables import reading_tables


@pytest.mark.parametrize(
    "python, javascript",
    [
        (re.compile(r"(?i)ki[^\w-]"), "[Kk\u212a][Iiİı]" r"[^\p{L}\p{N}_\x2d]"),
        (re.compile(r"a.$"), r"a[^\n](?=\n?$)"),
        (re.compile("x.", re.DOTALL), "x[^]"),
        (re.compile(r"\"[a-f]*+(?#note)"), r"\x22(?=(?<possessive2>[a-f]*))\k<possessive2>"),
    ],
)
def test_patterns_are_translated_to_javascript(python: re.Pattern[str], javascript: str) -> None:
    assert to_javascript(python) == javascript


@pytest.mark.parametrize("pattern, flags", [("a b", re.VERBOSE), ("[a-z]", re.IGNORECASE), ("(?:ab)*+", 0)])
def test_untranslatable_patterns_are_refused(pattern: str, flags: int) -> None:
    with pytest.raises(ValueError, match="cannot translate"):
        to_javascript(re.compile(pattern, flags))


def test_replacements_are_translated_to_javascript() -> None:
    assert to_replacement(r"\1 $ \g<0>") == "$1 $$ $&"


def test_only_a_classifier_of_words_carries_nltks_rules() -> None:
    assert "words" not in reading_tables(tokenizers=["bpe"])
    rules = reading_tables(tokenizers=["word"])["words"]
    assert rules["source"].startswith("NLTK 3.") and len(rules["splits"]) > 10 and len(rules["endings"]) > 10
