"""Attacks on training and saving: two at once, repeating without --resume, a full disk."""

import os
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.attack._row import Row, Scene, attack
from benchmarks.attack.commands import last_line, one_line, txcls
from tests.conftest import CLASSES, TEXTS, make_checkpoint

SMALL = ("--set", "model.d_model=32", "--set", "model.d_ff=64", "--set", "train.batch_size=8")


def train(out: Path, *more: str, epochs: int = 400) -> "subprocess.Popen[str]":
    """A small training that takes its time."""
    return txcls("train", "sample", "--out", str(out), *SMALL, "--set", f"train.epochs={epochs}", *more)


def wait_for_state(out: Path, process: "subprocess.Popen[str]", *, seconds: float = 90) -> bool:
    """Until a training has left something beside its folder or in it, and then a little longer."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if any(path.is_file() and path.stat().st_size > 10_000 for path in out.parent.rglob("*")):
            time.sleep(1.5)
            return process.poll() is None
        time.sleep(0.2)
    return False


@attack
def two_trainings(scene: Scene) -> Iterator[Row]:
    """Two trainings into one folder: the second is refused, the first goes on."""
    out = scene.folder / "out" / "model"
    out.parent.mkdir()
    first = train(out)
    try:
        going = wait_for_state(out, first)
        second = train(out)
        try:
            _, err = second.communicate(timeout=60)
            code: int | None = second.returncode
        except subprocess.TimeoutExpired:
            second.kill()
            _, err = second.communicate()
            code = None
        third = train(out, "--overwrite")
        try:
            third.communicate(timeout=60)
            forced: int | None = third.returncode
        except subprocess.TimeoutExpired:
            third.kill()
            third.communicate()
            forced = None
        still = first.poll() is None
    finally:
        first.kill()
        first.communicate()
    measured = "the second trained, too" if code is None else f"exit {code}: {last_line(err)}"
    ok = going and code == 2 and not one_line(err) and still
    yield Row("a second training into the same folder", "refused, the first goes on", measured, ok)
    measured = "it trained, too" if forced is None else f"exit {forced}"
    yield Row("the same with --overwrite", "refused, the first goes on", measured, forced == 2 and still)


@attack
def repeated_training(scene: Scene) -> Iterator[Row]:
    """A training is killed and repeated without --resume: refused, both ways out named; with it, it goes on."""
    out = scene.folder / "out" / "model"
    out.parent.mkdir()
    first = train(out)
    try:
        going = wait_for_state(out, first)
    finally:
        first.kill()
        first.communicate()
    before = {path: path.stat().st_size for path in out.parent.rglob("*.pt")}
    again = train(out)
    try:
        _, err = again.communicate(timeout=60)
        code: int | None = again.returncode
    except subprocess.TimeoutExpired:
        again.kill()
        _, err = again.communicate()
        code = None
    kept = all(path.is_file() for path in before)
    ok = going and code == 2 and kept and "--resume" in err and "--overwrite" in err and not one_line(err)
    measured = "it began anew" if code is None else f"exit {code}: {last_line(err)}"
    yield Row("repeated after a kill, without --resume", "refused, naming --resume and --overwrite", measured, ok)


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[tuple[Path, dict[str, object]]]:
    """A folder that holds no more than this: a file system of its own where we may mount one, else a limit on files."""
    folder.mkdir()
    mounted = False
    if os.geteuid() == 0:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    limit = kilobytes * 2**10

    def no_larger() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    try:
        yield folder, {} if mounted else {"preexec_fn": no_larger}
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], capture_output=True, check=False)


@attack
def full_disk(scene: Scene) -> Iterator[Row]:
    """A disk that is full while a model is trained, and while a table is scored: said in one line, exit 2."""
    words = ("space", "full", "too large")
    with small_disk(scene.folder / "disk", 200) as (disk, options):
        how = "a limit on file size" if options else "a disk of 200 kB"
        process = txcls(
            *("train", "sample", "--out", str(disk / "model"), "--set", "train.epochs=1", "--max-steps", "5"),
            **options,
        )
        try:
            _, err = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            _, err = process.communicate()
        problems = one_line(err, *words) + ([] if process.returncode == 2 else [f"exit {process.returncode}"])
        yield Row(
            f"train onto {how}", "one line that says so, exit 2", "; ".join(problems) or last_line(err), not problems
        )
    make_checkpoint(scene.folder / "tiny")
    source = scene.folder / "texts.csv"
    source.write_text("text,label\n" + "".join(f"{text} {n},{CLASSES[0]}\n" for n in range(5000) for text in TEXTS))
    with small_disk(scene.folder / "other", 200) as (disk, options):
        target = disk / "scored.csv"
        process = txcls(
            "predict", str(scene.folder / "tiny"), "--input", str(source), "--output", str(target), **options
        )
        try:
            _, err = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            _, err = process.communicate()
        problems = one_line(err, *words) + ([] if process.returncode == 2 else [f"exit {process.returncode}"])
        if target.exists():
            problems.append("half an output is left")
        yield Row(
            f"predict onto {how}", "one line that says so, exit 2", "; ".join(problems) or last_line(err), not problems
        )
