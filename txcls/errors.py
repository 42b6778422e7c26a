"""The errors that txcls raises; each message says what was given, what was expected and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches

from txcls.wording import listed, one_line, shown


def reason_of(error: BaseException) -> str:
    """What an exception says, in one line: the system's message, the first line of its text, or else its type."""
    text: str = getattr(error, "strerror", None) or str(error)
    return (text.splitlines() or [type(error).__name__])[0]


class TxclsError(Exception):
    """Base class of all errors of txcls; the command line prints an error as one line and exits with code 2.

    The message is safe to print even if it quotes a file name, label or cell: see `one_line`. `options` are those of
    the command line that would mend it, such as label_column="COLUMN" or resume=True, also if the message is a `Note`.
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

    def __init__(self, what: str, name: object, known: Iterable[str]) -> None:
        names = list(known)
        near = get_close_matches(str(name), names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {listed(names) or 'none'}"
        super().__init__(f"{what} {shown(repr(name), limit=80)}; {hint}")

    def __str__(self) -> str:
        """The message itself; a plain KeyError would quote it."""
        return one_line(str(self.args[0]))
