"""Lessons in a real browser with the shipped checkpoints, in lecture mode and for students."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import Server, watched
from tests.browser.exported import Open
from tests.browser.test_accessibility import findings
from tests.browser.visiting import settle, wait_until_steady
from txcls.app.lessons.lesson import LATE_SECONDS
from txcls.lessons import find_lesson, lesson_names
from txcls.lessons.markup import words_in
from txcls.web.assemble import words_in_language
from txcls.web.lesson import export_lesson

PANEL = ".st-key-lesson_panel"
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def opened(browser: Browser, shipped: Server) -> Iterator[Page]:
    """One page for all lessons, which loads the app's files and the checkpoints only once."""
    with watched(browser, shipped, viewport=WIDE, reduced_motion="reduce") as context:
        yield context.new_page()


@pytest.fixture
def visitor(opened: Page, shipped: Server) -> Page:
    """The page without the answers that the browser has stored."""
    opened.set_viewport_size(WIDE)  # type: ignore[arg-type]
    storage = {"origin": shipped.address, "storageTypes": "local_storage"}
    opened.context.new_cdp_session(opened).send("Storage.clearDataForOrigin", storage)
    return opened


FITS = """() => {
  const slide = document.querySelector('[class*="st-key-slide_"]:not([inert])')
  const answer = document.querySelector(".st-key-lesson_answer")
  const isCovered = answer && getComputedStyle(answer).visibility === "visible" &&
    slide.getBoundingClientRect().bottom > answer.getBoundingClientRect().top + 1
  const charts = [...document.querySelectorAll('[class*="st-key-slide_"] .stPlotlyChart')]
  return slide && slide.scrollHeight - slide.clientHeight <= 3 && !isCovered &&
    charts.every((chart) => chart.clientHeight >= 0.25 * innerHeight)
}"""
"""Whether the visible slide needs no scrolling, the answer covers none of it, and no chart is low, on hidden slides
either: plotly's margins do not settle in low charts, and it warns of that."""


def begin(page: Page, server: Server, name: str, step: int = 1, **params: str) -> None:
    more = "".join(f"&{key}={value}" for key, value in params.items())
    page.goto(f"{server.address}/?lesson={name}&step={step}{more}")
    expect(page.locator(f"{PANEL}, .st-key-slide_0").first).to_be_visible()
    settle(page)
    page.wait_for_function("!!window.txclsLecture?.live")  # key presses are lost before its code is loaded


def at_step(page: Page, number: int) -> None:
    expect(page.locator(f"{PANEL} [role=progressbar]")).to_have_attribute("aria-valuenow", str(number))
    settle(page)


def press_next(page: Page) -> None:
    page.keyboard.press("PageDown")


def slide(page: Page) -> Locator:
    """The visible slide."""
    return page.locator('[class*="st-key-slide_"]:not([inert])')


def test_answers_are_judged_and_the_first_ones_counted(visitor: Page, shipped: Server) -> None:
    begin(visitor, shipped, "attention")
    panel = visitor.locator(PANEL)
    panel.get_by_text("Rangers", exact=True).click()
    settle(visitor)
    visitor.locator(".st-key-lesson_check button").click()
    expect(panel).to_contain_text("Right.")
    settle(visitor)
    visitor.locator(".st-key-lesson_next button").click()
    at_step(visitor, 2)
    visitor.locator(".st-key-lesson_next button").click()
    at_step(visitor, 3)
    check = visitor.locator(".st-key-lesson_check button")
    check.click()
    expect(panel).to_contain_text("Give an answer first")
    settle(visitor)
    place = check.bounding_box()
    panel.locator("input").fill("1")
    panel.locator("input").blur()  # as when the pointer goes down on Check: the app runs before it is up
    settle(visitor)
    assert check.bounding_box() == place, "nothing has moved under the pointer"
    check.click()
    expect(panel).to_contain_text("Not quite: 1\u00a0%. Try again")
    settle(visitor)
    panel.locator("input").fill("98")
    panel.locator("input").blur()
    settle(visitor)
    check.click()
    expect(panel).to_contain_text("Right.")
    settle(visitor)
    for number in (4, 5, 6):
        press_next(visitor)
        at_step(visitor, number)
        if number == 4:
            panel.get_by_text("lost", exact=True).click()
            settle(visitor)
            check.click()
            expect(panel).to_contain_text("Not quite: lost.")
            settle(visitor)
        press_next(visitor)  # shows the answer
        expect(panel).to_contain_text("Your answer: lost. The right answer:" if number == 4 else "The answer:")
        settle(visitor)
    expect(panel).to_contain_text("1 of 5 right on the first try")
    visitor.reload()
    expect(panel).to_contain_text("1 of 5 right on the first try")
    settle(visitor)
    visitor.locator(".st-key-lesson_again button").click()
    at_step(visitor, 1)
    expect(visitor.locator(".st-key-lesson_cover")).to_be_visible()
    assert visitor.evaluate("localStorage.getItem('txcls-lesson-attention')") is None


def test_a_lesson_opens_from_the_list_and_back_and_forward_go_step_by_step(visitor: Page, shipped: Server) -> None:
    visitor.goto(f"{shipped.address}/lessons?lesson=attention&step=2")
    at_step(visitor, 2)
    expect(visitor).to_have_url(re.compile(r"/steps\?lesson=attention&step=2"))
    for number in (3, 4):
        visitor.locator(".st-key-lesson_next button").click()
        if number == 4:
            settle(visitor)
            visitor.locator(".st-key-lesson_next button").click()  # the first click showed the answer
        at_step(visitor, number)
    visitor.wait_for_timeout(1000 * LATE_SECONDS)
    for go, number, path in (
        (visitor.go_back, 3, "attention"), (visitor.go_back, 2, "steps"),
        (visitor.go_forward, 3, "attention"), (visitor.go_forward, 4, "attention"),
    ):  # fmt: skip
        go()
        at_step(visitor, number)
        expect(visitor).to_have_url(re.compile(rf"/{path}\?lesson=attention&step={number}&"))
        expect(visitor.locator(PANEL)).to_contain_text(find_lesson("attention").steps[number - 1].title)


def test_in_lecture_mode_the_question_comes_before_the_page_and_the_answer_after(
    visitor: Page, shipped: Server
) -> None:
    begin(visitor, shipped, "attention", mode="lecture")
    count = visitor.locator(".bar .count")
    expect(count).to_have_text("1 / 6")
    expect(slide(visitor)).to_contain_text("Which team does it predict?")
    expect(visitor.locator(".st-key-lecture_strip .txcls-strip")).not_to_be_visible()
    answer, evidence = visitor.locator(".st-key-lesson_answer"), slide(visitor).locator(".machine-word").first
    slide(visitor).get_by_text("Albion", exact=True).click()
    visitor.locator(".st-key-lesson_check button").click()
    expect(slide(visitor)).to_contain_text("Your answer: Albion")
    settle(visitor)
    visitor.reload()
    expect(visitor.locator(".st-key-slide_0")).to_contain_text("Your answer: Albion")
    visitor.wait_for_function("!!window.txclsLecture?.live")
    expect(answer).not_to_be_visible()
    press_next(visitor)
    expect(evidence).to_be_visible()
    expect(answer).not_to_be_visible()
    press_next(visitor)
    expect(evidence).to_be_visible()
    expect(answer).to_be_visible()
    expect(answer).to_contain_text("Not quite.")
    visitor.wait_for_function(FITS)
    press_next(visitor)
    expect(count).to_have_text("2 / 6")
    expect(slide(visitor)).to_contain_text("A weighted mean")
    visitor.keyboard.press("PageUp")
    expect(count).to_have_text("1 / 6")
    expect(answer).to_be_visible()
    title = find_lesson("attention").steps[3].title
    visitor.locator(".bar .map").get_by_text("2", exact=True).click()
    expect(count).to_have_text("2 / 6")
    settle(visitor)
    visitor.locator(".bar .go").select_option(f"4 · {title}")
    expect(count).to_have_text("4 / 6")
    settle(visitor)
    begin(visitor, shipped, "course", 2, mode="lecture", lang="de")
    expect(visitor.locator(".bar .title")).to_have_text(find_lesson("course", "de").steps[1].title)
    expect(visitor.locator(".bar .planned")).to_have_text(words_in("de")["minutes"].format(minutes="4–12"))


def test_on_a_phone_a_lesson_fits_and_a_button_below_the_narration_leads_to_the_part(
    visitor: Page, shipped: Server
) -> None:
    visitor.set_viewport_size(PHONE)  # type: ignore[arg-type]
    part = ".st-key-step_heading"
    begin(visitor, shipped, "attention", 2)
    assert visitor.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= PHONE["width"]
    expect(visitor.locator(f"{PANEL} h3")).to_be_in_viewport()
    expect(visitor.locator(part)).not_to_be_in_viewport()
    visitor.locator(".txcls-to-part").click()
    expect(visitor.locator(part)).to_be_in_viewport()
    visitor.locator(".st-key-lesson_next button").click()
    at_step(visitor, 3)
    expect(visitor.locator(f"{PANEL} [role=progressbar]")).to_be_in_viewport()


def test_words_are_dragged_on_a_phone_and_by_keyboard(visitor: Page, shipped: Server) -> None:
    """A row keeps its height while a word is dragged out of it; otherwise the rows below would move up."""
    visitor.set_viewport_size(PHONE)  # type: ignore[arg-type]
    begin(visitor, shipped, "tokens", 2)
    rows = visitor.locator(f"{PANEL} .bin-words")
    rows.first.scroll_into_view_if_needed()
    word, target = rows.first.get_by_text("beat").bounding_box(), rows.nth(1).bounding_box()
    assert word and target and (rows.first.bounding_box() or {"height": 0})["height"] > 60  # two lines
    visitor.mouse.move(word["x"] + 9, word["y"] + 9)
    visitor.mouse.down()
    for offset in (0, 1, 2):
        visitor.mouse.move(target["x"] + 60 + offset, target["y"] + target["height"] / 2)
    visitor.mouse.up()
    expect(rows.nth(1)).to_have_text("beat")
    for name, n_rows in (("arsenal", 2), ("chelsea", 2), ("city", 1), ("rangers", 1)):
        rows.get_by_text(name).focus()
        for _ in range(n_rows):
            visitor.keyboard.press("Shift+ArrowDown")
    settle(visitor)
    visitor.locator(".st-key-lesson_check button").click()
    expect(visitor.locator(PANEL)).to_contain_text("Right.")


def longest_steps() -> list[tuple[str, int]]:
    """The lesson and number of the step with the most text, of each page and of each kind of question, in German."""
    longest: dict[object, tuple[int, str, int]] = {}
    for name in lesson_names():
        for number, step in enumerate(find_lesson(name, "de").steps, 1):
            for kind in (step.page, step.question and step.question.kind):
                if name != "course":  # its steps are those of the other lessons
                    longest[kind] = max(longest.get(kind, (0, "", 0)), (len(step.model_dump_json()), name, number))
    return sorted({(name, number) for _, name, number in longest.values()})


@pytest.mark.parametrize("name, step", longest_steps())
def test_every_slide_of_the_longest_steps_fits_a_small_window(
    visitor: Page, shipped: Server, name: str, step: int
) -> None:
    begin(visitor, shipped, name, step, mode="lecture", lang="de")
    last, seen = visitor.locator(".bar .next[disabled]"), set()
    while f"step={step}" in (address := visitor.evaluate("location.href")) and address not in seen:
        seen.add(address)
        settle(visitor)
        wait_until_steady(visitor)  # charts and drawings are resized after they are drawn
        visitor.wait_for_function(FITS)
        if not last.count():
            press_next(visitor)
            visitor.wait_for_function("(here) => location.href !== here", arg=address)
    assert len(seen) >= 2


def test_an_exported_lesson_asks_and_answers_offline(tmp_path: Path, open_page: Open) -> None:
    lesson, words = find_lesson("attention", "de"), words_in("de")
    page = open_page(export_lesson(lesson, tmp_path / "p", single_file=True).as_uri(), offline=True)
    page.evaluate(Axe().axe_script)
    panel = page.locator("#lesson")
    answers = iter(GIVEN)
    for number, step in enumerate(lesson.steps, 1):
        expect(panel.get_by_role("progressbar")).to_have_attribute("aria-valuenow", str(number))
        expect(panel).to_contain_text(step.title)
        if step.question is not None:
            expect(page.locator("main")).to_be_visible(visible=step.question.look)
            answer = next(answers)
            if answer is None:
                panel.get_by_role("button", name=words["show"]).click()
            else:
                choose(panel, step.question.kind, right=answer)
                panel.get_by_role("button", name=words["check"]).click()
                if not answer:
                    expect(panel).to_contain_text(words["try_again"].partition("{")[0])
                    panel.get_by_role("button", name=words["show"]).click()
                expect(panel).to_contain_text(words["right" if answer else "wrong"].partition("{")[0])
            assert findings(page) == []
        expect(page.locator("main")).to_be_visible()
        expect(page.locator("#text")).to_have_value(step.text)
        page.keyboard.press("PageDown")
    page.go_back()
    expect(panel.get_by_role("progressbar")).to_have_attribute("aria-valuenow", str(len(lesson.steps) - 1))
    page.reload()
    expect(panel).to_contain_text(lesson.steps[-2].title)
    page.go_forward()
    expect(panel).to_contain_text(lesson.steps[-1].title)
    result = words["result"].format(right=GIVEN.count(True), questions=len(GIVEN))
    expect(panel).to_contain_text(result)
    assert panel.get_attribute("lang") == page.locator("html").get_attribute("lang") == "de"
    shown, german = page.evaluate("document.body.innerText"), words_in_language("de")
    assert "The picture as text" not in shown and german["The picture as text"] in shown


GIVEN = (True, False, None, True, None)
"""Whether each answer given in the exported lesson is right; None where the solution is shown instead."""


def choose(panel: Locator, kind: str, *, right: bool) -> None:
    """Answer a question of the lesson "attention", rightly or wrongly."""
    if kind == "number":
        panel.get_by_role("spinbutton").fill("98" if right else "1")
    elif kind == "heads":
        panel.get_by_label("1.2" if right else "1.1", exact=True).check()
    else:
        panel.get_by_role("radio").nth(1 if right else 0).check()


def steady_findings(page: Page) -> list[str]:
    """axe-core's findings once Streamlit's fades have ended, after some tenths of a second."""
    wait_until_steady(page)
    return findings(page)


def test_axe_finds_nothing_serious_in_a_lesson(browser: Browser, shipped: Server) -> None:
    """On steps with a question of each kind."""
    with watched(browser, shipped, viewport=PHONE, color_scheme="dark", reduced_motion="reduce") as context:
        page = context.new_page()
        for name, step in [("tokens", 2), ("attention", 5), ("positions", 4)]:
            begin(page, shipped, name, step)
            page.evaluate(Axe().axe_script)
            assert steady_findings(page) == [], (name, step)
            page.locator(".st-key-lesson_next button").click()
            expect(page.locator(".st-key-lesson_cover")).to_have_count(0)
            settle(page)
            assert steady_findings(page) == [], (name, step, "answered")
        page.goto(f"{shipped.address}/lessons")
        page.locator(".st-key-lesson_card_6").wait_for()
        settle(page)
        page.evaluate(Axe().axe_script)
        assert steady_findings(page) == []
