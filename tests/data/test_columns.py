"""Columns are found by name, else by contents; the reason is said, and what looks wrong is hinted at."""

from collections.abc import Mapping, Sequence

import pytest

from txcls.data.columns import guess_columns, how_much_told
from txcls.data.tables.own_rows import own_rows
from txcls.data.tables.own_table import OwnTable
from txcls.errors import DataError

TEXTS = [f"a message of some length about subject {n} and more" for n in range(60)]
LABELS = ["ham", "spam", "ham"] * 20


def table(columns: Mapping[str, Sequence[object]]) -> OwnTable:
    n = len(next(iter(columns.values())))
    return OwnTable("mine.csv", columns, list(range(2, n + 2)), "line")


@pytest.mark.parametrize(
    "columns, found, why",
    [
        ({"id": range(60), "text": TEXTS, "label": LABELS}, ("text", "label"), "by its name"),
        ({"Review_Text": TEXTS, "Sentiment": LABELS}, ("Review_Text", "Sentiment"), "by its name"),
        ({"tweetText": TEXTS, "userName": ["x", "y"] * 30, "my class": LABELS}, ("tweetText", "my class"), "name"),
        ({"v1": LABELS, "v2": TEXTS}, ("v2", "v1"), "by its contents"),
        ({"column 1": TEXTS, "column 2": LABELS}, ("column 1", "column 2"), "by its contents"),
        ({"id": range(60), "a": TEXTS, "when": ["x"] * 60, "b": LABELS}, ("a", "b"), "by its contents"),
    ],
)
def test_columns_are_guessed_and_the_reason_is_said(
    columns: Mapping[str, Sequence[object]], found: tuple[str, str], why: str
) -> None:
    guess = guess_columns(table(columns))
    assert (guess.text_column, guess.label_column) == found and guess.guessed and not guess.hints
    assert why in guess.text_reason and f"'{found[0]}'" in guess.text_reason and f"'{found[1]}'" in guess.label_reason


def test_a_usual_name_over_unusual_contents_is_not_believed() -> None:
    guess = guess_columns(table({"title": range(60), "words": TEXTS, "label": TEXTS[::-1], "kind": LABELS}))
    assert (guess.text_column, guess.label_column) == ("words", "kind")


def test_of_several_columns_the_one_that_the_texts_tell_most_about_holds_the_labels() -> None:
    kinds = ["billing", "login", "shipping"]
    told = {"billing": "invoice was charged twice", "login": "password does not work", "shipping": "parcel is late"}
    queue = [kinds[n * 7 % 3] for n in range(90)]
    texts = [f"{told[kind]} since day {n}" for n, kind in enumerate(queue)]
    channel = [("web", "mail")[n * n % 5 % 2] for n in range(90)]
    guess = guess_columns(table({"chnl.": channel, "what they wrote": texts, "Queue/Team": queue}))
    assert (guess.text_column, guess.label_column) == ("what they wrote", "Queue/Team")
    assert "the texts tell most about this column" in guess.label_reason
    assert guess.hints == ("It could be 'chnl.' too; choose it if those are the labels.",)
    noise = guess_columns(table({"chnl.": channel, "what they wrote": TEXTS + TEXTS[:30], "other": channel[::-1]}))
    assert noise.label_column == "chnl." and "tell most" not in noise.label_reason and "'other'" in noise.hints[0]
    assert how_much_told(texts, queue) == 1.0 and how_much_told(texts, channel) < 0.5
    assert how_much_told(texts, ["x"] * 90) == how_much_told([None] * 90, queue) == 0.0


def test_a_label_column_of_one_value_is_named() -> None:
    with pytest.raises(DataError, match=r"column 'label' has the same value in every row \('ham'\); wanted labels of"):
        guess_columns(table({"text": TEXTS, "label": ["ham"] * 60}))


def test_columns_that_were_named_are_kept() -> None:
    columns = {"text": TEXTS, "other": TEXTS[::-1], "label": LABELS, "kind": LABELS}
    guess = guess_columns(table(columns), text_column="other", label_column="kind")
    assert (guess.text_column, guess.label_column, guess.guessed) == ("other", "kind", False)
    assert guess_columns(table(columns), text_column="other").guessed


@pytest.mark.parametrize(
    "columns, text, label, hint",
    [
        ({"text": LABELS, "label": TEXTS}, "text", "label", "The columns look swapped"),
        ({"text": range(60), "label": LABELS}, "text", "label", "holds numbers, not texts"),
        ({"text": TEXTS, "label": [f"n{n}" for n in range(60)]}, "text", "label", "60 different values in 60 rows"),
        ({"text": TEXTS, "label": [n % 25 / 2 for n in range(60)]}, "text", "label", "Group them into ranges"),
    ],
)
def test_what_looks_wrong_is_hinted_at(
    columns: Mapping[str, Sequence[object]], text: str, label: str, hint: str
) -> None:
    guess = guess_columns(table(columns), text_column=text, label_column=label)
    assert len(guess.hints) == 1 and hint in guess.hints[0] and guess.hints[0] in guess.sentences


@pytest.mark.parametrize(
    "columns, options, message",
    [
        ({"text": TEXTS, "label": LABELS}, {"text_column": "nope"}, "no column 'nope' for the texts; there are 'text'"),
        ({"text": TEXTS, "label": LABELS}, {"label_column": "nope"}, "no column 'nope' for the labels"),
        ({"text": TEXTS, "label": LABELS}, {"text_column": "text", "label_column": "text"}, "both text and label"),
        ({"a": range(60), "b": range(60), "c": LABELS}, {"label_column": "c"}, "no column looks like texts"),
        ({"a": TEXTS, "b": TEXTS[::-1], "c": TEXTS[::-1]}, {}, "no column looks like labels.*--label-column"),
    ],
)
def test_what_cannot_be_found_is_asked_for(
    columns: Mapping[str, Sequence[object]], options: dict[str, str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        guess_columns(table(columns), **options)


def test_rows_without_text_or_label_are_left_out_and_counted() -> None:
    texts = ["one", None, "  ", "four", 5, 6.0]
    rows = own_rows(table({"t": texts, "y": ["a", "a", "b", "", 1, 1.0]}), text_column="t", label_column="y")
    assert rows.labelled.texts == ["one", "5", "6"] and rows.labelled.classes == ("1", "a")
    assert (rows.indices, rows.no_text, rows.no_label) == ([0, 4, 5], [1, 2], [3])
    assert rows.notes == (
        "2 rows without a text were left out (the first is line 3).",
        "1 row without a label was left out (line 5).",
    )


def test_a_table_without_a_whole_row_is_refused() -> None:
    with pytest.raises(DataError, match="no row has both a text in column 't' and a label in column 'y'"):
        own_rows(table({"t": ["a", None], "y": [None, "b"]}), text_column="t", label_column="y")
