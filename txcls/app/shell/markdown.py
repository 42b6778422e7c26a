"""Text and tables in Streamlit's Markdown."""

import re
from collections.abc import Iterable, Sequence

WORD_JOINER = "\u2060"
_ADDRESS = re.compile(r"(?i)https?(?=:)|www(?=\.)|(?=@)")
"""Places where web and mail addresses would become links, even in escaped text."""


def escape(text: str) -> str:
    """Escape text for Markdown; an invisible word joiner prevents addresses in it from becoming links."""
    unlinked = _ADDRESS.sub(lambda match: match[0] + WORD_JOINER, text)
    return "".join(f"\\{character}" if character in "\\`*_{}[]()<>#+-.!|~$:&" else character for character in unlinked)


def bullets(lines: Iterable[str]) -> str:
    """A Markdown list of lines of plain text; "" if there are none."""
    return "\n".join(f"- {escape(line)}" for line in lines)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> str:
    """A Markdown table; cells are Markdown. The columns `right` are right-aligned, like numbers."""
    rules = ("---:" if column in right else "---" for column in columns)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, rules, *rows))
