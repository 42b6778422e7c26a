"""The errors that txcls raises; each message says what was given, what was expected and what to do next."""

from collections.abc import Iterable
from difflib import get_close_matches

from txcls.wording import listed, one_line, shown


class TxclsError(Exception):
    """Base class of all errors of txcls; the command line prints it as one line and exits with code 2.

    Its text is safe to print even if it quotes a file name, label or cell: see `one_line`.
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
    """Training cannot start or continue (the loss is not finite, nothing to resume from, …)."""


class StoppedError(TxclsError):
    """Work was interrupted (Ctrl-C, SIGTERM); finished parts are kept, and the work can be resumed."""


class LostProcessError(TrainingError):
    """Another process of a torchrun run died or cannot be reached."""


class TraceError(TxclsError):
    """A trace is not possible: an unknown tap, a text without words, nothing recorded, …."""


class UnknownNameError(TraceError, KeyError):
    """Nothing was recorded under that name; also a KeyError, as for any other mapping."""

    def __init__(self, what: str, name: object, known: Iterable[str]) -> None:
        names = list(known)
        near = get_close_matches(str(name), names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {listed(names) or 'none'}"
        super().__init__(f"{what} {shown(repr(name), limit=80)}; {hint}")

    def __str__(self) -> str:
        """The message itself; a plain KeyError would quote it."""
        return one_line(str(self.args[0]))
