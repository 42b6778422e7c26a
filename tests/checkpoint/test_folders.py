import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import make_checkpoint
from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.listing import list_checkpoints
from txcls.checkpoint.load import find_checkpoint, load_checkpoint

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path / "root"))
    return make_checkpoint(tmp_path / "root" / "tiny")


def names(checkpoint: Checkpoint) -> list[str]:
    """The names in the folder of checkpoints."""
    return sorted(entry.name for entry in checkpoint.path.parent.iterdir())


def python(code: str, *arguments: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, *(("-m", code) if code.startswith("tests.") else ("-c", code)), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.timeout(300)
def test_a_save_killed_at_any_stage_loses_no_checkpoint(tiny: Checkpoint) -> None:
    process = python("tests.checkpoint.killed_saves", str(tiny.path))
    output, error = process.communicate(timeout=280)
    assert process.returncode == 0, error
    stages = [json.loads(line) for line in output.splitlines()]
    leftovers = [tuple(stage["left"]) for stage in stages]
    # Half written beside the old one; complete beside it; the old one moved away; the new one in place.
    assert {("", "saving"), ("", "saved"), ("old", "saved"), ("", "old")} <= set(leftovers), leftovers
    for stage in stages:
        assert stage["listed"] == ["tiny"], stage
        assert stage["after"] == ["tiny"], "nothing stays behind"
    seeds = [stage["seed"] for stage in stages]
    assert seeds == sorted(seeds) and set(seeds) == {0, 1}, "the old one, and from some stage on the new one"


SAVER = """
import sys
from dataclasses import replace
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.checkpoint.load import load_checkpoint
made = load_checkpoint(sys.argv[1])
print("ready", flush=True)
for seed in range(int(sys.argv[2])):
    rows = [{"step": seed}]
    save_checkpoint(replace(made, metrics={"training": {"seed": seed}}, history=rows))
"""


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.timeout(300)
def test_a_reader_beside_a_writer_never_misses_or_mixes_a_checkpoint(tiny: Checkpoint) -> None:
    save_checkpoint(replace(tiny, history=[{"step": 0}]))
    writer = python(SAVER, str(tiny.path), "80")
    assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    seeds = set()
    while writer.poll() is None:
        find_checkpoint("tiny")
        listed = list_checkpoints()
        assert [summary.name for summary in listed.classifiers] == ["tiny"] and not listed.left_out
        loaded = load_checkpoint("tiny")
        assert loaded.history[0]["step"] == loaded.metrics["training"]["seed"], "files of two saves"
        seeds.add(loaded.metrics["training"]["seed"])
    _, error = writer.communicate()
    assert writer.returncode == 0, error
    assert len(seeds) >= 8, "the two took turns"
    assert load_checkpoint("tiny").metrics["training"]["seed"] == 79
    assert names(tiny) == ["tiny"]


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.timeout(300)
def test_two_writers_of_one_checkpoint_leave_one_of_theirs(tiny: Checkpoint) -> None:
    writers = [python(SAVER, str(tiny.path), "8") for _ in range(2)]
    for writer in writers:
        _, error = writer.communicate(timeout=280)
        assert writer.returncode == 0, error
    assert load_checkpoint("tiny").metrics["training"]["seed"] == 7
    assert names(tiny) == ["tiny"]


def test_a_save_in_progress_elsewhere_is_not_touched_until_its_process_is_dead(tiny: Checkpoint) -> None:
    code = """
import sys, time
from pathlib import Path
from txcls.checkpoint.folders import new_folder
with new_folder(Path(sys.argv[1])) as folder:
    print(folder.name, flush=True)
    time.sleep(60)
"""
    process = python(code, str(tiny.path))
    try:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert name.startswith(".tiny.saving-")
        save_checkpoint(tiny)
        assert (tiny.path.parent / name).is_dir()
    finally:
        process.kill()
        process.communicate()
    list_checkpoints()
    assert names(tiny) == ["tiny"]


def test_a_checkpoint_behind_a_link_is_replaced_where_it_is(tiny: Checkpoint, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.move(tiny.path, elsewhere)
    tiny.path.symlink_to(elsewhere)
    save_checkpoint(replace(tiny, metrics={"training": {"seed": 7}}))
    assert tiny.path.is_symlink() and load_checkpoint(elsewhere).metrics["training"]["seed"] == 7
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["elsewhere", "root"]
