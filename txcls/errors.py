"""The errors txcls raises on purpose; every message says what came, what was wanted and what to do next."""


class TxclsError(Exception):
    """Base of every error that txcls raises on purpose; the command line prints it as one line and exits with 2."""


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


class TraceError(TxclsError):
    """A trace named a point that the model does not have, or recorded nothing."""
