import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.bert import write_bert
from tests.conftest import make_checkpoint, pack
from txcls import cli
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.types import join_rows
from txcls.evaluation.linear import fit_linear
from txcls.inference.predictor import Predictor
from txcls.inspection.heads import HeadMeasurements


def settings(*assignments: str) -> list[str]:
    return [word for assignment in assignments for word in ("--set", assignment)]


QUICK = settings("train.epochs=2", "model.d_model=16", "model.n_layers=1", "train.precision=float32")


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TXCLS_CACHE": str(cache)}


class Result:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def objects(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Run a command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "140")

    def call(*arguments: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["txcls", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        captured = capsys.readouterr()
        return Result(caught.value.code or 0, captured.out, captured.err)

    return call


def txcls(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "txcls", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment(cwd / "cache"), capture_output=True, text=True, timeout=150)


@pytest.mark.slow
def test_from_training_to_prediction(tmp_path: Path, run: Callable[..., Result]) -> None:
    trained = run("train", "sample", "--out", "mine", *QUICK)
    assert trained.code == 0, trained.err
    assert trained.out == "" and "saved mine: validation accuracy" in trained.err
    assert not (tmp_path / "mine.training").exists()
    card = (tmp_path / "mine" / "README.md").read_text(encoding="utf-8")
    assert "python -m txcls train sample --out mine" in card
    predicted = txcls("predict", "mine", "Book me a train to the coast", "--json", cwd=tmp_path)
    [prediction] = map(json.loads, predicted.stdout.splitlines())
    assert list(prediction) == ["text", "label", "ranked", "tokens", "unknown", "truncated", "unusual"]
    assert sum(score["probability"] for score in prediction["ranked"]) == pytest.approx(1.0)
    assert prediction["label"] == prediction["ranked"][0]["label"] and prediction["truncated"] is False
    [test] = run("evaluate", "mine", "--json", "--write").objects
    assert {"accuracy", "macro_f1", "ece", "n"} <= test.keys() and test["n"] > 50
    assert "words_shuffled" in test["order"] and sum(part["n"] for part in test["by_length"]) == test["n"]
    metrics = json.loads((tmp_path / "mine" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["test"]["accuracy"] == test["accuracy"]
    [validation] = run("evaluate", "mine", "--split", "validation", "--json").objects
    assert validation["accuracy"] == pytest.approx(metrics["validation"]["accuracy"], abs=1e-6)
    tables = run("evaluate", "mine", "--verbose").out
    assert "What is confused" in tables and "in random order" in tables


@pytest.mark.slow
def test_a_killed_training_run_is_resumed(tmp_path: Path, run: Callable[..., Result]) -> None:
    """After SIGKILL and --resume, the weights equal those of an uninterrupted run."""
    arguments = ["train", "sample", *QUICK, "--set", "train.epochs=5", "--set", "train.save_every_seconds=0.0"]
    arguments += ["--set", "train.snapshots=5"]
    whole = run(*arguments, "--out", "whole")
    assert whole.code == 0, whole.err
    command = [sys.executable, "-m", "txcls", *arguments, "--out", "cut"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path / "cache"), stderr=subprocess.DEVNULL)
    state = tmp_path / "cut.training" / "state.pt"
    deadline = time.monotonic() + 100
    while not state.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it should be killed before its end"
    refused = run(*arguments, "--out", "cut")
    assert f"→ {shlex.join(['python', '-m', *command[2:]])} --resume" in refused.err
    resumed = run(*arguments, "--resume")
    assert resumed.code == 0 and "continuing the interrupted run in cut" in resumed.err
    for file in ("model.safetensors", "snapshots.safetensors"):
        weights = [(tmp_path / name / file).read_bytes() for name in ("whole", "cut")]
        assert weights[0] == weights[1], file


def test_ctrl_c_saves_the_state_and_says_how_to_resume(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "txcls", "train", "sample", "--out", "mine", *QUICK, "--set", "train.epochs=5000"]
    process = subprocess.Popen(
        [*command, "--set", "train.patience=0", "--set", "train.save_every_seconds=0.0"],
        cwd=tmp_path,
        env=environment(tmp_path / "cache"),
        stderr=subprocess.PIPE,
        text=True,
    )
    state = tmp_path / "mine.training" / "state.pt"
    deadline = time.monotonic() + 100
    while not state.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 2 and "error: stopped in epoch" in error and "--resume" in error
    assert "Traceback" not in error and state.exists()


def errors() -> dict[str, tuple[Sequence[str], str]]:
    return {
        "no preset": (["train", "agnews"], "no preset named 'agnews'"),
        "out exists": (["train", "sample", "--out", "taken"], "taken already exists; choose another folder"),
        "out in a file": (["train", "sample", "--out", "file.txt/x"], "cannot write to file.txt"),
        "no data": (["train", "ag_news", "--out", "x"], "data fetch ag_news"),
        "empty text": (["predict", "tiny", "  "], "the input contains no words to classify"),
        "text and input": (["predict", "tiny", "text", "--input", "file.txt"], "got both TEXT and --input"),
        "other classes": (["evaluate", "tiny"], "classes that tiny does not know"),
        "pretrain a classifier": (["pretrain", "sample", "--out", "x"], "sample is a classifier preset"),
        "import nothing": (["import", "no-such-folder/at/all"], "no folder 'no-such-folder/at/all'"),
        "import a checkpoint": (
            ["import", "checkpoints/tiny", "--out", "x"],
            "config.json: model_type is None",
        ),
        "top-k": (["predict", "tiny", "text", "--top-k", "0"], "--top-k"),
    }


@pytest.mark.parametrize("arguments, message", errors().values(), ids=errors().keys())
def test_errors_are_one_line_that_says_what_to_do(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], message: str
) -> None:
    monkeypatch.delenv("TXCLS_DATA", raising=False)
    make_checkpoint(tmp_path / "checkpoints" / "tiny")
    (tmp_path / "taken").mkdir()
    (tmp_path / "file.txt").write_text("x")
    result = run(*arguments)
    assert result.code == 2 and result.out == ""
    [line] = [line for line in result.err.splitlines() if line.startswith("error: ")]
    assert message in line and "Traceback" not in result.err


def test_from_pretraining_to_a_continued_text_and_a_classifier(run, tmp_path: Path) -> None:
    small = settings("model.d_model=16", "model.n_heads=2", "model.n_layers=1", "train.epochs=1")
    small += settings("data.dataset=sample", "text.max_vocabulary=400", "text.cleaning=['lowercase']")
    pretrained = run("pretrain", "lm", "--out", "lm", *small)
    assert pretrained.code == 0 and "validation perplexity" in pretrained.err, pretrained.err
    [first], [second] = (run("generate", "lm", "the train", "--tokens", "6", "--json").objects for _ in range(2))
    assert first == second and len(first["probabilities"]) == 6
    printed = run("generate", "lm", "the train", "--tokens", "6").out
    assert printed == f"the train{first['continuation']}\n", "subwords are joined without spaces"
    for text in ("", "\0", "שלום", "word " * 500):
        assert run("generate", "lm", text, "--tokens", "2").code in (0, 2)
    masked = run("pretrain", "encoder", "--out", "masked", *small, "--set", "data.sources=[]")
    assert masked.code == 0, masked.err
    by_train = run("train", "encoder", "--out", "same", *small, "--set", "data.sources=[]")
    assert by_train.code == 0 and "validation perplexity" in by_train.err, by_train.err
    weights = [(Path(name) / "model.safetensors").read_bytes() for name in ("masked", "same")]
    assert weights[0] == weights[1], "`train` does the same as `pretrain` with such a preset"
    refused = run("train", "encoder", "--out", "other", "--init", "masked", *small, "--set", "data.sources=[]")
    assert refused.code == 2 and "--init masked: encoder is a preset for pre-training" in refused.err
    started = run("train", "ag_news", "--out", "c", "--init", "masked", *small)
    assert started.code == 0, started.err
    assert run("predict", "c", "the train", "--json").objects[0]["label"]


def test_the_linear_baseline_is_compared_on_the_test_rows_and_recorded(run, tmp_path: Path) -> None:
    subjects = ("cooking", "health", "money", "sport", "technology", "travel")
    checkpoint = make_checkpoint(tmp_path / "tiny", classes=subjects)
    dataset = open_dataset(checkpoint.config.data)
    train, validation = training_and_validation(dataset, checkpoint.config.data)
    test = dataset.load("test")
    assert train.classes == test.classes == subjects
    linear = fit_linear(join_rows((train, validation)))
    is_correct = linear.predict(test.texts, test.classes) == np.array(test.labels)
    result = run("measure", "tiny", "linear", "--write", "--json")
    assert result.code == 0, result.err
    comparison = result.objects[0]["comparison"]
    assert isinstance(comparison, dict) and comparison["n_training"] == len(train) + len(validation)
    assert comparison["linear"]["accuracy"]["value"] == pytest.approx(is_correct.mean(), abs=1e-6)
    [plain] = run("evaluate", "tiny", "--json").objects
    assert comparison["transformer"]["accuracy"]["value"] == pytest.approx(plain["accuracy"], abs=1e-6)
    assert json.loads((tmp_path / "tiny" / "metrics.json").read_text(encoding="utf-8"))["comparison"] == comparison
    card = (tmp_path / "tiny" / "README.md").read_text(encoding="utf-8")
    assert f"| linear model | {100 * is_correct.mean():.1f} % (" in card
    assert "The test rows were read only by `evaluate`" in card
    assert f"{100 * is_correct.mean():.1f}\u00a0%" in run("measure", "tiny", "linear").out
    repeated = run("evaluate", "tiny", "--write")
    assert repeated.code == 0, "the metrics on a data set's test rows may be measured again"


def test_metrics_of_heads_and_explanations_are_measured_and_saved(run, tmp_path: Path) -> None:
    subjects = ("cooking", "health", "money", "sport", "technology", "travel")
    make_checkpoint(tmp_path / "tiny", classes=subjects)
    [heads] = run("measure", "tiny", "heads", "--write", "--json").objects
    [explanations] = run("measure", "tiny", "explanations", "--texts", "3", "--write", "--json").objects
    metrics = json.loads((tmp_path / "tiny" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["heads"] == heads["heads"] and metrics["explanations"] == explanations["explanations"]
    assert metrics["explanations"]["n"] == 3 and len(metrics["means"]["taps"]["layers.1.attn.z"]) == 2
    measured = HeadMeasurements.of(Predictor.load(tmp_path / "tiny"))
    assert measured is not None and len(measured.heads) == 4
    card = (tmp_path / "tiny" / "README.md").read_text(encoding="utf-8")
    assert f"| head 2.1 | {measured.head(1, 0).mean.kl:.3f} (" in card
    tables = run("measure", "tiny", "heads").out
    assert "head 2.1" in tables and "With uniform attention in all heads at once" in tables


def test_a_zip_file_is_imported_and_used_by_its_name(run, tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "made" / "tiny", classes=["yes", "no"]).path
    assert folder is not None
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "mine.zip").write_bytes(pack(folder))
    imported = run("import", "mine.zip")
    assert imported.code == 0 and "2 classes ('yes', 'no')" in imported.err
    assert 'python -m txcls predict mine "your text"' in imported.err
    assert "in the app, also if it is already running: http://localhost:8501/?checkpoint=mine" in imported.err
    predicted, from_zip = (run("predict", name, "a text", "--json").objects for name in ("mine", "mine.zip"))
    assert predicted[0]["ranked"] == from_zip[0]["ranked"]
    again = run("import", "mine.zip")
    assert again.code == 2 and "mine exists; choose another name: --name NAME" in again.err
    assert run("import", "mine.zip", "--name", "other").code == 0


def test_a_published_bert_becomes_a_checkpoint_for_the_other_commands(run, tmp_path: Path) -> None:
    write_bert(tmp_path / "published")
    unnamed = run("import", "published")
    assert unnamed.code == 2 and "name a folder that does not exist yet: --out checkpoints/NAME" in unnamed.err
    imported = run("import", "published", "--out", "checkpoints/cats")
    assert imported.code == 0 and "parameters, 3 classes ('one', 'two', 'three')" in imported.err
    assert "http://localhost:8501/?checkpoint=cats" in imported.err
    again = run("import", "published", "--out", "checkpoints/cats")
    assert again.code == 2 and "a folder that does not exist yet" in again.err
    assert len(run("predict", "cats", "The cat sat", "--json").objects[0]["ranked"]) == 3
    (tmp_path / "rows.csv").write_text("text,label\nThe cat sat,one\nA dog ran,two\nThey won,three\n", encoding="utf-8")
    measured = run("evaluate", "cats", "--data", "rows.csv")
    assert measured.code == 0 and "3" in measured.out
    card = (tmp_path / "checkpoints" / "cats" / "README.md").read_text(encoding="utf-8")
    assert "imported with txcls, which did not train it" in card and "stored as float32" in card
    assert "validation" not in card and str(tmp_path) not in card
    refused = run("measure", "cats", "heads")
    assert refused.code == 2 and "cats was imported" in refused.err


def test_labels_and_names_cannot_contain_terminal_escapes(run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "text,label\n" + "\x1b]0;x\x07 hi,\x1b[31ma\n\u202eyou,b\x9b2J\n" * 3, encoding="utf-8"
    )
    as_table = run("data", "show", "t.csv")
    for result in (as_table, run("data", "show", "no\x1b[2J\u202e.csv"), run("predict", "no\x1b[2J", "hi")):
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & {*result.out, *result.err}
    assert "\\x1b[31ma" in as_table.out
    long = run("data", "show", "x" * 100_000 + ".csv")
    assert long.code == 2 and len(long.err) < 2500


def test_agreement_rows_are_made_from_a_text_file_trained_on_and_measured(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    sentences = (
        f"The old key{'' if n % 3 else 's'} of house {n} on hill {'is' if n % 3 else 'are'} lost." for n in range(1500)
    )
    (tmp_path / "texts.txt").write_text("\n\n".join(sentences), encoding="utf-8")
    written = run("data", "agreement", "--from", "texts.txt", "--out", "agreement")
    assert written.code == 0 and "train rows" in written.out
    assert (
        run("train", "agreement", "--data", "agreement", "--out", "model", *QUICK, "--set", "model.n_heads=2").code == 0
    )
    measured = run("measure", "model", "agreement", "--data", "agreement", "--write")
    assert measured.code == 0 and "prepositional phrase" in measured.out
    assert "By attractors and constructions" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    nothing = run("data", "agreement", "--from", "no_such_set", "--out", "nothing")
    assert nothing.code == 2 and "no_such_set" in nothing.err


def test_two_checkpoints_are_compared_on_a_text_and_on_test_rows(run, tmp_path: Path) -> None:
    for name, n_heads in (("one", 1), ("two", 16)):
        options = settings(f"model.n_heads={n_heads}")
        trained = run("train", "repeated_word", *QUICK, *options, "--max-steps", "2", "--out", str(tmp_path / name))
        assert trained.code == 0, trained.err
    compared = run("compare", "one", "two", "--text", "river stone lamp key river")
    [measured] = run("compare", "one", "two", "--json").objects
    assert compared.code == 0 and "not reached" in compared.out and "river →" in compared.out
    assert f"accuracy on {measured['n']} test rows" in compared.out
    assert [list(heads) for heads in measured["heads"]] == [["1.1"], [f"1.{n}" for n in range(1, 17)]]
