"""Untrusted archives are read as a stream, and refused if a file to read is a link, repeated, too long or damaged."""

import re
import tarfile
from pathlib import Path

import pytest

from tests.data.tars import COMPRESS, tar, write_folder
from txcls.data import archives
from txcls.data.archives import matching_files
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


@pytest.mark.parametrize(
    "bad, problem",
    [
        (entry("set/a/9.txt", tarfile.SYMTYPE, linkname="/etc/passwd"), "'set/a/9.txt' is a link"),
        (entry("set/a/9.txt", tarfile.LNKTYPE, linkname="set/a/1.txt"), ".* is a link"),
        (entry("set/a/9.txt", tarfile.CHRTYPE), ".* is a link"),
        (entry("set/a/1.txt"), "'set/a/1.txt' is a link or occurs twice"),
    ],
)
def test_links_devices_and_repeated_files_are_refused(tmp_path: Path, bad: tarfile.TarInfo, problem: str) -> None:
    (tmp_path / "bad").write_bytes(tar(FILES, extra=[bad]))
    with pytest.raises(DataError, match=rf"bad: {problem}"):
        read(tmp_path / "bad")


def test_sparse_entry_is_refused(tmp_path: Path) -> None:
    """A sparse file of 1 TB takes only a few bytes in an archive."""
    sparse = entry(
        "set/a/9.txt", pax_headers={"GNU.sparse.major": "0", "GNU.sparse.map": "0,1", "GNU.sparse.size": "9"}
    )
    (tmp_path / "bad").write_bytes(tar(FILES) and sparse.tobuf(tarfile.PAX_FORMAT) + bytes(10_240))
    with pytest.raises(DataError, match="is a link"):
        read(tmp_path / "bad")


def test_archive_that_unpacks_to_too_much_is_refused_while_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_BYTES", 1 << 20)
    for name, raw in {
        "file": tar({"set/x": bytes(3 << 20)}),
        "files": tar({f"set/{i}": bytes(300_000) for i in range(9)}),
        "after its end": tar(FILES) + bytes(3 << 20),
    }.items():
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(DataError, match=r"unpacks to more than 1,048,576 bytes"):
            read(tmp_path / name)


def test_archive_or_folder_of_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_FILES", 3)
    (tmp_path / "a.tar").write_bytes(tar(FILES))
    with pytest.raises(DataError, match="more than 3 entries"):
        read(tmp_path / "a.tar")
    with pytest.raises(DataError, match="more than 3 files"):
        read(write_folder(tmp_path / "folder", FILES))


@pytest.mark.parametrize("suffix", COMPRESS)
def test_truncated_archive_is_refused_wherever_it_ends(tmp_path: Path, suffix: str) -> None:
    raw = COMPRESS[suffix](tar(FILES)[: 9 * 1024])  # files and the two empty blocks that end an archive, no padding
    assert len(read_bytes(tmp_path, COMPRESS[suffix](tar(FILES)))) == 3
    length = len(tar(FILES).rstrip(b"\0"))
    lengths = range(0, length, 251) if suffix == ".tar" else range(0, len(raw), max(len(raw) // 40, 1))
    for length in lengths:
        with pytest.raises(DataError, match="cannot read it as a tar archive"):
            read_bytes(tmp_path, raw[:length])


def read_bytes(folder: Path, raw: bytes) -> dict[str, bytes]:
    (folder / "file").write_bytes(raw)
    return read(folder / "file")


def test_archive_damaged_in_the_middle_is_refused_rather_than_read_in_part(tmp_path: Path) -> None:
    raw = bytearray(tar(FILES))
    raw[1024 + 100] ^= 255  # in the second header, which tarfile then treats as the end
    with pytest.raises(DataError, match="damaged in the middle"):
        read_bytes(tmp_path, bytes(raw))
    with pytest.raises(DataError, match="damaged in the middle"):
        read_bytes(tmp_path, tar(FILES) + tar({"set/a/4.txt": b"more"}))


@pytest.mark.parametrize("raw", [b"", b"plain text", b"\x1f\x8b\x08\x00", b"\xfd7zXZ\x00?", b"BZh9?", b"PK\x03\x04zip"])
def test_files_that_are_not_archives_are_refused(tmp_path: Path, raw: bytes) -> None:
    with pytest.raises(DataError, match="cannot read it as a tar archive"):
        read_bytes(tmp_path, raw)
