"""A lesson's Markdown as HTML (formulas as MathML, no raw HTML, nothing from the network), and the texts around it."""

import html
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import yaml
from latex2mathml.converter import convert
from markdown_it import MarkdownIt

FOLDER = Path(__file__).parent / "words"
MARKS = {"de": ".,", "es": ".,", "fr": "\u202f,"}
"""The marks between thousands and before decimals, in languages where they differ from English."""
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(?!\s)([^$\n]+?)(?<!\s)\$", re.DOTALL)
_PLACE = "\ue000{}\ue001"
_MATHML = "http://www.w3.org/1998/Math/MathML"
_ELEMENT = re.compile(
    r"math|menclose|mfrac|mi|mn|mo|mover|mpadded|mphantom|mroot|mrow|mspace|msqrt|mstyle|msub|msubsup|msup|mtable|mtd"
    r"|mtext|mtr|munder|munderover"
)
_LINK_OR_SCRIPT = re.compile(r"on|class$|id$|.*(href|src|style|link)", re.IGNORECASE)
"""Matches attributes that would add links, scripts or styles to a formula."""
ElementTree.register_namespace("", _MATHML)


def to_html(text: str) -> str:
    """Markdown as HTML: paragraphs, lists, emphasis, code, https links, and formulas between $ or $$."""
    formulas: list[str] = []

    def placeholder(match: re.Match[str]) -> str:
        formulas.append(_mathml((match[1] or match[2]).strip(), "inline" if match[1] is None else "block"))
        return _PLACE.format(len(formulas) - 1)

    rendered: str = _markdown_parser().render(
        _FORMULA.sub(placeholder, text.replace("\ue000", "").replace("\ue001", ""))
    )
    for number, formula in enumerate(formulas):
        rendered = rendered.replace(_PLACE.format(number), formula)
    return rendered.strip()


def to_inline_html(text: str) -> str:
    """`to_html` for a single line, without a paragraph around it."""
    rendered = to_html(text)
    is_paragraph = rendered.startswith("<p>") and rendered.count("<p>") == 1 and rendered.endswith("</p>")
    return rendered[3:-4] if is_paragraph else rendered


@cache
def _markdown_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False})
    parser.validateLink = lambda url: url.startswith("https://")  # type: ignore[method-assign]
    return parser.disable("image")


@cache
def _mathml(latex: str, display: str) -> str:
    # mypy has no types for latex2mathml, which raises its own errors for LaTeX it cannot parse.
    from latex2mathml import exceptions

    errors = tuple(
        value for value in vars(exceptions).values() if isinstance(value, type) and issubclass(value, Exception)
    )
    formula = None
    with suppress(ElementTree.ParseError, *errors):  # the result is not XML if \\text{…} contains <
        formula = ElementTree.fromstring(convert(latex, display=display))
    if formula is None or not all(map(_is_safe_mathml, formula.iter())):
        return f"<code>{html.escape(latex)}</code>"
    mathml = ElementTree.tostring(formula, encoding="unicode", short_empty_elements=False)
    return mathml.replace("\N{REVERSE SOLIDUS OPERATOR}", "\\")  # \setminus, which most browser fonts lack


def _is_safe_mathml(element: ElementTree.Element) -> bool:
    name = element.tag.removeprefix(f"{{{_MATHML}}}")
    return _ELEMENT.fullmatch(name) is not None and not any(map(_LINK_OR_SCRIPT.match, element.keys()))


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
