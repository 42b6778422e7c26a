import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from txcls.evaluation.metrics import wilson

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "exercises.md"
MAX_LINES = 10
RESULT = re.compile(r"^\| `(\w+)` \| ([\d.]+) % \([\d.]+ to [\d.]+\) \| ([\d.]+), ([\d.]+), ([\d.]+) \|", re.MULTILINE)


@dataclass(frozen=True)
class Exercise:
    """A section of the document: its title, the patch ("" if settings are enough), the options of `train`, and for each
    task the accuracy of seed 0 in per cent."""

    title: str
    patch: str
    options: tuple[str, ...]
    accuracy: dict[str, float]


def read_exercises() -> list[Exercise]:
    """The original model, and then the exercises."""
    _, *sections = re.split(r"^## ", DOCUMENT.read_text("utf-8"), flags=re.MULTILINE)
    exercises = []
    for section in sections:
        if rows := RESULT.findall(section):
            patch = re.search(r"```diff\n(.*?)```", section, re.DOTALL)
            command = re.search(r"^python -m txcls train (.*)$", section, re.MULTILINE)
            assert command is not None, section
            _, *options = shlex.split(command[1])
            options = options[: options.index("--out")] if "--out" in options else options
            accuracy = {task: float(first) for task, _, first, _, _ in rows}
            exercises.append(Exercise(section.partition("\n")[0], patch[1] if patch else "", tuple(options), accuracy))
    return exercises


EXERCISES = read_exercises()


def copy_of_the_package(folder: Path, patch: str) -> Path:
    """A folder with a copy of the package to which the patch was applied."""
    shutil.copytree(ROOT / "txcls", folder / "txcls", ignore=shutil.ignore_patterns("__pycache__"))
    if patch:
        subprocess.run(["git", "apply", "-p0", "-"], cwd=folder, input=patch, text=True, check=True)
    return folder


def txcls_in(folder: Path, *arguments: str, code: int = 0) -> str:
    """The output of a command of the package in a folder: standard output, or standard error if it should fail."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "TXCLS_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "txcls", *arguments]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ran.returncode == code, ran.stderr
    return ran.stderr if code else ran.stdout


def test_there_are_six_exercises_of_ten_lines_or_fewer() -> None:
    original, *exercises = EXERCISES
    assert not original.patch and set(original.accuracy) == {"who_won_small", "repeated_word"}
    assert len(exercises) == 6
    for exercise in exercises:
        added = [line[1:].strip() for line in exercise.patch.splitlines() if re.match(r"\+(?!\+\+)", line)]
        assert len([line for line in added if line]) <= MAX_LINES
        assert exercise.accuracy and exercise.options


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_original_model_has_the_stated_accuracy(tmp_path: Path) -> None:
    folder, task = copy_of_the_package(tmp_path, ""), "who_won_small"
    txcls_in(folder, "train", task, "--seed", "0", "--out", task)
    rows = json.loads(txcls_in(folder, "compare", task, task, "--json"))
    measured = wilson(round(rows["accuracies"][0]["value"] * rows["n"]), rows["n"])
    assert 100 * measured.low - 0.05 <= EXERCISES[0].accuracy[task] <= 100 * measured.high + 0.05


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("exercise", [one for one in EXERCISES if one.patch], ids=lambda exercise: exercise.title)
def test_a_changed_model_trains(exercise: Exercise, tmp_path: Path) -> None:
    folder = copy_of_the_package(tmp_path, exercise.patch)
    txcls_in(folder, "train", "repeated_word", *exercise.options, "--max-steps", "2", "--out", "changed")
    assert (folder / "changed" / "model.safetensors").is_file()


EVERY_PAGE = """
from tests.app.drawn import html_of, open_page
from tests.conftest import make_checkpoint
from txcls.app.menu import PAGES

make_checkpoint(FOLDER / "max", pooling="max")
for page in PAGES:
    app = open_page(page.name, checkpoint="max", text="the bank raised its rates again")
    said = " ".join(element.value for kind in (app.error, app.info, app.warning) for element in kind)
    print(page.name, "not available for max pooling" in said.replace("\\\\", ""))
"""


@pytest.mark.slow
def test_pages_and_commands_say_what_is_not_available_for_a_new_value(tmp_path: Path) -> None:
    patch = next(exercise.patch for exercise in EXERCISES if "max" in exercise.title.lower())
    folder = copy_of_the_package(tmp_path, patch)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "checkpoints").mkdir()
    code = f"from pathlib import Path\nFOLDER = Path({str(folder / 'checkpoints')!r})\n{EVERY_PAGE}"
    environment = {**os.environ, "PYTHONPATH": str(folder), "TXCLS_CHECKPOINTS": str(folder / "checkpoints")}
    drawn = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    assert drawn.returncode == 0, drawn.stderr
    pages = dict(line.split() for line in drawn.stdout.splitlines())
    assert len(pages) > 8
    assert {name for name, says in pages.items() if says == "True"} == {"classify", "steps", "explanation"}
    refused = txcls_in(folder, "export", "page", "max", "--out", "page", code=2)
    assert "not available for max pooling" in refused
    assert "pooled" in txcls_in(folder, "inspect", "max", "the bank raised its rates again")
