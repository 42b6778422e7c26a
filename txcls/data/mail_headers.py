"""Recognise e-mail headers at the beginning of texts, and remove them."""

import re
from collections.abc import Sequence
from itertools import takewhile

_HEADER = re.compile(
    r"(?:from|to|b?cc|subject|date|sent|received|reply-to|message-id|lines|organization): ", re.IGNORECASE
)
_FIELD = re.compile(r"[A-Za-z][\w.-]*:|[ \t]")
"""Any header, or the continuation of one."""
_SUBJECT = re.compile(r"subject:\s*", re.IGNORECASE)
MIN_SHARE_WITH_HEADERS = 0.2
"""Minimum fraction of texts that begin with e-mail headers for a note."""


def share_with_headers(texts: Sequence[str]) -> float:
    """The fraction of the texts that begin with e-mail headers."""
    return sum(map(_begins_with_headers, texts)) / max(len(texts), 1)


def without_headers(text: str) -> str:
    """The text without e-mail headers at its beginning, but with the subject.

    If the headers end at an empty line, headers of any name are removed, otherwise only common ones.
    """
    if not _begins_with_headers(text):
        return text
    lines = text.lstrip().splitlines()
    headers = list(takewhile(str.strip, lines))
    if len(headers) == len(lines) or not all(map(_FIELD.match, headers)):
        headers = list(takewhile(_HEADER.match, headers))
    subjects = [_SUBJECT.sub("", line) for line in headers if _SUBJECT.match(line)]
    return "\n".join((*subjects, *lines[len(headers) :])).strip()


def _begins_with_headers(text: str) -> bool:
    return sum(_HEADER.match(line) is not None for line in text.lstrip()[:2000].splitlines()[:6]) >= 2
