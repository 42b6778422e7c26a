import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checkpoint.test_card import FIGURES
from tests.conftest import make_checkpoint, make_language_model
from txcls.checkpoint.folders import fingerprint
from txcls.checkpoint.listing import checkpoint_names, list_checkpoints
from txcls.checkpoint.load import load_checkpoint
from txcls.errors import CheckpointError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of checkpoints with a good classifier and a good language model."""
    folder = tmp_path / "checkpoints"
    make_checkpoint(folder / "good")
    make_language_model(folder / "says")
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(folder))
    return folder


def bad_copy(root: Path, name: str = "bad") -> Path:
    shutil.copytree(root / "good", root / name)
    return root / name


def metrics(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "metrics.json").write_text(text, encoding="utf-8")


def figures(**changes: object) -> Callable[[Path], object]:
    return metrics(json.dumps({"test": {**FIGURES, **changes}}))


def history(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "history.jsonl").write_text(text, encoding="utf-8")


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9000000\n"
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "accuracy of 400 digits": (
        metrics(json.dumps({"test": FIGURES}).replace("0.6", "9" * 400, 1)),
        "metrics.json: test.accuracy: input should be a valid number, got a number of 400 digits",
    ),
    "matrix crooked": (figures(confusion=[[1, 2], [3]]), "test: confusion: expected as many columns as rows"),
    "an unknown number too large": (metrics('{"note": [1e999]}'), "metrics.json: not readable as JSON"),
    "figures of other classes": (
        figures(per_class=[{**row, "label": "other"} for row in FIGURES["per_class"]]),
        "metrics.json: test.per_class has the class 'other', which labels.json does not have at this place",
    ),
    "a matrix of fewer classes": (figures(per_class=[], confusion=[[1, 2], [3, 4]]), "test.confusion has 2 classes"),
    "counts of more classes": (
        metrics('{"data": {"train_rows_by_class": [1, 1, 1, 1, 1]}}'),
        "data.train_rows_by_class has 5 classes, labels.json 4",
    ),
    "weights a pointer": (
        lambda folder: (folder / "model.safetensors").write_bytes(POINTER),
        "model.safetensors: this is a Git LFS pointer; run git lfs pull",
    ),
    "labels a pointer": (
        lambda folder: (folder / "labels.json").write_bytes(POINTER),
        "labels.json: this is a Git LFS pointer; run git lfs pull",
    ),
    "half a character": (metrics('{"training": {"command": "\\ud800"}}'), "metrics.json: not readable as JSON"),
    "metrics too large": (metrics(" " * 9_000_000), "metrics.json: larger than 8 MB, the maximum"),
    "history of many rows": (history("{}\n" * 100_001), "history.jsonl: more than 100,000 rows"),
    "config of an odd version": (
        lambda folder: (folder / "config.json").write_text(json.dumps({"format_version": "\x1b31m" * 10_000})),
        r"format_version is '\x1b31m",
    ),
    "config a pipe": (
        lambda folder: [(folder / "config.json").unlink(), os.mkfifo(folder / "config.json")],
        "config.json: missing, or not a plain file",
    ),
    "config a link to itself": (
        lambda folder: [(folder / "config.json").unlink(), (folder / "config.json").symlink_to("config.json")],
        "cannot be read: Too many levels of symbolic links",
    ),
}


@pytest.mark.parametrize("damage, message", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_bad_folder_is_left_out_with_one_line_and_affects_no_other(
    root: Path, damage: Callable[[Path], object], message: str
) -> None:
    folder = bad_copy(root)
    damage(folder)
    listed = list_checkpoints()
    assert [summary.name for summary in listed.classifiers] == ["good"]
    assert [(summary.name, summary.objective) for summary in listed.language_models] == [("says", "causal")]
    assert list(listed.left_out) == ["bad"] and message in listed.left_out["bad"]
    assert listed.left_out["bad"].isprintable() and len(listed.left_out["bad"]) <= 300
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(folder)
    assert str(caught.value).isprintable() and len(str(caught.value)) <= 1000
    assert checkpoint_names() == ("good",) and checkpoint_names(language_models=True) == ("says",)


def test_other_entries_are_not_listed_and_a_broken_link_is_named(root: Path) -> None:
    (root / ".#good").symlink_to("someone@host.1234")
    (root / "link").symlink_to(root / "nowhere")
    shutil.copytree(root / "good", root / ".hidden")
    (root / "empty").mkdir()
    (root / "file").write_text("x")
    listed = list_checkpoints()
    assert [summary.name for summary in (*listed.classifiers, *listed.language_models)] == ["good", "says"]
    assert listed.left_out == {"link": "a broken link"}


def test_the_fingerprint_changes_with_a_file_of_an_older_date_and_the_same_size(root: Path) -> None:
    folder, other = root / "good", root / "other"
    file = folder / "config.json"
    stat, before = file.stat(), fingerprint(folder)
    assert fingerprint(folder) == before
    other.write_bytes(file.read_bytes())
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.replace(file)
    same_date = fingerprint(folder)
    os.utime(file, (0, 0))
    assert len({before, same_date, fingerprint(folder)}) == 3
    with pytest.raises(CheckpointError, match="no checkpoint folder"):
        fingerprint(root / "gone")


def test_a_folder_whose_name_is_not_utf8_is_left_out_by_its_bytes(root: Path) -> None:
    make_checkpoint(root / "fine")
    make_checkpoint(root / "bad").path.rename(Path(os.fsdecode(os.fsencode(root) + b"/b\xe4d")))
    listed = list_checkpoints()
    assert "fine" in [summary.name for summary in listed.classifiers]
    assert listed.left_out == {"b\\xe4d": "the folder's name is not UTF-8; rename it"}
