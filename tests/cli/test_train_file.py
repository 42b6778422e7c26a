import json
import re
import sys
from pathlib import Path

import openpyxl
import pytest

from tests.conftest import make_checkpoint
from txcls.checkpoint.comparison import Comparison
from txcls.checkpoint.load import load_checkpoint
from txcls.cli.shared import command
from txcls.training import speed

from .test_commands import Result, run  # noqa: F401  # run is a fixture

WORDS = {"up": ["good", "fine", "nice", "lovely"], "down": ["bad", "awful", "poor", "dreadful"]}
LABELS = ["up" if n % 2 else "down" for n in range(120)]
MESSAGES = [
    (f"{WORDS[label][n % 4]} and {WORDS[label][n % 3]} message number {n}", label) for n, label in enumerate(LABELS)
]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SECONDS", 0.05)


def spam_like(path: Path) -> Path:
    """Like the well-known spam.csv: unnamed columns, not UTF-8, and a row without text."""
    lines = ["v1,v2,,,", *(f'{label},"{text}, café",,,' for text, label in MESSAGES), "up,,,,"]
    path.write_bytes("\r\n".join(lines).encode("latin-1"))
    return path


def output_of(result: Result) -> str:
    assert result.code == 0, result.err
    return " ".join((result.err + result.out).split())


def test_a_messy_table_becomes_a_classifier_with_a_note_on_every_guess(run, tmp_path: Path) -> None:  # noqa: F811
    table = spam_like(tmp_path / "spam.csv")
    table.write_bytes(table.read_bytes() + b"\r\nsideways,only once,,,")
    result = run("train", "spam.csv", "--minutes", "0.1", "--out", "made/mine")
    output = output_of(result)
    for part in (
        "122 rows, texts from 'v2', labels from 'v1' (3 classes)",
        "Read as Windows-1252",
        "1 without a text",
        "Not in macro-F1, without test rows: 1 of 3 classes: 'sideways'.",
        "python -m txcls predict made/mine",
    ):
        assert part in output, part
    assert "column 'v1', recognised by its contents" in result.err.splitlines()[0]
    checkpoint = load_checkpoint(tmp_path / "made" / "mine")
    assert checkpoint.config.title == "spam.csv" and checkpoint.config.data.dataset == "table"
    assert checkpoint.classes == ("down", "sideways", "up")
    card = (tmp_path / "made" / "mine" / "README.md").read_text("utf-8")
    assert "python -m txcls train spam.csv --minutes 0.1 --out made/mine" in card and "# mine: spam.csv" in card
    assert "everyday messages" not in card
    assert run("predict", "made/mine", "a lovely message", "--json").objects[0]["label"] in ("up", "down")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["train", "none.csv"], "none.csv: no such file"),
        (["train", "tiny"], "tiny: a folder; give a file in it"),
        (["train", "a"], "to train on a file, give its whole name: a.csv"),
        (["train", "a.csv", "--set", "train.epochs=3"], "--set: cannot be used with your own file"),
        (["train", "sample", "--text-column", "t", "--test", "x"], "--test, --text-column: only with your own file"),
        (["train", "sample", "--data", "a.csv"], "To train on your own file: `python -m txcls train a.csv`"),
        (["train", "a.csv", "--text-column", "nope"], "no column 'nope' for the text; the columns are 'v1', 'v2'"),
        (["train", "vague.csv", "--seed=3"], "→ python -m txcls train vague.csv --seed=3 --label-column COLUMN"),
        (["train", "a.csv", "--resume", "--out", "x"], "--resume: cannot be used with your own file"),
        (["train", "a.csv", "--sheet", "2"], "no workbook, so it has no sheet '2'"),
        (["data", "show", "a.csv", "--label-column", "v2", "--text-column", "v1"], "are the two columns swapped"),
        (["data", "show", "a.csv", "--label-column", "V1"], "→ python -m txcls data show a.csv --label-column v1"),
        (["predict", "tiny", "a.csv"], "a.csv is a file; to classify its rows, give it with --input"),
        (["evaluate", "tiny", "a.csv"], "a file is given with --data"),
        (["evaluate", "tiny", "--data", "a.csv"], "a.csv: none of its labels is a class of tiny; if another column "),
        (["report", "tiny", "--out", "nowhere/there.html"], "expected an HTML file in an existing folder"),
    ],
)
def test_errors_say_what_to_do(run, tmp_path: Path, arguments: list[str], message: str) -> None:  # noqa: F811
    spam_like(tmp_path / "a.csv")
    (tmp_path / "vague.csv").write_text("a,b,c\n" + "".join(f"words of {n},so many {n},more {n}\n" for n in range(30)))
    make_checkpoint(tmp_path / "tiny", classes=("yes", "no"))
    result = run(*arguments)
    assert result.code == 2 and message in " ".join(result.err.split()), result.err
    assert {path.name for path in tmp_path.iterdir()} - {"cache"} == {"a.csv", "tiny", "vague.csv"}


def test_the_rows_held_out_are_found_in_the_file_again_and_their_metrics_kept(run, tmp_path: Path) -> None:  # noqa: F811
    spam_like(tmp_path / "a.csv")
    output_of(run("train", "a.csv", "--minutes", "0.05", "--out", "mine"))
    before = json.loads((tmp_path / "mine" / "metrics.json").read_text())
    refused = run("evaluate", "mine")
    assert refused.code == 2 and "mine was trained on a.csv" in refused.err
    assert "→ python -m txcls evaluate mine --data a.csv" in refused.err
    (tmp_path / "renamed.csv").write_bytes((tmp_path / "a.csv").read_bytes())
    [figures] = run("evaluate", "mine", "--data", "renamed.csv", "--model", "transformer", "--json").objects
    assert figures["confusion"] == before["test"]["confusion"] and figures["held_out"] is True
    assert figures["n"] == before["comparison"]["n"]
    (tmp_path / "longer.csv").write_bytes((tmp_path / "a.csv").read_bytes() + b"\r\nup,a new row,,,")
    output = output_of(run("evaluate", "mine", "--data", "longer.csv", "--model", "transformer"))
    assert "mine, Transformer: 121 rows of longer.csv" in output and re.search(
        r"was trained on about [78]\d\s% of the", output
    )
    [compared] = run("compare", "mine", "mine", "--data", "a.csv", "--json").objects
    assert compared["n"] == figures["n"], "the rows that both held out"
    again = run("train", "a.csv", "--label-column", "nope", "--out", "mine")
    assert again.code == 2 and "no column 'nope'" in again.err, "before the folder that exists"
    for what in ("heads", "linear"):
        refused = run("measure", "mine", what)
        assert refused.code == 2 and f"measure {what} needs the test rows of a published data set" in refused.err
    refused = run("evaluate", "mine", "--data", "a.csv", "--write")
    assert refused.code == 2 and "held out from training" in refused.err
    assert json.loads((tmp_path / "mine" / "metrics.json").read_text()) == before


def test_a_file_read_with_options_is_recognised_without_them(run, tmp_path: Path) -> None:  # noqa: F811
    """The smaller of two sheets, with labels in two spellings and placeholders."""
    book = openpyxl.Workbook()
    for row in [("said", "mood"), *MESSAGES * 2]:
        book.active.append(row)
    mails = book.create_sheet("Mails")
    mails.append(["said", "mood"])
    for n, (text, label) in enumerate(MESSAGES):
        mails.append([text, "n/a" if n % 40 == 0 else label.upper() if n % 9 == 0 else label])
    book.save(tmp_path / "a.xlsx")
    output_of(run("train", "a.xlsx", "--sheet", "Mails", "--merge-labels", "--minutes", "0.05", "--out", "mine"))
    checkpoint = load_checkpoint(tmp_path / "mine")
    assert checkpoint.classes == ("down", "up") and dict(checkpoint.config.data.label_names)["n/a"] == ""
    [figures] = run("evaluate", "mine", "--data", "a.xlsx", "--model", "transformer", "--json").objects
    assert figures["held_out"] is True and figures["confusion"] == checkpoint.metrics["test"]["confusion"]
    scored = run("predict", "mine", "--input", "a.xlsx", "--output", "scored.csv")
    assert scored.code == 0 and len((tmp_path / "scored.csv").read_text("utf-8").splitlines()) == 121


def test_with_a_test_file_all_other_rows_were_trained_on(run, tmp_path: Path) -> None:  # noqa: F811
    spam_like(tmp_path / "a.csv")
    rows = "".join(f"a {text} more,{label.upper()}\n" for text, label in MESSAGES[:30])
    (tmp_path / "more.csv").write_text(f"v2,v1\n{rows}")
    output = output_of(run("train", "a.csv", "--test", "more.csv", "--minutes", "0.05", "--out", "mine", "--verbose"))
    assert "Labels of the test rows are written differently; read 'DOWN' as 'down', 'UP' as 'up'." in output
    refused = run("evaluate", "mine")
    assert refused.code == 2 and "trained on a.csv and tested on more.csv" in refused.err
    output = output_of(run("evaluate", "mine", "--data", "a.csv", "--model", "transformer"))
    assert (
        "mine, Transformer: 120 rows of a.csv" in output and "trained on about 100 % of the different texts" in output
    )
    [compared] = run("compare", "mine", "mine", "--data", "more.csv", "--json").objects
    assert compared["n"] == 30 and compared["difference"]["value"] == 0
    refused = run("compare", "mine", "mine", "--data", "a.csv")
    assert refused.code == 2 and "was trained on these rows; give a file that neither has seen" in refused.err
    refused = run("compare", "mine", str(make_checkpoint(tmp_path / "tiny").path))
    assert "mine on a.csv and tiny on sample were trained on different data" in refused.err
    own = run("train", "a.csv", "--test", "a.csv", "--out", "own")
    assert own.code == 2 and "120 of 120 test rows (100\xa0%) repeat the text of a training row" in own.err
    [figures] = run("evaluate", "mine", "--data", "more.csv", "--model", "transformer", "--json").objects
    assert figures["confusion"] == load_checkpoint(tmp_path / "mine").metrics["test"]["confusion"]


def test_the_linear_model_is_saved_and_used_where_the_verdict_recommends_it(  # type: ignore[no-untyped-def]
    run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Comparison, "to_use", "linear")
    spam_like(tmp_path / "a.csv")
    output = output_of(run("train", "a.csv", "--minutes", "0.05", "--out", "mine"))
    assert "saved mine in " in output and "python -m txcls predict mine 'your text'" in output
    stored = load_checkpoint(tmp_path / "mine").metrics["comparison"]
    reason = "the linear model of mine, as the verdict recommends (accuracy "
    on_file = [[name, "--data", "a.csv"] for name in ("evaluate", "report")]
    for name, *given in (["predict", "a lovely message"], *on_file):
        result = run(name, "mine", *given, "--json")
        assert f"This is {reason}" in result.err and "for the Transformer: --model transformer." in result.err
        assert name == "predict" or result.objects[0]["checkpoint"] == "mine, linear model"
        for model in ("linear", "transformer"):
            named = run(name, "mine", *given, "--json", "--model", model)
            assert reason not in named.err and (named.objects == result.objects) == (model == "linear")
            if name == "evaluate":
                assert named.objects[0]["accuracy"] == pytest.approx(stored[model]["accuracy"]["value"], abs=1e-5)
    assert f"shows the Transformer; `predict` uses {reason}" in run("export", "page", "mine", "--out", "p").err
    assert "leave out --model linear" in run("evaluate", "mine", "--write", "--model", "linear").err


@pytest.mark.parametrize("model", ["linear", "transformer"])
def test_no_row_counts_as_held_out_from_a_model_trained_again_on_all(
    run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
) -> None:
    monkeypatch.setattr(Comparison, "to_use", model)
    spam_like(tmp_path / "a.csv")
    output = output_of(run("train", "a.csv", "--minutes", "0.05", "--out", "mine", "--refit"))
    assert "Trained again on all 120 rows; the figures are from before." in output
    for command_name in ("evaluate", "report"):
        output = output_of(run(command_name, "mine", "--data", "a.csv", "--model", model))
        assert "120 rows of a.csv" in output and "held out from training" not in output
        assert "trained on about 100 % of the different texts of these rows" in output
        assert "Measured before it was trained on all rows: accuracy " in output
    if model == "transformer":  # the linear model was not trained again
        output = output_of(run("evaluate", "mine", "--data", "a.csv", "--model", "linear"))
        assert re.search(r"linear model: the 2\d rows of a.csv that were held out", output)


@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize("column", [[], ["--label-column", "Desk"]])
def test_a_messy_table_takes_at_most_150_words(run, tmp_path: Path, column: list[str], merges: bool) -> None:  # noqa: F811
    spellings = {"up": ["Up", "up", "UP", "u-p"], "down": ["Down", "down", "DOWN", "dwon"]}
    rows = [
        [
            n,
            f"{text} of the whole day",
            f"a summary of day {n} of many",
            spellings[label][n % 9 // 2 % 4],
            ("app", "web")[n // 2 % 2],
        ]
        for n, (text, label) in enumerate(MESSAGES * 2)
    ]
    rows += [[900 + n, "some more words for it", "a summary", ("n/a", "tbd", "")[n % 3], ""] for n in range(12)]
    rows += [[990, "", "no text", "Up", ""], [991, "good and good message number 1", "same", "Down", "web"], [], []]
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Day by day"
    for row in [["Days of the year, exported"], [], ["id", "Headline", "Teaser", "Desk", "Origin"], *rows]:
        sheet.append(row)
    for name, state in (("Read me", "visible"), ("old", "hidden")):
        book.create_sheet(name).append(["notes", "of", "the", "export"])
        book[name].sheet_state = state
    book.save(tmp_path / "days.xlsx")
    output = output_of(
        run("train", "days.xlsx", "--minutes", "0.1", "--out", "a", *column, *["--merge-labels"] * merges)
    )
    assert len(output.split()) <= 150, output
    for part in ("Sheet: 'Day by day', not ", "Left out: ", "test rows, %"):
        assert part in output, part
    assert ("recognised by its contents" in output) == (not column)
    assert ("Train again with --merge-labels." in output) == (bool(column) and not merges)


def test_an_error_is_followed_by_the_command_that_mends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["txcls", "train", "my file.csv", "--minutes=3", "--seed", "1"])
    assert command(minutes=4, seed=None) == "python -m txcls train 'my file.csv' --minutes 4"
    assert command(label_column="COLUMN").endswith(" --minutes=3 --seed 1 --label-column COLUMN")
