from collections.abc import Callable
from pathlib import Path

import pytest

from txcls.lessons import LessonError, find_lesson, languages_of, lesson_names, read_lesson
from txcls.lessons.reading import not_offered

HEAD = "title: A lesson\nlanguage: en\nminutes: 5\nsummary: One learns.\nsteps:\n"
STEP = """  - title: First
    page: classify
    checkpoint: who_won
    text: City beat United.
    narration: Look.
"""
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(text: str, name: str = "mine.yaml") -> Path:
        (tmp_path / name).write_text(text, "utf-8")
        return tmp_path / name

    return write_file


def test_a_file_becomes_a_lesson(write: Write) -> None:
    lesson = read_lesson(write(HEAD + STEP + "    state: {layer: 2, predict: on}\n"))
    assert (lesson.name, lesson.title, lesson.language, len(lesson.steps)) == ("mine", "A lesson", "en", 1)
    assert lesson.steps[0].params == {
        "checkpoint": "who_won", "text": "City beat United.", "layer": "2", "predict": "on",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text, message",
    [
        (HEAD + STEP + "    colour: red\n", r"mine\.yaml: step 1 \(First\): colour: unknown field"),
        (HEAD + STEP + "    narrations: Look.\n", r"narrations: unknown field; did you mean narration\?"),
        (HEAD + STEP.replace("    narration: Look.\n", ""), r"step 1 \(First\): narration: missing"),
        (HEAD + STEP.replace("classify", "classy"), r"step 1 \(First\): page: there is no page classy"),
        (HEAD.replace("minutes: 5", "minutes: soon") + STEP, r"mine\.yaml: minutes: input should be a valid number"),
        (HEAD + STEP + "    question: {kind: choice, ask: Why, options: [a, b]}\n", "question.*needs an answer, or a"),
        (HEAD + STEP + "    question: {kind: choice, ask: Why, options: [a, b], answer: Negative}\n",
         r"question\.answer: got 'Negative', expected a measurement"),
        (HEAD + STEP + "    question: {kind: riddle, ask: Why}\n", r"step 1 \(First\): question: .*riddle"),
        (HEAD + STEP + "    claims: [{measure: probability}]\n", r"step 1 \(First\): claims\.0: a claim needs one of"),
        (HEAD + STEP + "    title: Twice\n", r"is not valid YAML: .*'title' occurs twice"),
        ("a: &x [1]\nb: *x\n", "anchors"),
        ("- one\n- two\n", "expected fields such as title"),
        ("title: a\nunit: %\n", r'line 2, column 7: is not valid YAML: .* in "quotes"'),
        ("!!python/object/apply:os.system ['true']\n", "is not valid YAML"),
    ],
)  # fmt: skip
def test_errors_name_file_step_and_field(write: Write, text: str, message: str) -> None:
    with pytest.raises(LessonError, match=message):
        read_lesson(write(text))


def test_steps_of_other_lessons_are_included(write: Write) -> None:
    write(HEAD + STEP + STEP.replace("First", "Second"), "inner.en.yaml")
    outer = HEAD + "  - {lesson: inner, steps: [2, 1], minutes: 4, room: Questions}\n" + STEP
    lesson = read_lesson(write(outer, "outer.en.yaml"))
    assert [step.title for step in lesson.steps] == ["Second", "First", "First"]
    assert [step.minutes for step in lesson.steps] == [4, None, None]
    assert [step.room for step in lesson.steps] == [None, "Questions", None]
    assert lesson.chapters == ("A lesson", "A lesson", "")


def test_lessons_that_include_one_another_are_refused(write: Write) -> None:
    write(HEAD + "  - lesson: b\n", "a.en.yaml")
    write(HEAD + "  - lesson: a\n", "b.en.yaml")
    with pytest.raises(LessonError, match="include one another"):
        read_lesson(write(HEAD + "  - lesson: a\n"))
    with pytest.raises(LessonError, match=r"steps: attention has no step 9"):
        read_lesson(write(HEAD + "  - {lesson: attention, steps: [9]}\n"))


def test_own_lessons_are_listed_with_the_shipped_ones(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TXCLS_LESSONS", str(tmp_path))
    write(HEAD + STEP, "mine.en.yaml")
    assert lesson_names()[0] == "mine" and "attention" in lesson_names()
    before = find_lesson("mine")
    write(HEAD.replace("A lesson", "Another") + STEP + STEP, "mine.en.yaml")
    after = find_lesson("mine")
    assert after.title == "Another" and before.version != after.version
    write(HEAD.replace("language: en", "language: de") + STEP, "mine.de.yaml")
    assert set(languages_of("mine")) == {"en", "de"} and not_offered() == ""
    write(HEAD + STEP, "Mine.yaml")
    assert "mine" in lesson_names() and "Mine.yaml" in not_offered()
    monkeypatch.setenv("TXCLS_LESSONS", str(tmp_path / "missing"))
    assert "is not a folder" in not_offered() and "attention" in lesson_names()
