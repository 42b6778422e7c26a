"""The errors that txcls raises, and how messages quote text from outside.

Each message says what was given, what was expected and what to do.
"""

import re
import reprlib
import unicodedata
from collections.abc import Collection, Iterable
from difflib import get_close_matches

MAX_MESSAGE_LENGTH = 2000
"""Maximum length of a message, in characters."""
JOINERS = "\u200c\u200d"
"""Zero-width joiners, which Persian and emoji need; messages keep them, and spaces of any width."""
_NOT_ASCII = re.compile(r"[^\x20-\x7e]")
_LINE_BREAK = re.compile("\r?\n")
_OUTLINE = reprlib.Repr()
_OUTLINE.maxlevel = 4


class Note(str):
    """A sentence for the user, with a code ("detail": for --verbose), a `brief` form, and `train` options to try."""

    code: str
    brief: str
    options: dict[str, str | bool]

    def __new__(cls, text: str, code: str = "", /, brief: str = "", **options: str | bool) -> "Note":
        note = super().__new__(cls, text)
        note.code, note.brief, note.options = code, brief or text, options
        return note


def sanitize(value: object, *, limit: int = 200) -> str:
    """A label, file name, cell or text for a message or terminal: cut to `limit`, with line breaks as ¶ and other
    invisible characters escaped."""
    if not isinstance(value, str):
        value = _OUTLINE.repr(value) if isinstance(value, list | tuple | dict | set) else str(value)
    escaped = _NOT_ASCII.sub(_escape, _LINE_BREAK.sub(" ¶ ", value[: limit + 1]))
    return escaped if len(escaped) <= limit else escaped[: limit - 1] + "…"


def quote(value: object) -> str:
    """A name or value in quotation marks for a message, cut to 40 characters."""
    return f"'{sanitize(value, limit=40)}'"


def list_names(names: Iterable[str], *, limit: int = 20) -> str:
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


def make_printable(text: str) -> str:
    """The text with U+FFFD for each character that a picture cannot show; spaces of any width stay."""
    return "".join(character if _is_shown(character) else "\N{REPLACEMENT CHARACTER}" for character in text)


def _is_shown(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def reason_of(error: BaseException) -> str:
    """What an exception says, in one line: the system's message, the first line of its text, or else its type."""
    text: str = getattr(error, "strerror", None) or str(error)
    return (text.splitlines() or [type(error).__name__])[0]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """A question with the one to three known names that are spelled like a misspelled one; "" if there are none."""
    near = get_close_matches(str(name), list(known), n=3)
    return f"did you mean {' or '.join(near)}?" if near else ""


class TxclsError(Exception):
    """Base class of all errors of txcls; the command line prints an error as one line and exits with code 2.

    The message is safe to print even if it quotes a file name, label or cell: see `one_line`. `options` are
    command-line options that would solve the problem, such as label_column="COLUMN" or resume=True.
    """

    def __init__(self, message: str = "", **options: str | bool) -> None:
        super().__init__(message)
        self.options = {**getattr(message, "options", {}), **options}

    def __str__(self) -> str:
        return one_line(super().__str__())


class ConfigError(TxclsError):
    """A setting is unknown, of the wrong type, out of range, or in conflict with another setting."""


class DataError(TxclsError):
    """A data file is missing, in an unexpected format, or without usable rows."""


class DownloadError(DataError):
    """A published data set could not be downloaded, or has a wrong checksum."""


class CheckpointError(TxclsError):
    """A checkpoint folder is missing, incomplete, damaged, or not a txcls checkpoint."""


class TrainingError(TxclsError):
    """Training cannot start or continue, for example because the loss is not finite."""


class StoppedError(TxclsError):
    """Work was interrupted by Ctrl-C or SIGTERM; finished parts are saved, and the work can be resumed."""


class TraceError(TxclsError):
    """A trace is not possible, for example because a tap is unknown or the text has no words."""


class UnknownNameError(TraceError, KeyError):
    """A trace has no tensor with this name; also a KeyError, as in other mappings."""

    def __init__(self, what: str, name: object, known: Collection[str]) -> None:
        hint = did_you_mean(name, known) or f"there are {list_names(known) or 'none'}"
        super().__init__(f"{what} {sanitize(repr(name), limit=80)}; {hint}")

    def __str__(self) -> str:
        """The message itself; a plain KeyError would quote it."""
        return one_line(str(self.args[0]))
