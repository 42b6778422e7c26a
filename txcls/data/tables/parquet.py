"""Read Parquet files row by row, in bounded memory even if the file is damaged or hostile.

A few bytes can represent gigabytes, since a repeated value is stored once. Therefore, each row group's metadata are
checked before it is read, texts are read in their stored form (dictionary-encoded), and at most MAX_BATCH_BYTES of rows
at a time are converted to Python objects.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from txcls.data.limits import CELLS_PER_BYTE, MAX_BATCH_BYTES, MAX_FIELD_CHARACTERS, MAX_NESTED, MAX_RATIO
from txcls.errors import DataError, reason_of
from txcls.wording import shown

_BATCH_ROWS = 1024
_FEW_CELLS, _FEW_BYTES = 1_000_000, 32 << 20
"""Numbers of values and bytes that are accepted whatever the file's size."""
_DAMAGED = (OSError, ValueError, OverflowError, LookupError, MemoryError, pa.ArrowException)
"""Errors raised for damaged files; invalid UTF-8, dates and time zones raise built-in ones."""


def open_parquet(path: Path) -> Any:
    """Open a Parquet file, and check the size that its metadata state.

    Raises:
        DataError: it is not a Parquet file, or its metadata state far more rows than its size allows.
    """
    try:
        file = pq.ParquetFile(path)
        size = path.stat().st_size
        chunks = _column_chunks(file.metadata)
        n_rows = file.metadata.num_rows
        n_values = max(sum(chunk.num_values for chunk in chunks), n_rows)
        unpacked = sum(chunk.total_uncompressed_size for chunk in chunks)
    except _DAMAGED as error:
        raise DataError(f"{path}: not a readable Parquet file ({reason_of(error)})") from None
    if n_values > max(_FEW_CELLS, CELLS_PER_BYTE * size):
        raise DataError(
            f"{path}: refused, since it states {n_rows:,} rows with {n_values:,} values in {size:,} bytes, more than "
            f"{CELLS_PER_BYTE} per byte; write only the rows that differ to a new file"
        )
    if unpacked > max(_FEW_BYTES, MAX_RATIO * size):
        raise DataError(
            f"{path}: refused, since its {size:,} bytes unpack to {unpacked:,}, more than {MAX_RATIO} times as many; "
            "write it without compression if you trust it"
        )
    return file


def _column_chunks(meta: Any) -> list[Any]:
    """The metadata of every column in every row group."""
    return [meta.row_group(group).column(n) for group in range(meta.num_row_groups) for n in range(meta.num_columns)]


def parquet_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number from 1, values) for each row, with only these columns if given.

    Raises:
        DataError: the file is damaged, or contains far more than its size allows.
    """
    size, n_rows, n_characters = path.stat().st_size, 0, 0
    meta = open_parquet(path).metadata
    try:
        file = _open_dictionary_encoded(path, meta)
        batch_sizes = [_batch_size(path, meta, group) for group in range(meta.num_row_groups)]
        for group, batch_size in enumerate(batch_sizes):
            for batch in file.iter_batches(batch_size=batch_size, row_groups=[group], columns=columns):
                for row in _python_rows(batch, path, n_rows + 1):
                    n_rows += 1
                    lengths = {name: len(value) for name, value in row.items() if isinstance(value, str | bytes)}
                    n_characters += sum(lengths.values())
                    if max(lengths.values(), default=0) > MAX_FIELD_CHARACTERS:
                        name = max(lengths, key=lengths.__getitem__)
                        raise DataError(
                            f"{path}, row {n_rows}: {lengths[name]:,} characters in column "
                            f"'{shown(name, limit=40)}', expected at most {MAX_FIELD_CHARACTERS:,}; shorten the text "
                            "or remove the row"
                        )
                    if n_characters > max(_FEW_BYTES, MAX_RATIO * size):
                        raise DataError(
                            f"{path}: refused, since its first {n_rows:,} rows alone have more than {MAX_RATIO} times "
                            "the file's bytes; write only the rows that differ to a new file"
                        )
                    yield n_rows, row
    except DataError:
        raise
    except _DAMAGED as error:
        raise DataError(f"{path}: damaged after row {n_rows} ({reason_of(error)}); create the file again") from None


def _open_dictionary_encoded(path: Path, meta: Any) -> Any:
    """Open the file with its texts dictionary-encoded."""
    chunks = _column_chunks(meta)
    texts = {chunk.path_in_schema for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"}
    delta = {chunk.path_in_schema for chunk in chunks if _is_delta_encoded(chunk)}
    return pq.ParquetFile(
        path,
        read_dictionary=sorted(texts - delta),
        buffer_size=1 << 20,
        pre_buffer=False,
        page_checksum_verification=True,
    )


def _is_delta_encoded(chunk: Any) -> bool:
    """Whether values are stored as differences from the previous value, which Arrow cannot read as dictionaries."""
    return "DELTA_BYTE_ARRAY" in chunk.encodings


def _batch_size(path: Path, meta: Any, group: int) -> int:
    """The number of rows of a row group that fit into MAX_BATCH_BYTES in their stored form, at most _BATCH_ROWS.

    Raises:
        DataError: its lists may contain too many values or bytes.
    """
    row_bytes = 0
    for index in range(meta.num_columns):
        chunk, column = meta.row_group(group).column(index), meta.schema.column(index)
        is_nested = column.max_repetition_level > 0
        if chunk.physical_type == "FIXED_LEN_BYTE_ARRAY":
            width = column.length
        else:
            width = chunk.total_uncompressed_size if _is_delta_encoded(chunk) else 0
        if is_nested and (chunk.num_values > MAX_NESTED or chunk.num_values * width > MAX_BATCH_BYTES):
            raise DataError(
                f"{path}: the lists in column '{shown(chunk.path_in_schema, limit=40)}' may contain more than "
                f"{MAX_NESTED:,} values or {MAX_BATCH_BYTES:,} bytes; leave the column out or write smaller row groups"
            )
        row_bytes += width
    return min(max(MAX_BATCH_BYTES // max(row_bytes, 1), 1), _BATCH_ROWS)


def _python_rows(batch: Any, path: Path, number: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch, unpacking at most MAX_BATCH_BYTES at a time; `number` is that of the first row."""
    if batch.num_rows and sum(map(_unpacked_bytes, batch.columns)) > MAX_BATCH_BYTES:
        if batch.num_rows == 1:
            raise DataError(f"{path}, row {number}: more than {MAX_BATCH_BYTES:,} bytes, the maximum")
        half = batch.num_rows // 2
        yield from _python_rows(batch.slice(0, half), path, number)
        yield from _python_rows(batch.slice(half), path, number + half)
    else:
        yield from batch.to_pylist()


def _unpacked_bytes(column: Any) -> int:
    """The number of bytes of a column's values, counting every repetition."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        if not (pa.types.is_string(kind.value_type) or pa.types.is_binary(kind.value_type)):
            return 8 * len(column)
        lengths = pc.binary_length(column.dictionary)
        return pc.sum(lengths.take(column.indices)).as_py() or 0
    if pa.types.is_struct(kind):
        return sum(map(_unpacked_bytes, column.flatten()))
    if pa.types.is_map(kind):
        return _unpacked_bytes(column.keys) + _unpacked_bytes(column.items)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _unpacked_bytes(column.flatten())
    return int(column.nbytes)
