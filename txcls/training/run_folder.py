"""The folder that a training run writes to: one run at a time, with its saved state in a folder next to it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import torch
from filelock import FileLock, Timeout

from txcls.checkpoint.checkpoint import Checkpoint, refuse_other_checkpoint_files, save_checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.config import TrainConfig
from txcls.data.files import replacing
from txcls.errors import TrainingError, reason_of
from txcls.training.distributed import rank

Run = ParamSpec("Run")


def state_file(out: Path) -> Path:
    """The file with the saved state of a run that writes to `out`, in the folder `OUT.training` next to it."""
    return out.with_name(out.name + ".training") / "state.pt"


def check_writable(out: Path) -> None:
    """Check, before training rather than after it, that the checkpoint can be written.

    Raises:
        TrainingError, CheckpointError: it cannot be written.
    """
    try:
        if out.exists() and not out.is_dir():
            raise TrainingError(f"{out} is a file; choose another folder with --out")
        refuse_other_checkpoint_files(out)
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
    """Decorate `run(out=…, resume=…, overwrite=…)` so that one run writes to a folder and no saved state is lost.

    Raises:
        TrainingError: another run is writing to that folder, or an interrupted run left its state there and neither
            `resume` nor `overwrite` is set.
    """

    @wraps(run)
    def guarded(*args: Run.args, **kwargs: Run.kwargs) -> Checkpoint:
        out = kwargs.get("out")
        if not isinstance(out, Path) or rank():  # with several processes, only the first writes
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


STATE_VERSION = 5


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Atomically replace the file with this state (`Trainer.state_dict`).

    Raises:
        TrainingError: it cannot be written; the file is unchanged.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, temporary=path.with_suffix(".tmp")) as temporary, temporary.open("wb") as file:
            torch.save({"version": STATE_VERSION, **state}, file)  # given a path, torch.save would hide why it failed
    except (OSError, RuntimeError) as error:  # torch reports a full disk as RuntimeError
        cause = error if isinstance(error, OSError) else error.__context__ or error
        raise TrainingError(
            f"cannot save the training state to {path}: {reason_of(cause)}; free some space, or choose another folder "
            f"with --out. The state saved before is unchanged; continue from it with --resume",
            resume=True,
        ) from error


def read_state(path: Path | None, identity: dict[str, Any]) -> dict[str, Any]:
    """Read a saved state, and check that it is from a run with the same `identity` (`Trainer.identity`).

    Raises:
        TrainingError: there is no such file, it is damaged, or it is from a different run.
    """
    if path is None or not path.is_file():
        raise TrainingError(f"nothing to resume: there is no {path}; start without --resume")
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises many exception types for a damaged file
        raise TrainingError(f"{path} is damaged ({error}); start without --resume") from error
    for part, saved, expected in (
        ("format", state.get("version"), STATE_VERSION),
        ("training settings", _settings(state.get("config")), _settings(identity["config"])),
        ("model shapes", state.get("shapes"), identity["shapes"]),
        ("row counts", tuple(state.get("rows", ())), identity["rows"]),
    ):
        if saved != expected:
            raise TrainingError(
                f"{path} is from a run with different {part} and cannot be resumed; repeat that run's settings, or "
                "start without --resume"
            )
    return state


def _settings(saved: object) -> TrainConfig | None:
    """The settings of a saved state, with defaults for settings added since then; None if they are damaged."""
    try:
        return TrainConfig.model_validate_json(str(saved))
    except ValueError:
        return None
