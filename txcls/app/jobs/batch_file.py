"""Classify the rows of an uploaded file: the same file comes back with labels and probabilities."""

import codecs
import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from txcls.app.jobs.worker import Job
from txcls.app.shell.limits import limits
from txcls.data.tables.excel import excel_rows
from txcls.data.tables.lines import read_text
from txcls.data.tables.own_table import ENCODINGS, EXCEL, own_suffix
from txcls.data.tables.stream import TableStream
from txcls.data.tables.table import is_json, sniff_delimiter
from txcls.errors import DataError
from txcls.evaluation.scoring import LABEL, PROBABILITY, Scored, score_file
from txcls.predictor import Predictor

PREVIEW_ROWS = 20
_SHORT = 200


def run(job: Job) -> dict[str, Any]:
    """Where the classified file lies, how many rows it has, how many of each label, and its first rows."""
    job.tell("reading the file", share=0.0)
    source, suffix = _plain(job.desk / job.spec["file"], job.folder)
    text_column = str(job.spec["text_column"])
    rows = TableStream(source).survey(text_column=text_column).rows
    if rows > limits().rows:
        raise DataError(
            f"{rows:,} rows, and this server classifies {limits().rows:,} at most (TXCLS_MAX_ROWS); upload a part of "
            "them, or use `python -m txcls predict` on a machine of your own"
        )
    job.tell("loading the model", share=0.0, rows=rows)
    classifier = Predictor.load(Path(job.spec["checkpoint"]))
    target = job.folder / f"scored{'.csv' if suffix in EXCEL else suffix}"

    def told(state: Scored) -> None:
        job.tell("classifying", now=False, share=state.done / max(state.rows, 1), done=state.done, rows=state.rows)

    score_file(
        classifier,
        source,
        target,
        text_column=text_column,
        top_k=int(job.spec["top_k"]),
        spreadsheet_safe=bool(job.spec["safe"]) and target.suffix in (".csv", ".tsv", ".tab"),
        on_progress=told,
    )
    job.tell("preparing the download", share=1.0)
    result = {"rows": rows, **_summary(target, text_column)}
    if suffix in EXCEL:
        target = _as_workbook(target, job.folder / "scored.xlsx")
    elif suffix == ".csv":
        _write_as_given(target, source, job.desk / job.spec["file"])
    return {**result, "file": target.name, "label": LABEL, "probability": PROBABILITY}


def _plain(path: Path, folder: Path) -> tuple[Path, str]:
    """The file as one that is read in pieces, and its format without `.gz`: a workbook as CSV, CSV as UTF-8."""
    suffix = own_suffix(path)
    if suffix in EXCEL:
        rows, _ = excel_rows(path)
        width = max(len(cells) for _, cells in rows)
        table = ([_cell(cell) for cell in (*cells, *[None] * (width - len(cells)))] for _, cells in rows)
        return _as_csv(table, folder / "table.csv"), suffix
    if suffix != ".parquet" and not is_json(suffix):
        text = read_text(path, encodings=ENCODINGS)
        plain = folder / f"table{suffix}"
        plain.write_text(text, encoding="utf-8", newline="")
        return plain, suffix
    return path, suffix


def _cell(value: object) -> str:
    return "" if value is None else str(value)


def _as_csv(rows: Iterable[Sequence[str]], path: Path) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def _write_as_given(target: Path, plain: Path, given: Path) -> None:
    """Write the classified CSV so that the program that wrote the file reads it too: with the file's delimiter, and
    with the byte-order mark by which Excel knows UTF-8, unless it was UTF-8 without one and with commas."""
    with plain.open(encoding="utf-8", newline="") as file:
        delimiter = sniff_delimiter(file.read(100_000))
    if delimiter == "," and _is_unmarked(given):
        return
    made = target.with_name(f"given-{target.name}")
    with made.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
        for number, row in enumerate(TableStream(target).rows()):
            if not number:
                table.writerow(row)
            table.writerow(row.values())
    if made.stat().st_size > len(codecs.BOM_UTF8):
        made.replace(target)


def _is_unmarked(path: Path) -> bool:
    """Whether a file is UTF-8 without a byte-order mark."""
    try:
        return not read_text(path, encodings=("utf-8",)).startswith("\ufeff")
    except DataError:
        return False


def _as_workbook(table: Path, path: Path) -> Path:
    """A CSV file as an Excel workbook in which every cell but a probability is text, so that nothing in it is run."""
    import openpyxl
    from openpyxl.cell import WriteOnlyCell

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("classified")
    columns: list[str] | None = None
    for row in TableStream(table).rows():
        if columns is None:
            columns = list(row)
            sheet.append([_as_text(WriteOnlyCell, sheet, name) for name in columns])
        sheet.append(
            [
                float(value) if name.startswith(PROBABILITY) and value else _as_text(WriteOnlyCell, sheet, value)
                for name, value in row.items()
            ]
        )
    book.save(path)
    return path


def _as_text(kind: Any, sheet: Any, value: str) -> Any:
    """A cell that holds text, whatever it looks like, without characters that a workbook cannot hold."""
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    cell = kind(sheet, value="")
    cell.value = ILLEGAL_CHARACTERS_RE.sub("", value)[:32_767]
    cell.data_type = "s"
    return cell


def _summary(target: Path, text_column: str) -> dict[str, Any]:
    """How many rows have each label, and the first rows."""
    counts: Counter[str] = Counter()
    preview: list[dict[str, Any]] = []
    for row in TableStream(target).rows():
        counts[str(row[LABEL])] += 1
        if len(preview) < PREVIEW_ROWS:
            added = {name: row[name] for name in row if name.startswith((LABEL, PROBABILITY))}
            preview.append({"text": str(row[text_column])[:_SHORT], **added})
    return {"labels": dict(counts.most_common()), "preview": preview}
