"""The file with the state of an interrupted training run: written while training, read with `--resume`."""

from pathlib import Path
from typing import Any

import torch

from txcls.checkpoint.folders import reason
from txcls.config import TrainConfig
from txcls.data.files import replacing
from txcls.errors import TrainingError

STATE_VERSION = 4


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Atomically replace the file by this state (`Trainer.state_dict`).

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
            f"cannot save the training state to {path}: {reason(cause)}; free some space, or choose another folder "
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
