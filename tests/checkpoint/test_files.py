"""Checkpoint folders that are replaced: killed at any point, beside readers, by two at a time."""

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import make_checkpoint
from txcls.checkpoint import files
from txcls.checkpoint.checkpoint import Checkpoint, find_checkpoint, load_checkpoint, save_checkpoint
from txcls.checkpoint.files import alone, new_folder, settle
from txcls.checkpoint.listing import list_checkpoints
from txcls.errors import CheckpointError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path / "root"))
    return make_checkpoint(tmp_path / "root" / "tiny")


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
    said, error = process.communicate(timeout=280)
    assert process.returncode == 0, error
    stages = [json.loads(line) for line in said.splitlines()]
    left = [tuple(stage["left"]) for stage in stages]
    # Half written beside the old one; whole beside it; the old one out of the way; the new one in place.
    assert {("", "saving"), ("", "saved"), ("old", "saved"), ("", "old")} <= set(left), left
    for stage in stages:
        assert stage["listed"] == ["tiny"], stage
        assert stage["after"] == ["tiny"], "nothing stays behind"
    seeds = [stage["seed"] for stage in stages]
    assert seeds == sorted(seeds) and set(seeds) == {0, 1}, "the old one, and from some stage on the new one"


SAVER = """
import sys
from dataclasses import replace
from txcls.checkpoint.checkpoint import load_checkpoint, save_checkpoint
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
    writer = python(SAVER, str(tiny.path), "200")
    assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    seen = set()
    while writer.poll() is None:
        find_checkpoint("tiny")
        listed = list_checkpoints()
        assert [one.name for one in listed.classifiers] == ["tiny"] and not listed.left_out
        found = load_checkpoint("tiny")
        assert found.history[0]["step"] == found.metrics["training"]["seed"], "files of two saves"
        seen.add(found.metrics["training"]["seed"])
    _, error = writer.communicate()
    assert writer.returncode == 0, error
    assert len(seen) >= 20, "the two took turns"
    assert load_checkpoint("tiny").metrics["training"]["seed"] == 199
    assert [entry.name for entry in tiny.path.parent.iterdir()] == ["tiny"]


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.timeout(300)
def test_two_writers_of_one_checkpoint_leave_one_of_theirs(tiny: Checkpoint) -> None:
    writers = [python(SAVER, str(tiny.path), "15") for _ in range(2)]
    for writer in writers:
        _, error = writer.communicate(timeout=280)
        assert writer.returncode == 0, error
    assert load_checkpoint("tiny").metrics["training"]["seed"] == 14
    assert [entry.name for entry in tiny.path.parent.iterdir()] == ["tiny"]


def test_a_save_that_is_running_elsewhere_is_let_be(tiny: Checkpoint) -> None:
    code = """
import sys, time
from pathlib import Path
from txcls.checkpoint.files import new_folder
with new_folder(Path(sys.argv[1])) as folder:
    (folder / "half").write_text("x")
    print(folder.name, flush=True)
    time.sleep(60)
"""
    process = python(code, str(tiny.path))
    try:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert name.startswith(".tiny.saving-")
        list_checkpoints()
        save_checkpoint(tiny)
        assert (tiny.path.parent / name / "half").is_file(), "still being written"
    finally:
        process.kill()
        process.communicate()
    assert [one.name for one in list_checkpoints().classifiers] == ["tiny"]
    assert [entry.name for entry in tiny.path.parent.iterdir()] == ["tiny"], "and removed once its process is dead"


def test_without_locks_what_may_be_running_stays_for_an_hour(tiny: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_hold", lambda handle, shared=False: None)
    half = tiny.path.parent / ".tiny.saving-0123456789abcdef"
    half.mkdir()
    settle(tiny.path.parent)
    assert half.is_dir()
    later = time.time() + 3700
    monkeypatch.setattr(time, "time", lambda: later)
    settle(tiny.path.parent)
    assert not half.exists()
    save_checkpoint(tiny)
    assert load_checkpoint("tiny").classes == tiny.classes


def test_an_old_folder_comes_back_where_nothing_took_its_place(tiny: Checkpoint) -> None:
    tiny.path.rename(tiny.path.parent / ".tiny.old-0123456789abcdef")
    assert find_checkpoint("tiny") == tiny.path
    assert load_checkpoint("tiny").classes == tiny.classes


def test_names_with_dots_and_odd_letters_are_recovered(tiny: Checkpoint) -> None:
    for name in ("a.saving-b", "ä\n", ".x.old-0123456789abcdef"):
        (tiny.path.parent / f".{name}.saved-0123456789abcdef").mkdir()
        settle(tiny.path.parent)
        assert (tiny.path.parent / name).is_dir()


def test_a_checkpoint_behind_a_link_is_replaced_where_it_is(tiny: Checkpoint, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.move(tiny.path, elsewhere)
    tiny.path.symlink_to(elsewhere)
    save_checkpoint(replace(tiny, metrics={"training": {"seed": 7}}))
    assert tiny.path.is_symlink() and load_checkpoint(elsewhere).metrics["training"]["seed"] == 7
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["elsewhere", "root"]


def test_a_file_in_the_place_is_not_replaced(tmp_path: Path, tiny: Checkpoint) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CheckpointError, match=r"cannot save checkpoint .*: a file with that name exists"):
        save_checkpoint(replace(tiny, path=tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "mine"


def test_an_interruption_between_the_renames_brings_the_old_folder_back(
    tiny: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = Path.rename, []

    def interrupted(self: Path, to: Path) -> Path:
        calls.append(to.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, to)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), new_folder(tiny.path) as folder:
        (folder / "x").write_text("x")
    assert calls[2] == calls[3] == "tiny"
    assert [entry.name for entry in tiny.path.parent.iterdir()] == ["tiny"]
    assert load_checkpoint("tiny").classes == tiny.classes


def test_a_stopped_process_holds_nobody_up_for_long(tiny: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_WAIT", 0.2)
    start = time.monotonic()
    with files._locked(tiny.path.parent):
        assert load_checkpoint("tiny").classes == tiny.classes
    assert 0.2 <= time.monotonic() - start < 5


def test_a_file_is_held_by_one_at_a_time_and_removed_by_the_last(tmp_path: Path) -> None:
    file = tmp_path / "made" / "lock"
    with alone(file) as first, alone(file) as second:
        assert first and not second and file.is_file()
    assert not file.parent.exists()
    with alone(file) as again:
        assert again
        (file.parent / "state").write_text("x")
    assert [entry.name for entry in file.parent.iterdir()] == ["state"]
