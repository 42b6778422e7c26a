"""Questions that are asked before numbers are shown."""

from txcls.inspection.walk.step import ask_largest


def test_a_question_never_offers_two_right_answers() -> None:
    question = ask_largest("?", [str(n) for n in range(12)], [5.0, 9.0, 9.0, 9.0, *range(8)], lambda n: str(n))
    assert question is not None
    assert question.options[question.answer] == "1" == question.because
    assert not {"2", "3"} & set(question.options) and len(question.options) == 4
    assert ask_largest("?", ["a", "b"], [1.0, 1.0], str) is None
