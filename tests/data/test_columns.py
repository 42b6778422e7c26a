import numpy as np
import pytest

from txcls.config import DataConfig
from txcls.data.columns import (
    Columns,
    Guess,
    columns_as_in_training,
    guess_columns,
    guess_text_column,
    label_predictability,
)
from txcls.errors import DataError

TEXTS = [f"a message of some length about subject {n} and more" for n in range(60)]
LABELS = ["ham", "spam", "ham"] * 20


def guess_of(columns: Columns, **named: str) -> Guess:
    return guess_columns(columns, file="mine.csv", **named)


@pytest.mark.parametrize(
    "columns, expected, reason",
    [
        ({"id": range(60), "text": TEXTS, "label": LABELS}, ("text", "label"), "recognised by its name"),
        ({"Review_Text": TEXTS, "Sentiment": LABELS}, ("Review_Text", "Sentiment"), "recognised by its name"),
        ({"tweetText": TEXTS, "userName": ["x", "y"] * 30, "my class": LABELS}, ("tweetText", "my class"), "name"),
        ({"v1": LABELS, "v2": TEXTS}, ("v2", "v1"), "recognised by its contents"),
        ({"id": range(60), "a": TEXTS, "when": ["x"] * 60, "b": LABELS}, ("a", "b"), "recognised by its contents"),
    ],
)
def test_columns_are_guessed_with_a_reason(columns: Columns, expected: tuple[str, str], reason: str) -> None:
    guess = guess_of(columns)
    assert (guess.text_column, guess.label_column) == expected and guess.is_guessed and not guess.hints
    assert reason in guess.reasons[0] and f"'{expected[1]}'" in guess.reasons[1]


def test_the_column_that_texts_predict_best_is_the_label_column() -> None:
    kinds = ["billing", "login", "shipping"]
    phrases = {"billing": "invoice was charged twice", "login": "password does not work", "shipping": "parcel is late"}
    queue = [kinds[n * 7 % 3] for n in range(90)]
    texts = [f"{phrases[kind]} since day {n}" for n, kind in enumerate(queue)]
    channel = [("web", "mail")[n * n % 5 % 2] for n in range(90)]
    guess = guess_of({"chnl.": channel, "what they wrote": texts, "Desk": queue})
    assert (guess.text_column, guess.label_column) == ("what they wrote", "Desk")
    assert "the texts predict this column best" in guess.reasons[1] and "by its contents" in guess.reasons[1]
    assert guess.hints == ("If the labels are in 'chnl.', train again.",)
    assert guess.hints[0].options == {"label_column": "chnl."}  # type: ignore[attr-defined]
    noise = guess_of({"chnl.": channel, "what they wrote": TEXTS + TEXTS[:30], "other": channel[::-1]})
    assert noise.label_column == "chnl." and "'other'" in noise.hints[0]
    assert label_predictability(texts, queue) == 1.0 and label_predictability(texts, channel) < 0.5
    assert label_predictability(texts, ["x"] * 90) == label_predictability([None] * 90, queue) == 0.0


def test_labels_with_typing_errors_are_preferred_to_a_column_that_the_texts_do_not_predict() -> None:
    random = np.random.default_rng(6)
    words = {"offensive": "bad rude nasty ugly", "neither": "calm plain fine good"}
    verdicts = random.choice([*words], 400).tolist()
    texts = [f"the words {random.choice(words[verdict].split())} {n} to read" for n, verdict in enumerate(verdicts)]
    spelled = [random.choice([label, label.upper(), label[:-3] + label[-2:]]) for label in verdicts]
    reviewed = random.choice(["yes", "no"], 400).tolist()
    assert label_predictability(texts, reviewed) == 0.0 and label_predictability(texts, spelled) > 0.3
    assert guess_of({"Tweet": texts, "Reviewed": reviewed, "Verdict": spelled}).label_column == "Verdict"


def test_subject_and_body_are_joined_and_are_not_labels() -> None:
    subjects = [f"my order {n % 30} is late" for n in range(60)]
    for names, joined in (
        (("Subject", "Body"), True),
        (("description", "title"), True),
        (("headline", "agent"), False),
    ):
        columns = {names[0]: subjects, names[1]: TEXTS, "queue": LABELS}
        guess, text_only = guess_of(columns), guess_text_column(columns, file="t.csv")
        assert (guess.text_column == text_only == " + ".join(names)) == joined and guess.label_column == "queue"
    assert guess_of({"subject": LABELS, "body": TEXTS, "queue": LABELS}).text_column == "body"
    columns = {"a": subjects, "b": TEXTS, "c": LABELS}
    assert guess_of(columns, text_column="b + a").text_column == "b + a"
    with pytest.raises(DataError, match="no column 'd' for the text"):
        guess_of(columns, text_column="a + d")
    assert guess_of({"a + b": TEXTS, "c": LABELS}, text_column="a + b").text_column == "a + b"


def test_a_constant_column_has_no_texts_even_if_its_name_says_so() -> None:
    columns: Columns = {"query": ["#cars OR @cars"] * 60, "tweet_body": TEXTS, "klasse": LABELS}
    assert guess_text_column(columns, file="t.csv") == guess_of(columns).text_column == "tweet_body"
    assert guess_text_column({"n": [1], "text": ["one row"]}, file="t.csv") == "text"


def test_columns_without_names_are_those_of_training_only_in_a_table_as_wide() -> None:
    columns: Columns = {"column 1": range(60), "column 2": TEXTS, "column 3": LABELS}
    config = guess_of(columns).config
    assert (config.text_column, config.label_column, config.n_columns) == ("column 2", "column 3", 3)
    assert columns_as_in_training(columns, config) == ("column 2", "column 3", "")
    why = "the file has 2 columns, and the training file had 3, without names"
    assert columns_as_in_training(["column 1", "column 2"], config) == (None, None, why)
    lacking = None, None, "the file has no column 'body', as in training"
    assert columns_as_in_training(["x"], guess_of({"body": TEXTS, "column 2": LABELS}).config) == lacking
    named = guess_of({"subject": LABELS, "body": TEXTS, "queue": LABELS}).config
    assert named.n_columns is None and columns_as_in_training(["body"], named) == ("body", None, "")
    assert columns_as_in_training(["x"], named) == lacking
    assert columns_as_in_training(["x"], DataConfig(dataset="ag_news")) == (None, None, "")


def test_columns_without_letters_are_no_texts() -> None:
    dates: Columns = {"id": [*range(60)], "comment date": [f"2024-01-02 10:{n:02}" for n in range(60)]}
    with pytest.raises(DataError, match="which column contains the text"):
        guess_text_column(dates, file="t.csv")
    with pytest.raises(DataError, match="no column looks like texts"):
        guess_of({**dates, "label": LABELS})
    assert guess_text_column({**dates, "text": ["12:30"] * 60}, file="t.csv") == "text", "the whole name"
    assert guess_of({**dates, "schrieb": TEXTS, "label": LABELS}).text_column == "schrieb"


def test_a_column_that_the_texts_do_not_predict_is_not_preferred_to_one_that_they_do() -> None:
    random = np.random.default_rng(0)
    said = ["praise" if n % 3 else "fault" for n in range(240)]
    spelled = [("Praise" if n % 7 == 0 else "práise") if kind == "praise" else kind for n, kind in enumerate(said)]
    words = {"praise": ["fine", "good", "shop"], "fault": ["late", "broken", "shop"]}
    texts = [
        f"{random.choice(words[kind])} {random.choice(list('abcdefgh'))} number {n}" for n, kind in enumerate(said)
    ]
    origin = [("app", "web")[n] for n in random.integers(0, 2, 240)]
    guess = guess_of({"from": origin, "what they wrote": texts, "qq": spelled})
    assert guess.label_column == "qq" and "by its contents" in guess.reasons[1] and "'from'" in guess.hints[0]
    guess = guess_of({"what they wrote": texts, "label": origin, "Catégorie": spelled})
    assert guess.label_column == "Catégorie" and "by its contents" in guess.reasons[1] and "'label'" in guess.hints[0]
    guess = guess_of({"what they wrote": texts, "label": origin, "qq": spelled})
    assert guess.label_column == "label" and "by its contents" in guess.reasons[1] and "'qq'" in guess.hints[0]
    assert not guess_of({"what they wrote": texts, "label": spelled, "category": origin}).hints
