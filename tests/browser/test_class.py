"""A class in two real browser windows, the lecturer's and a phone's, with thirty simulated phones."""

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import PATIENCE_MS, Server, watched
from tests.browser.phones import Phone, answer_all
from tests.browser.test_accessibility import findings
from tests.browser.visiting import settle, wait_until_steady
from txcls.app.classroom.rooms import classroom_words
from txcls.lessons import find_lesson

pytestmark = pytest.mark.timeout(400)
N_PHONES = 30
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


def panel(page: Page, part: str = ".panel") -> Locator:
    return page.locator(f".st-key-classroom {part}:visible")


def label(page: Page) -> Locator:
    """The button in the lecturer's bar, with the numbers of phones or answers."""
    return page.locator(".st-key-lecture .class")


def begin(page: Page, server: Server, language: str, step: int = 1) -> str:
    """Start a lesson as slides, open the class with its key, and return the room's address."""
    page.goto(f"{server.address}/?lesson=attention&step={step}&lang={language}&mode=lecture")
    expect(page.locator(".st-key-slide_0")).to_be_visible()
    settle(page)
    page.wait_for_function("!!window.txclsLecture?.classroom")
    page.keyboard.press("a")
    expect(panel(page, ".link")).to_contain_text("/class/")
    settle(page)
    return f"http://{panel(page, '.link').inner_text()}"


def judge(page: Page) -> None:
    page.evaluate(Axe().axe_script)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        wait_until_steady(page)
        assert not findings(page), theme


def bars(page: Page) -> list[tuple[str, int]]:
    """Names and counts of the bars on the lecturer's slide."""
    expect(panel(page, ".rows")).to_be_visible()
    texts = panel(page, ".bars span").all_inner_texts()
    return [(name, int(count.split(" ")[0])) for name, count in zip(texts[::2], texts[1::2], strict=True)]


def test_a_lecture_of_two_questions_in_german(browser: Browser, shipped: Server) -> None:
    words, question = classroom_words("de"), find_lesson("attention", "de").steps[0].question
    looks: dict[str, Any] = {"reduced_motion": "reduce"}
    with watched(browser, shipped, viewport=WIDE, **looks) as at_lectern, watched(browser, shipped, **looks) as in_hand:
        lecturer, phone = at_lectern.new_page(), in_hand.new_page()
        phone.set_viewport_size(PHONE)  # type: ignore[arg-type]
        room = begin(lecturer, shipped, "de")
        expect(panel(lecturer, ".warning")).to_have_text(words["local"])  # the tests' address is that of this machine
        expect(panel(lecturer, ".image")).to_have_js_property("naturalWidth", 148)
        phone.goto(room)
        expect(phone.locator("html")).to_have_attribute("lang", "de")
        others = [Phone(room) for _ in range(N_PHONES)]

        # A choice; the phone is used with its keyboard, and changes its answer.
        ask = question.ask.strip() if question else ""
        expect(phone.locator("#ask")).to_have_text(ask)
        expect(phone.locator("#ask")).to_be_focused()
        answer_all(others, ask, [[n % 2] for n in range(N_PHONES)])
        lecturer.keyboard.press("PageDown")
        expect(panel(lecturer)).to_have_count(0)
        for name, others_answers in (("Albion", 31), ("Rangers", 31)):
            phone.keyboard.press("Tab")
            phone.keyboard.press("Enter")
            expect(phone.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")
            expect(phone.get_by_role("status")).to_have_text(words["sent"])
            phone.wait_for_timeout(300)  # taps may follow each other after 0.2 s
            expect(label(lecturer)).to_have_text(words["answers"].format(n=others_answers, phones=31))
        judge(phone)
        assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        lecturer.keyboard.press("PageDown")
        expect(panel(lecturer, ".numbers")).to_have_text(words["answers"].format(n=31, phones=31))
        assert bars(lecturer) == [("Albion", 15), ("Rangers", 16)]
        expect(panel(lecturer, ".answer")).to_have_count(0)
        expect(phone.get_by_role("status")).to_have_text(words["closed"])
        expect(phone.get_by_role("button", name="Albion")).to_be_disabled()
        lecturer.keyboard.press("PageDown")
        expect(panel(lecturer, ".answer")).to_have_text(f"{words['model']} Rangers")
        expect(phone.locator("#answer")).to_have_text(f"{words['model']} Rangers")
        judge(lecturer)
        judge(phone)
        lecturer.keyboard.press("PageDown")
        expect(panel(lecturer)).to_have_count(0)
        expect(lecturer.locator(".st-key-slide_1")).to_be_visible()

        # Phones follow to a step without a question, and to one whose page is shown before the bars.
        lecturer.keyboard.press("PageDown")
        lecturer.keyboard.press("PageDown")
        expect(phone.get_by_role("status")).to_have_text(words["wait"])
        expect(label(lecturer)).to_have_text(words["phones"].format(n=31))
        settle(lecturer)
        lecturer.keyboard.press("PageDown")
        lecturer.keyboard.press("PageDown")
        expect(phone.locator("#number")).to_be_visible()
        settle(lecturer)
        answer_all(others, "2.2", [60 + n for n in range(N_PHONES)])
        phone.locator("#number").fill("87,5 %")
        phone.keyboard.press("Enter")
        expect(label(lecturer)).to_have_text(words["answers"].format(n=31, phones=31))
        for _ in range(2):  # the slide is shown before the bars
            expect(panel(lecturer)).to_have_count(0)
            lecturer.keyboard.press("PageDown")
        assert sum(count for _, count in bars(lecturer)) == 31
        lecturer.keyboard.press("PageDown")
        expect(panel(lecturer, ".answer")).to_contain_text("99")
        lecturer.keyboard.press("PageDown")

        assert not lecturer.context.cookies() and not phone.context.cookies()


def test_the_audience_writes_texts_of_which_the_lecturer_picks_one_and_names_a_head(
    browser: Browser, shipped: Server
) -> None:
    words = classroom_words("en")
    with watched(browser, shipped, viewport=WIDE, reduced_motion="reduce") as context:
        lecturer = context.new_page()
        lecturer.on("dialog", lambda dialog: pytest.fail(dialog.message))
        room = begin(lecturer, shipped, "en")
        phones = [Phone(room) for _ in range(3)]
        panel(lecturer, ".wanted").fill("A report that it gets <b>wrong</b>")
        panel(lecturer, ".ask-text").click()
        expect(panel(lecturer, ".ask")).to_have_text("A report that it gets <b>wrong</b>")
        settle(lecturer)
        markup = "<img src=x onerror=alert(1)> *Albion* beat $Rovers$"
        answer_all(phones, "<b>wrong</b>", [markup, "rude words", "Rovers lost to County"])
        expect(label(lecturer)).to_have_text(words["answers"].format(n=3, phones=3))
        assert "rude" not in lecturer.locator("body").inner_text()
        judge(lecturer)
        with lecturer.expect_popup() as opening:
            panel(lecturer, ".list").click()
        listed = opening.value
        expect(listed.locator("bdi")).to_have_count(3)
        judge(listed)
        listed.locator("p", has_text="rude").get_by_role("button", name=words["hide"]).click()
        expect(listed.locator("bdi")).to_have_count(2)
        listed.locator("p", has_text="Albion").get_by_role("button", name=words["pick"]).click()
        expect(panel(lecturer)).to_have_count(0)
        expect(lecturer.locator(".st-key-lecture_strip textarea")).to_have_value(markup)
        settle(lecturer)
        listed.close()
        assert not lecturer.locator("img[src='x']").count()

        # Which head? The lecturer's tab is reloaded meanwhile, and finds its room again.
        lecturer.reload()
        expect(label(lecturer)).to_have_text(re.compile("3"), timeout=PATIENCE_MS)
        settle(lecturer)
        lecturer.keyboard.press("a")
        panel(lecturer, ".ask-heads").click()
        expect(panel(lecturer, ".ask")).to_have_text(words["heads_ask"])
        settle(lecturer)
        answer_all(phones, words["heads_ask"], [[0], [1], [1]])
        lecturer.keyboard.press("PageDown")
        expect(panel(lecturer, ".numbers")).to_have_text(words["answers"].format(n=3, phones=3))
        assert bars(lecturer) == [("1.1", 1), ("1.2", 2), ("2.1", 0), ("2.2", 0)]
        lecturer.keyboard.press("PageDown")
        expect(panel(lecturer, ".answer")).to_have_text(re.compile(r"[12]\.[12] \([\d.]+\s% → [\d.]+\s%\)$"))
        panel(lecturer, ".stop").click()
        expect(panel(lecturer)).to_have_count(0)

        lecturer.keyboard.press("a")
        panel(lecturer, ".end").click()
        expect(label(lecturer)).to_have_text("Audience")
        assert phones[0].request("GET")[0] == 404
