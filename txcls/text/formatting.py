"""Format numbers and names for readers."""

import math
import re

UNUSUAL = "Unusual for this model: may be wrong"
"""The warning beside a prediction for a text that is unlike the training texts."""
_MARKUP = re.compile(
    r"[\\`*|~<\]]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)"
    r"|^[#=>]|^[-+](?=[\s-]|$)|(?<=^\d)[.)](?=\s|$)|(?<=^\d\d)[.)](?=\s|$)"  # at the start of a line
)


def class_title(name: str) -> str:
    """A class name for readers: `credit_limit_change` as "credit limit change"."""
    return name.replace("_", " ")


def head_name(layer: int, head: int) -> str:
    """The name of a head, with layer and head counted from 0: "head 1.4" is the fourth of the first layer."""
    return f"head {layer + 1}.{head + 1}"


def percentage(share: float, digits: int = 1) -> str:
    """A share from 0 to 1 as `93.1 %`, with `digits` decimal places and a no-break space."""
    return f"{share:.{digits}%}".replace("%", "\u00a0%")


def bounded_percentage(share: float) -> str:
    """Like `percentage`, but values that would round to 0 or 100 are written as `< 0.1 %` or `> 99.9 %`."""
    if 0.0 < share < 0.0005:
        return "<\u00a00.1\u00a0%"
    if 0.9995 <= share < 1.0:
        return ">\u00a099.9\u00a0%"
    return percentage(share)


def with_sign(value: float, digits: int = 1) -> str:
    """A number with its sign, a true minus sign if it is negative; without a sign if it rounds to zero."""
    formatted = f"{value:+.{digits}f}"
    return formatted.replace("-", "−") if float(formatted) else formatted[1:]


def range_with_signs(low: float, high: float) -> str:
    """The interval of a difference between shares, in percentage points: `−2.6 to 0.4`, or `−2.61 to −0.05`.

    Both ends have two decimals if one of them would otherwise be rounded to zero: the verdict depends on its sign.
    """
    ends = (100 * low, 100 * high)
    digits = 1 if all(round(end, 1) for end in ends) else 2
    return " to ".join(with_sign(end, digits) for end in ends)


def decimals(value: float, digits: int = 4) -> str:
    """A number with that many decimals and a true minus sign."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # + 0.0 turns -0.0 into 0.0


def points_number(lost: float, *, digits: int | None = None) -> str:
    """Lost accuracy in percentage points: "15", "−0.4"; from ten points on without decimals if `digits` is None."""
    return decimals(100 * lost, int(abs(round(100 * lost, 1)) < 9.95) if digits is None else digits)


def largest_margin(n: int) -> str:
    """Half the width of the widest Wilson interval (95 %) of a share of n rows, rounded up: `±1.4 points`."""
    return f"±{math.ceil(980 / math.sqrt(n + 3.84)) / 10:.1f} points"


def start_of(text: str, *, limit: int) -> str:
    """The text without surrounding blanks or, if it is longer, its first words and an ellipsis.

    It is cut within a word only if that word takes up half of the `limit` characters or more.
    """
    text = text.strip()
    if len(text) <= limit:
        return text
    words = text[: limit + 1].rsplit(maxsplit=1)[0]
    return f"{words if limit // 2 <= len(words) <= limit else text[:limit].rstrip()}…"


def as_markdown(text: str) -> str:
    """A class, title or file name as one line of Markdown, with markup and formulas escaped."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split())).replace("$", "&#36;")
