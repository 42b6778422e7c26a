"""Markdown with formulas as HTML: no raw HTML from the author, formulas as MathML, nothing loaded from the network."""

import html
import re
from contextlib import suppress
from functools import cache
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown_it import MarkdownIt

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

    rendered: str = _markdown().render(_FORMULA.sub(placeholder, text.replace("\ue000", "").replace("\ue001", "")))
    for number, formula in enumerate(formulas):
        rendered = rendered.replace(_PLACE.format(number), formula)
    return rendered.strip()


def inline(text: str) -> str:
    """`to_html` for a single line, without a paragraph around it."""
    rendered = to_html(text)
    is_paragraph = rendered.startswith("<p>") and rendered.count("<p>") == 1 and rendered.endswith("</p>")
    return rendered[3:-4] if is_paragraph else rendered


@cache
def _markdown() -> MarkdownIt:
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
