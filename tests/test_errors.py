import pytest

from txcls.errors import MAX_MESSAGE_LENGTH, DataError, sanitize
from txcls.text.formatting import start_of


@pytest.mark.parametrize(
    "value, expected",
    [
        ("plain é 中文 👩\u200d🚀", "plain é 中文 👩\u200d🚀"),
        ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
        ("a\nb\r\nc\td\r", "a ¶ b ¶ c\\td\\r"),
        ("\x9b2J\u202egnp.exe\u2066", "\\x9b2J\\u202egnp.exe\\u2066"),
        ("\ud800", "\\ud800"),
        ("x" * 1000, "x" * 199 + "…"),
        (12.5, "12.5"),
    ],
)
def test_values_are_shortened_and_invisible_characters_escaped(value: object, expected: str) -> None:
    assert sanitize(value) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        (" one two ", "one two"),
        ("one two three", "one two…"),
        ("a " + "x" * 20, "a xxxxxxxx…"),
        ("中" * 20, "中" * 10 + "…"),
    ],
)
def test_the_start_of_a_text_ends_at_a_word_unless_that_is_too_short(text: str, expected: str) -> None:
    assert start_of(text, limit=10) == expected


def test_large_nested_values_are_shown_in_outline() -> None:
    value: object = "x" * 1_000_000
    for _ in range(50_000):
        value = [value, value]
    assert len(sanitize(value)) <= 200


def test_an_error_is_one_line_of_bounded_length_that_ends_with_what_to_do() -> None:
    error = DataError(f"a\x1b[2J\nb {'x' * 100_000}\u202e; do this")
    assert "\x1b" not in str(error) and "\n" not in str(error) and len(str(error)) <= MAX_MESSAGE_LENGTH
    assert str(error).startswith("a\\x1b[2J b x") and str(error).endswith("\\u202e; do this")
