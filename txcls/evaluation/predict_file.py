"""Classify the rows of a file of any size in constant memory, and resume after an interruption.

Rows are processed in parts. Each part is written atomically to a file in a folder next to the output, and the parts are
joined at the end. An interruption at any time, even SIGKILL, leaves no incomplete rows, and `resume` processes only the
missing parts.
"""

import codecs
import csv
import gzip
import hashlib
import io
import itertools
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.folders import FILES
from txcls.config import Precision
from txcls.data.columns import (
    AS_IN_TRAINING,
    SPECIFIED,
    columns_as_in_training,
    guess_text_column,
    text_columns,
    why_not_as_in_training,
)
from txcls.data.hashes import MIN_KNOWN, known_texts
from txcls.data.html import are_html, html_note
from txcls.data.labels import label_name
from txcls.data.tables.table import EXCEL, JSON, Table, Values, flatten, row_text, table_suffix
from txcls.data.tables.write import MAX_SHEET_ROWS, DateText, escape_formula, write_workbook
from txcls.errors import CheckpointError, DataError, StoppedError
from txcls.evaluation.unlike_validation import RowGroups, rows_unlike_validation
from txcls.inference.predictor import Predictor
from txcls.runtime.files import replacing
from txcls.runtime.interrupts import stop_requests
from txcls.wording import listed, percentage

if TYPE_CHECKING:
    import pyarrow as pa

PART_ROWS = 8192
"""Rows per part, which is the maximum number of rows classified again after an interruption."""
CHUNK_ROWS = 512
"""Rows classified at once; stop requests are checked in between."""
LABEL, PROBABILITY = "predicted_label", "probability"
"""The columns added to the output; input columns of the same name are replaced."""
REVIEW = "needs_review"
"""The column with `yes` in rows to leave to a human, and `no` in all others."""


def added_columns(top_k: int = 1, *, with_review: bool = False) -> tuple[str, ...]:
    """The added columns: `predicted_label`, `probability`, `predicted_label_2`, … for the top k classes, and REVIEW."""
    further = (f"{name}_{rank}" for rank in range(2, top_k + 1) for name in (LABEL, PROBABILITY))
    return (LABEL, PROBABILITY, *further, *([REVIEW] if with_review else []))


def predict_file(
    classifier: Predictor,
    source: Path,
    target: Path,
    *,
    text_column: str | None = None,
    sheet: str | None = None,
    precision: Precision = "float32",
    top_k: int = 1,
    review_below: float | None = None,
    spreadsheet_safe: bool = False,
    resume: bool = False,
    on_checked: Callable[["CheckedTexts"], object] | None = None,
    on_rows: Callable[[int, int], object] | None = None,
) -> "ClassifiedFile":
    """Write the rows of `source` with label and calibrated probability to `target`.

    Rows without words get an empty label and no probability. Probabilities are rounded to six decimals. A CSV file has
    the delimiter of the input, and text formats are UTF-8. If the input is a workbook or seems to be from Excel (it has
    another delimiter or encoding, or a byte-order mark), CSV and TSV files begin with the byte-order mark that Excel
    needs.

    Args:
        source: any table that `txcls.data.tables.table` can read.
        target: CSV, TSV, JSON Lines, Parquet or Excel, according to its suffix; text formats may be gzipped. An
            existing file is replaced only when the new one is complete. For a workbook, see `write_workbook`.
        text_column: the column with the texts; None for the column that the classifier was trained on, or a guess.
        sheet: the sheet of a workbook; None for the one that the classifier was trained on, if the workbook has it, or
            else the one with the most rows.
        precision: "float32" gives the same probabilities as `Predictor.predict`; for the other values, which are faster
            on some processors, see `Predictor.probabilities`.
        top_k: number of most probable classes to write, in the columns of `added_columns`.
        review_below: add the column REVIEW, which is `yes` if the row has no words, or if its highest probability is
            lower than this.
        spreadsheet_safe: escape CSV and TSV fields that a spreadsheet would run as a formula: see `escape_formula`.
        resume: continue an interrupted run with the same arguments.
        on_checked: called when all rows have been checked, before the first is classified.
        on_rows: called with the number of rows done and the total number of rows.

    Raises:
        DataError: the table is damaged, which is checked before any row is classified; the target cannot be written, is
            the source itself, cannot be `spreadsheet_safe`, or is a workbook, for which there are too many rows; there
            is an unfinished run (without `resume`), or no run or a different one (with `resume`); or there are fewer
            than `top_k` classes.
        CheckpointError: the classifier is not saved.
        StoppedError: Ctrl-C or SIGTERM; finished parts are kept on disk.
    """
    folder = target.with_name(f"{target.name}.parts")
    _refuse_overwriting(source, target, folder)
    if (saved := classifier.checkpoint.path) is None:
        raise CheckpointError(f"{classifier.name} is not saved, so a run could not be resumed; save it first")
    if not 1 <= top_k <= len(classifier.classes):
        raise DataError(f"got top_k={top_k}; expected 1 to {len(classifier.classes)}, the number of classes")
    usual_sheet = classifier.checkpoint.config.data.sheet
    table, suffix = Table(source, sheet=sheet, usual_sheet=usual_sheet), table_suffix(target)
    if suffix in (".txt", ".xlsm"):
        raise DataError(f"{target}: cannot write this format; expected .csv, .tsv, .jsonl, .parquet or .xlsx")
    if spreadsheet_safe and suffix in (*JSON, ".parquet", ".xlsx"):
        raise DataError(f"{target}: spreadsheet-safe output is CSV or TSV; other formats contain no formulas")
    checked = checked_texts(classifier, table, text_column=text_column)
    if suffix == ".xlsx" and checked.n_rows >= MAX_SHEET_ROWS:
        raise DataError(
            f"{target}: {checked.n_rows:,} rows do not fit into a workbook, which has at most {MAX_SHEET_ROWS - 1:,} "
            "below the column names; write .csv or .parquet"
        )
    if on_checked is not None:
        on_checked(checked)
    n_rows, column = checked.n_rows, checked.text_column
    added = added_columns(top_k, with_review=review_below is not None)
    columns = tuple(dict.fromkeys((*table.columns, *added)))
    schema = None
    delimiter = "\t" if suffix in (".tsv", ".tab") else table.delimiter.strip("\t") or ","
    is_for_excel = table.suffix in EXCEL or table.encoding != "utf-8" or delimiter not in ",\t"
    writer = _Writer(suffix, columns, schema, spreadsheet_safe, added, delimiter, is_for_excel)
    plan = {
        "input_sha256": _sha256([source]),
        "checkpoint_sha256": _sha256(saved / name for name in FILES[:4]),
        "text_column": column,
        "sheet": table.sheet,
        "columns": list(columns),
        "part_rows": PART_ROWS,
        "precision": precision,
        "spreadsheet_safe": spreadsheet_safe,
        "top_k": top_k,
        "review_below": review_below,
    }
    _prepare_folder(folder, plan, resume=resume)
    files = [folder / f"{number:08}" for number in range(-(-n_rows // PART_ROWS))]
    done = min(sum(file.exists() for file in files) * PART_ROWS, n_rows)

    def report() -> None:
        if on_rows is not None:
            on_rows(done, n_rows)

    counts, groups = Counter[str](), RowGroups(classifier.tokenizer)
    with stop_requests() as stop_requested:
        report()
        for file, table_rows in zip(files, table.chunks(PART_ROWS, flat=suffix not in JSON), strict=False):
            if file.exists():
                continue
            rows, classified = [dict(row.values) for row in table_rows], 0
            while classified < len(rows):
                if stop_requested():
                    raise StoppedError(
                        f"stopped after {done - classified:,} of {n_rows:,} rows, which are saved in {folder}; "
                        f"continue with --resume"
                    )
                chunk = rows[classified : classified + CHUNK_ROWS]
                groups.add(_add_labels(classifier, chunk, column, precision, top_k))
                counts["rows"] += len(chunk)
                if review_below is not None:
                    for row in chunk:
                        is_below = (row[PROBABILITY] or 0.0) < review_below
                        row[REVIEW] = "yes" if is_below else "no"
                        counts["below" if row[LABEL] else "without words"] += is_below
                classified, done = classified + len(chunk), done + len(chunk)
                if classified < len(rows):
                    report()
            with _open_atomically(file) as output:
                writer.write(rows, output)
            report()
    with _open_atomically(target, temporary=folder / "joined") as output:
        writer.join(files, output)
    shutil.rmtree(folder)
    review = "" if review_below is None else _review_sentence(counts, review_below, is_part=counts["rows"] < done)
    return ClassifiedFile(done, checked, review, rows_unlike_validation(classifier.checkpoint, groups.groups))


class ClassifiedFile(NamedTuple):
    """What was found when a file was classified.

    Attributes:
        n_rows: number of rows written.
        checked: what was found when all rows were checked.
        review: how many rows need review; "" without `review_below`.
        unlike: sentences if many rows are unlike the validation texts, otherwise "".
    """

    n_rows: int
    checked: "CheckedTexts"
    review: str
    unlike: str


def _review_sentence(counts: Mapping[str, int], below: float, *, is_part: bool) -> str:
    n, n_rows = counts["below"] + counts["without words"], counts["rows"]
    rows = f"{n:,} of {n_rows:,} rows{' classified in this run' * is_part} need{'s' * (n == 1)} review"
    reasons = [f"{counts['below']:,} with a probability below {100 * below:g}\u00a0%"]
    if counts["without words"]:
        reasons.append(f"{counts['without words']:,} without words")
    return f"{rows} ({percentage(n / max(n_rows, 1))}): {' and '.join(reasons)}."


class CheckedTexts(NamedTuple):
    """What was found when all rows of a table were checked.

    Attributes:
        text_column: the column, or columns, with the texts.
        notes: sentences on how the table was read, the last one on the text column.
        warning: sentences if the classifier was trained on some of the rows, or if the texts are HTML, otherwise "".
    """

    n_rows: int
    text_column: str
    notes: tuple[str, ...]
    warning: str


def checked_texts(classifier: Predictor, table: Table, *, text_column: str | None) -> CheckedTexts:
    """Read and check all rows of a table.

    `text_column` is the column that the user named; None for the one that the classifier was trained on, if the table
    has it, otherwise a guess.

    Raises:
        DataError: the table is damaged, or has a row with more fields than columns, or no column of texts.
    """
    columns, config = table.sample, classifier.checkpoint.config.data
    reason = SPECIFIED
    if text_column is None:
        text_column, why_not = columns_as_in_training(columns, config)[0], why_not_as_in_training(columns, config)
        reason = AS_IN_TRAINING if text_column else f"guessed, since {why_not}" if why_not else "guessed"
    column, n_rows = guess_text_column(columns, file=str(table.path), text_column=text_column), 0

    def texts() -> Iterator[str]:
        nonlocal n_rows
        for number, values in table.rows(text_columns(column, table.columns)):
            n_rows += 1
            yield row_text(values, column, where=f"{table.path}, {table.unit} {number}", config=config)

    known = known_texts(texts(), classifier.checkpoint.metrics.get("data", {}).get("sketch", ()))
    if table.n_left_out:
        raise DataError(
            f"{table.too_wide_error()}, or remove such rows: training leaves them out, but here every row gets a "
            "prediction"
        )
    warnings = []
    if known.share >= MIN_KNOWN:
        warnings.append(
            f"{classifier.name} was trained on {known}, and predicts them better than new texts: do not measure its "
            "accuracy on them."
        )
    parts = text_columns(column, columns)
    cells = zip(*(columns[name] for name in parts), strict=True)
    if are_html([" ".join(map(label_name, row)) for row in cells]):
        warnings.append(html_note(config, classifier.tokenizer.config.cleaning))
    texts_note = f"Texts: column{'s' * (len(parts) > 1)} {listed(parts)}, {reason}."
    return CheckedTexts(n_rows, column, (*table.notes, texts_note), " ".join(warnings))


def _add_labels(
    classifier: Predictor, rows: Sequence[Values], text_column: str, precision: Precision, top_k: int
) -> list[NDArray[np.int32]]:
    """Add the columns of the best classes and their probabilities to the rows; return the ids of texts with words."""
    config = classifier.checkpoint.config.data
    texts = [row_text(flatten(row), text_column, where="a row", config=config) for row in rows]
    ids = classifier.tokenizer.encode_ids(texts)
    labelled = _top_classes(classifier, ids, precision, top_k)
    for row, ranked in zip(rows, labelled, strict=True):
        row.update(zip(added_columns(top_k), itertools.chain.from_iterable(ranked), strict=True))
    return [read for read, ranked in zip(ids, labelled, strict=True) if ranked[0][1] is not None]


def _top_classes(
    classifier: Predictor, ids: Sequence[NDArray[np.int32]], precision: Precision, top_k: int
) -> list[list[tuple[str, float | None]]]:
    """The top k classes of each text and their probabilities; "" and None for texts without words."""
    rows = classifier.id_probabilities(ids, precision=precision)  # N C
    order = (-rows).argsort(axis=1, kind="stable")[:, :top_k]  # N k
    return [
        [("", None) if np.isnan(row[c]) else (classifier.classes[c], round(float(row[c]), 6)) for c in top]
        for top, row in zip(order, rows, strict=True)
    ]


def _prepare_folder(folder: Path, plan: Mapping[str, Any], *, resume: bool) -> None:
    """Create the folder for the parts, or check that its run can be resumed with this plan."""
    file = folder / "plan.json"
    if not folder.exists():
        if resume:
            raise DataError(f"nothing to resume: there is no {folder}; start without --resume")
        try:
            folder.mkdir()
        except OSError as error:
            raise DataError(f"cannot write {folder}: {error.strerror}; choose another file") from None
        with _open_atomically(file) as output:
            output.write(json.dumps(plan).encode())
        return
    if not resume:
        raise DataError(
            f"{folder} holds an unfinished run; continue it with --resume, or remove the folder to start again"
        )
    try:
        saved = dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{file} cannot be read ({error}); remove {folder} and start without --resume") from None
    if differing := [name for name in plan if saved.get(name) != plan[name]]:
        raise DataError(
            f"{folder} is from a run with different settings ({', '.join(differing)}) and cannot be resumed; repeat "
            "the original command, or remove the folder and start without --resume"
        )


@dataclass(frozen=True)
class _Writer:
    """Writes parts and joins them; for Parquet, `schema` has the Arrow types of the input's columns."""

    suffix: str
    columns: tuple[str, ...]
    schema: "pa.Schema | None"
    spreadsheet_safe: bool
    added: tuple[str, ...]
    delimiter: str
    is_for_excel: bool

    def write(self, rows: Sequence[Values], file: IO[bytes]) -> None:
        """Write one part."""
        if self.suffix == ".parquet":
            self._write_parquet(rows, file)
            return
        # Lone surrogates, which JSON can contain, are written as escapes, which JSON can read.
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
        if self.suffix in JSON:
            for row in rows:
                values = {name: _without_nan(value) for name, value in row.items()}
                text.write(json.dumps(values, ensure_ascii=False, default=str) + "\n")
        elif self.suffix == ".xlsx":  # as JSON until all parts are joined
            for row in rows:
                text.write(json.dumps([_to_json(row.get(name)) for name in self.columns]) + "\n")
        else:
            self._csv_rows(text, ([row.get(name) for name in self.columns] for row in rows))
        text.flush()
        text.detach()

    def join(self, parts: Sequence[Path], file: IO[bytes]) -> None:
        """Join all parts in order, with a header if the format has one."""
        if self.suffix == ".parquet":
            import pyarrow.parquet as pq

            with pq.ParquetWriter(file, self._parquet_schema()) as writer:
                for part in parts:
                    writer.write_table(pq.read_table(part))
            return
        if self.suffix == ".xlsx":
            lines = itertools.chain.from_iterable(part.read_text("utf-8").splitlines() for part in parts)
            write_workbook(file, self.columns, ([_from_json(cell) for cell in json.loads(line)] for line in lines))
            return
        if self.suffix not in JSON:
            header = io.StringIO(newline="")
            self._csv_rows(header, [self.columns])
            head = header.getvalue().encode(errors="backslashreplace")
            file.write((codecs.BOM_UTF8 if self.is_for_excel else b"") + head)
        for part in parts:
            with part.open("rb") as read:
                shutil.copyfileobj(read, file)

    def _csv_rows(self, text: io.TextIOBase, rows: Iterable[Sequence[Any]]) -> None:
        # With all fields quoted, a spreadsheet-safe file works with any locale's separator.
        csv.writer(
            text,
            delimiter=self.delimiter,
            lineterminator="\n",
            quoting=csv.QUOTE_ALL if self.spreadsheet_safe else csv.QUOTE_MINIMAL,
        ).writerows(
            [
                escape_formula(cell) if self.spreadsheet_safe and isinstance(cell, str) else _without_nan(cell)
                for cell in row
            ]
            for row in rows
        )

    def _parquet_schema(self) -> "pa.Schema":
        import pyarrow as pa

        types = {field.name: field.type for field in self.schema or ()}
        types |= {name: pa.float64() if name.startswith(PROBABILITY) else pa.string() for name in self.added}
        return pa.schema([(name, types[name]) for name in self.columns])

    def _write_parquet(self, rows: Sequence[Values], file: IO[bytes]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            pq.write_table(pa.Table.from_pylist(list(rows), schema=self._parquet_schema()), file)
        except (pa.ArrowException, UnicodeEncodeError, OverflowError) as error:
            raise DataError(f"a row cannot be written as Parquet ({error}); write another format") from None


def _refuse_overwriting(source: Path, target: Path, folder: Path) -> None:
    """Raise DataError if writing would destroy the input, even under another name."""
    is_same = target.exists() and source.exists() and target.samefile(source)
    if is_same or target.resolve() == source.resolve():
        raise DataError(f"{target}: --output is the same file as --input, which would be lost; choose another name")
    if folder.resolve() in source.resolve().parents:
        raise DataError(f"{source} is in {folder}, which is removed at the end of the run; move the file first")


def _without_nan(value: Any) -> Any:
    """None for nan, which does not exist in JSON and is an empty cell in tables."""
    return None if isinstance(value, float) and value != value else value


def _to_json(cell: Any) -> Any:
    """A workbook's cell in a part: objects are dates, and lists and objects from JSON become text."""
    if isinstance(cell, DateText):
        return {"date": cell.value.isoformat()}
    return _without_nan(cell) if cell is None or isinstance(cell, str | int | float) else str(cell)


def _from_json(cell: Any) -> Any:
    return DateText(datetime.fromisoformat(cell["date"])) if isinstance(cell, dict) else cell


@contextmanager
def _open_atomically(path: Path, *, temporary: Path | None = None) -> Iterator[IO[bytes]]:
    """Open a file to write, which replaces `path` at the end of the block; gzipped if the name ends in .gz.

    Raises:
        DataError: the file cannot be written.
    """
    try:
        with replacing(path, temporary=temporary) as new, new.open("wb") as raw:
            if path.name.lower().endswith(".gz"):
                # Without name and time in the header, the same rows give the same bytes.
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as compressed:
                    yield cast("IO[bytes]", compressed)
            else:
                yield raw
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}; choose another file") from None


def _sha256(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
