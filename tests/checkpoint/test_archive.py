import io
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import TEXTS, make_checkpoint, pack
from txcls.checkpoint.archive import MAX_BYTES
from txcls.checkpoint.listing import checkpoint_names
from txcls.checkpoint.load import find_checkpoint, import_archive, load_checkpoint, unpack
from txcls.errors import CheckpointError
from txcls.inference.predictor import Predictor

Entries = dict[str, bytes]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make_checkpoint(tmp_path_factory.mktemp("made") / "spam").path
    assert path is not None
    return path


def entries(folder: Path) -> Entries:
    with zipfile.ZipFile(io.BytesIO(pack(folder))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path: Path, files: Entries) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_a_packed_checkpoint_loads_back_under_the_name_that_it_is_given(honest: Path, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(pack(honest))
    unpacked = unpack(tmp_path / "a.zip", tmp_path, name="again")
    assert unpacked.path == tmp_path / "again" and unpacked.classes == Predictor.load(honest).classes
    np.testing.assert_array_equal(
        Predictor.load(tmp_path / "again").probabilities(TEXTS), Predictor.load(honest).probabilities(TEXTS)
    )


def outside(prefix: str) -> Callable[[Entries], Entries]:
    return lambda files: {**files, f"{prefix}labels.json": b"[]"}


def changed(name: str, content: bytes) -> Callable[[Entries], Entries]:
    return lambda files: {**files, f"spam/{name}": content}


HOSTILE_CHANGES: dict[str, tuple[Callable[[Entries], Entries], str]] = {
    "parent": (outside("../../"), "is not a file of a checkpoint"),
    "absolute": (outside("/etc/"), "is not a file of a checkpoint"),
    "parent without depth": (outside("../"), "contains labels.json twice"),
    "backslash": (outside("spam\\..\\"), "is not a file of a checkpoint"),
    "pickle": (changed("model.pkl", b"\x80\x04."), "is not a file of a checkpoint"),
    "code": (changed("__init__.py", b"1/0"), "is not a file of a checkpoint"),
    "deep": (lambda files: {**files, "spam/a/b/config.json": b"{}"}, "is not a file of a checkpoint"),
    "twice": (lambda files: {**files, "labels.json": b"[]"}, "contains labels.json twice"),
    "incomplete": (
        lambda files: {name: content for name, content in files.items() if not name.endswith("labels.json")},
        "lacks labels.json",
    ),
    "nothing": (lambda files: {}, "not a checkpoint, because it lacks"),
    "bomb": (changed("README.md", b"\0" * (MAX_BYTES + 1)), "unpacks to more than 64 MB"),
    "many": (
        lambda files: {**files, **{f"x{n}/": b"" for n in range(100)}},
        "entries; expected only the files of one checkpoint",
    ),
    "broken JSON": (changed("config.json", b"{"), "config.json"),
    "broken weights": (changed("model.safetensors", b"\xff" * 100), "model.safetensors"),
    "other classes": (changed("labels.json", b'["a","b"]'), "does not fit"),
}


@pytest.mark.parametrize("kind", HOSTILE_CHANGES)
def test_a_hostile_archive_is_refused_in_a_sentence_and_leaves_nothing(honest: Path, tmp_path: Path, kind: str) -> None:
    change, message = HOSTILE_CHANGES[kind]
    root = tmp_path / "own"
    root.mkdir()
    file = write(tmp_path / "bad.zip", change(entries(honest)))
    with pytest.raises(CheckpointError, match=message) as caught:
        unpack(file, root, name="bad")
    assert str(tmp_path) not in str(caught.value) and "\n" not in str(caught.value)
    assert list(root.iterdir()) == [] and {path.name for path in tmp_path.iterdir()} == {"own", "bad.zip"}


def test_a_link_in_an_archive_is_read_as_its_text(honest: Path, tmp_path: Path) -> None:
    link = zipfile.ZipInfo("labels.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    files = {Path(name).name: content for name, content in entries(honest).items() if not name.endswith("labels.json")}
    with zipfile.ZipFile(write(tmp_path / "link.zip", files), "a") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(CheckpointError, match=r"labels\.json: not readable as JSON"):
        unpack(tmp_path / "link.zip", tmp_path, name="x")
    assert not (tmp_path / "x").exists()


def test_an_archive_cut_off_anywhere_is_refused(honest: Path, tmp_path: Path) -> None:
    archive = pack(honest)
    for share in (0.0, 0.1, 0.5, 0.9, 0.99):
        (tmp_path / "a.zip").write_bytes(archive[: int(share * len(archive))])
        with pytest.raises(CheckpointError):
            unpack(tmp_path / "a.zip", tmp_path, name="x")
    assert not (tmp_path / "x").exists()


def test_a_zip_file_is_loaded_as_it_is_and_leaves_nothing(
    honest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    (tmp_path / "a.zip").write_bytes(pack(honest))
    loaded = Predictor.load(tmp_path / "a.zip")
    assert list(temporary.iterdir()) == [] and loaded.checkpoint.path is None
    assert loaded.name == loaded.checkpoint.config.name
    np.testing.assert_array_equal(loaded.probabilities(TEXTS), Predictor.load(honest).probabilities(TEXTS))
    for kind in ("bomb", "broken weights", "parent", "incomplete"):
        change, message = HOSTILE_CHANGES[kind]
        with pytest.raises(CheckpointError, match=message) as caught:
            load_checkpoint(write(tmp_path / "bad.zip", change(entries(honest))))
        assert str(caught.value).startswith(str(tmp_path / "bad.zip")) and str(temporary) not in str(caught.value)
        assert list(temporary.iterdir()) == []
    with pytest.raises(CheckpointError, match=r"no checkpoint folder 'none\.zip'"):
        load_checkpoint("none.zip")
    with pytest.raises(CheckpointError, match=r"is a zip file; .*`python -m txcls import "):
        find_checkpoint(tmp_path / "a.zip")


def test_an_imported_model_is_listed_and_never_replaces_another(
    honest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "checkpoints"
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(root))
    archive = tmp_path / "my model.zip"
    archive.write_bytes(pack(honest))
    assert import_archive(archive).path == root / "my_model"
    assert import_archive(archive, name="other").name == "other"
    assert checkpoint_names() == ("my_model", "other")
    before = (root / "other" / "config.json").read_bytes()
    (root / "link").symlink_to("nowhere")
    for name in (None, "other", "link"):
        with pytest.raises(CheckpointError, match="exists; choose another name: --name NAME"):
            import_archive(archive, name=name)
    for name in ("../x", "", ".x", "a/b", "x" * 50):
        with pytest.raises(CheckpointError, match=r"--name .*expected at most 40 letters"):
            import_archive(archive, name=name)
    with pytest.raises(CheckpointError, match="no file"):
        import_archive(tmp_path / "none.zip")
    with pytest.raises(CheckpointError, match="lacks labels"):
        import_archive(write(tmp_path / "bad.zip", HOSTILE_CHANGES["incomplete"][0](entries(honest))))
    assert sorted(path.name for path in root.iterdir()) == ["link", "my_model", "other"]
    assert (root / "other" / "config.json").read_bytes() == before
