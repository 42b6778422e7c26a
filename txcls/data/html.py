"""Recognise HTML in texts, and extract the visible text; `txcls.text.cleaning` only removes tags."""

import re
from collections.abc import Collection, Sequence
from html.parser import HTMLParser

from txcls.config import DataConfig

_MARKUP_TAG = re.compile(
    r"<!doctype html|</(?:html|body|div|p|span|table|td|a|b|i|ul|ol|li|font|h[1-6]|style|strong|em)\s*>|<br\s*/?>",
    re.IGNORECASE,
)
_HIDDEN_ELEMENTS = frozenset(("style", "script", "head", "title", "template"))
_LINE_BREAKING_ELEMENTS = frozenset(
    ("br", "p", "div", "tr", "li", "table", "ul", "ol", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote")
)
MIN_SHARE_OF_HTML = 0.2
"""Minimum fraction of texts with HTML for it to be removed from all texts."""


def are_html(texts: Sequence[str]) -> bool:
    """Whether many of the texts are HTML rather than plain text."""
    return sum(_MARKUP_TAG.search(text) is not None for text in texts) >= MIN_SHARE_OF_HTML * max(len(texts), 1)


def reduce_html(text: str, config: DataConfig) -> str:
    """The text, or only its visible part if HTML was removed from the training texts."""
    return without_html(text) if config.strip_html else text


def html_note(config: DataConfig, cleaning: Collection[str]) -> str:
    """A note on how a classifier with these cleaning steps reads texts that are HTML."""
    if config.strip_html:
        return "Many of the texts are HTML; only their visible text is read, as in training."
    if "html_tags" in cleaning:
        return "Many of the texts are HTML: tags are left out, but style sheets and scripts are read as words."
    return "Many of the texts are HTML, and their tags are read as words."


def without_html(text: str) -> str:
    """The visible text: without tags, comments, style sheets and scripts, and with entities decoded."""
    parser = _VisibleText()
    parser.feed(text)
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.parts).splitlines())
    return "\n".join(line for line in lines if line)


class _VisibleText(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.open_hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in _HIDDEN_ELEMENTS:
            self.open_hidden.append(tag)
        elif tag == "body":  # an unclosed head ends here
            self.open_hidden.clear()
        self.parts.append("\n" if tag in _LINE_BREAKING_ELEMENTS else "\t" if tag == "td" else "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open_hidden:
            del self.open_hidden[self.open_hidden.index(tag) :]
        if tag in _LINE_BREAKING_ELEMENTS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.open_hidden:
            self.parts.append(data)
