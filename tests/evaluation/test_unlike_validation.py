"""Texts unlike the validation texts are reported as such, with the rule's rate on test texts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import make_checkpoint
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.data.generated.who_won import reports_of
from txcls.evaluation.unlike_validation import unlike_validation
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
