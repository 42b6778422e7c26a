"""Folders that are not valid are refused in 2 s and 300 MB, whatever sizes their files claim.

Each folder is loaded in its own process, forked from one that has loaded a valid checkpoint; CPU seconds and peak
megabytes are measured from the fork on.
"""

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.conftest import make_checkpoint
from txcls.text.vocabulary import SPECIAL_TOKENS

MAX_SECONDS, MAX_MEGABYTES = 2.0, 300.0
CHILD = """
import json, os, resource, sys, time
import tokenizers
from txcls.checkpoint.load import load_checkpoint
from txcls.errors import CheckpointError

def usage():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

load_checkpoint(sys.argv[1])
for folder in sys.argv[2:]:
    if not os.fork():
        before, start, said = usage(), time.process_time(), None
        try:
            load_checkpoint(folder)
        except CheckpointError as error:
            said = str(error)
        took = {"said": said, "seconds": time.process_time() - start, "megabytes": usage() - before}
        print(json.dumps([folder, took]), flush=True)
        os._exit(0)
    os.wait()
"""


def settings(**changes: object) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        file = folder / "config.json"
        values = json.loads(file.read_text())
        file.write_text(json.dumps({**values, "model": {**values["model"], **changes}}))

    return change


def tokens(n: int, *, letter: str = "w") -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        file = folder / "tokenizer.json"
        values = json.loads(file.read_text())
        values["tokens"] = [*SPECIAL_TOKENS, *(f"{letter}{number:x}" for number in range(n))]
        file.write_text(json.dumps(values, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")

    return change


def header(**entries: object) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        names = json.dumps(entries).encode()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(names)) + names + b"\0" * 64)

    return change


def claimed_header(size: int, *, file: int) -> Callable[[Path], object]:
    """A sparse file whose first eight bytes claim a header of that size."""

    def change(folder: Path) -> None:
        with (folder / "model.safetensors").open("wb") as target:
            target.write(struct.pack("<Q", size))
            target.write(b"{")
            target.truncate(file)

    return change


def put(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


def many_tensors(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, **{f"x{n}": torch.zeros(1) for n in range(25_000)}}, folder / "model.safetensors")


def history_of_many_rows(folder: Path) -> None:
    row = json.dumps({"epoch": 1, "step": 2, "train_loss": 0.5, "note": "y" * 200})
    (folder / "history.jsonl").write_text(f"{row}\n" * 99_999 + "{", encoding="utf-8")


def both(*changes: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda folder: [change(folder) for change in changes]


WIDE = {"d_model": 16384, "n_heads": 128, "d_ff": 65536, "n_layers": 128, "max_length": 8192}
CLASS = '{"label":"a","precision":1,"recall":1,"f1":1,"support":1}'
CLASSIFIERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "everything at its largest": (settings(**WIDE), "max_length: sinusoidal positions for 8,192 tokens"),
    "6 million tokens": (tokens(6_000_000), "tokenizer.json: larger than 24 MB"),
    "300,000 labels": (put("labels.json", json.dumps([str(n) for n in range(300_000)])), "labels.json: about 300,0"),
    "a terabyte": (
        header(**{"head.weight": {"dtype": "F32", "shape": [2**20, 2**18], "data_offsets": [0, 2**40]}}),
        "not a complete safetensors file",
    ),
    "a header of a terabyte": (claimed_header(2**40, file=100), "not a complete safetensors file"),
    "a header of 90 MB in a file of a terabyte": (claimed_header(90_000_000, file=2**40), "a header of 90,000,000"),
    "25,000 tensors": (many_tensors, "has more tensors"),
    "2 million lists": (put("metrics.json", '{"x":[' + ",".join(["[]"] * 1_900_000) + "]}"), "metrics.json: about 3,8"),
    "90,000 classes": (
        put("metrics.json", '{"test":{"per_class":[' + ",".join([CLASS] * 90_000) + "]}}"),
        "test.n: missing",
    ),
    "history of 30 MB": (history_of_many_rows, "history.jsonl: line 100000: not readable as JSON"),
}


pytestmark = [pytest.mark.slow, pytest.mark.attack, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The message and cost of loading each folder."""
    root = tmp_path_factory.mktemp("large")
    honest = make_checkpoint(root / "honest").path
    for name, (change, _) in CLASSIFIERS.items():
        shutil.copytree(honest, root / name)
        change(root / name)
    names = [*CLASSIFIERS, "honest"]
    command = [sys.executable, "-c", CHILD, str(honest), *(str(root / name) for name in names)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    completed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert completed.returncode == 0, completed.stderr[-2000:]
    return {Path(folder).name: outcome for folder, outcome in map(json.loads, completed.stdout.splitlines())}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_claimed_sizes_above_the_limits_are_refused_quickly(outcomes: dict[str, dict[str, Any]], name: str) -> None:
    outcome, message = outcomes[name], CLASSIFIERS[name][1]
    assert outcome["said"] and message in outcome["said"]
    assert outcome["said"].isprintable() and len(outcome["said"]) <= 1000
    assert outcome["seconds"] < MAX_SECONDS and outcome["megabytes"] < MAX_MEGABYTES, outcome
