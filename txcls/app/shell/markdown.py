"""Text as Streamlit's Markdown."""

import re

WORD_JOINER = "\u2060"
_ADDRESS = re.compile(r"(?i)https?(?=:)|www(?=\.)|(?=@)")
"""Where web and mail addresses are recognised, also in escaped text."""


def plain(text: str) -> str:
    """Escape text for Markdown. Addresses in it do not become links: an invisible word joiner keeps them from that."""
    apart = _ADDRESS.sub(lambda found: found[0] + WORD_JOINER, text)
    return "".join(f"\\{character}" if character in "\\`*_{}[]()<>#+-.!|~$:&" else character for character in apart)
