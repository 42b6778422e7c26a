"""Attacks by folders: bad ones under the checkpoints, small files that ask for gigabytes, saves that are killed."""

import json
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.attack._row import Row, Scene, attack
from benchmarks.attack.commands import cost
from benchmarks.attack.served import complaints, wrong
from tests.app.tiny import PLAIN, save_tiny_checkpoints
from tests.browser.server import serving
from tests.browser.visitors import PAGES, Visit, Visitor
from tests.conftest import make_checkpoint
from tests.fuzz.judge import ROOT, Judge

PATIENCE = 40.0
SILENT = "no answer"
REFUSAL_SECONDS, REFUSAL_MB = 2.0, 300.0


def _changed(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        path = folder / name
        path.write_text(json.dumps(change(json.loads(path.read_text("utf-8")))), "utf-8")

    return make


def _written(name: str, raw: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(raw) and None


def _instead(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    def replaced(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return replaced


def _test(change: Mapping[str, Any]) -> Callable[[Any], Any]:
    return lambda metrics: {**metrics, "test": {**metrics["test"], **change}}


DEEP = b"[" * 100_000 + b"]" * 100_000
LANGUAGE = {"masked": "bad", "causal": "bad"}
CARELESS: Mapping[str, Callable[[Path], None]] = {
    "a checkpoint without its weights": lambda folder: (folder / "model.safetensors").unlink(),
    "an empty config.json": _written("config.json", b""),
    "config.json: a list": _written("config.json", b"[]"),
    "config.json: not UTF-8": _written("config.json", b"\xff\xfe\x00"),
    "config.json: 100,000 brackets": _written("config.json", DEEP),
    "config.json: a title of 1 MB": _changed("config.json", lambda config: {**config, "title": "x" * 2**20}),
    "config.json: a title that is a number": _changed("config.json", lambda config: {**config, "title": 7}),
    "config.json: a link to nowhere": _instead("config.json", lambda path: path.symlink_to("nowhere")),
    "config.json: a link to itself": _instead("config.json", lambda path: path.symlink_to(path)),
    "config.json: a folder": _instead("config.json", Path.mkdir),
    "metrics.json: test is a list": _changed("metrics.json", lambda metrics: {**metrics, "test": []}),
    "metrics.json: an accuracy of 400 digits": _changed("metrics.json", _test({"accuracy": 10**400})),
    "metrics.json: accuracy is a text": _changed("metrics.json", _test({"accuracy": "high"})),
    "metrics.json: no accuracy": _changed("metrics.json", lambda metrics: {"test": {}}),
    "metrics.json: n is a list": _changed("metrics.json", _test({"n": []})),
    "metrics.json: per_class of other classes": _changed("metrics.json", _test({"per_class": [{}]})),
    "metrics.json: confusion is no matrix": _changed("metrics.json", _test({"confusion": [1, [2]]})),
    "metrics.json: NaN": _written("metrics.json", b'{"test": {"accuracy": NaN, "n": Infinity}}'),
    "metrics.json: 100,000 brackets": _written("metrics.json", b'{"test": ' + DEEP + b"}"),
    "metrics.json: a list": _written("metrics.json", b"[]"),
    "history.jsonl: 100,000 brackets": _written("history.jsonl", DEEP + b"\n"),
    "history.jsonl: rows of texts": _written("history.jsonl", b'{"step": "a", "train_loss": null}\n' * 3),
    "history.jsonl: numbers of 400 digits": _written(
        "history.jsonl", b'{"step": 1, "train_loss": 1' + b"0" * 400 + b"}\n"
    ),
    "labels.json: numbers": _written("labels.json", b"[1, 2, 3, 4]"),
    "tokenizer.json: a list": _written("tokenizer.json", b"[]"),
    "weights: cut short": lambda folder: os.truncate(folder / "model.safetensors", 100),
}


def _careless_names(root: Path) -> Mapping[str, Callable[[], object]]:
    """What lies under the checkpoints by itself, and what puts it there; each is named `bad`, or has a strange name."""
    return {
        "a dangling link": lambda: (root / "bad").symlink_to("nowhere"),
        "a dangling link as Emacs leaves it": lambda: (root / ".#bad").symlink_to("user@host.1234"),
        "a link to itself": lambda: (root / "bad").symlink_to("bad"),
        "a link to the folder above": lambda: (root / "bad").symlink_to(".."),
        "an empty folder": lambda: (root / "bad").mkdir(),
        "a file": lambda: (root / "bad").write_text("notes"),
        "a name that is not UTF-8": lambda: shutil.copytree(root / PLAIN, os.fsdecode(os.fsencode(root) + b"/bad\xff")),
        "a name of Markdown and tags": lambda: shutil.copytree(root / PLAIN, root / "bad<b>*[x](y)`$"),
        "a name with a line break and an escape code": lambda: shutil.copytree(root / PLAIN, root / "bad\n\x1b[31m"),
        "a hidden, unfinished save": lambda: shutil.copytree(root / PLAIN, root / ".bad-x1y2z3"),
    }


@attack
def careless_folder(scene: Scene) -> Iterator[Row]:
    """One bad folder of each kind under the checkpoints: every page still answers, with it chosen, too."""
    root = scene.folder / "checkpoints"
    save_tiny_checkpoints(root)
    log = scene.folder / "server.log"
    with serving(log, environment={"TXCLS_CHECKPOINTS": str(root)}) as app:
        with Visitor(app.address) as visitor:  # what the pages need is loaded before
            assert not wrong([visitor.open(page) for page in PAGES]), "pages do not answer without a bad folder either"
        kinds: dict[str, Callable[[], object]] = {
            tried: lambda make=make: _bad_copy(root, make)  # type: ignore[misc]
            for tried, make in CARELESS.items()
        }
        # Last, since a page that waits for a pipe may keep all others waiting.
        pipe = {"config.json: a pipe": lambda: _bad_copy(root, _instead("config.json", os.mkfifo))}
        for tried, put in (kinds | dict(_careless_names(root)) | pipe).items():
            before = set(root.iterdir())
            put()
            problems: dict[str, str] = {}
            for page in PAGES:
                for chosen in (
                    {},
                    {"checkpoint": "bad"},
                    {"masked": "bad", "causal": "bad"} if page == "language" else None,
                ):
                    if chosen is None:
                        continue
                    found = _tried(app.address, page, chosen)
                    if found and page not in problems:
                        problems[page] = found
                if SILENT in problems.get(page, ""):
                    break  # the others would take as long
            for path in set(root.iterdir()) - before:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            first = next(iter(problems.items()), None)
            measured = f"{len(PAGES) - len(problems)} of {len(PAGES)}"
            if first:
                measured += f" ({first[0] or 'classify'}: {first[1][:70]})"
            yield Row(tried, f"all {len(PAGES)} pages answer", measured, not problems)
    problems_said = complaints(log)
    yield Row(
        "all of them",
        "no traceback in the server's log",
        problems_said[0][:80] if problems_said else "none",
        not problems_said,
    )


def _bad_copy(root: Path, make: Callable[[Path], None]) -> None:
    shutil.copytree(root / PLAIN, root / "bad")
    make(root / "bad")


def _seen(address: str, page: str, **params: str) -> Visit:
    with Visitor(address, patience=PATIENCE) as visitor:
        return visitor.open(page, text="the bank raised its rates", **params)


def _tried(address: str, page: str, chosen: Mapping[str, str]) -> str:
    """What went wrong on the page, "" where nothing did."""
    try:
        found = wrong([_seen(address, page, **chosen)])
    except TimeoutError:
        return f"{SILENT} within {PATIENCE:g} s"
    return found[0] if found else ""


def _config(**model: object) -> Callable[[Path], None]:
    return _changed("config.json", lambda config: {**config, "model": {**config["model"], **model}})


def _wide(folder: Path, **model: object) -> None:
    """Settings and tokenizer that fit each other and ask for much; the weights stay small."""
    _config(**model)(folder)
    if "max_length" in model:
        _changed("tokenizer.json", lambda values: {**values, "max_length": model["max_length"]})(folder)


def _many_tokens(folder: Path) -> None:
    """A vocabulary of 6 million tokens in the place of the small one, whatever the key it stands under."""

    def grown(values: Any) -> Any:
        lists = {key: value for key, value in values.items() if isinstance(value, (list, dict)) and len(value) > 5}
        key, value = max(lists.items(), key=lambda item: len(item[1]))
        if isinstance(value, dict):
            return {**values, key: {**value, **{f"t{n}": n + len(value) for n in range(6_000_000)}}}
        return {**values, key: [*value, *(f"t{n}" for n in range(6_000_000))]}

    _changed("tokenizer.json", grown)(folder)


def _header(folder: Path) -> None:
    """A safetensors header that claims terabytes."""
    header = json.dumps(
        {"embeddings.token.weight": {"dtype": "F32", "shape": [2**20, 2**20], "data_offsets": [0, 2**42]}}
    )
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header.encode())


BOMBS: Mapping[str, Callable[[Path], None]] = {
    "config.json: d_model 4,096": lambda folder: _wide(folder, d_model=4096, d_ff=16384),
    "config.json: d_model 65,536": lambda folder: _wide(folder, d_model=65536, n_heads=1024),
    "config.json: 1,000 layers": lambda folder: _wide(folder, n_layers=1000, d_model=1024),
    "config.json: a million layers": lambda folder: _wide(folder, n_layers=1_000_000),
    "config.json: d_ff 100 million": lambda folder: _wide(folder, d_ff=100_000_000),
    "config.json: learned positions for 100 million tokens": lambda folder: _wide(
        folder, max_length=100_000_000, positions="learned"
    ),
    "config.json: sinusoids for 100 million tokens": lambda folder: _wide(folder, max_length=100_000_000),
    "config.json: sinusoids for 8,192 tokens of 16,384": lambda folder: _wide(folder, max_length=8192, d_model=16_384),
    "tokenizer.json: 6 million tokens": _many_tokens,
    "tokenizer.json: 100,000 brackets": _written("tokenizer.json", DEEP),
    "labels.json: 5 million classes": _written("labels.json", json.dumps([f"c{n}" for n in range(5_000_000)]).encode()),
    "model.safetensors: a header of terabytes": _header,
    "model.safetensors: a header's length of 2^62": _written("model.safetensors", struct.pack("<Q", 2**62) + b"{}"),
    "model.safetensors: a header of 200 MB": _written(
        "model.safetensors", struct.pack("<Q", 200_000_000) + b"{" + b" " * 199_999_998 + b"}"
    ),
    "metrics.json: 200 MB": _written("metrics.json", b'{"test": "' + b"x" * 200_000_000 + b'"}'),
    "history.jsonl: 200 MB": _written("history.jsonl", b'{"step": 1}\n' * 16_000_000),
}


@attack
def bombs(scene: Scene) -> Iterator[Row]:
    """Checkpoints of few bytes that ask for much memory: refused in 2 s, with 300 MB on top of an idle process."""
    make_checkpoint(scene.folder / "tiny")
    with Judge() as judge:
        for tried, make in BOMBS.items():
            folder = scene.folder / "bomb"
            shutil.copytree(scene.folder / "tiny", folder)
            make(folder)
            outcome = judge.run("predict", str(folder), "a text")
            problems = outcome.problems(most_seconds=REFUSAL_SECONDS, most_mb=float("inf"))
            if outcome.code == 0:
                problems.append("exit 0")
            if outcome.more_mb > REFUSAL_MB:
                problems.append(f"{outcome.more_mb:.0f} MB on top")
            measured = f"+{outcome.more_mb:.0f} MB, {cost(outcome)}"
            if problems:
                measured = f"{'; '.join(problems)[:150]} ({measured[:50]})"
            limit = f"one line, exit 2; {REFUSAL_SECONDS:g} s, {REFUSAL_MB:g} MB on top"
            yield Row(tried, limit, measured, not problems)
            shutil.rmtree(folder)


@attack
def killed_saves(scene: Scene) -> Iterator[Row]:
    """Saves killed at every step, and a reader beside a writer: a whole checkpoint at any time, no remains offered."""
    command = [sys.executable, "-m", "benchmarks.attack.saves", str(scene.folder)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        yield Row("saves killed at every step", "runs to its end", ran.stderr.strip()[-120:], False)
        return
    told = json.loads(ran.stdout.splitlines()[-1])
    for row in told:
        yield Row(**row)


@attack
def older_date(scene: Scene) -> Iterator[Row]:
    """A checkpoint replaced by one whose files are older, while the app runs: the new one answers."""
    from txcls.checkpoint.checkpoint import load_checkpoint, save_checkpoint

    root = scene.folder / "checkpoints"
    first = make_checkpoint(root / "model", max_length=24)
    other = make_checkpoint(scene.folder / "other" / "model", max_length=24, classes=("left", "right"))
    save_checkpoint(replace(other, config=other.config.model_copy(update={"title": "the newcomer"})))
    assert first.classes != load_checkpoint(scene.folder / "other" / "model").classes
    for path in [*(scene.folder / "other" / "model").iterdir(), scene.folder / "other" / "model"]:
        os.utime(path, (time.time() - 10**6,) * 2)
    with serving(scene.folder / "server.log", environment={"TXCLS_CHECKPOINTS": str(root)}) as app:
        with Visitor(app.address) as visitor:
            before = visitor.open("", text="the bank raised its rates")
        (root / "model").rename(scene.folder / "gone")
        (scene.folder / "other" / "model").rename(root / "model")
        with Visitor(app.address) as visitor:
            after = visitor.open("", text="the bank raised its rates")
    noticed = b"Sports" in before.sent and b"left" in after.sent and b"Sports" not in after.sent
    measured = "noticed" if noticed else "the old one answers still"
    yield Row("a checkpoint replaced by one with an older date", "noticed", measured, noticed)
