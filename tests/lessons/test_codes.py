"""Codes at the end of a lesson."""

import pytest

from txcls.lessons import LessonError, make_code, read_code


def test_a_code_records_which_questions_were_answered() -> None:
    answers = (True, False, None, True)
    code = make_code("attention", answers)
    assert code.startswith("attention.RWNR.")
    assert read_code(code).answers == answers and read_code(code).lesson == "attention"
    assert read_code(f" {code.lower()} ").answers == answers


@pytest.mark.parametrize("code", ["", "attention", "attention.RWNX.00000", "attention.RW.0000", "../a.R.00000"])
def test_invalid_codes_are_refused(code: str) -> None:
    with pytest.raises(LessonError, match="is not a lesson code"):
        read_code(code)


def test_every_typing_error_in_one_letter_is_refused() -> None:
    code = make_code("tokens", [True, False])
    for place, letter in enumerate(code):
        for other in "RWN05K":
            mistyped = code[:place] + other + code[place + 1 :]
            if other.lower() != letter.lower() and letter != ".":
                with pytest.raises(LessonError):
                    read_code(mistyped)
