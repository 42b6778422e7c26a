"""The folder that a training run writes to: one run at a time, with the saved state in a folder next to it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import ParamSpec

from filelock import FileLock, Timeout

from txcls.checkpoint.checkpoint import Checkpoint, refuse_other_files, save_checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.errors import TrainingError
from txcls.training.distributed import rank

Run = ParamSpec("Run")


def state_file(out: Path) -> Path:
    """The file with the saved state of a run that writes to `out`, in the folder `OUT.training` next to it."""
    return out.with_name(out.name + ".training") / "state.pt"


def check_writable(out: Path) -> None:
    """Fail before training instead of after it if the checkpoint cannot be written.

    Raises:
        TrainingError, CheckpointError: it cannot be written.
    """
    try:
        if out.exists() and not out.is_dir():
            raise TrainingError(f"{out} is a file; choose another folder with --out")
        refuse_other_files(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        probe = out.parent / f".{out.name}.saving-{'0' * 16}"  # the longest name that saving uses
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise TrainingError(
            f"cannot write to {out.parent}: {error.strerror}; choose another folder with --out"
        ) from None


@contextmanager
def _only_run(out: Path) -> Iterator[None]:
    """Inside the block, no other run writes to `out`; TrainingError if one does now."""
    file = state_file(out).with_name("lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(file, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise TrainingError(
            f"another training run is writing {out}; wait for it, or choose another folder with --out DIR"
        ) from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        lock.release()
        with suppress(OSError):  # it holds the saved state
            file.parent.rmdir()


def one_run_per_folder(run: Callable[Run, Checkpoint]) -> Callable[Run, Checkpoint]:
    """Decorate `run(out=…, resume=…, overwrite=…)` to allow one run per folder, and not to lose saved states.

    Raises:
        TrainingError: another run is writing to that folder, or an interrupted run left its state there and neither
            `resume` nor `overwrite` is set.
    """

    @wraps(run)
    def guarded(*args: Run.args, **kwargs: Run.kwargs) -> Checkpoint:
        out = kwargs.get("out")
        if not isinstance(out, Path) or rank():  # of several processes, the first one writes
            return run(*args, **kwargs)
        check_writable(out)
        with _only_run(out):
            refuse_saved_state(out, resume=bool(kwargs.get("resume")), overwrite=bool(kwargs.get("overwrite")))
            return run(*args, **kwargs)

    return guarded


def is_interrupted(out: Path) -> bool:
    """Whether an interrupted run left a state to resume from."""
    return state_file(out).is_file()


def folder_to_resume(default: Path) -> Path:
    """The checkpoint folder of the run to resume if the user named none.

    It is `default` or, if no run was interrupted there, that of the only interrupted run next to it or in the current
    folder.
    """
    if state_file(default).parent.exists():
        return default
    states = (state for folder in (default.parent, Path()) for state in folder.glob("*.training/state.pt"))
    found = {state.resolve(): state.parent for state in states}
    folders = [folder.with_name(folder.name.removesuffix(".training")) for folder in found.values()]
    return folders[0] if len(folders) == 1 else default


def refuse_existing(
    out: Path, *, overwrite: bool, advice: str = "choose another folder with --out DIR, or replace it with --overwrite"
) -> None:
    """Raise TrainingError if the checkpoint folder exists, unless `overwrite` is set."""
    if out.exists() and not overwrite:
        raise TrainingError(f"{out} already exists; {advice}")


def refuse_saved_state(out: Path, *, resume: bool, overwrite: bool) -> None:
    """Raise TrainingError if an interrupted run left its state, unless `resume` or `overwrite` is set."""
    state = state_file(out)
    if is_interrupted(out) and not resume and not overwrite:
        raise TrainingError(
            f"{state} holds the state of an interrupted run: continue it with --resume, discard it with "
            "--overwrite, or choose another folder with --out DIR",
            resume=True,
        )


def save_finished(checkpoint: Checkpoint) -> Checkpoint:
    """Save the checkpoint, if it has a folder, and remove the run's state."""
    if checkpoint.path is None:
        return checkpoint
    saved = load_checkpoint(save_checkpoint(checkpoint))
    shutil.rmtree(state_file(checkpoint.path).parent, ignore_errors=True)
    return saved
