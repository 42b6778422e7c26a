"""Saves that are killed at every stage, each in its own process; run by test_folders.py.

    python -m tests.checkpoint.killed_saves FOLDER      prints one JSON line per stage

A stage is a call that changes something on disk. The folder holds a checkpoint. Each stage starts from it, forks a
process that saves another checkpoint in its place and is killed just before that call, and inspects what is left.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from txcls.checkpoint import checkpoint as module
from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.listing import list_checkpoints
from txcls.checkpoint.load import load_checkpoint

STAGES = (
    (Path, "mkdir"),
    (Path, "chmod"),
    (module, "save_file"),
    (module, "write_json"),
    (Path, "write_text"),
    (os, "fsync"),
    (Path, "rename"),
    (shutil, "rmtree"),
)


def kill_before(stage: int, called: list[str]) -> None:
    """Make this process die just before call number `stage` of those above."""

    def watch(owner: Any, name: str) -> None:
        real: Callable[..., Any] = getattr(owner, name)

        def watched(*arguments: Any, **options: Any) -> Any:
            called.append(name)
            if len(called) > stage:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        setattr(owner, name, watched)

    for owner, name in STAGES:
        watch(owner, name)


def killed(checkpoint: Checkpoint, stage: int) -> bool:
    """Save in a process that is killed at that stage; False if it finished before."""
    process = os.fork()
    if not process:
        kill_before(stage, [])
        save_checkpoint(checkpoint)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


def main(folder: Path) -> None:
    os.environ["TXCLS_CHECKPOINTS"] = str(folder.parent)
    original = folder.parent.parent / "original"
    shutil.copytree(folder, original)
    older = load_checkpoint(folder)
    newer = replace(older, metrics={"training": {"seed": 1}})
    for stage in range(1000):
        for entry in folder.parent.iterdir():
            shutil.rmtree(entry)
        shutil.copytree(original, folder)
        if not killed(newer, stage):
            break
        leftovers = sorted(entry.name.partition(".tiny.")[2].partition("-")[0] for entry in folder.parent.iterdir())
        listed = [summary.name for summary in list_checkpoints().classifiers]
        loaded = load_checkpoint("tiny")
        seed = loaded.metrics["training"]["seed"]
        save_checkpoint(replace(loaded, metrics={"training": {"seed": 2}}))  # the next save works
        after = [entry.name for entry in folder.parent.iterdir()]
        sys.stdout.write(json.dumps({"left": leftovers, "listed": listed, "seed": seed, "after": after}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
