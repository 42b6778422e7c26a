"""The texts of a page in other languages: a YAML file for each, keyed by the English text."""

import base64
import html
import json
import re
import zlib
from functools import cache
from typing import Any

import yaml

from txcls.errors import CheckpointError
from txcls.web.join_scripts import HERE

WORDS_FOLDER = HERE / "words"
LANGUAGES = tuple(sorted(file.stem for file in WORDS_FOLDER.glob("*.yaml")))


@cache
def words_in_language(language: str) -> dict[str, str | dict[str, str]]:
    """The texts in a language by the English ones; a text with a number may have a form for each plural category."""
    words: dict[str, str | dict[str, str]] = yaml.safe_load((WORDS_FOLDER / f"{language}.yaml").read_text("utf-8"))
    return words


def page_languages(*sources: str, only: str = "") -> dict[str, Any]:
    """The texts that a page with these sources can show, in all languages or in one, for picture/language.js.

    Raises:
        CheckpointError: there is no such language.
    """
    if only not in ("", "en", *LANGUAGES):
        raise CheckpointError(f"got the language {only[:40]!r}; expected one of en, {', '.join(LANGUAGES)}")
    source = " ".join(re.sub("</?em>", "*", html.unescape(" ".join(sources))).split()).replace("\\u00a0", "\u00a0")
    words = {language: words_in_language(language) for language in LANGUAGES if only in ("", language)}
    texts = [text for text in dict.fromkeys(text for known in words.values() for text in known) if text in source]
    translated = {language: _packed([known[text] for text in texts]) for language, known in words.items()}
    return {"language": only, "languages": {"en": _packed(texts), **translated} if translated else {}}


def _packed(texts: list[Any]) -> str:
    content = json.dumps(texts, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")
