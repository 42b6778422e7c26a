"""Write numbers, messages and text from outside in readable form."""

import math
import re
import reprlib
import unicodedata
from collections.abc import Iterable

MAX_MESSAGE_LENGTH = 2000
"""Maximum length of a message, in characters."""
JOINERS = "\u200c\u200d"
"""Zero-width joiners, which Persian and emoji need; messages keep them, and spaces of any width."""
_NOT_ASCII = re.compile(r"[^\x20-\x7e]")
_LINE_BREAK = re.compile("\r?\n")
_OUTLINE = reprlib.Repr()
_OUTLINE.maxlevel = 4
_MARKUP = re.compile(
    r"[\\`*|~<\]]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)"
    r"|^[#=>]|^[-+](?=[\s-]|$)|(?<=^\d)[.)](?=\s|$)|(?<=^\d\d)[.)](?=\s|$)"  # at the start of a line
)


UNUSUAL = "Unusual for this model: may be wrong"
"""Said at a prediction for a text like few training texts."""


class Note(str):
    """A sentence for the user, with a code, and the options of `train` that act on it, such as merge_labels=True."""

    code: str
    options: dict[str, str | bool]

    def __new__(cls, text: str, code: str = "", /, **options: str | bool) -> "Note":
        note = super().__new__(cls, text)
        note.code, note.options = code, options
        return note


def class_title(name: str) -> str:
    """A class name for readers: `credit_limit_change` as "credit limit change"."""
    return name.replace("_", " ")


def head_name(layer: int, head: int) -> str:
    """The name of a head, with layer and head counted from 0: "head 1.4" is the fourth of the first layer."""
    return f"head {layer + 1}.{head + 1}"


def percentage(share: float, digits: int = 1) -> str:
    """A share from 0 to 1 as `93.1 %`, with that many decimal places and a no-break space."""
    return f"{share:.{digits}%}".replace("%", "\u00a0%")


def signed(value: float, digits: int = 1) -> str:
    """A number with its sign, a true minus sign if it is negative; without a sign if it rounds to zero."""
    formatted = f"{value:+.{digits}f}"
    return formatted.replace("-", "−") if float(formatted) else formatted[1:]


def signed_range(low: float, high: float) -> str:
    """An interval of a difference of shares in percentage points: `−2.6 to 0.4`, or `−2.61 to −0.05`.

    Both ends have two decimals if one of them would otherwise be rounded to zero: the verdict depends on its sign.
    """
    ends = (100 * low, 100 * high)
    digits = 1 if all(round(end, 1) for end in ends) else 2
    return " to ".join(signed(end, digits) for end in ends)


def decimals(value: float, digits: int = 4) -> str:
    """A number with that many decimals and a true minus sign."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # + 0.0 turns -0.0 into 0.0


def points_number(lost: float, *, digits: int | None = None) -> str:
    """An accuracy lost in percentage points: "15", "−0.4"; from ten points on without decimals if `digits` is None."""
    return decimals(100 * lost, int(abs(round(100 * lost, 1)) < 9.95) if digits is None else digits)


def largest_margin(n: int) -> str:
    """Half the width of the widest Wilson interval (95 %) of a share of n rows, rounded up: `±1.4 points`."""
    return f"±{math.ceil(980 / math.sqrt(n + 3.84)) / 10:.1f} points"


def bounded_percentage(share: float) -> str:
    """Like `percentage`, but values that would round to 0 or 100 are written as `< 0.1 %` or `> 99.9 %`."""
    if 0.0 < share < 0.0005:
        return "<\u00a00.1\u00a0%"
    if 0.9995 <= share < 1.0:
        return ">\u00a099.9\u00a0%"
    return percentage(share)


def shown(value: object, *, limit: int = 200) -> str:
    """A label, file name, cell or text for a message or terminal: cut to `limit`, with line breaks as ¶ and other
    invisible characters escaped."""
    if not isinstance(value, str):
        value = _OUTLINE.repr(value) if isinstance(value, list | tuple | dict | set) else str(value)
    escaped = _NOT_ASCII.sub(_escape, _LINE_BREAK.sub(" ¶ ", value[: limit + 1]))
    return escaped if len(escaped) <= limit else escaped[: limit - 1] + "…"


def quoted(value: object) -> str:
    """A name or value in quotation marks for a message, cut to 40 characters."""
    return f"'{shown(value, limit=40)}'"


def start_of(text: str, *, limit: int) -> str:
    """The text without surrounding blanks or, if it is longer, its first words and an ellipsis.

    It is cut within a word only if that word takes up half of the `limit` characters or more.
    """
    text = text.strip()
    if len(text) <= limit:
        return text
    words = text[: limit + 1].rsplit(maxsplit=1)[0]
    return f"{words if limit // 2 <= len(words) <= limit else text[:limit].rstrip()}…"


def listed(names: Iterable[str], *, limit: int = 20) -> str:
    """Quote and join names for a message: at most `limit` names, each cut after 40 characters."""
    shortened = [repr(name if len(name) <= 40 else name[:40] + "…") for name in names]
    more = f" and {len(shortened) - limit} more" if len(shortened) > limit else ""
    return ", ".join(shortened[:limit]) + more


def one_line(message: str, *, limit: int = MAX_MESSAGE_LENGTH) -> str:
    """A message as one line of at most `limit` characters, with invisible ones escaped.

    A longer message is cut in the middle, since it begins with the problem and ends with what to do.
    """
    if len(message) > 2 * limit:
        message = f"{message[:limit]} … {message[-limit:]}"
    parts = (part.strip(" ") for part in re.split(r"[\t\n\r]+", message))
    line = _NOT_ASCII.sub(_escape, " ".join(filter(None, parts)))
    if len(line) > limit:
        end = min(300, limit // 3)
        line = f"{line[: limit - end - 3]} … {line[-end:]}"
    return line


def _escape(match: re.Match[str]) -> str:
    """The character if it is safe to show; control characters, direction marks, tags and surrogates escaped."""
    character = match[0]
    if _is_shown(character) or character in JOINERS:
        return character
    return character.encode("unicode_escape").decode("ascii")


def printable(text: str) -> str:
    """The text with U+FFFD for each character that a picture cannot show; spaces of any width stay."""
    return "".join(character if _is_shown(character) else "\N{REPLACEMENT CHARACTER}" for character in text)


def _is_shown(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def as_markdown(text: str) -> str:
    """A class, title or file name as one line of Markdown, with markup and formulas escaped."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split())).replace("$", "&#36;")
