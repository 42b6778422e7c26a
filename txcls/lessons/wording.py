"""The texts around a lesson in the app, on worksheets and in exported pages, in the lesson's language."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

FOLDER = Path(__file__).parent / "words"
MARKS = {"de": ".,", "es": ".,", "fr": "\u202f,"}
"""The marks between thousands and before decimals, in languages where they are not those of English."""


def words_in(language: str) -> Mapping[str, str]:
    """The texts in a language, by key; in English if there is no file for that language."""
    return _words(language.partition("-")[0])


def in_notation(number: str, language: str) -> str:
    """A number as Python formats it, 1,234.5, in the notation of a language: 1.234,5 in German."""
    return number.translate(str.maketrans(",.", MARKS.get(language.partition("-")[0], ",.")))


@cache
def _words(language: str) -> Mapping[str, str]:
    file = FOLDER / f"{language}.yaml"
    english: dict[str, str] = yaml.safe_load((FOLDER / "en.yaml").read_text(encoding="utf-8"))
    if not file.is_file():
        return english
    translated: dict[str, str] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return english | translated
