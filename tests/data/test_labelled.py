import json
from datetime import date
from pathlib import Path

import pytest

from tests.data.test_table import workbook
from txcls.config import DataConfig
from txcls.data.columns import Guess, guess_columns
from txcls.data.labelled import TableRows, labelled_rows, notes_before_training, read_labelled
from txcls.data.table import Table
from txcls.data.types import LabelledTexts, rows_in_classes
from txcls.errors import DataError


def labelled(path: Path, lines: list[dict[str, object]]) -> TableRows:
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return labelled_rows(Table(path), Guess(DataConfig(dataset="table", text_column="t", label_column="y")))


def test_rows_without_text_or_label_are_left_out_and_counted(tmp_path: Path) -> None:
    texts, labels = ["one", None, "  ", "four", 5, 6.0], ["a", "a", "b", "", 1, 1.0]
    rows = labelled(tmp_path / "t.jsonl", [{"t": text, "y": label} for text, label in zip(texts, labels, strict=True)])
    assert rows.labelled == LabelledTexts(["one", "5", "6"], [1, 0, 0], ("1", "a"))
    assert rows.numbers == [1, 5, 6]
    assert rows.notes == ("Rows left out: 2 without a text (first: line 2), 1 without a label (line 4).",)
    with pytest.raises(DataError, match="no row has both a text in column 't' and a label in column 'y'"):
        labelled(tmp_path / "t.jsonl", [{"t": "a"}, {"y": "b"}])
    with pytest.raises(DataError, match=r"line 1: column 't' contains '\['a'\]' \(list\), expected a text"):
        labelled(tmp_path / "t.jsonl", [{"t": ["a"], "y": "b"}])


def test_rows_of_unknown_classes_are_left_out() -> None:
    rows = LabelledTexts(["a", "b", "c", "d"], [0, 1, 2, 3], ("x", "new", "z", "Y"))
    known_rows, indices = rows_in_classes(rows, ("z", "x", "y"))
    assert known_rows == LabelledTexts(["a", "c"], [1, 0], ("z", "x", "y")) and list(indices) == [0, 2]
    assert rows_in_classes(rows, ("z", "x", "y"), match_normalised=True)[0].labels == [1, 0, 2]
    old = LabelledTexts(["a"], [0], ("4",))
    assert rows_in_classes(old, ("3.0", "4.0"), match_normalised=True)[0].labels == [1]


def test_variants_of_a_label_are_merged_and_placeholders_dropped_on_request(tmp_path: Path) -> None:
    names = ["Ham", "ham", "ham ", "SPAM", "spam", "spam", "n/a", "?", "NULL", "Ham"]
    lines = [{"text": f"message {n}", "label": name} for n, name in enumerate(names)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    rows, _ = read_labelled(tmp_path / "t.jsonl")
    assert len(rows.labelled.classes) == 7
    variants, missing = notes_before_training(rows.labelled)
    assert "'ham' (2) and 'Ham' (2); 'SPAM' (1) and 'spam' (2)" in variants
    assert all(f"'{name}' (1)" in missing for name in ("n/a", "?", "NULL"))
    table = Table(tmp_path / "t.jsonl")
    merged = labelled_rows(table, guess_columns(table.sample, file="t", merge=True))
    assert merged.labelled.classes == ("Ham", "spam") and merged.numbers == [1, 2, 3, 4, 5, 6, 10]
    assert merged.labelled.labels == [0, 0, 0, 1, 1, 1, 0] and "Labels merged" in merged.notes[0]
    assert read_labelled(tmp_path / "t.jsonl", merged.config)[0].labelled == merged.labelled


def test_two_text_columns_are_joined_and_only_visible_text_of_html_is_used(tmp_path: Path) -> None:
    head = "<html><head><style>p {margin: 0}</style></head>"
    page = head + "<body><p>Hello&nbsp;<b>you</b>,<br>bye &amp; thanks %s</p></body>"
    lines = [{"mail": {"subject": f"my order {n}", "body": page % n}, "queue": "ab"[n % 2]} for n in range(20)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    rows, guess = read_labelled(tmp_path / "t.jsonl")
    assert guess.text_column == "mail.subject + mail.body" and guess.config.strip_html and guess.label_column == "queue"
    assert rows.labelled.texts[3] == "my order 3\nHello you,\nbye & thanks 3"
    assert any("HTML" in sentence for sentence in guess.sentences)
    again, _ = read_labelled(tmp_path / "t.jsonl", guess.config)
    assert again.labelled == rows.labelled
    unstripped, _ = read_labelled(tmp_path / "t.jsonl", guess.config.model_copy(update={"strip_html": False}))
    assert "<style>" in unstripped.labelled.texts[3]


SAID = [f"{'late again' if n % 2 else 'fine so far'}, order {n}" for n in range(40)]
TITLES: list[list[object]] = [["Survey 2026", None, None, None, None], ["internal"], []]


SURVEY = [
    *TITLES,
    ["Id", "Date", None, "How many stars?", "Please tell us why"],
    *([n, date(2026, 1, 1 + n % 9) if n % 2 else None, None, 4 + n % 2, text] for n, text in enumerate(SAID)),
]
FRENCH = [f"le colis de la commande {n} n'est pas encore arrivé chez nous et je voudrais savoir où" for n in range(40)]
UNICODE_TEXT = "Commentaire libre\tThème\r\n" + "".join(f"{text}\t{n % 2} é\r\n" for n, text in enumerate(FRENCH))
FASTTEXT = "".join(f"__label__a {'__label__b ' * (n % 2)}{text}\n" for n, text in enumerate(SAID))
LISTS = "".join(json.dumps({"text": text, "label": ["a", "b"][: 1 + n % 2]}) + "\n" for n, text in enumerate(SAID))
TEXT_LABEL = ("text", "label")


@pytest.mark.parametrize(
    "name, content, columns, classes, first_text, said",
    [
        (
            "survey.xlsx",
            {"Read me": [["Survey"], ["by us"]], "Answers": SURVEY},
            ("Please tell us why", "How many stars?"),
            ("4", "5"),
            SAID[0],
            [
                "Sheet: 'Answers', not",
                "is a title ('Survey 2026'); the column names are in row 4",
                "1 column without",
            ],
        ),
        (
            "enquete.txt",
            UNICODE_TEXT.encode("utf-16"),
            ("Commentaire libre", "Thème"),
            ("0 é", "1 é"),
            FRENCH[0],
            [],
        ),
        (
            "fasttext.txt",
            FASTTEXT.encode(),
            TEXT_LABEL,
            ("a", "a;b"),
            SAID[0],
            ["such as 'a;b' (20 rows)", "yes/no column"],
        ),
        (
            "lists.jsonl",
            LISTS.encode(),
            TEXT_LABEL,
            ("a", "a; b"),
            SAID[0],
            ["several labels, such as 'a; b' (20 rows)"],
        ),
    ],
)
def test_untidy_tables_are_read_with_a_note_on_what_was_done(
    tmp_path: Path,
    name: str,
    content: bytes | dict[str, list[list[object]]],
    columns: tuple[str, str],
    classes: tuple[str, ...],
    first_text: str,
    said: list[str],
) -> None:
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        workbook(path, **content)
    rows, guess = read_labelled(path)
    assert (guess.text_column, guess.label_column) == columns
    assert (rows.labelled.classes, rows.labelled.texts[0], len(rows.labelled)) == (classes, first_text, 40)
    notes = " ".join((*guess.sentences, *rows.notes, *notes_before_training(rows.labelled)))
    assert all(part in notes for part in said), notes


def test_the_label_column_of_training_is_not_used_if_another_one_has_the_classes(tmp_path: Path) -> None:
    rows = [f"{n},hello there {n},{'ham' if n % 2 else 'spam'}\n" for n in range(20)]
    (tmp_path / "a.csv").write_text("".join(rows), encoding="utf-8")
    table = Table(tmp_path / "a.csv")
    config = guess_columns(table.sample, file="a.csv").config
    moved = ["{2},{0},{1}\n".format(*row.strip().split(",")) for row in rows]
    (tmp_path / "b.csv").write_text("".join(moved), encoding="utf-8")
    labelled, guess = read_labelled(tmp_path / "b.csv", config, classes=("ham", "spam"))
    assert guess.label_column == "column 1" and "recognised by its values" in guess.reasons[1]
    assert labelled.labelled.classes == ("ham", "spam") and guess.text_column == "column 3"
    _, given = read_labelled(tmp_path / "a.csv", config, classes=("ham", "spam"), label_column="column 1")
    assert (given.text_column, given.label_column) == ("column 2", "column 1")
