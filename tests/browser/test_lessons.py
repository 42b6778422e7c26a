"""Lessons in a real browser with the shipped checkpoints: gone through step by step, as a lecturer and as a student."""

import csv
import io
import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import PATIENCE_MS, Server, watched
from tests.browser.exported import Open
from tests.browser.server import serve
from tests.browser.test_accessibility import findings
from tests.browser.visiting import choose_page, query, settle, wait_until_steady
from txcls.inspection.tracing import trace_text
from txcls.lessons import find_lesson, languages_of, lesson_names, read_code
from txcls.lessons.wording import words_in
from txcls.predictor import Predictor
from txcls.web.lesson import export_lesson, page_words

PANEL = ".st-key-lesson_panel"
ALL = [(name, language) for name in lesson_names() for language in languages_of(name)]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app with the shipped checkpoints."""
    log = tmp_path_factory.mktemp("shipped") / "server.log"
    with serve(log) as address:
        yield Server(address, log)


@pytest.fixture(scope="module")
def visitor(browser: Browser, shipped: Server) -> Iterator[Page]:
    """One page for all lessons, so that the app's files and the checkpoints are loaded once."""
    with watched(browser, shipped, viewport={"width": 1280, "height": 800}, reduced_motion="reduce") as context:
        yield context.new_page()
    assert not shipped.complaints()


FITS = """() => {
  const slide = document.querySelector('[class*="st-key-slide_"]:not([inert])')
  return slide && slide.scrollHeight - slide.clientHeight <= 3
}"""
"""Whether the slide that is seen needs no scrolling."""


def begin(page: Page, server: Server, name: str, step: int = 1, **params: str) -> None:
    more = "".join(f"&{key}={value}" for key, value in params.items())
    page.goto(f"{server.address}/?lesson={name}&step={step}{more}")
    expect(page.locator(f"{PANEL}, .st-key-slide_0").first).to_be_visible()
    settle(page)
    page.wait_for_function("!!window.txclsLecture?.live")  # before its code is loaded, nothing can take a key


def at_step(page: Page, number: int) -> None:
    expect(page.locator(f"{PANEL} [role=progressbar]")).to_have_attribute("aria-valuenow", str(number))
    settle(page)


def press_next(page: Page) -> None:
    page.keyboard.press("PageDown")


@pytest.mark.parametrize("name, language", ALL)
def test_a_clicker_goes_through_every_step_of_every_lesson(
    visitor: Page, shipped: Server, name: str, language: str
) -> None:
    lesson = find_lesson(name, language)
    begin(visitor, shipped, name, lang=language)
    for number, step in enumerate(lesson.steps, 1):
        at_step(visitor, number)
        panel = visitor.locator(PANEL)
        expect(panel).to_contain_text(step.title)
        expect(visitor).to_have_url(re.compile(rf"lesson={name}&step={number}&lang={language}"))
        path = "" if step.page == "classify" else step.page
        assert urlsplit(visitor.url).path.strip("/") == path
        assert "[[" not in panel.inner_text()
        if step.question is not None:
            if not step.question.look:
                expect(visitor.locator(".st-key-lesson_cover")).to_be_visible()
                expect(visitor.locator('[class*="st-key-text_box"]')).to_have_count(0)
            press_next(visitor)  # the answer, and the page with it
            expect(visitor.locator(".st-key-lesson_cover")).to_have_count(0)
            expect(panel).to_contain_text(words_in(language)["shown"])
            settle(visitor)
        if step.page != "atlas":
            expect(visitor.locator('[class*="st-key-text_box"] textarea').first).to_have_value(step.text)
        expect(panel).to_have_attribute("lang", language)
        press_next(visitor)
    at_step(visitor, len(lesson.steps))


def test_answers_are_judged_and_a_code_tells_of_them_at_the_end(visitor: Page, shipped: Server) -> None:
    begin(visitor, shipped, "attention")
    panel = visitor.locator(PANEL)
    panel.get_by_text("Rangers", exact=True).click()
    visitor.locator(".st-key-lesson_check button").click()
    expect(panel).to_contain_text("Right.")
    visitor.locator(".st-key-lesson_next button").click()
    at_step(visitor, 2)
    visitor.locator(".st-key-lesson_next button").click()
    at_step(visitor, 3)
    panel.get_by_text("lost", exact=True).click()
    visitor.locator(".st-key-lesson_check button").click()
    expect(panel).to_contain_text("Not quite.")
    for number in (4, 5, 6):
        press_next(visitor)
        at_step(visitor, number)
        press_next(visitor)  # shows the answer
        expect(panel).to_contain_text("The answer:")
        settle(visitor)
    code = panel.locator("code").last.inner_text()
    assert read_code(code).answers == (True, False, None, None, None)


def test_what_is_changed_is_kept_aside_and_the_step_comes_back(visitor: Page, shipped: Server) -> None:
    begin(visitor, shipped, "attention", 3)
    box = visitor.locator('[class*="st-key-text_box"] textarea')
    box.fill("City beat United.")
    box.press("Control+Enter")
    expect(visitor.locator(".st-key-lesson_restore")).to_be_visible()
    expect(visitor).to_have_url(re.compile(r"step=3&lang=en&text=City"))
    visitor.reload()
    expect(box).to_have_value("City beat United.")
    visitor.locator(".st-key-lesson_restore button").click()
    expect(box).to_have_value("Albion lost to Rangers at home.")
    expect(visitor.locator(".st-key-lesson_restore")).to_have_count(0)
    assert "text" not in query(visitor)
    visitor.locator(".st-key-lesson_mine button").click()
    expect(box).to_have_value("City beat United.")


def test_another_page_keeps_the_lesson_and_the_way_back(visitor: Page, shipped: Server) -> None:
    begin(visitor, shipped, "attention", 3)
    choose_page(visitor, "Try", "Classify")
    expect(visitor.locator(".st-key-lesson_restore")).to_be_visible()
    visitor.locator(".st-key-lesson_restore button").click()
    expect(visitor).to_have_url(re.compile("/attention"))
    at_step(visitor, 3)
    visitor.locator(".st-key-lesson_leave button").click()
    expect(visitor.locator(PANEL)).to_have_count(0)
    expect(visitor).not_to_have_url(re.compile("lesson"))


def test_in_lecture_mode_the_question_comes_before_the_page_and_the_answer_after(
    visitor: Page, shipped: Server
) -> None:
    begin(visitor, shipped, "attention", mode="lecture")
    count = visitor.locator(".bar .count")
    expect(count).to_have_text("1 / 6")
    shown = visitor.locator('[class*="st-key-slide_"]:not([inert])')
    expect(shown).to_contain_text("Which team does it name?")
    expect(visitor.locator(".st-key-lecture_strip .txcls-strip")).not_to_be_visible()
    press_next(visitor)
    expect(shown).not_to_contain_text("Which team does it name?")
    press_next(visitor)
    expect(shown).to_contain_text("The answer:")
    press_next(visitor)
    expect(count).to_have_text("2 / 6")
    expect(shown).to_contain_text("A weighted mean")
    visitor.keyboard.press("PageUp")
    expect(count).to_have_text("1 / 6")
    expect(shown).to_contain_text("The answer:")


def picture_of(page: Page) -> Locator:
    return page.locator(".st-key-machine .picture")


def test_the_picture_of_a_step_is_that_of_its_text_where_the_step_before_has_the_same_page(
    visitor: Page, shipped: Server
) -> None:
    steps = find_lesson("errors").steps
    assert steps[3].page == steps[4].page and steps[3].checkpoint == steps[4].checkpoint
    begin(visitor, shipped, "errors", 4, mode="lecture")
    for step in (steps[3], steps[4]):
        expect(picture_of(visitor)).to_have_attribute("data-read", step.text)
        for _ in range(3):
            press_next(visitor)
            settle(visitor)


def test_the_film_of_a_step_is_at_the_training_step_that_it_is_about(visitor: Page, shipped: Server) -> None:
    begin(visitor, shipped, "training", mode="lecture")
    for number, step in enumerate(find_lesson("training").steps[:3], 1):
        expect(visitor.locator(".bar .count")).to_have_text(f"{number} / 5")
        press_next(visitor)
        expect(visitor.locator(".film .where")).to_contain_text(f"Step {step.state['training_step']} ")
        press_next(visitor)
        press_next(visitor)
    begin(visitor, shipped, "training", 2)
    press_next(visitor)
    expect(visitor.locator(".film .where")).to_contain_text("Step 130 ")
    visitor.locator(".film input[type=range]").fill("0")
    visitor.wait_for_url(re.compile("training_step=0"))
    visitor.reload()
    visitor.wait_for_function("!!window.txclsLecture?.live")
    expect(visitor.locator(".st-key-lesson_cover")).to_be_visible()
    settle(visitor)
    press_next(visitor)
    expect(visitor.locator(".film .where")).to_contain_text("Step 0 ")


FIVE_TIMES_NEXT = """() => {
    if (!window.txclsLecture?.keeper) return false
    const key = () => new KeyboardEvent("keydown", { key: "PageDown", bubbles: true, cancelable: true })
    for (let n = 0; n < 5; n++) document.body.dispatchEvent(key())
    return true
}"""
"""PageDown five times in one task of the browser, so that nothing is loaded or drawn in between, once keys are kept."""


def test_a_key_pressed_before_there_is_anything_to_turn_is_taken_once(visitor: Page, shipped: Server) -> None:
    visitor.goto("about:blank")
    visitor.goto(f"{shipped.address}/?lesson=errors&step=1&mode=lecture", wait_until="commit")
    visitor.wait_for_function(FIVE_TIMES_NEXT)
    expect(visitor.locator(".bar .count")).to_have_text("1 / 6")
    settle(visitor)
    expect(visitor.locator('.st-key-slide_0[class*="st-key-slide_"]')).to_have_attribute("inert", "")
    slide = int(query(visitor).get("slide", "1"))
    assert slide > 1
    while slide < 3:
        press_next(visitor)
        slide += 1
    visitor.wait_for_function(FIVE_TIMES_NEXT)  # the first turns; one other is taken when the next step is there
    expect(visitor.locator(".bar .count")).to_have_text("2 / 6")
    visitor.wait_for_url(re.compile("step=2.*slide=2"))
    settle(visitor)
    wait_until_steady(visitor)
    settle(visitor)
    assert query(visitor)["step"] == "2" and query(visitor)["slide"] == "2"


def test_a_page_opens_at_the_part_that_its_step_is_about(visitor: Page, shipped: Server) -> None:
    begin(visitor, shipped, "explanation", 5)
    press_next(visitor)  # shows the answer, and the page with it
    heading = visitor.get_by_role("heading", name="What happens when words are deleted?")
    expect(heading).to_be_in_viewport()
    expect(visitor.locator(".st-key-chart_deletion")).to_be_in_viewport()
    begin(visitor, shipped, "explanation", 4)  # about the first part of the same page
    press_next(visitor)
    settle(visitor)
    assert visitor.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") == 0


def test_on_a_phone_the_narration_comes_first_and_a_button_leads_to_the_part(visitor: Page, shipped: Server) -> None:
    visitor.set_viewport_size({"width": 390, "height": 844})
    try:
        for name, step, part in (
            ("attention", 2, ".st-key-step_body h3"),
            ("explanation", 2, ".txcls-head b >> nth=0"),
        ):
            begin(visitor, shipped, name, step)
            expect(visitor.locator(f"{PANEL} h3")).to_be_in_viewport()
            expect(visitor.locator(part)).not_to_be_in_viewport()
            visitor.locator(".txcls-to-part").click()
            expect(visitor.locator(part)).to_be_in_viewport()
    finally:
        visitor.set_viewport_size({"width": 1280, "height": 800})


def test_a_row_keeps_its_height_while_a_word_is_dragged_out_of_it(visitor: Page, shipped: Server) -> None:
    """Or the rows below would move up, and the word would land in the next one."""
    visitor.set_viewport_size({"width": 390, "height": 844})
    try:
        begin(visitor, shipped, "tokens", 2)
        rows = visitor.locator(f"{PANEL} .bin-words")
        rows.first.scroll_into_view_if_needed()
        word, target = rows.first.get_by_text("beat").bounding_box(), rows.nth(1).bounding_box()
        assert word and target and (rows.first.bounding_box() or {"height": 0})["height"] > 60  # two lines
        visitor.mouse.move(word["x"] + 9, word["y"] + 9)
        visitor.mouse.down()
        for by in (0, 1, 2):
            visitor.mouse.move(target["x"] + 60 + by, target["y"] + target["height"] / 2)
        visitor.mouse.up()
        expect(rows.nth(1)).to_have_text("beat")
    finally:
        visitor.set_viewport_size({"width": 1280, "height": 800})


def test_in_lecture_mode_the_bar_says_the_plan_and_an_answer_stays_to_be_seen(visitor: Page, shipped: Server) -> None:
    begin(visitor, shipped, "course", 2, mode="lecture", lang="de")
    expect(visitor.locator(".bar .title")).to_have_text(find_lesson("course", "de").steps[1].title)
    expect(visitor.locator(".bar .planned")).to_have_text(words_in("de")["minutes"].format(minutes="4–12"))
    begin(visitor, shipped, "attention", mode="lecture")
    shown = visitor.locator('[class*="st-key-slide_"]:not([inert])')
    shown.get_by_text("Albion", exact=True).click()
    visitor.locator(".st-key-lesson_check button").click()
    expect(shown).to_contain_text("Your answer: Albion")
    expect(shown).not_to_contain_text("Rangers.")
    expect(visitor.locator(".bar .planned")).to_have_text("")


@pytest.mark.parametrize("name", [name for name in lesson_names() if name != "course"])
def test_every_slide_of_a_lesson_fits_a_small_window(visitor: Page, shipped: Server, name: str) -> None:
    """In German, which is longer; those of the course are among them."""
    begin(visitor, shipped, name, mode="lecture", lang="de")
    last = visitor.locator(".bar .next[disabled]")
    seen = set()
    while visitor.url not in seen:
        seen.add(visitor.url)
        settle(visitor)
        wait_until_steady(visitor)  # charts and drawings take their size after they are drawn
        visitor.wait_for_function(FITS)
        if not last.count():
            here = visitor.url
            press_next(visitor)
            visitor.wait_for_function("(here) => location.href !== here", arg=here)
    assert len(seen) >= 2 * len(find_lesson(name, "de").steps)


def test_words_are_dragged_by_keyboard(visitor: Page, shipped: Server) -> None:
    begin(visitor, shipped, "tokens", 2)
    words = visitor.locator(f"{PANEL} .bin-words button")
    expect(words).to_have_count(5)
    known = {"beat", "city", "rangers"}
    for word in ("arsenal", "beat", "chelsea", "city", "rangers"):
        visitor.locator(f"{PANEL} .bin-words button", has_text=word).focus()
        visitor.keyboard.press("Shift+ArrowDown")
        if word not in known:
            visitor.keyboard.press("Shift+ArrowDown")
    settle(visitor)
    visitor.locator(".st-key-lesson_check button").click()
    expect(visitor.locator(PANEL)).to_contain_text("Right.")


def test_a_lesson_fits_a_phone(visitor: Page, shipped: Server) -> None:
    visitor.set_viewport_size({"width": 390, "height": 844})
    try:
        begin(visitor, shipped, "attention", 2)
        width = visitor.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
        assert width <= 390
        visitor.locator(".st-key-lesson_next button").click()
        at_step(visitor, 3)
        expect(visitor.locator(f"{PANEL} [role=progressbar]")).to_be_in_viewport()
    finally:
        visitor.set_viewport_size({"width": 1280, "height": 800})


def test_share_gives_the_link_and_its_qr_code(visitor: Page, shipped: Server) -> None:
    visitor.goto(f"{shipped.address}/attention?checkpoint=who_won&text=City+beat+United.&layer=2&head=1")
    visitor.locator(".st-key-share button").first.click()
    link = visitor.locator('[data-testid="stPopoverBody"] code')
    expect(link).to_contain_text("/attention?checkpoint=who_won&text=City+beat+United.&layer=2&head=1")
    expect(visitor.get_by_alt_text("QR code of the link above")).to_be_visible()


def test_a_charts_numbers_are_saved_as_csv(visitor: Page, shipped: Server) -> None:
    visitor.goto(f"{shipped.address}/attention?checkpoint=who_won&text=City+beat+United.&layer=2&head=1")
    button = visitor.get_by_role("button", name=re.compile("Save .*-map as CSV"))
    button.wait_for()
    settle(visitor)
    with visitor.expect_download() as waiting:
        button.click()
    text = waiting.value.path().read_text("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    traced = trace_text(Predictor.load("who_won"), "City beat United.")
    names = [token.text for token in traced.tokens]
    read = {(row["y"], row["x"]): float(row["value"]) for row in rows}
    assert len(rows) == len(names) ** 2
    for asking, of_query in zip(names, traced.attention[1, 0], strict=True):
        for key, weight in zip(names, of_query, strict=True):
            assert read[asking, key] == pytest.approx(float(weight), abs=1e-5)


@pytest.mark.parametrize("path", ["?lesson=attention&step=4&embed=true", "attention?checkpoint=who_won&embed=true"])
def test_a_page_works_in_a_frame_of_another_origin(
    browser: Browser, shipped: Server, path: str, tmp_path: Path
) -> None:
    """As a learning platform shows it: another host and port, so other cookies and another origin."""
    frame = f'<iframe src="{shipped.address}/{path}" width="1200" height="900"></iframe>'
    (tmp_path / "course.html").write_text(f"<!doctype html><title>Course</title>{frame}", "utf-8")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    platform = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=platform.serve_forever, daemon=True).start()
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    context.set_default_timeout(PATIENCE_MS)
    try:
        page = context.new_page()
        page.goto(f"http://localhost:{platform.server_port}/course.html")
        inside = page.frame_locator("iframe")
        box = inside.locator('[class*="st-key-text_box"] textarea')
        box.fill("City beat United.")
        box.press("Control+Enter")
        expect(inside.get_by_text("Prediction: City").first).to_be_visible()
        expect(inside.locator('[data-testid="stTopNav"]:visible')).to_have_count(0)
        if "lesson" in path:
            inside.locator(".st-key-lesson_next button").click()
            expect(inside.locator(PANEL)).to_contain_text("The answer:")
            inside.locator(".st-key-lesson_next button").click()
            expect(inside.locator(f"{PANEL} [role=progressbar]")).to_have_attribute("aria-valuenow", "5")
            expect(inside.locator('[data-testid="stTopNav"]:visible')).to_have_count(0)  # on another page
    finally:
        context.close()
        platform.shutdown()
        platform.server_close()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a lesson as one file on the disk."""
    return export_lesson(find_lesson("attention", "de"), tmp_path_factory.mktemp("x") / "p", single_file=True).as_uri()


def test_an_exported_lesson_asks_and_answers_offline(exported: str, open_page: Open) -> None:
    page = open_page(exported, offline=True)
    lesson = find_lesson("attention", "de")
    panel = page.locator("#lesson")
    words = words_in("de")
    given = [True, False, None, True, None]
    asked = 0
    for number, step in enumerate(lesson.steps, 1):
        expect(panel.get_by_role("progressbar")).to_have_attribute("aria-valuenow", str(number))
        expect(panel).to_contain_text(step.title)
        if step.question is not None:
            expect(page.locator("main")).to_be_visible(visible=step.question.look)
            answer = given[asked]
            asked += 1
            if answer is None:
                panel.get_by_role("button", name=words["show"]).click()
            else:
                choose(panel, step.question.kind, right=answer)
                panel.get_by_role("button", name=words["check"]).click()
                expect(panel).to_contain_text(words["right"] if answer else words["wrong"])
        expect(page.locator("main")).to_be_visible()
        expect(page.locator("#text")).to_have_value(step.text)
        page.keyboard.press("PageDown")
    assert read_code(panel.locator(".lesson-code").inner_text()).answers == tuple(given)
    assert panel.get_attribute("lang") == "de"
    assert page.locator("html").get_attribute("lang") == "de"
    around = page.evaluate("document.body.innerText")
    said = page_words("de")
    for english in ("All off", "What it read", "About this model: data, figures, limits", "The picture as text"):
        assert english not in around and said[english] in around
    assert said["▶ Play"] in around and "Kopf" in page.locator(".machine-head").first.get_attribute("aria-label")


def choose(panel: Locator, kind: str, *, right: bool) -> None:
    """Answer a question of the exported lesson: which option or heads are right is known from the lesson's checks."""
    if kind == "heads":
        panel.get_by_label("1.2" if right else "1.1", exact=True).check()
    else:
        panel.get_by_role("radio").nth(1 if right else 0).check()


WATCHED = [("attention", 1), ("tokens", 2), ("attention", 5), ("positions", 4), ("course", 21)]
"""Steps whose page is hidden at first, with a question of each kind; the last one of a long lesson."""


def steady_findings(page: Page) -> list[str]:
    """What axe finds once nothing fades in or out any more, which takes Streamlit some tenths of a second."""
    wait_until_steady(page)
    return findings(page)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_serious_in_a_lesson(
    browser: Browser, shipped: Server, theme: Literal["light", "dark"], width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    try:
        for name, step in WATCHED:
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
    finally:
        context.close()


def test_axe_finds_nothing_serious_in_an_exported_lesson(exported: str, open_page: Open) -> None:
    page = open_page(exported)
    page.evaluate(Axe().axe_script)
    assert findings(page) == []
    page.keyboard.press("PageDown")
    expect(page.locator(".lesson-verdict")).to_be_visible()
    assert findings(page) == []
