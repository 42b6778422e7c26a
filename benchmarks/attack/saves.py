"""Saves a checkpoint over and over, killed one step later each time: `python -m benchmarks.attack.saves FOLDER`.

A step is anything that Python does to files: its audit hook counts openings, renamings, removals. After each kill the
folder is read as the next start would read it. A process of its own, since it forks. Prints rows as JSON.
"""

import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from tests.conftest import make_checkpoint
from txcls.checkpoint.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from txcls.checkpoint.listing import checkpoint_names
from txcls.errors import TxclsError

STEPS = ("open", "os.", "shutil.", "tempfile.", "fcntl.")
MOST_STEPS = 2000


def with_mark(checkpoint: Checkpoint, mark: float) -> Checkpoint:
    """The same checkpoint, told apart by what its metrics and its weights say."""
    state = {
        name: torch.full_like(value, mark) if value.is_floating_point() else value
        for name, value in checkpoint.model.state_dict().items()
    }
    checkpoint.model.load_state_dict(state)
    return replace(checkpoint, metrics={**checkpoint.metrics, "mark": mark})


def mark_of(name: str | Path) -> float:
    """Which one a folder holds; AssertionError where files of two saves stand side by side."""
    loaded = load_checkpoint(name)
    mark: float = loaded.metrics["mark"]
    weights = next(iter(loaded.model.state_dict().values()))
    assert float(weights.flatten()[0]) == mark, "weights of one save beside metrics of another"
    return mark


def kill_at(step: int) -> None:
    """End this process, as `kill -9` does, before its so many-th step."""
    left = step

    def count(event: str, _: tuple[Any, ...]) -> None:
        nonlocal left
        if event.startswith(STEPS) and event != "os.kill":
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def saved_until_killed(checkpoint: Checkpoint, step: int) -> bool:
    """Save in a child that is killed before that step; whether it got to its end."""
    child = os.fork()
    if not child:
        kill_at(step)
        save_checkpoint(checkpoint)
        os.kill(os.getpid(), signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (-signal.SIGKILL, -signal.SIGTERM), f"the save ended by itself with {code}"
    return code == -signal.SIGTERM


def kill_everywhere(root: Path, base: Checkpoint) -> list[dict[str, Any]]:
    """Kill a save that replaces a checkpoint, and one that makes a new one, at every step."""
    rows = []
    for exists in (True, False):
        lost: list[str] = []
        mixed: list[str] = []
        offered: list[str] = []
        left: list[str] = []
        tried = 0
        for step in range(MOST_STEPS):
            target = replace(base, path=root / f"{'model' if exists else 'fresh'}{step}")
            if exists:
                save_checkpoint(with_mark(target, 1.0))
            done = saved_until_killed(with_mark(target, 2.0), step)
            tried += 1
            try:  # as the next start does it: first the list, then the checkpoint
                names = checkpoint_names()
                offered += [f"step {step}: {name!r}" for name in names if name != target.path.name]
                if exists or done or target.path.name in names:
                    mark = mark_of(target.path.name)
                    if mark not in ((2.0,) if done else (1.0, 2.0)):
                        mixed.append(f"step {step}: {mark}")
            except TxclsError as error:
                lost.append(f"step {step}: {error}")
            except AssertionError as error:
                mixed.append(f"step {step}: {error}")
            save_checkpoint(with_mark(target, 3.0))
            if mark_of(target.path) != 3.0:
                lost.append(f"step {step}: the save after it did not come through")
            left += [f"step {step}: {path.name}" for path in root.iterdir() if path.is_dir() and path != target.path]
            for path in sorted(root.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
            if done:
                break
        what = "replaces one" if exists else "is the first"
        rows += [
            row(f"a save that {what}, killed at each of {tried} steps", "a whole checkpoint there", lost + mixed),
            row(f"a save that {what}: what is listed after a kill", "no remains", offered),
            row(f"a save that {what}: remains after the next save", "none", left),
        ]
    return rows


def row(tried: str, limit: str, problems: Sequence[str]) -> dict[str, Any]:
    measured = f"{len(problems)} times not; {problems[0][:90]}" if problems else "so each time"
    return {"tried": tried, "limit": limit, "measured": measured, "ok": not problems}


def write_on(base: Checkpoint, saves: int) -> None:
    """The writer beside the reader."""
    for n in range(saves):
        save_checkpoint(with_mark(base, float(n % 100 + 1)))


def read_beside_writer(root: Path, base: Checkpoint, *, saves: int = 150) -> dict[str, Any]:
    """List and load all the time while another process saves."""
    target = replace(base, path=root / "model")
    save_checkpoint(with_mark(target, 1.0))
    writer = multiprocessing.get_context("fork").Process(target=write_on, args=(target, saves))
    writer.start()
    problems: list[str] = []
    reads = 0
    while writer.is_alive():
        reads += 1
        try:
            if (names := checkpoint_names()) != ("model",):
                problems.append(f"the list is {names}")
            mark_of("model")
        except Exception as error:  # noqa: BLE001  # whatever a reader would see
            problems.append(f"{type(error).__name__}: {error}")
        time.sleep(0)
    writer.join()
    tried = f"{reads} reads beside {saves} saves"
    problems += [] if writer.exitcode == 0 else [f"the writer ended with {writer.exitcode}"]
    return row(tried, "each finds the whole checkpoint", problems)


def main() -> None:
    folder = Path(sys.argv[1])
    base = make_checkpoint(folder / "base")
    root = folder / "checkpoints"
    root.mkdir()
    os.environ["TXCLS_CHECKPOINTS"] = str(root)
    rows = kill_everywhere(root, base)
    beside = folder / "beside"
    beside.mkdir()
    os.environ["TXCLS_CHECKPOINTS"] = str(beside)
    rows.append(read_beside_writer(beside, base))
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
