"""HTML in texts: recognised, and reduced to what a reader sees."""

import re
from collections.abc import Sequence
from html.parser import HTMLParser

_MARKUP = re.compile(
    r"<!doctype html|</(?:html|body|div|p|span|table|td|a|b|i|ul|ol|li|font|h[1-6]|style|strong|em)\s*>|<br\s*/?>",
    re.IGNORECASE,
)
_HIDDEN = frozenset(("style", "script", "head", "title", "template"))
_LINES = frozenset(
    ("br", "p", "div", "tr", "li", "table", "ul", "ol", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote")
)
MIN_SHARE = 0.2
"""Minimum fraction of texts with HTML for it to be removed from all of them."""


def is_html(texts: Sequence[str]) -> bool:
    """Whether many of the texts are HTML rather than plain text."""
    return sum(_MARKUP.search(text) is not None for text in texts) >= MIN_SHARE * max(len(texts), 1)


def without_html(text: str) -> str:
    """The visible text: without tags, comments, style sheets and scripts, with characters instead of entities."""
    parser = _Visible()
    parser.feed(text)
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.parts).splitlines())
    return "\n".join(line for line in lines if line)


class _Visible(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in _HIDDEN:
            self.hidden.append(tag)
        elif tag == "body":  # an unclosed head ends here
            self.hidden.clear()
        self.parts.append("\n" if tag in _LINES else "\t" if tag == "td" else "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self.hidden:
            del self.hidden[self.hidden.index(tag) :]
        if tag in _LINES:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data)
