"""Any input gives a result or one clear error line, within 2 s and 500 MB. Hypothesis generates the inputs.

At full size (TXCLS_FULL_SIZE, as set by `make attack`), there are twice as many inputs, and new ones each time.
"""

import csv
import gzip
import io
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.app.tiny import PAIRS, PLAIN
from tests.attack.judge import Judge
from tests.conftest import CLASSES, FULL_SIZE, TEXTS, make_checkpoint, with_snapshots
from tests.text.strategies import texts
from txcls.checkpoint.folders import SNAPSHOTS

pytestmark = [pytest.mark.slow, pytest.mark.attack, pytest.mark.timeout(600 if FULL_SIZE else 180)]
many = settings(
    max_examples=60 if FULL_SIZE else 30,
    derandomize=not FULL_SIZE,
    deadline=None,
    phases=(Phase.generate, Phase.shrink),
    database=None,
    suppress_health_check=list(HealthCheck),
)


@dataclass(frozen=True)
class Scene:
    """The process that runs txcls, and a folder with two untrained checkpoints."""

    judge: Judge
    folder: Path


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("attack")
    with_snapshots(make_checkpoint(folder / PLAIN, max_length=24))
    pairs = {"tokenizer": "bpe", "max_vocabulary": 320, "cleaning": ()}
    with_snapshots(make_checkpoint(folder / PAIRS, max_length=24, pooling="class_token", text=pairs))
    with Judge() as judge:
        yield Scene(judge, folder)


# Texts

READ = """
import sys
from txcls.errors import TxclsError
from txcls.inference.predictor import Predictor
from txcls.tap import trace

classifier = Predictor.load(checkpoint)
try:
    [prediction] = classifier.predict([text])
    total = sum(ranked.probability for ranked in prediction.ranked)
    assert prediction.label is None or abs(total - 1) < 1e-4, f"probabilities sum to {total}"
    with trace():
        classifier.predict([text])
except TxclsError as error:
    sys.stderr.write(f"error: {error}\\n")
    sys.exit(2)
"""
long_texts = st.builds(str.__mul__, st.text(st.characters(), min_size=1, max_size=20), st.integers(1, 5000))


@many
@given(checkpoint=st.sampled_from([PLAIN, PAIRS]), text=st.one_of(texts, texts, texts, long_texts))
def test_any_text(scene: Scene, checkpoint: str, text: str) -> None:
    assert not scene.judge.python(READ, checkpoint=str(scene.folder / checkpoint), text=text).problems()


# Damaged bytes

SPECIAL = (
    *(b'"', b"'", b",", b"\t", b"\r", b"\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\ud800", b"\x1b[31m"),
    *(b"{", b"[" * 5000, b"}", b"]", b"null", b"NaN", b"Infinity", b"1e999", b"9" * 5000, b"-1", b"true", b"=1+1"),
)
edits = st.lists(
    st.tuples(
        st.sampled_from(["overwrite", "insert", "delete", "repeat", "cut"]),
        st.floats(0, 1, exclude_max=True),
        st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from(SPECIAL)),
        st.integers(1, 64),
    ),
    min_size=1,
    max_size=6,
)
"""Damage: kind, place as a fraction of the length, the bytes to insert, and the number of repeats or of bytes."""


def damaged(raw: bytes, damage: list[tuple[str, float, bytes, int]]) -> bytes:
    changed = bytearray(raw)
    for kind, share, piece, n in damage:
        place = int(share * len(changed))
        if kind == "overwrite":
            changed[place : place + len(piece)] = piece
        elif kind == "insert":
            changed[place:place] = piece
        elif kind == "delete":
            del changed[place : place + n]
        elif kind == "repeat":
            changed[place:place] = changed[place : place + n] * n
        else:
            del changed[place:]
    return bytes(changed)


# Tables

Rows = list[tuple[str, str]]
cells = st.one_of(texts, st.sampled_from(TEXTS), st.sampled_from(["", "=1+1", "@SUM(A1)", "\t", "x" * 40_000]))
rows = st.lists(st.tuples(cells, st.one_of(st.sampled_from(CLASSES), cells)), max_size=8)


def csv_of(table: Rows) -> bytes:
    target = io.StringIO()
    csv.writer(target, quoting=csv.QUOTE_ALL).writerows([("text", "label"), *table])
    return target.getvalue().encode("utf-8", "surrogatepass")


def json_of(table: Rows) -> bytes:
    return json.dumps([{"text": text, "label": label} for text, label in table]).encode()


def json_lines_of(table: Rows) -> bytes:
    return "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in table).encode()


def parquet_of(table: Rows) -> bytes:
    columns = [[row[n].encode("utf-8", "replace").decode() for row in table] for n in (0, 1)]
    target = io.BytesIO()
    pq.write_table(pa.table([pa.array(column, pa.string()) for column in columns], names=["text", "label"]), target)
    return target.getvalue()


FORMATS: dict[str, Callable[[Rows], bytes]] = {
    ".csv": csv_of,
    ".jsonl": json_lines_of,
    ".json": json_of,
    ".parquet": parquet_of,
    ".csv.gz": lambda table: gzip.compress(csv_of(table), mtime=0),
}


@many
@given(suffix=st.sampled_from(sorted(FORMATS)), command=st.sampled_from(["show", "predict"]), data=st.data())
def test_any_table(scene: Scene, suffix: str, command: str, data: st.DataObject) -> None:
    undamaged = FORMATS[suffix](data.draw(rows) * data.draw(st.sampled_from([1, 1, 20])))
    path, scored = scene.folder / f"table{suffix}", scene.folder / "scored.csv"
    changed = edits.map(lambda damage: damaged(undamaged, damage))
    path.write_bytes(data.draw(st.one_of(st.just(undamaged), changed, st.binary(max_size=200))))
    if command == "show":
        assert not scene.judge.run("data", "show", str(path)).problems()
        return
    shutil.rmtree(f"{scored}.parts", ignore_errors=True)
    scored.unlink(missing_ok=True)
    outcome = scene.judge.run("predict", str(scene.folder / PLAIN), "--input", str(path), "--output", str(scored))
    assert not outcome.problems()
    assert scored.is_file() == (outcome.code == 0), "an output beside an error, or none beside success"


# Checkpoints

JSON_FILES = ("config.json", "tokenizer.json", "labels.json", "metrics.json")
FILES = (*JSON_FILES, "history.jsonl", "model.safetensors", SNAPSHOTS)
REMOVED = object()
"""Instead of a new value: remove the key."""
odd_values = st.one_of(
    st.just(REMOVED),
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


def fresh_copy(scene: Scene, checkpoint: str) -> Path:
    target = scene.folder / "changed"
    shutil.rmtree(target, ignore_errors=True)
    return shutil.copytree(scene.folder / checkpoint, target)


@many
@given(checkpoint=st.sampled_from([PLAIN, PAIRS]), name=st.sampled_from(FILES), damage=edits)
def test_any_bytes_in_a_checkpoint(scene: Scene, checkpoint: str, name: str, damage: Any) -> None:
    folder = fresh_copy(scene, checkpoint)
    (folder / name).write_bytes(damaged((folder / name).read_bytes(), damage))
    assert not scene.judge.run("predict", str(folder), TEXTS[0]).problems()


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Every value inside a JSON value, as (container, key)."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(value, key), *places_in(value[key])]]


@many
@given(
    checkpoint=st.sampled_from([PLAIN, PAIRS]),
    name=st.sampled_from(JSON_FILES),
    number=st.integers(0, 10_000),
    new=odd_values,
)
def test_any_value_in_a_checkpoint(scene: Scene, checkpoint: str, name: str, number: int, new: Any) -> None:
    folder = fresh_copy(scene, checkpoint)
    value = json.loads((folder / name).read_text("utf-8"))
    places = places_in(value)
    container, key = places[number % len(places)]
    if new is REMOVED:
        del container[key]
    else:
        container[key] = new
    (folder / name).write_text(json.dumps(value), "utf-8")
    assert not scene.judge.run("predict", str(folder), TEXTS[0]).problems()
