"""Small tar archives for tests, also with entries that an archive should not contain."""

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".tar": lambda raw: raw,
    ".tar.gz": gzip.compress,
    ".tar.xz": lzma.compress,
    ".tar.bz2": bz2.compress,
}


def tar(files: Mapping[str, bytes], *, extra: Iterable[tarfile.TarInfo] = ()) -> bytes:
    """An uncompressed archive with these files, followed by these entries without contents."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for entry in extra:
            archive.addfile(entry)
    return target.getvalue()


def write_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write these files into a folder and return it."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder
