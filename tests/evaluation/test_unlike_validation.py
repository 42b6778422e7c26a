"""Texts unlike the validation texts are reported as such, with the rule's rate on test texts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import make_checkpoint
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.data.generated.who_won import reports_of
from txcls.evaluation.unlike_validation import RowGroups, rows_unlike_validation, unlike_validation, why_meaningless
from txcls.inference.predictor import Predictor
from txcls.text.tokens import Token


def groups(*rows: tuple[float | None, float | None, int]) -> list[dict[str, Any]]:
    return [{"over": over, "up_to": up_to, "n": n, "accuracy": 0.9} for over, up_to, n in rows]


def tokens(n: int, *, unknown: int = 0) -> list[Token]:
    return [Token(str(n), 5, n, n + 1, is_unknown=n < unknown, is_special=False) for n in range(n)]


METRICS = {
    "validation": {
        "by_length": groups((10, 20, 2), (20, 40, 500), (40, None, 498)),
        "by_unknown": groups((None, 0.0, 990), (0.0, 0.05, 5), (0.2, 0.5, 5)),
    },
    "test": {"by_length": groups((10, 20, 30), (20, 40, 9970)), "by_unknown": groups((None, 0.0, 10_000))},
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return make_checkpoint(tmp_path / "tiny")


def unlike(checkpoint: Checkpoint, read: list[Token], *, metrics: Any = METRICS) -> list[str]:
    return unlike_validation(replace(checkpoint, metrics=metrics), "", read)


def test_a_short_text_is_said_to_be_rare_with_the_rate_on_test_texts(checkpoint: Checkpoint) -> None:
    rates = "0.2\u00a0% of the validation texts (and 0.3\u00a0% of the test texts)"
    assert unlike(checkpoint, tokens(15)) == [f"{rates} have at most 20 tokens; this one has 15"]
    rates = "0.0\u00a0% of the validation texts (and 0.0\u00a0% of the test texts)"
    assert unlike(checkpoint, tokens(4)) == [f"{rates} have at most 10 tokens; this one has 4"]
    assert unlike(checkpoint, tokens(30)) == unlike(checkpoint, tokens(300)) == []


def test_match_reports_that_the_grammar_cannot_write_are_named(checkpoint: Checkpoint) -> None:
    data = checkpoint.config.data.model_copy(update={"dataset": "who_won"})
    reports = replace(checkpoint, config=checkpoint.config.model_copy(update={"data": data}), metrics={})
    for split in ("train", "validation", "test", "new"):
        for text in sorted({report.text for report in reports_of(split)})[::10]:
            assert unlike_validation(reports, text, tokens(9)) == [], text
    assert unlike_validation(reports, " rovers easily beat city", tokens(9)) == []
    for text in (
        "Rovers were not beaten by City.",
        "Apple unveils new phone",
        "Rovers beat Rovers.",
        "Rovers beat City. And Albion beat United.",
        "Rovers beat City, who beat Rovers last week.",
    ):
        [note] = unlike_validation(reports, text, tokens(9))
        assert note == "the grammar that generated all training, validation and test texts cannot generate this one"


@pytest.mark.parametrize("n_short, is_said", [(9, False), (10, True)])
def test_a_file_is_unlike_if_a_tenth_of_its_rows_is(checkpoint: Checkpoint, n_short: int, is_said: bool) -> None:
    rows = [np.full(20 if n < n_short else 30, 9, dtype=np.int32) for n in range(100)]
    groups = RowGroups(checkpoint.tokenizer)
    groups.add(rows[:50])
    groups.add(rows[50:])
    groups.add([])
    rates = "0.2\u00a0% of the validation texts (and 0.3\u00a0% of the test texts)"
    assert rows_unlike_validation(replace(checkpoint, metrics=METRICS), groups.groups) == (
        f"Unlike the validation texts: 10 of 100 rows have at most 20 tokens, as do {rates}. "
        "Their predictions may mean little."
        if is_said
        else ""
    )
    assert rows_unlike_validation(checkpoint, groups.groups) == "", "nothing was measured"


def test_the_validation_texts_themselves_are_not_unlike(checkpoint: Checkpoint) -> None:
    measured = replace(checkpoint, metrics=METRICS)
    assert rows_unlike_validation(measured, METRICS["validation"]) == ""
    unknown = {**METRICS["test"], "by_unknown": groups((None, 0.0, 30), (0.5, None, 10))}
    said = rows_unlike_validation(measured, unknown)
    assert "10 of 40 rows have more than 5\u00a0% unknown words, as do 0.5\u00a0% of the validation texts" in said


def test_a_prediction_for_mostly_unknown_words_means_nothing(checkpoint: Checkpoint) -> None:
    known, unknown = Predictor(checkpoint).predict(
        [" ".join(checkpoint.tokenizer.vocabulary.tokens[9:12]), "zqxj vvkw"]
    )
    assert why_meaningless(checkpoint, known) == ""
    said = why_meaningless(checkpoint, unknown)
    assert said.startswith("100\u00a0% of this text's letters are in words that are not in the model")
    for n, expected in ((1, said), (2, "")):
        test = {"by_unknown": groups((None, 0.0, 100 - n), (0.5, None, n))}
        assert why_meaningless(replace(checkpoint, metrics={"test": test}), unknown) == expected
