"""The errors that txcls raises; each message says what was found, what was expected and what to do next."""

import re
import reprlib
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_VALUE = 200
"""Most characters of a value (a label, a file name, a cell) that a message shows."""
LONGEST_MESSAGE = 2000
"""Most characters of a message."""

JOINERS = "\u200c\u200d"
"""Zero-width joiners, which Persian and emoji need; messages keep them, and spaces of other widths."""
_NOT_ASCII = re.compile(r"[^\x20-\x7e]")
_OUTLINE = reprlib.Repr()
_OUTLINE.maxlevel = 4


def shown(value: object, *, limit: int = LONGEST_VALUE) -> str:
    """A value for a message or a terminal: at most `limit` characters, invisible ones escaped."""
    if not isinstance(value, str):
        value = _OUTLINE.repr(value) if isinstance(value, list | tuple | dict | set) else str(value)
    escaped = _NOT_ASCII.sub(_escape, value[: limit + 1])
    return escaped if len(escaped) <= limit else escaped[: limit - 1] + "…"


def listed(names: Iterable[str], *, most: int = 20) -> str:
    """Names for a message, shortened if they are more than `most`, or long."""
    quoted = [repr(name if len(name) <= 40 else name[:40] + "…") for name in names]
    return ", ".join(quoted[:most]) + (f" and {len(quoted) - most} more" if len(quoted) > most else "")


def one_line(message: str, *, limit: int = LONGEST_MESSAGE) -> str:
    """A message as one line of at most `limit` characters, invisible ones escaped.

    A longer one is cut in the middle: it begins with the problem and ends with what to do.
    """
    if len(message) > 2 * limit:
        message = f"{message[:limit]} … {message[-limit:]}"
    line = _NOT_ASCII.sub(
        _escape, " ".join(part.strip(" ") for part in re.split(r"[\t\n\r]+", message) if part.strip(" "))
    )
    if len(line) > limit:
        end = min(300, limit // 3)
        line = f"{line[: limit - end - 3]} … {line[-end:]}"
    return line


def _escape(match: re.Match[str]) -> str:
    """A character as it is if a terminal shows it; else its escape: controls, direction marks, tags, surrogates, …"""
    character = match[0]
    if character.isprintable() or character in JOINERS or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode("ascii")


class TxclsError(Exception):
    """Base of all errors of txcls; the command line prints it as one line and exits with 2.

    Its text is safe to print, whatever file name, label or cell it quotes: see `one_line`.
    """

    def __str__(self) -> str:
        return one_line(super().__str__())


class ConfigError(TxclsError):
    """A setting is unknown, of the wrong type, out of range, or in conflict with another one."""


class DataError(TxclsError):
    """A data file is missing, in an unexpected format, or has nothing to learn from."""


class DownloadError(DataError):
    """A published data set could not be downloaded, or its checksum is wrong."""


class CheckpointError(TxclsError):
    """A checkpoint folder is missing, incomplete, damaged, or not a txcls checkpoint."""


class TrainingError(TxclsError):
    """Training cannot start or continue (loss is not a number, nothing to resume from, …)."""


class StoppedError(TxclsError):
    """Work was interrupted (Ctrl-C, SIGTERM); what was finished is kept and can be resumed."""


class LostProcessError(TrainingError):
    """Another process of a torchrun training run died or cannot be reached."""


class TraceError(TxclsError):
    """A trace named a tap that the model does not have, or recorded nothing."""


class UnknownNameError(TraceError, KeyError):
    """Nothing of that name was recorded; a KeyError too, as other mappings raise."""

    def __init__(self, what: str, name: object, known: Iterable[str]) -> None:
        names = list(known)
        near = get_close_matches(str(name), names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {listed(names) or 'none'}"
        super().__init__(f"{what} {shown(repr(name), limit=80)}; {hint}")

    def __str__(self) -> str:
        """The message itself; a KeyError alone would quote it."""
        return one_line(str(self.args[0]))
