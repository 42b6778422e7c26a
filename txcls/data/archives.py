"""Read files from a folder or a tar archive, which is never unpacked to disk."""

import re
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from txcls.data.files import UNREADABLE
from txcls.errors import DataError, reason_of


def first_file(folder: Path, names: Sequence[str]) -> Path | None:
    """The first of these files that is in the folder."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def files_in(path: Path, *, is_wanted: Callable[[Path], bool], hint: str) -> list[Path]:
    """The file itself, or all wanted files below a folder, sorted.

    Raises:
        DataError: there are none; the message includes `hint`.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"{path}: no such file or folder; {hint}")
    files = sorted(file for file in path.rglob("*") if is_wanted(file) and file.is_file())
    if not files:
        raise DataError(f"{path}: this folder has no such files; {hint}")
    return files


def matching_files(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    """Yield (match, contents) for each file with a relative path (separated by `/`) that fully matches the pattern.

    Raises:
        DataError: the archive is damaged, or the folder cannot be read.
    """
    try:
        if path.is_dir():
            for file in path.rglob("*"):
                if (match := pattern.fullmatch(file.relative_to(path).as_posix())) and file.is_file():
                    yield match, file.read_bytes()
            return
        with tarfile.open(path) as archive:
            for entry in archive:
                if (match := pattern.fullmatch(entry.name.removeprefix("./"))) and entry.isreg():
                    content = archive.extractfile(entry)
                    assert content is not None  # since it is a regular file
                    yield match, content.read()
    except (tarfile.TarError, ValueError, *UNREADABLE) as error:
        kind = "folder" if path.is_dir() else "tar archive"
        raise DataError(f"{path}: cannot read it as a {kind} ({reason_of(error)}); get it again") from None
