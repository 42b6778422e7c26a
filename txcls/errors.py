"""The errors txcls raises on purpose; every message says what came, what was wanted and what to do next."""

import re
import reprlib

LONGEST_VALUE = 200
"""Characters of a value (a label, a file's name, a cell) that are shown in a message."""
LONGEST_MESSAGE = 2000
"""Characters of a whole message."""

# Control characters, which move a terminal's cursor or colour its text; line and paragraph separators; marks that turn
# the direction of what follows; tags and the like, which are invisible; halves of surrogate pairs. The two joiners
# (U+200C, U+200D), which emoji and Persian need, are harmless.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_OUTLINE = reprlib.Repr()
_OUTLINE.maxlevel = 4


def shown(value: object, *, limit: int = LONGEST_VALUE) -> str:
    """A value as a message or a terminal may show it: at most `limit` characters, unseen ones as their escapes."""
    if not isinstance(value, str):
        value = _OUTLINE.repr(value) if isinstance(value, list | tuple | dict | set) else str(value)
    escaped = _UNSEEN.sub(_escape, value[: limit + 1])
    return escaped if len(escaped) <= limit else escaped[: limit - 1] + "…"


def one_line(message: str) -> str:
    """A message as one line without unseen characters, of LONGEST_MESSAGE characters at most; its end is kept.

    What came stands at the beginning and what to do at the end, so it is cut between the two.
    """
    if len(message) > 2 * LONGEST_MESSAGE:
        message = f"{message[:LONGEST_MESSAGE]} … {message[-LONGEST_MESSAGE:]}"
    line = _UNSEEN.sub(
        _escape, " ".join(part.strip(" ") for part in re.split(r"[\t\n\r]+", message) if part.strip(" "))
    )
    if len(line) > LONGEST_MESSAGE:
        line = f"{line[: LONGEST_MESSAGE - 303]} … {line[-300:]}"
    return line


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


class TxclsError(Exception):
    """Base of every error that txcls raises on purpose; the command line prints it as one line and exits with 2.

    Its text is safe to show whatever file name, label or cell stands in it: see `one_line`.
    """

    def __str__(self) -> str:
        return one_line(super().__str__())


class ConfigError(TxclsError):
    """A setting is unknown, of the wrong type, out of range, or at odds with another one."""


class DataError(TxclsError):
    """A data file is missing, in another format than expected, or holds nothing to learn from."""


class DownloadError(DataError):
    """A published data set could not be fetched, or what arrived is not what was published."""


class CheckpointError(TxclsError):
    """A checkpoint folder is missing, incomplete, damaged, or written by something else."""


class TrainingError(TxclsError):
    """Training cannot start or go on (not-a-number loss, nothing to resume from, …)."""


class StoppedError(TxclsError):
    """Work was stopped on purpose (Ctrl-C, SIGTERM); what was done so far is kept, and can be gone on from."""


class LostProcessError(TrainingError):
    """Another process of a torchrun training run died or cannot be reached."""


class TraceError(TxclsError):
    """A trace named a point that the model does not have, or recorded nothing."""
