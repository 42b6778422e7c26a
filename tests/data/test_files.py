import re
import tarfile
from pathlib import Path

import pytest

from tests.data.tars import COMPRESS, tar, write_folder
from txcls.data.files import matching_files
from txcls.errors import DataError

FILES = {"set/a/1.txt": b"one", "set/a/2.txt": b"two" * 1000, "set/b/3.txt": b"", "set/README": b"not asked for"}
PATTERN = re.compile(r"set/([ab])/([0-9]+)\.txt")


def read(path: Path) -> dict[str, bytes]:
    return {match[0]: content for match, content in matching_files(path, PATTERN)}


def entry(name: str, kind: bytes = tarfile.REGTYPE, **values: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for key, value in values.items():
        setattr(info, key, value)
    return info


@pytest.mark.parametrize("suffix", COMPRESS)
def test_folder_and_archive_give_the_same_files(tmp_path: Path, suffix: str) -> None:
    expected_files = {name: content for name, content in FILES.items() if name.endswith(".txt")}
    folder = write_folder(tmp_path / "folder", FILES)
    file = tmp_path / "archive"  # the format is detected from the contents
    file.write_bytes(COMPRESS[suffix](tar(FILES, extra=[entry("set", tarfile.DIRTYPE)])))
    assert read(folder) == read(file) == expected_files


def test_links_are_not_followed(tmp_path: Path) -> None:
    links = [entry("set/a/9.txt", kind, linkname="/etc/passwd") for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE)]
    (tmp_path / "archive").write_bytes(tar(FILES, extra=links))
    assert "set/a/9.txt" not in read(tmp_path / "archive")


@pytest.mark.parametrize("suffix", COMPRESS)
def test_an_archive_cut_within_its_files_is_refused(tmp_path: Path, suffix: str) -> None:
    raw = COMPRESS[suffix](tar({"set/a/1.txt": bytes(range(256)) * 40}))
    (tmp_path / "file").write_bytes(raw[: 3000 if suffix == ".tar" else len(raw) // 2])
    with pytest.raises(DataError, match="cannot read it as a tar archive"):
        read(tmp_path / "file")


@pytest.mark.parametrize("raw", [b"", b"plain text", b"\x1f\x8b\x08\x00", b"\xfd7zXZ\x00?", b"BZh9?", b"PK\x03\x04zip"])
def test_files_that_are_not_archives_are_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "file").write_bytes(raw)
    with pytest.raises(DataError, match="cannot read it as a tar archive"):
        read(tmp_path / "file")
