"""Text as Streamlit's Markdown."""


def plain(text: str) -> str:
    """Escape text for Markdown."""
    return "".join(f"\\{character}" if character in "\\`*_{}[]()<>#+-.!|~$:&" else character for character in text)
