"""Assemble pages: join modules and style sheets, fill templates, add the texts in other languages."""

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from txcls import __version__
from txcls.config import places
from txcls.errors import CheckpointError
from txcls.figures import colours

HERE = Path(__file__).resolve().parent
WORDS_FOLDER = HERE / "words"
LANGUAGES = tuple(sorted(file.stem for file in WORDS_FOLDER.glob("*.yaml")))
"""The languages of pages besides English: a YAML file for each, keyed by the English text."""
GENERATOR = '<meta name="generator" content="txcls '
"""The mark of an exported page, which may be replaced."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_COMMENT = re.compile(r"^ *(/\*\*((?!\*/)[\s\S])*\*/|//[^\n]*)\n", re.MULTILINE)
_IMPORT = re.compile(r'^import \{[^}]*\} from "([./\w]+)\.js";\n', re.MULTILINE)


def script(*modules: str) -> str:
    """The named modules, such as "engine/model", and all modules that they import, joined into one.

    Each module appears once, after its imports and without import statements; top-level names must be unique.
    """
    joined: dict[Path, str] = {}
    for name in modules:
        _join(HERE / name, joined)
    return "\n".join(joined.values())


def without_comments(source: str) -> str:
    """A script without comments on separate lines, which are a fifth of it."""
    return _COMMENT.sub("", source)


def style(*sheets: str) -> str:
    """The named style sheets, such as "page/page", joined in this order."""
    return "\n".join(_source_of(HERE / f"{name}.css") for name in sheets)


def _join(module: Path, joined: dict[Path, str]) -> None:
    if module in joined:
        return
    source = _source_of(module.with_suffix(".js"))
    for imported in _IMPORT.findall(source):
        _join((module.parent / imported).resolve(), joined)
    joined[module] = re.sub(r"^export ", "", _IMPORT.sub("", source), flags=re.MULTILINE)


@cache
def _source_of(file: Path) -> str:
    if file == HERE / "picture" / "palette.js":
        return colours.javascript()
    if file == HERE / "engine" / "implemented.js":
        return places.javascript()
    return file.read_text(encoding="utf-8")


def fill_page(
    template: str, *, code: str, sheets: Sequence[str], sources: Mapping[str, str], values: Mapping[str, str]
) -> bytes:
    """A page from a template of this folder, with its {{NAMES}} filled in.

    Its content security policy allows only what the page contains, and the given `sources` (keyed by directive).
    """
    styles = colours.css() + style(*sheets)
    policy = {
        "default-src": "'none'",
        "script-src": _hash(code) + (" 'wasm-unsafe-eval'" if "WebAssembly" in code else ""),  # the engine's kernel.wat
        "style-src": _hash(styles),
        **sources,
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    filled = {
        "GENERATOR": f'{GENERATOR}{__version__}">',
        "POLICY": html.escape("; ".join(f"{name} {value}" for name, value in policy.items()), quote=True),
        "STYLE": styles,
        "SCRIPT": code,
        **values,
    }
    return fill_template(template, filled)


def fill_template(template: str, values: Mapping[str, str]) -> bytes:
    """A file of this folder with its {{NAMES}} filled in."""
    text = (HERE / template).read_text(encoding="utf-8")
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda match: values[match[1]], text).encode("utf-8")


def _hash(inline: str) -> str:
    """The hash of an inline script or style sheet as a source in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'"


def page_json(value: Any) -> bytes:
    """JSON for a <script> element, with every < and lone surrogate escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode("utf-8")


@cache
def words_in_language(language: str) -> dict[str, str | dict[str, str]]:
    """The texts in a language, keyed by English text; a text with a number may have a form for each plural category."""
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
