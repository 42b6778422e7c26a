"""Classify the rows of a file of any size: read in pieces, written whole.

The new file replaces an older one only when it is complete. A column of the input is never overwritten: where a name is
taken, the column that is added gets another one.
"""

import csv
import io
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, time
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from txcls.config import Precision
from txcls.data.columns import (
    AS_IN_TRAINING,
    SPECIFIED,
    columns_as_in_training,
    guess_text_column,
    text_columns,
)
from txcls.data.files import replacing
from txcls.data.hashes import MIN_KNOWN, KnownShare
from txcls.data.html import are_html, html_note
from txcls.data.labels import DECIMAL_COMMA, label_name
from txcls.data.table import Table, Values, flatten, left_out_note, row_text, table_suffix
from txcls.data.table_formats import DateText
from txcls.errors import DataError, StoppedError, list_names, reason_of
from txcls.evaluation.linear import LinearModel, sketch_of_training
from txcls.inference.interrupts import stop_requests
from txcls.inference.predictor import Predictor
from txcls.text.formatting import percentage

PIECE_ROWS = 8192
"""Rows that are read, classified and written at once; texts of similar length among them share a batch."""
LABEL, PROBABILITY, UNUSUAL, REVIEW = "predicted_label", "probability", "unusual", "needs_review"
"""The usual names of the columns that are added. UNUSUAL is `yes` or `no` (whether the text is
unlike the Transformer's training texts; left out if that is not known), as is REVIEW (whether to leave the row to a
human)."""
OURS = "txcls_"
"""Prefix of an added column's name if the input has a column of the usual name."""
MANY = 0.1
"""A file counts as unusual if at least this share of its rows is unusual."""
LINES, DELIMITED = (".jsonl", ".ndjson"), (".csv", ".tsv", ".tab")
WRITTEN = (*DELIMITED, *LINES, ".parquet", ".xlsx")
"""The formats that can be written."""
MAX_SHEET_ROWS = 1_048_576
"""Number of rows of a sheet in Excel."""
_MAX_CELL_CHARACTERS = 32_767
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_DECIMAL_POINT = re.compile(r"-?\d+\.\d+")
_MAX_EXACT = 10**15
"""Excel keeps 15 digits of a number; integers from this one on, such as identifiers, are written as text."""


def added_columns(taken: Collection[str], further: Sequence[str] = (), *, top_k: int = 1) -> dict[str, str]:
    """The names of the added columns, keyed by their usual names.

    They are `predicted_label`, `probability`, `predicted_label_2`, … for the top k classes, and those in `further`; a
    name that the input has, in any case or as a nested column such as `probability.low`, gets the prefix OURS.
    """
    ranked = (f"{name}_{rank}" for rank in range(2, top_k + 1) for name in (LABEL, PROBABILITY))
    used, names = {part.casefold() for name in taken for part in (name, name.partition(".")[0])}, {}
    for usual in (LABEL, PROBABILITY, *ranked, *further):
        name = usual
        while name.casefold() in used:
            name = OURS + name
        names[usual] = name
    return names


def predict_file(
    classifier: Predictor,
    source: Path,
    target: Path | Callable[[Values], object],
    *,
    linear: LinearModel | None = None,
    text_column: str | None = None,
    sheet: str | None = None,
    precision: Precision = "float32",
    top_k: int = 1,
    review_below: float | None = None,
    on_note: Callable[[str], object] = lambda _: None,
    on_rows: Callable[[int, int | None], object] = lambda *_: None,
) -> int:
    """Write the rows of `source` with label and calibrated probability to `target`; return their number.

    Rows without words get an empty label and no probability. A CSV file has the delimiter of the input, and its
    decimal comma. If the input
    is a workbook or seems to be from Excel (a delimiter other than comma or tab, an encoding other than UTF-8, or a
    byte-order mark), CSV and TSV files begin with the byte-order mark that Excel needs.

    Args:
        target: CSV, TSV, JSON Lines, Parquet or Excel, according to its suffix; or a function that is called
            with each row.
        linear: the linear model beside the checkpoint, to classify with it instead.
        text_column, sheet: None for those that the classifier was trained on, if the file has them, or else a guess.
        precision: "float32" gives the same probabilities as `Predictor.predict`; see `Predictor.probabilities`.
        top_k: number of most probable classes to write, in the columns of `added_columns`.
        review_below: add the column REVIEW, which is `yes` if the row has no words, or if its highest probability is
            lower than this.
        on_note: called with each sentence on what was read, and on what to think of the result.
        on_rows: called with the number of rows done and, if known, the total number of rows.

    Raises:
        DataError: the table is damaged; the target cannot be written, is the source itself, or is a workbook, for
            which there are too many rows; or there are fewer than `top_k` classes.
        StoppedError: Ctrl-C or SIGTERM; nothing was written.
    """
    if not 1 <= top_k <= len(classifier.classes):
        raise DataError(f"got top_k={top_k}; expected 1 to {len(classifier.classes)}, the number of classes")
    is_json = not isinstance(target, Path) or table_suffix(target) in LINES
    if isinstance(target, Path):
        _check_target(target, source)
    checkpoint = classifier.checkpoint
    data = checkpoint.config.data
    table = Table(source, sheet=sheet, usual_sheet=data.sheet)
    column = _text_column(classifier, table, text_column, on_note)
    is_told = (checkpoint.token_counts, classifier.sentence_pattern) != (None, None)
    further = {UNUSUAL: is_told, REVIEW: review_below is not None}
    names = added_columns(table.columns, [name for name, is_added in further.items() if is_added], top_k=top_k)
    if renamed := [f"{usual} is {name}" for usual, name in names.items() if usual != name]:
        on_note(f"The file's own columns are kept: among the new ones, {', '.join(renamed)}.")
    known = KnownShare(sketch_of_training(checkpoint, is_linear=linear is not None))
    counts = Counter[str]()

    def classify(texts: Sequence[str]) -> Iterator[list[Any]]:
        """Yield the values of the added columns of each text."""
        unusual: Sequence[list[str]] = [[]] * len(texts)
        ids = classifier.tokenizer.encode_ids(texts) if is_told or linear is None else []
        if linear is not None:
            rows = linear.probabilities_of(classifier.classes, texts)  # N C, nan for a text without words
        else:
            rows = classifier.probabilities_of_ids(ids, precision=precision)  # N C, as above
        if is_told:
            are_unusual = (
                not np.isnan(row[0]) and classifier.is_unusual(text, own)
                for text, own, row in zip(texts, ids, rows, strict=True)
            )
            unusual = [["yes"] if is_unusual else ["no"] for is_unusual in are_unusual]
        for ranked, mark in zip(_rank(rows, classifier.classes, top_k), unusual, strict=True):
            is_empty = ranked[1] is None
            is_below = review_below is not None and (is_empty or ranked[1] < review_below)
            counts.update({"without words": is_empty, "unusual": mark == ["yes"], "review": is_below, "rows": 1})
            yield [*ranked, *mark, *(["yes" if is_below else "no"] * (review_below is not None))]

    def pieces() -> Iterator[list[Values]]:
        all_rows = table.rows(flat=not is_json)
        with stop_requests() as stop_requested:
            while piece := list(itertools.islice(all_rows, PIECE_ROWS)):
                if stop_requested():
                    raise StoppedError(f"stopped after {counts['rows']:,} rows; nothing was written")
                where = f"{source}, {table.unit}"
                texts = [
                    row_text(flatten(row.values), column, where=f"{where} {row.number}", config=data) for row in piece
                ]
                known.add(texts)
                rows = [dict(row.values) for row in piece]
                for row, values in zip(rows, classify(texts), strict=True):
                    row.update(zip(names.values(), values, strict=True))
                yield rows
                on_rows(counts["rows"], table.n_rows)

    if isinstance(target, Path):
        try:
            with (
                replacing(target, temporary=target.with_name(f".{target.name}.unfinished")) as new,
                new.open("wb") as file,
            ):
                _write(file, target, table, names, pieces())
        except OSError as error:
            raise DataError(f"cannot write {target}: {error.strerror or error}; choose another file") from None
    else:
        for row in itertools.chain.from_iterable(pieces()):
            target(row)
    if known.share >= MIN_KNOWN:
        on_note(
            f"{classifier.name} was trained on {known}, and predicts them better than new texts: do not measure its "
            "accuracy on them."
        )
    if (empty := counts["without words"]) and review_below is None:
        on_note(f"{empty:,} row{'s' * (empty > 1)} without words: no label.")
    if review_below is not None:
        n, n_rows = counts["review"], counts["rows"]
        reasons = f"{n - empty:,} with a probability below {100 * review_below:g}\u00a0%"
        reasons += f" and {empty:,} without words" if empty else ""
        share = percentage(n / max(n_rows, 1))
        on_note(f"{n:,} of {n_rows:,} rows need{'s' * (n == 1)} review ({share}): {reasons}.")
    if (n_unusual := counts["unusual"]) >= MANY * max(counts["rows"], 1):
        rows_of = f"{n_unusual:,} of {counts['rows']:,} rows"
        on_note(f"{rows_of} are unusual for this model (column {names[UNUSUAL]}): their predictions may be wrong.")
    return counts["rows"]


def _rank(probabilities: NDArray[np.float64], classes: Sequence[str], k: int) -> Iterator[list[Any]]:
    """Yield the top k classes of each row of (N, C), each followed by its probability; "" and None without words."""
    order = (-probabilities).argsort(axis=1, kind="stable")[:, :k]  # N k
    shares = np.take_along_axis(probabilities, order, axis=1).round(6)  # N k
    for top, row in zip(order.tolist(), shares.tolist(), strict=True):
        pairs = zip(top, row, strict=True)
        yield [cell for c, share in pairs for cell in (("", None) if math.isnan(share) else (classes[c], share))]


def _text_column(classifier: Predictor, table: Table, text_column: str | None, on_note: Callable[[str], object]) -> str:
    """The column that the user named, the one that the classifier was trained on, if the table has it, or a guess."""
    columns, config = table.sample, classifier.checkpoint.config.data
    reason = SPECIFIED
    if text_column is None:
        text_column, _, why_not = columns_as_in_training(columns, config)
        reason = AS_IN_TRAINING if text_column else f"guessed, since {why_not}" if why_not else "guessed"
    column = guess_text_column(columns, file=str(table.path), text_column=text_column)
    parts = text_columns(column, columns)
    table.rows_with_uncalculated_formulas(parts)
    read = f"Texts: column{'s' * (len(parts) > 1)} {list_names(parts)}, {reason}."
    for note in (*table.notes, *left_out_note(table.left_out), read):
        on_note(note)
    cells = zip(*(columns[name] for name in parts), strict=True)
    if are_html([" ".join(map(label_name, row)) for row in cells]):
        on_note(html_note(config, classifier.tokenizer.config.cleaning))
    return column


def _check_target(target: Path, source: Path) -> None:
    """Raise DataError if the target cannot be written, or is the input, even under another name."""
    if target.suffix.lower() not in WRITTEN:
        raise DataError(f"{target}: cannot write this format; expected .csv, .tsv, .jsonl, .parquet or .xlsx")
    is_same = target.exists() and source.exists() and target.samefile(source)
    if is_same or target.resolve() == source.resolve():
        raise DataError(f"{target}: --output is the same file as --input, which would be lost; choose another name")


def _write(
    file: IO[bytes], target: Path, table: Table, names: Mapping[str, str], pieces: Iterable[list[Values]]
) -> None:
    """Write all rows in the format of the target's name; `names` are those of the added columns."""
    suffix, columns = table_suffix(target), (*table.columns, *names.values())
    if suffix == ".parquet":
        _write_parquet(file, table, names, pieces)
        return
    rows: Iterable[Values] = itertools.chain.from_iterable(pieces)
    if suffix == ".xlsx":
        if table.n_rows is not None and table.n_rows >= MAX_SHEET_ROWS:
            raise DataError(
                f"{target}: {table.n_rows:,} rows do not fit into a workbook, which has at most {MAX_SHEET_ROWS - 1:,} "
                "below the column names; write .csv or .parquet"
            )
        write_workbook(file, columns, ([_without_nan(row.get(name)) for name in columns] for row in rows))
        return
    # Lone surrogates, which JSON can contain, are written as escapes, which JSON can read.
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
    if suffix in LINES:
        for row in rows:
            values = {name: _without_nan(value) for name, value in row.items()}
            text.write(json.dumps(values, ensure_ascii=False, default=str) + "\n")
    else:
        delimiter = "\t" if suffix in (".tsv", ".tab") else table.delimiter.strip("\t") or ","
        if table.sheet is not None or table.encoding != "utf-8" or delimiter not in ",\t":
            text.write("\ufeff")  # for Excel
        lines = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        lines.writerow(columns)
        cells = [str(cell) for column in table.sample.values() for cell in column] if delimiter == ";" else []
        if any(map(DECIMAL_COMMA.fullmatch, cells)) and not any(map(_DECIMAL_POINT.fullmatch, cells)):
            new = [name for usual, name in names.items() if usual.startswith(PROBABILITY)]
            rows = (
                row | {name: str(row[name]).replace(".", ",") for name in new if row[name] is not None} for row in rows
            )
        lines.writerows([_without_nan(row.get(name)) for name in columns] for row in rows)
    text.flush()
    text.detach()


def write_workbook(file: IO[bytes], columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a workbook with one sheet, in which numbers, booleans and `DateText` keep their type.

    All else is text, even if it begins with `=`, so that no formula runs. Characters that a workbook forbids are
    removed, and texts are cut after 32,767 characters, as many as a cell can hold.
    """
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("classified")
    for cells in itertools.chain([columns], rows):
        sheet.append([_typed(sheet, value) for value in cells])
    book.save(file)


def _typed(sheet: Any, value: object) -> Any:
    """A value as a cell of `write_workbook`."""
    if isinstance(value, DateText):
        moment = value.value
        return moment.date() if isinstance(moment, datetime) and moment.time() == time.min else moment
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < _MAX_EXACT):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, value="")
    cell.value = _FORBIDDEN.sub("", str(value))[:_MAX_CELL_CHARACTERS]
    cell.data_type = "s"
    return cell


def _write_parquet(file: IO[bytes], table: Table, names: Mapping[str, str], pieces: Iterable[list[Values]]) -> None:
    """Write rows with the types of a Parquet input, or else those of a sample of the values.

    Raises:
        DataError: a column contains values of different types.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    added = {name: pa.float64() if usual.startswith(PROBABILITY) else pa.string() for usual, name in names.items()}
    try:
        own = pq.read_schema(table.path) if table.suffix == ".parquet" else pa.table(dict(table.sample)).schema
        fields = [field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in own]
        schema = pa.schema([*fields, *(pa.field(*column) for column in added.items())])
        with pq.ParquetWriter(file, schema) as writer:
            for rows in pieces:
                writer.write_table(pa.Table.from_pylist(rows, schema=schema))
    except (pa.ArrowException, UnicodeEncodeError, OverflowError) as error:
        raise DataError(
            f"a column contains values of different types or invalid Unicode ({reason_of(error)}), which Parquet "
            "cannot store; write .jsonl instead"
        ) from None


def _without_nan(value: Any) -> Any:
    """None for nan, which does not exist in JSON and is an empty cell in tables."""
    return None if isinstance(value, float) and value != value else value
