"""Texts unlike the validation texts are reported as such, with the rule's rate on test texts."""

from typing import Any

from txcls.evaluation.unlike import unlike_validation
from txcls.text.tokens import Token


def groups(*rows: tuple[float | None, float | None, int]) -> list[dict[str, Any]]:
    return [{"over": over, "up_to": up_to, "n": n, "accuracy": 0.9} for over, up_to, n in rows]


def tokens(n: int, *, unknown: int = 0) -> list[Token]:
    return [Token(str(n), 5, n, n + 1, is_unknown=n < unknown, is_special=False) for n in range(n)]


METRICS = {
    "validation": {
        "by_length": groups((10, 20, 2), (20, 40, 500), (40, None, 498)),
        "by_unknown": groups((None, 0.0, 990), (0.0, 0.05, 5), (0.2, None, 5)),
    },
    "test": {"by_length": groups((10, 20, 30), (20, 40, 9970)), "by_unknown": groups((None, 0.0, 10_000))},
}


def test_a_short_text_is_said_to_be_rare_with_the_rate_on_test_texts() -> None:
    rates = "0.2 % of the validation texts (and 0.3 % of the test texts)"
    assert unlike_validation(METRICS, tokens(15)) == [f"{rates} have at most 20 tokens; this one has 15"]
    [said] = unlike_validation(METRICS, tokens(4))
    assert said == "0.0 % of the validation texts (and 0.0 % of the test texts) have at most 10 tokens; this one has 4"
    assert unlike_validation(METRICS, tokens(30)) == unlike_validation(METRICS, tokens(300)) == []


def test_unknown_words_are_rare_where_validation_texts_have_few() -> None:
    [said] = unlike_validation(METRICS, tokens(30, unknown=15))
    assert said.startswith("0.5 % of the validation texts (and 0.0 % of the test texts) have as many unknown words")


def test_nothing_is_said_without_measurements() -> None:
    assert unlike_validation({}, tokens(1, unknown=1)) == unlike_validation({"validation": {"n": 3}}, tokens(1)) == []
