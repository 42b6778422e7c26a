"""Parquet files, row by row, in bounded memory even if the file is damaged or hostile."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from txcls.data.limits import CELLS_PER_BYTE, LONGEST_FIELD, MAX_RATIO
from txcls.errors import DataError, shown

Row = dict[str, Any]
_AT_ONCE = 1024
_BATCH_BYTES = 32 << 20
"""Most bytes of a batch's values, assuming that every row holds a dictionary's longest value."""
_FEW_CELLS, _FEW_BYTES = 1_000_000, 32 << 20
"""Values or bytes that are always read, however small the file is."""
_DAMAGED = (OSError, ValueError, OverflowError, LookupError, MemoryError)
"""Errors from damaged files besides Arrow's own: invalid UTF-8, dates and time zones."""


def open_parquet(path: Path) -> Any:
    """Open a Parquet file for reading in pieces.

    Raises:
        DataError: it is not a Parquet file, or its metadata claim far more than its size allows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False, page_checksum_verification=True)
        size = path.stat().st_size
        meta = file.metadata
        chunks = [meta.row_group(g).column(c) for g in range(meta.num_row_groups) for c in range(meta.num_columns)]
        cells = max(sum(chunk.num_values for chunk in chunks), meta.num_rows)
        unpacked = sum(chunk.total_uncompressed_size for chunk in chunks)
    except (*_DAMAGED, pa.ArrowException) as error:
        raise DataError(f"{path}: not a readable Parquet file ({_first_line(error)})") from None
    if cells > max(_FEW_CELLS, CELLS_PER_BYTE * size):
        raise DataError(
            f"{path}: refused, since its {size:,} bytes claim {meta.num_rows:,} rows with {cells:,} values, more "
            f"than {CELLS_PER_BYTE} a byte; write the rows that differ into a new file"
        )
    if unpacked > max(_FEW_BYTES, MAX_RATIO * size):
        raise DataError(
            f"{path}: refused, since its {size:,} bytes unpack to {unpacked:,}, more than {MAX_RATIO} times as many; "
            "write it without compression if you trust it"
        )
    return file


def parquet_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Row]]:
    """(number from 1, values) of each row, restricted to the named columns.

    Raises:
        DataError: the file is damaged, or holds far more than its size allows.
    """
    import pyarrow as pa

    file, size, done, characters = open_parquet(path), path.stat().st_size, 0, 0
    try:
        with path.open("rb") as raw:
            sizes = [_batch_rows(file, raw, group) for group in range(file.num_row_groups)]
        for group, n in enumerate(sizes):
            for batch in file.iter_batches(batch_size=n, row_groups=[group], columns=columns):
                for row in batch.to_pylist():
                    lengths = {name: len(value) for name, value in row.items() if isinstance(value, str | bytes)}
                    characters += sum(lengths.values())
                    if max(lengths.values(), default=0) > LONGEST_FIELD:
                        name = max(lengths, key=lengths.__getitem__)
                        raise too_long(lengths[name], f"{path}, row {done + 1}", name)
                    if characters > max(_FEW_BYTES, MAX_RATIO * size):
                        raise DataError(
                            f"{path}: refused, since its first {done + 1:,} rows already hold more than {MAX_RATIO} "
                            "times the file's bytes; write the rows that differ into a new file"
                        )
                    done += 1
                    yield done, row
    except DataError:
        raise
    except (*_DAMAGED, pa.ArrowException) as error:
        raise DataError(f"{path}: damaged after row {done} ({_first_line(error)}); make the file again") from None


def too_long(length: int, where: str, column: str) -> DataError:
    """The error for a field longer than LONGEST_FIELD."""
    return DataError(
        f"{where}: {length:,} characters in column '{shown(column, limit=40)}', wanted {LONGEST_FIELD:,} at most; cut "
        "the text or remove the row"
    )


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _batch_rows(file: Any, raw: Any, group: int) -> int:
    """Rows of a group to read at once, so that they fit in memory even if all hold the longest values."""
    chunks = [file.metadata.row_group(group).column(c) for c in range(file.metadata.num_columns)]
    longest = sum(_dictionary_bytes(raw, chunk) for chunk in chunks if chunk.dictionary_page_offset is not None)
    return min(max(_BATCH_BYTES // max(longest, 1), 1), _AT_ONCE)


def _dictionary_bytes(raw: Any, chunk: Any) -> int:
    """The unpacked size of a column chunk's dictionary.

    It is the second field of the page header in Thrift's compact protocol: 0x15 and a zigzag integer for each of the
    first two. If it cannot be parsed, the whole chunk is counted.
    """
    raw.seek(chunk.dictionary_page_offset)
    match = re.match(rb"\x15[\x80-\xff]*[\x00-\x7f]\x15([\x80-\xff]*[\x00-\x7f])", raw.read(16))
    if match is None:
        return int(chunk.total_uncompressed_size)
    size: int = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(match[1])) >> 1
    return size
