"""Lessons as the app draws them, with the shipped checkpoints."""

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.drawn import go_to, open_page, words_of
from tests.conftest import make_checkpoint
from txcls.address import OPEN
from txcls.app import share
from txcls.app.pages import LESSONS
from txcls.lessons import find_lesson, lesson_names, make_code

SHIPPED = Path(__file__).parents[2] / "checkpoints"
TEXT = "Albion lost to Rangers at home."


@pytest.fixture(autouse=True)
def shipped_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(SHIPPED))


def begin(name: str, step: int, **params: str) -> AppTest:
    page = find_lesson(name).steps[step - 1].page
    return open_page(page, lesson=name, step=str(step), **params)


def press(app: AppTest, key: str) -> AppTest:
    app.button(key=key).click().run()
    assert not app.exception
    return app


def keys(app: AppTest) -> set[Any]:
    return {button.key for button in app.button}


def test_the_page_is_hidden_until_the_question_is_answered() -> None:
    app = begin("attention", 1)
    assert not app.text_area and TEXT in words_of(app)
    assert "lesson_show_page" in keys(app)
    app.radio(key="lesson_given_attention_0").set_value(1).run()
    press(app, "lesson_check")
    assert app.text_area[0].value == TEXT
    assert any("Right." in box.value for box in app.success)
    assert app.query_params["lesson"] == "attention" and app.query_params["step"] == "1"
    assert "text" not in app.query_params


def test_a_question_about_a_picture_shows_it_first_and_a_wrong_answer_is_put_right() -> None:
    app = begin("attention", 3)
    assert app.text_area[0].value == TEXT
    app.radio(key="lesson_given_attention_2").set_value(0).run()
    press(app, "lesson_check")
    assert any("Not quite" in box.value and "rangers" in box.value for box in app.warning)


def test_checking_without_an_answer_judges_nothing() -> None:
    app = press(begin("attention", 1), "lesson_check")
    assert not app.text_area and not app.success and not app.warning


def test_steps_are_turned_to_their_pages_and_back() -> None:
    app = press(begin("attention", 3), "lesson_next")
    assert app.query_params["step"] == "4"
    press(app, "lesson_back")
    assert app.query_params["step"] == "3"


def test_what_is_changed_is_kept_aside() -> None:
    app = begin("attention", 3)
    app.text_area[0].set_value("City beat United.").run()
    assert app.query_params["text"] == "City beat United."
    assert "lesson_restore" in keys(app)
    press(app, "lesson_restore")
    assert app.text_area[0].value == TEXT and "text" not in app.query_params
    press(app, "lesson_mine")
    assert app.text_area[0].value == "City beat United."
    press(app, "lesson_restore")
    press(app, "lesson_next")
    press(app, "lesson_back")
    assert app.text_area[0].value == TEXT and "lesson_mine" in keys(app)


def test_a_parameter_that_the_visitor_takes_away_stays_away() -> None:
    app = begin("attention", 3, layer="", head="2")
    assert app.query_params["layer"] == "" and app.session_state["_view"].layer == OPEN
    assert "head" not in app.query_params  # as in the step


def test_the_step_of_step_by_step_has_a_name_of_its_own_in_a_lesson() -> None:
    app = begin("attention", 2)
    assert app.session_state["_view"].step.startswith("softmax") and app.query_params["step"] == "2"
    app = begin("attention", 2, at="scores")
    assert app.session_state["_view"].step.startswith("scores") and app.query_params["at"].startswith("scores")


def test_another_page_keeps_the_lesson_and_leaving_ends_it() -> None:
    app = go_to(begin("attention", 3), "lens")
    assert app.query_params["lesson"] == "attention" and "lesson_restore" in keys(app)
    press(app, "lesson_leave")
    assert "lesson" not in app.query_params and "lesson_next" not in keys(app)
    assert app.query_params["text"] == TEXT


def test_the_last_step_shows_the_code_of_the_answers() -> None:
    app = begin("attention", 6)
    press(app, "lesson_show")
    assert app.code[0].value == make_code("attention", [None] * 5)


def test_a_lesson_that_there_is_not_is_said_and_the_page_opens() -> None:
    app = open_page("lens", lesson="nonsense")
    assert any("no lesson nonsense" in box.value for box in app.warning)
    assert "lesson_next" not in keys(app)
    for step in ("99", "-1", "x", "1e9", "9" * 50):
        assert not begin("attention", 3, at="x").exception
        app = open_page("attention", lesson="attention", step=step)
        assert not app.exception and 1 <= int(app.query_params["step"]) <= 6


def test_a_lesson_whose_checkpoint_is_missing_says_so_and_can_be_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_checkpoint(tmp_path / "other")
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    app = open_page("classify", lesson="attention", step="1")
    assert "who_won" in app.error[0].value.replace("\\", "") and app.text_area
    assert "lesson_next" not in keys(press(app, "lesson_leave")) and not app.error


def test_the_language_is_changed_within_the_lesson() -> None:
    app = press(begin("attention", 3), "lesson_in_de")
    assert app.query_params["lang"] == "de" and any("Eine Karte lesen" in one.value for one in app.subheader)


def test_lecture_mode_shows_the_question_one_slide_and_the_answer() -> None:
    app = begin("attention", 1, mode="lecture")
    slides = app.session_state["_slides"]
    assert "lesson" in slides[0] and "lesson" in slides[-1] and len(slides) >= 3
    assert slides[0]["hides_answer"]
    assert app.query_params["mode"] == "lecture"


def test_the_page_lessons_offers_every_lesson_in_every_language() -> None:
    app = open_page(LESSONS.name)
    links = [link.proto.query_string for link in app.get("page_link")]
    for name in lesson_names():
        for language in ("en", "de"):
            assert f"lesson={name}&step=1&lang={language}" in links
    titles = [one.value.partition(" · ")[0] for one in app.subheader]
    assert titles == [find_lesson(name).title for name in lesson_names()]


def test_a_lesson_of_ones_own_that_is_wrong_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_LESSONS", str(tmp_path))
    (tmp_path / "broken.en.yaml").write_text("title: x\n", "utf-8")
    app = open_page(LESSONS.name)
    assert any("broken.en.yaml" in box.value.replace("\\", "") for box in app.warning) and not app.exception


def test_a_qr_code_is_drawn_here_and_long_links_get_none() -> None:
    picture = share.qr_code("https://example.org/?text=a")
    assert picture is not None and picture.startswith("data:image/svg+xml;base64,")
    assert share.qr_code("x" * (share.MOST_IN_CODE + 1)) is None
