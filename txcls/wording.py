"""How numbers, and texts from outside, are written wherever people read them."""

import re

_MARKUP = re.compile(
    r"[\\`*|~<\]]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)"
    r"|^[#=>]|^[-+](?=[\s-]|$)|(?<=^\d)[.)](?=\s|$)|(?<=^\d\d)[.)](?=\s|$)"  # at the start of a line
)


def percentage(share: float, digits: int = 1) -> str:
    """A share from 0 to 1 as `93.1 %`, with that many digits after the point."""
    return f"{share:.{digits}%}".replace("%", " %")


def bounded_percentage(share: float) -> str:
    """The same, but what would round to 0 or 100 is written as `< 0.1 %` or `> 99.9 %`."""
    if 0.0 < share < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= share < 1.0:
        return "> 99.9 %"
    return percentage(share)


def as_markdown(text: str) -> str:
    """A class, title or file name as one line of Markdown in which nothing is markup or a formula."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split())).replace("$", "&#36;")
