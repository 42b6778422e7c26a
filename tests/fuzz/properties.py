"""What must hold whatever comes in: an answer or one clear line, in 2 s and 500 MB. Each kind of input is a `Property`.

The tests try a few examples of each; `python -m benchmarks.fuzz --examples 10000` tries as many as you like.
"""

import gzip
import io
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.app.tiny import PAIRS, PLAIN
from tests.conftest import CLASSES, TEXTS, make_checkpoint, with_snapshots
from tests.data.published.test_imdb import FILES as REVIEWS
from tests.data.published.test_newsgroups import FILES as POSTS
from tests.data.tars import COMPRESS, tar
from tests.fuzz.judge import MOST_SECONDS, Judge
from tests.text.strategies import texts
from txcls.checkpoint.files import SNAPSHOTS
from txcls.lessons.address import View, params_from_view, view_from_params


@dataclass(frozen=True)
class Bench:
    """What the properties share: the process that runs txcls, a folder, two untrained checkpoints in it."""

    judge: Judge
    folder: Path

    def prepare(self) -> None:
        """Write the checkpoints."""
        with_snapshots(make_checkpoint(self.folder / PLAIN, max_length=24))
        pairs = {"tokenizer": "bpe", "max_vocabulary": 320, "cleaning": ()}
        with_snapshots(make_checkpoint(self.folder / PAIRS, max_length=24, pooling="class_token", text=pairs))


@dataclass(frozen=True)
class Property:
    """A kind of input, and the check that says what is wrong with what came of one: nothing, where all is well."""

    name: str
    inputs: SearchStrategy[Any]
    problems: Callable[[Bench, Any], list[str]]


# Bytes


edits = st.lists(
    st.tuples(
        st.sampled_from(["overwrite", "insert", "delete", "repeat", "cut"]),
        st.floats(0, 1, exclude_max=True),
        st.one_of(st.binary(min_size=1, max_size=8), st.deferred(lambda: st.sampled_from(SPECIAL))),
        st.integers(1, 64),
    ),
    min_size=1,
    max_size=6,
)
"""Damages: what is done, where (as a share of the length), with which bytes, how often or over how many."""


def damaged(raw: bytes, damages: list[tuple[str, float, bytes, int]]) -> bytes:
    """The bytes after these damages."""
    changed = bytearray(raw)
    for kind, where, piece, n in damages:
        at = int(where * len(changed))
        if kind == "overwrite":
            changed[at : at + len(piece)] = piece
        elif kind == "insert":
            changed[at:at] = piece
        elif kind == "delete":
            del changed[at : at + n]
        elif kind == "repeat":
            changed[at:at] = changed[at : at + n] * n
        else:
            del changed[at:]
    return bytes(changed)


SPECIAL = (
    *(b'"', b"'", b",", b"\t", b"\r", b"\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\ud800", b"\x1b[31m"),
    *(b"{", b"[" * 5000, b"}", b"]", b"null", b"NaN", b"Infinity", b"1e999", b"9" * 5000, b"-1", b"true", b"=1+1"),
)

# Texts

long_texts = st.builds(
    lambda piece, n: piece * n, st.text(st.characters(), min_size=1, max_size=20), st.integers(1, 5000)
)


def _text_problems(bench: Bench, given: tuple[str, str]) -> list[str]:
    checkpoint, text = given
    return bench.judge.read(bench.folder / checkpoint, text).problems()


# Tables

cells = st.one_of(texts, st.sampled_from(TEXTS), st.sampled_from(["", "=1+1", "@SUM(A1)", "\t", "x" * 40_000]))
rows = st.lists(st.tuples(cells, st.one_of(st.sampled_from(CLASSES), cells)), max_size=8)


def _csv(table: list[tuple[str, str]], delimiter: str) -> bytes:
    import csv

    target = io.StringIO()
    csv.writer(target, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([("text", "label"), *table])
    return target.getvalue().encode("utf-8", "surrogatepass")


def _json_lines(table: list[tuple[str, str]]) -> bytes:
    return "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in table).encode()


def _parquet(table: list[tuple[str, str]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts, labels = ([row[n].encode("utf-8", "replace").decode() for row in table] for n in (0, 1))
    target = io.BytesIO()
    pq.write_table(pa.table({"text": pa.array(texts, pa.string()), "label": pa.array(labels, pa.string())}), target)
    return target.getvalue()


FORMATS: dict[str, Callable[[list[tuple[str, str]]], bytes]] = {
    ".csv": lambda table: _csv(table, ","),
    ".tsv": lambda table: _csv(table, "\t"),
    ".jsonl": _json_lines,
    ".json": lambda table: json.dumps([{"text": text, "label": label} for text, label in table]).encode(),
    ".parquet": _parquet,
    ".csv.gz": lambda table: gzip.compress(_csv(table, ","), mtime=0),
    ".jsonl.gz": lambda table: gzip.compress(_json_lines(table), mtime=0),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, bytes, str]:
    """A suffix, the file's bytes, and what is done with it."""
    suffix = draw(st.sampled_from(sorted(FORMATS)))
    whole = FORMATS[suffix](draw(rows) * draw(st.sampled_from([1, 1, 20])))
    raw = draw(st.one_of(st.just(whole), edits.map(lambda e: damaged(whole, e)), st.binary(max_size=200)))
    return suffix, raw, draw(st.sampled_from(["show", "predict"]))


def _table_problems(bench: Bench, given: tuple[str, bytes, str]) -> list[str]:
    suffix, raw, command = given
    path, scored = bench.folder / f"table{suffix}", bench.folder / "scored.csv"
    path.write_bytes(raw)
    if command == "show":
        return bench.judge.run("data", "show", str(path)).problems()
    shutil.rmtree(f"{scored}.parts", ignore_errors=True)
    scored.unlink(missing_ok=True)
    outcome = bench.judge.run("predict", str(bench.folder / PLAIN), "--input", str(path), "--output", str(scored))
    found = outcome.problems()
    if outcome.code == 0 and not scored.is_file():
        found.append("no output, yet exit code 0")
    if outcome.code and scored.exists():
        found.append("an output beside an error")
    return found


# Archives

ARCHIVES = {"imdb": ("aclImdb_v1", tar(REVIEWS)), "20news": ("20news-bydate", tar(POSTS))}


@st.composite
def archives(draw: st.DrawFn) -> tuple[str, str, bytes]:
    """A data set, the suffix of its archive, and the archive's bytes."""
    name, suffix = draw(st.sampled_from(sorted(ARCHIVES))), draw(st.sampled_from(sorted(COMPRESS)))
    plain = ARCHIVES[name][1]
    raw = draw(
        st.one_of(
            edits.map(lambda damages: COMPRESS[suffix](damaged(plain, damages))),
            edits.map(lambda damages: damaged(COMPRESS[suffix](plain), damages)),
            st.binary(max_size=2000),
        )
    )
    return name, suffix, raw


def _archive_problems(bench: Bench, given: tuple[str, str, bytes]) -> list[str]:
    name, suffix, raw = given
    root = bench.folder / "data"
    shutil.rmtree(root, ignore_errors=True)
    (root / name).mkdir(parents=True)
    (root / name / f"{ARCHIVES[name][0]}{suffix}").write_bytes(raw)
    return bench.judge.run("data", "show", name, env={"TXCLS_DATA": str(root)}).problems()


# Checkpoints

FILES = (
    "config.json",
    "tokenizer.json",
    "labels.json",
    "metrics.json",
    "history.jsonl",
    "model.safetensors",
    SNAPSHOTS,
)
GONE = object()
"""Stands for a value that is left out."""
odd_values = st.one_of(
    st.just(GONE),
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.sampled_from([10**400, -1, 0, 1, 2**31, 2**63, 4096, 1_000_000, 1e308, 1e-320]),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    st.just("x" * 100_000),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.sampled_from(["a", "accuracy", "n", "\ud800"]), st.integers(), max_size=2),
)


values = st.tuples(st.integers(0, 10_000), odd_values)
"""Which of the values within a JSON file becomes which other."""
checkpoint_damages = st.tuples(
    st.sampled_from([PLAIN, PAIRS]),
    st.one_of(
        st.tuples(st.sampled_from(FILES), st.just("bytes"), edits),
        st.tuples(st.sampled_from(FILES[:4]), st.just("value"), values),
    ),
)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every value within a JSON value."""
    if isinstance(value, dict):
        return [place for key in value for place in [(value, key), *_places(value[key])]]
    if isinstance(value, list):
        return [place for key in range(len(value)) for place in [(value, key), *_places(value[key])]]
    return []


def _checkpoint_problems(bench: Bench, given: tuple[str, tuple[str, str, Any]]) -> list[str]:
    checkpoint, (name, kind, change) = given
    target = bench.folder / "changed"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(bench.folder / checkpoint, target)
    path = target / name
    if kind == "bytes":
        path.write_bytes(damaged(path.read_bytes(), change))
    else:
        value = json.loads(path.read_text("utf-8"))
        at, new = change
        if places := _places(value):
            container, key = places[at % len(places)]
            if new is GONE:
                del container[key]
            else:
                container[key] = new
        path.write_text(json.dumps(value), "utf-8")
    return bench.judge.run("predict", str(target), TEXTS[0]).problems()


# Addresses

queries = st.dictionaries(
    st.one_of(st.sampled_from(sorted(params_from_view(View(versus="b", step="s", changed="c")))), st.text(max_size=10)),
    st.one_of(texts, st.sampled_from(["1", "-1", "1e400", "9" * 5000, "nan", "1.1,t3,off", "1.2.3", "", PLAIN])),
    max_size=8,
)


def _query_problems(bench: Bench, given: dict[str, str]) -> list[str]:
    started = time.process_time()
    view, notes = view_from_params(given, checkpoints=[PLAIN, PAIRS])
    again, _ = view_from_params(params_from_view(view), checkpoints=[PLAIN, PAIRS])
    seconds = time.process_time() - started
    found = [f"a note of {len(note)} characters" for note in notes if len(note) > 300]
    if replace(again, text=view.text, changed=view.changed) != view:
        found.append(f"its own address opens another view: {view} against {again}")
    return found + [f"{seconds:.1f} s"] * (seconds > MOST_SECONDS)


PROPERTIES = (
    Property(
        "texts", st.tuples(st.sampled_from([PLAIN, PAIRS]), st.one_of(texts, texts, texts, long_texts)), _text_problems
    ),
    Property("tables", tables(), _table_problems),
    Property("archives", archives(), _archive_problems),
    Property("checkpoints", checkpoint_damages, _checkpoint_problems),
    Property("queries", queries, _query_problems),
)


def search(bench: Bench, of: Property, *, examples: int, derandomize: bool) -> None:
    """Try that many inputs; AssertionError with the smallest one found that goes wrong."""

    @settings(
        max_examples=examples,
        derandomize=derandomize,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        database=None,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(of.inputs)
    def holds(value: Any) -> None:
        found = of.problems(bench, value)
        assert not found, f"{of.name}, {value!r:.2000}: {'; '.join(found)}"

    holds()
