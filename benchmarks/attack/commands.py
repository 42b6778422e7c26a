"""Attacks on the command line: damaged tables and bombs, formulas, outputs that are inputs, hostile labels."""

import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks.attack._row import Row, Scene, attack
from tests.conftest import CLASSES, TEXTS, make_checkpoint
from tests.fuzz.judge import LONGEST_LINE, MOST_MB, MOST_SECONDS, ROOT, Judge, Outcome

LIMIT = f"an answer, or one line and exit 2; {MOST_SECONDS:g} s, {MOST_MB:g} MB"
LEFT = "refused, or a link replaced; the input untouched"
START = "=+-@\t\r\n"
"""A spreadsheet takes a cell for a formula that begins so, and is no number."""
NUMBER = re.compile(r"[+-]?[0-9.]+")


def cost(outcome: Outcome) -> str:
    """Exit code, processor time and memory, and the beginning of what was said."""
    said = outcome.err.strip().splitlines()
    last = "".join(character if character.isprintable() else "�" for character in said[-1]) if said else ""
    spent = f"exit {outcome.code}, {outcome.seconds:.1f} s, {outcome.mb:.0f} MB"
    return f"{spent}: {last[:110]}" if outcome.code else spent


def judged(tried: str, outcome: Outcome, *, refused: bool = False) -> Row:
    """The row of a command that may answer (unless it has to be refused) or refuse in one line."""
    problems = outcome.problems()
    if refused and not outcome.code:
        problems.append("exit 0")
    measured = cost(outcome)
    if problems:
        measured = f"{'; '.join(problems)[:160]} ({measured[:60]})"
    return Row(tried, LIMIT.replace("an answer, or ", "") if refused else LIMIT, measured, not problems)


def _parquet(rows: int, text: str = "a text", **columns: object) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = io.BytesIO()
    table = {"text": pa.array([text]), "label": pa.array(["World"])}
    repeated = {name: pa.repeat(values[0], rows) for name, values in table.items()}
    pq.write_table(pa.table(repeated), target, compression="zstd", use_dictionary=True)
    return target.getvalue()


def _gzipped(piece: bytes, times: int, *, start: bytes = b"", end: bytes = b"") -> bytes:
    """Compressed, without ever holding the whole."""
    target = io.BytesIO()
    with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(start)
        for _ in range(times):
            file.write(piece)
        file.write(end)
    return target.getvalue()


def _damaged_tables() -> Mapping[str, tuple[str, Callable[[], bytes]]]:
    """What is tried, by the file's name: its kind, and what makes its bytes."""
    rows = "text,label\n" + "".join(f"{text},{CLASSES[n % 4]}\n" for n, text in enumerate(TEXTS * 40))
    whole = gzip.compress(rows.encode(), mtime=0)
    parquet = _parquet(1000)
    mebibyte = b"x" * 2**20
    return {
        "no.parquet": ("Parquet: only its first and last bytes", lambda: b"PAR1 nothing else PAR1"),
        "middle.parquet": (
            "Parquet: zeros in its pages",
            lambda: parquet[:8] + bytes(80) + parquet[88:],
        ),
        "footer.parquet": ("Parquet: a damaged footer", lambda: parquet[:-60] + b"\xff" * 20 + parquet[-40:]),
        "short.csv.gz": (".gz: broken off", lambda: whole[: len(whole) // 2]),
        "checksum.csv.gz": (".gz: a wrong checksum", lambda: whole[:-8] + bytes(4) + whole[-4:]),
        "middle.csv.gz": (".gz: damaged in the middle", lambda: whole[:200] + b"\xff" * 40 + whole[240:]),
        "none.csv.gz": (".gz: no gzip at all", lambda: b"text,label\n"),
        "surrogate.jsonl": ("JSON: a lone surrogate in a key", lambda: b'{"te\\ud800xt": "a", "label": "b"}\n' * 3),
        "deep.jsonl": ("JSON: 100,000 brackets", lambda: b"[" * 100_000 + b"]" * 100_000),
        "deep_value.jsonl": (
            "JSON: a value 100,000 deep",
            lambda: b'{"text": "a", "label": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        ),
        "digits.jsonl": (
            "JSON: a number of 5 million digits",
            lambda: b'{"text": "a", "label": ' + b"9" * 5_000_000 + b"}",
        ),
        "nul.csv": ("CSV: 1 MB of zero bytes", lambda: bytes(2**20)),
        "quote.csv": ("CSV: a quote that never closes, 50 MB", lambda: b'text,label\n"' + b"word " * 10_000_000),
        "columns.csv": ("CSV: 500,000 columns", lambda: b",".join(b"c%d" % n for n in range(500_000)) + b"\n"),
        "field.csv.gz": (
            ".gz: a field of 1 GB in 1 MB",
            lambda: _gzipped(mebibyte, 1024, start=b"text,label\n", end=b",World\n"),
        ),
        "lines.csv.gz": (
            ".gz: 200 million empty lines",
            lambda: _gzipped(b"\n" * 2**20, 200, start=b"text,label\n"),
        ),
        "field.jsonl.gz": (
            ".gz: a JSON text of 1 GB",
            lambda: _gzipped(mebibyte, 1024, start=b'{"label": "World", "text": "', end=b'"}\n'),
        ),
        "rows.parquet": ("Parquet: 20 million rows in few bytes", lambda: _parquet(20_000_000)),
        "text.parquet": ("Parquet: 2,000 rows of 1 MB each, all alike", lambda: _parquet(2000, "word " * 200_000)),
    }


@attack
def tables(scene: Scene) -> Iterator[Row]:
    """Damaged and exploding tables, shown and scored: an answer or one line, in 2 s and 500 MB."""
    make_checkpoint(scene.folder / "tiny")
    with Judge() as judge:
        for name, (tried, make) in _damaged_tables().items():
            path = scene.folder / name
            path.write_bytes(make())
            size = f"{path.stat().st_size / 1e6:.2g} MB"
            yield judged(f"data show, {tried} ({size})", judge.run("data", "show", str(path)))
            output = scene.folder / "scored.csv"
            # Rows that are there are scored however many they are: of these files, only refusals have to be quick.
            if name not in ("rows.parquet", "text.parquet", "lines.csv.gz"):
                scored = judge.run("predict", str(scene.folder / "tiny"), "--input", str(path), "--output", str(output))
                yield judged(f"predict --input, {tried} ({size})", scored)
            path.unlink()
            shutil.rmtree(f"{output}.parts", ignore_errors=True)


@attack
def formulas(scene: Scene) -> Iterator[Row]:
    """Formulas in texts, labels and column names: none left in a table written with --spreadsheet-safe."""
    classes = ("=cmd|' /C calc'!A0", "@SUM(A1:A9)", "+1+1", "-2")
    make_checkpoint(scene.folder / "tiny", classes=classes)
    source, target = scene.folder / "in.csv", scene.folder / "out.csv"
    with source.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", '=HYPERLINK("http://a.b")', "@note", "\tcmd"])
        for text in TEXTS:
            writer.writerow([text, '=IMPORTXML("http://a.b")', "+1", "\r=1+1"])
    with Judge() as judge:
        plain = judge.run("predict", str(scene.folder / "tiny"), "--input", str(source), "--output", str(target))
        yield Row("formulas, as they are without the option", "written", cost(plain), plain.code == 0)
        target.unlink(missing_ok=True)
        safe = judge.run(
            *("predict", str(scene.folder / "tiny"), "--input", str(source), "--output", str(target)),
            "--spreadsheet-safe",
        )
    if safe.code:
        yield Row("formulas with --spreadsheet-safe", "no cell begins as a formula", cost(safe), False)
        return
    with target.open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    bad = [cell for cell in cells if cell.startswith(tuple(START)) and not NUMBER.fullmatch(cell)]
    measured = f"{len(bad)} of {len(cells)} cells" + (f", such as {bad[0][:40]!r}" if bad else "")
    yield Row("formulas with --spreadsheet-safe", "no cell begins as a formula", measured, bool(cells) and not bad)


@attack
def output_is_input(scene: Scene) -> Iterator[Row]:
    """--output naming the file of --input, outright, by links and by another path: refused, the file untouched."""
    make_checkpoint(scene.folder / "tiny")
    source = scene.folder / "texts.csv"
    rows = "text,label\n" + "".join(f"{text},World\n" for text in TEXTS)
    (scene.folder / "link.csv").symlink_to(source)
    (scene.folder / "sub").mkdir()
    with Judge() as judge:
        source.write_text(rows)
        os.link(source, scene.folder / "hard.csv")
        for tried, output in (
            ("the same path", source),
            ("a symbolic link to it", scene.folder / "link.csv"),
            ("a hard link to it", scene.folder / "hard.csv"),
            ("another spelling of the path", scene.folder / "sub" / ".." / "texts.csv"),
        ):
            outcome = judge.run("predict", str(scene.folder / "tiny"), "--input", str(source), "--output", str(output))
            untouched = source.read_text() == rows
            refused = outcome.code == 2 and not outcome.problems()
            by_link = outcome.code == 0 and output != source and output.name != source.name  # the link was replaced
            measured = cost(outcome) + ("" if untouched else "; the input is gone")
            yield Row(f"--output is --input: {tried}", LEFT, measured, untouched and (refused or by_link))
            source.write_text(rows)


@attack
def hostile_labels(scene: Scene) -> Iterator[Row]:
    """Labels and column names of 100 kB with escape codes: errors stay short, and show the codes as text."""
    label = "\x1b[31m\x1b]0;title\x07" + "x" * 100_000
    with Judge() as judge:
        for tried, name, raw, argv in _hostile(label):
            path = scene.folder / name
            path.write_text(raw, encoding="utf-8")
            outcome = judge.run(*(str(path) if part == "FILE" else part for part in argv))
            problems = outcome.problems() if outcome.code else []
            if "\x1b" in outcome.out + outcome.err or "\x07" in outcome.out + outcome.err:
                problems.append("escape codes reach the terminal")
            if len(outcome.err.rstrip("\n")) > LONGEST_LINE:
                problems.append(f"{len(outcome.err):,} characters of error")
            yield Row(
                tried,
                f"at most {LONGEST_LINE:,} characters, no escape code",
                "; ".join(dict.fromkeys(problems))[:120] or f"exit {outcome.code}, {len(outcome.err):,} characters",
                not problems,
            )


def _hostile(label: str) -> Iterator[tuple[str, str, str, list[str]]]:
    """What is tried, the file's name and contents, and the command line."""
    show = ["data", "show", "FILE"]
    json_row = json.dumps({"text": "a", "label": label})
    yield "a label of 100 kB with escape codes, shown", "label.jsonl", f"{json_row}\n" * 3, show
    yield "the same in a column name", "column.jsonl", json.dumps({label: "a", "b": "c"}) + "\n", show
    yield "the same as a text that is no text", "value.jsonl", json.dumps({"text": [label], "label": "a"}) + "\n", show
    yield "the same as --text-column", "t.csv", "text,label\na,b\n", [*show, "--text-column", label]
    yield "the same as a checkpoint's name", "t.csv", "", ["predict", label, "a text"]
    yield "the same as a setting", "t.csv", "", ["train", "sample", "--set", f"model.{label}=1", "--out", "FILE.x"]
    table = ["--data", "FILE", "--set", "data.dataset=table", "--out", "FILE.x"]
    rows = "".join(json.dumps({"text": text, "label": "a"}) + "\n" for text in TEXTS)
    yield "the same as a class with a single row, trained", "train.jsonl", rows + json_row, ["train", "sample", *table]


@attack
def parts_missing(scene: Scene) -> Iterator[Row]:
    """Files alone, and JSON files that lack one of their fields, or a field of a field: refused in one line."""
    make_checkpoint(scene.folder / "tiny")
    tokenizer = (scene.folder / "tiny" / "tokenizer.json").read_bytes()
    gpt2 = b'{"model_type": "gpt2"}'
    empty = b"\x08" + bytes(7) + b"{}      "
    with Judge() as judge:
        for files in (
            {"tokenizer.json": tokenizer},
            {"tokenizer.json": tokenizer, "config.json": gpt2},
            {"config.json": gpt2, "model.safetensors": empty, "vocab.json": b"{}", "merges.txt": b""},
        ):
            folder = scene.folder / "alone"
            folder.mkdir()
            for name, raw in files.items():
                (folder / name).write_bytes(raw)
            for command in ("predict", "generate", "import"):
                more = [] if command == "import" else ["a text"]
                yield judged(f"{command}: {', '.join(files)}", judge.run(command, str(folder), *more), refused=True)
            shutil.rmtree(folder)
        for name in ("config.json", "tokenizer.json"):
            path = scene.folder / "tiny" / name
            whole = path.read_text("utf-8")
            problems, tried = [], 0
            for keys in _keys(json.loads(whole)):
                values = json.loads(whole)
                inner = values
                for key in keys[:-1]:
                    inner = inner[key]
                del inner[keys[-1]]
                path.write_text(json.dumps(values), "utf-8")
                tried += 1
                found = judge.run("predict", str(scene.folder / "tiny"), "a text").problems()
                problems += [f"without {'.'.join(keys)}: {one}" for one in found]
            path.write_text(whole, "utf-8")
            measured = f"{len(problems)} of {tried} not{'; ' + problems[0][:100] if problems else ''}"
            yield Row(f"{name} without one of its {tried} fields", LIMIT, measured, not problems)


def _keys(values: object) -> Iterator[list[str]]:
    """Where each field of an object, and of the objects in it, stands."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield [key]
            yield from ([key, *inner] for inner in _keys(value))


def txcls(*argv: str, **options: object) -> "subprocess.Popen[str]":
    """The command line in a process of its own, its output read as text."""
    return subprocess.Popen(
        [sys.executable, "-m", "txcls", *argv],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )


def one_line(err: str, *words: str) -> list[str]:
    """What is wrong with an error that should be one short line with one of these words."""
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    found = []
    if "Traceback" in err:
        found.append("a traceback")
    if len(lines) != 1 or len(lines[-1]) > LONGEST_LINE:
        found.append(f"{len(lines)} error lines")
    elif words and not any(word in lines[0].lower() for word in words):
        found.append(f"not said: {' or '.join(words)}")
    return found


def last_line(path_or_text: Path | str) -> str:
    """The last line of a text, printable and short."""
    lines = str(path_or_text).strip().splitlines()
    return "".join(c if c.isprintable() else "�" for c in (lines[-1] if lines else ""))[:120]
