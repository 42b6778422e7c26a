"""The exported page and the playground in other languages: the browser's, the menu's and the address's."""

import html
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import offline_page
from txcls.web.assemble import LANGUAGES, words_in_language
from txcls.web.playground import export_playground

REGIONS = {"de": "de-AT", "es": "es-MX", "fr": "fr-CH", "zh": "zh-CN"}
TOO_NARROW = """() => [...document.querySelectorAll("button, summary, label, h1, h2, h3, .chips")]
  .filter((node) => node.offsetParent && getComputedStyle(node).overflowX !== "auto"
    && (node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).display !== "inline"
      || node.matches("button:not(.chips *), summary, h1") && node.getBoundingClientRect().right > innerWidth))
  .map((node) => node.textContent)"""
"""The texts that run out of their element or of the window."""


def said(language: str, english: str) -> str:
    text = words_in_language(language)[english]
    assert isinstance(text, str)
    return text


@pytest.mark.smoke
def test_a_page_opens_in_the_browsers_language_and_the_menu_chooses_another(browser: Browser, who_won: str) -> None:
    with offline_page(browser, locale="de-AT") as page:
        page.goto(who_won)
        expect(page.locator("html")).to_have_attribute("lang", "de")
        page.fill("#text", "Rovers lost to Wanderers.")
        expect(page.locator("#reads")).to_have_text(said("de", READS))
        expect(page.locator("#facts")).to_contain_text("100,0\u00a0% von 5.366 Testtexten richtig")
        expect(page.locator("#article em").first).to_have_text("Tokens")
        page.locator("#language").select_option("es")
        expect(page.locator("html")).to_have_attribute("lang", "es")
        expect(page.locator("#link")).to_have_text(said("es", "Copy link"))
        expect(page.locator("#text")).to_have_value("Rovers lost to Wanderers.")
        assert "lang=es" in page.url
        page.goto(re.sub("lang=es", "lang=zh", page.url))
        expect(page.locator("#link")).to_have_text(said("zh", "Copy link"))
        page.locator("#language").select_option("en")
        expect(page.locator("#link")).to_have_text("Copy link")
        expect(page.locator("#reads")).to_be_hidden()
    with offline_page(browser, locale="it-IT") as page:
        page.goto(who_won)
        expect(page.locator("#link")).to_have_text("Copy link")
        expect(page.locator("html")).to_have_attribute("lang", "en")


READS = "The model was trained on English texts and reads no other language; the examples are in English."


def test_the_playground_trains_in_another_language_and_keeps_its_settings(browser: Browser, playground: str) -> None:
    with offline_page(browser, locale="fr-CH") as page:
        page.goto(f"{playground}#task=winner&layers=1&width=16")
        page.get_by_role("button", name="▶ Entraîner").click()
        expect(page.locator("#accuracy")).to_have_text(re.compile(r"^Exactitude\s: \d+\s%$"))
        expect(page.locator("#tasks option:checked")).to_have_text(said("fr", "Who won the match?"))
        page.locator("#language").select_option("de")
        expect(page.locator("#play")).to_have_text(said("de", "▶ Train"))
        expect(page.locator("#tasks")).to_have_value("winner")
        page.locator("#tasks").select_option("few")
        page.wait_for_url(re.compile("task=few.*lang=de"))
        expect(page.locator("#about")).to_contain_text("200 Texte zum Trainieren, 120 zurückgehalten.")
        page.goto(re.sub("lang=de", "lang=fr", page.url))
        expect(page.locator("#play")).to_have_text(said("fr", "▶ Train"))
        expect(page.locator("#tasks")).to_have_value("few")


def test_languages_are_not_offered_where_the_page_has_no_address(browser: Browser, tmp_path: Path) -> None:
    content = export_playground(tmp_path / "page").read_text("utf-8")
    with offline_page(browser, locale="en-GB") as page:
        page.set_content(f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(content)}"></iframe>')
        expect(page.frame_locator("iframe").locator("#play")).to_have_text("▶ Train")
        expect(page.frame_locator("iframe").locator("#language")).to_be_hidden()


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_runs_out_of_its_button_on_a_phone(
    browser: Browser, who_won: str, playground: str, language: str
) -> None:
    with offline_page(browser, locale=REGIONS[language], viewport={"width": 390, "height": 900}) as page:
        page.goto(who_won)
        page.wait_for_selector("html[data-answered]")
        page.locator("#patch summary").click()
        assert page.evaluate(TOO_NARROW) == []
        page.goto(f"{playground}#task=few&layers=1&width=16")
        page.locator("#play").click()
        expect(page.locator("#results")).to_be_visible()
        page.locator("#fold summary").click()
        assert page.evaluate(TOO_NARROW) == []
        page.goto(f"{playground}#lesson=2")
        page.reload()
        expect(page.locator("#lesson")).to_be_visible()
        assert page.evaluate(TOO_NARROW) == []
