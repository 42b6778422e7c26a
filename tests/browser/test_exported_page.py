"""The exported page in a real Chromium: it classifies at every keystroke, from disk and without network."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from tests.browser.exported import HOSTILE_NAMES, Open, bars, expected, write
from tests.browser.server import serve_folder
from tests.browser.visiting import wait_until_steady
from tests.conftest import TEXTS
from txcls.data.datasets import examples_for
from txcls.inference.predictor import Predictor
from txcls.inspection.patching import Direction, PatchGrid, patch_grid
from txcls.web.export import export_page


@pytest.fixture(scope="module")
def hosted(classifiers: dict[str, Predictor], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page served as a folder by a static file server."""
    folders = [classifier.checkpoint.path for classifier in classifiers.values() if classifier.checkpoint.path]
    page = export_page(folders, tmp_path_factory.mktemp("hosted") / "page")
    with serve_folder(page.parent) as port:
        yield f"http://127.0.0.1:{port}/index.html"


@pytest.mark.smoke
def test_it_answers_at_every_key_from_a_disk_without_network(
    single: str, classifiers: dict[str, Predictor], open_page: Open
) -> None:
    page = open_page(single, offline=True)
    page.fill("#text", "")
    for typed in range(1, len(TEXTS[0]) + 1):
        page.locator("#text").press_sequentially(TEXTS[0][typed - 1])
    n = len(classifiers["first"].tokenizer.encode(TEXTS[0]).tokens)
    page.wait_for_function("(n) => document.querySelectorAll('#tokens span').length === n", arg=n)
    assert [number for _, number in bars(page)] == expected(classifiers["first"], TEXTS[0])


@pytest.mark.smoke
def test_class_names_titles_and_tokens_are_never_markup(single: str, open_page: Open) -> None:
    page = open_page(single)
    write(
        page, "<b onmouseover=alert(3)>bold</b> &lt;img src=x onerror=alert(4)&gt; \u202e\u0000 <svg/onload=alert(5)>"
    )
    page.locator("#card summary").click()
    shown = {name for name, _ in bars(page)}
    names = [*HOSTILE_NAMES[:3], '"quoted" · backwards']
    assert len(shown) == len(names) and all(any(name.startswith(part.rstrip("…")) for part in shown) for name in names)
    assert page.locator("img, main svg :is(image, a), body script:not([type]), #tokens b, .machine-bars b").count() == 0
    assert page.locator("h1").inner_text() == HOSTILE_NAMES[1]
    for word in page.locator(".machine-word").all():
        word.hover()
        assert page.locator(".machine-bar p :is(img, svg, script)").count() == 0


def test_a_browser_translates_prose_but_no_words_and_class_names(single: str, open_page: Open) -> None:
    page = open_page(single)
    untranslated = "(all) => all.map((one) => one.closest('[translate=no]') !== null)"
    for place in ("#answer", "#tokens", "#lens", ".machine-word", ".machine-bars .name"):
        assert set(page.locator(place).evaluate_all(untranslated)) == {True}, place
    assert set(page.locator("#article p").evaluate_all(untranslated)) == {False}


def test_the_address_carries_text_and_view(hosted: str, classifiers: dict[str, Predictor], open_page: Open) -> None:
    page = open_page(hosted)
    page.locator("#models").select_option("second: a test")
    page.wait_for_function("() => document.querySelectorAll('.head').length === 8")
    write(page, TEXTS[1])
    page.locator(".head button").nth(6).click()
    page.locator(".head input").nth(0).uncheck()
    page.locator("#how").select_option("attend uniformly")
    page.locator("#tokens span").nth(2).click()
    page.locator("#theme").click()
    page.wait_for_function("() => location.hash.includes('query') && location.hash.includes('theme')")
    reopened = open_page(page.url)
    for place in (".machine-bars", "#map-title", "#readout", "#tokens-caption"):
        assert reopened.locator(place).inner_text() == page.locator(place).inner_text()
    assert reopened.locator("#text").input_value() == TEXTS[1]
    assert reopened.locator("#how").input_value() == "uniform"
    assert "head 2.3" in reopened.locator("#map-title").inner_text()
    assert reopened.locator("html").get_attribute("data-theme") == "dark"
    assert reopened.locator(".head.off").count() == 1


def test_any_text_gets_an_answer_or_a_hint(single: str, open_page: Open) -> None:
    page = open_page(single)
    for text in ("", "   \n ", "\u200b", "the " * 400, "a\u0000b \ud800", "שלום عليكم 日本語", "<cls>"):
        write(page, "the striker")
        before = page.locator("html").get_attribute("data-answered")
        page.evaluate(
            "(text) => { const box = document.getElementById('text'); box.value = text;"
            " box.dispatchEvent(new Event('input')) }",
            text,
        )
        page.wait_for_function("(before) => document.documentElement.dataset.answered !== before", arg=before)
        assert page.locator("#answer").inner_text()
        expect(page.locator("#picture")).to_be_visible()
        assert bool(page.locator(".machine.waiting").count()) == (not page.locator("#tokens span").count()), text
        assert page.locator(".machine-bars li").count() == 4


def unfold(page: Page) -> None:
    """Unfold Patch, if it is folded, and scroll to it."""
    if page.locator("#patch").get_attribute("open") is None:
        page.locator("#patch > summary").click()
    page.locator("#patch-readout").scroll_into_view_if_needed()


def assert_shows(page: Page, expected: PatchGrid) -> None:
    """The cells of the patch grid hold the values, rounded to two decimals, in the order of the forward pass."""
    unfold(page)
    expect(page.locator("#patch-grid")).to_have_attribute("aria-busy", "false", timeout=60_000)
    rows: list[list[str]] = page.locator("#patch-grid tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent))"
    )
    shown = [[float(number.replace("−", "-")) for number in row] for row in rows]
    np.testing.assert_allclose(shown, expected.values, atol=0.0051, rtol=0)


@pytest.mark.smoke
def test_a_cell_of_the_patch_grid_is_patched_by_mouse_or_keyboard_and_taken_away(who_won: str, open_page: Open) -> None:
    page, classifier = open_page(who_won, offline=True), Predictor.load("who_won")
    unfold(page)
    example = next(text for text in examples_for("who_won") if text.changed)
    page.get_by_role("button", name=example.title).click()
    expect(page.locator("#changed")).to_have_value(example.changed)
    for direction in get_args(Direction):
        page.locator("#direction").select_option(direction)
        expected = patch_grid(classifier, example.text, example.changed, direction=direction)
        assert_shows(page, expected)
        into = example.changed if direction == "denoising" else example.text
        strongest = np.abs(expected.values[1:3]).argmax() + expected.values.shape[1]  # a head of the first layer
        part, token = divmod(int(strongest), expected.values.shape[1])
        cell = page.locator(f"#patch-grid [data-part='{part}'][data-token='{token}']")
        cell.click()
        expect(cell).to_have_attribute("aria-selected", "true")
        n = len(expected.clean_tokens)
        patched = classifier.calibrate(torch.from_numpy(expected.logits[part, token])[None], n_tokens=n)[0].tolist()
        answer = classifier.classes[int(np.argmax(patched))]
        expect(page.locator("#answer")).to_contain_text(answer)
        assert answer != classifier.predict([into])[0].label
        assert page.locator(".machine-bars .then").count() == len(classifier.classes)
        assert page.locator(".machine-patch").is_visible() and page.locator(".machine-head.patched").count() == 1
        page.wait_for_url(re.compile(f"patched={part + 1}%2C{token + 1}&direction={direction}"))
        cell.press("Escape")
        expect(page.locator(".machine-bars .then")).to_have_count(0)
        expect(page.locator("#answer")).to_contain_text(str(classifier.predict([example.text])[0].label))
        assert page.locator(".machine-patch").is_hidden()

    cell.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#patch-grid [aria-selected]")).to_have_attribute("data-part", str(part + 1))
    page.locator(".head input").first.uncheck()
    expect(page.locator(".head.off")).to_have_count(1)
    expect(page.locator("#patch-grid [aria-selected]")).to_have_count(0)


@pytest.mark.smoke
def test_a_second_version_is_typed_or_found_and_texts_of_other_lengths_get_a_message(
    who_won: str, open_page: Open
) -> None:
    page = open_page(who_won, offline=True)
    readout = page.locator("#patch-readout")
    write(page, "Rovers lost to City.")
    unfold(page)
    expect(page.locator("#changed")).to_have_value("")
    expect(readout).to_contain_text("Type a second version")
    page.fill("#changed", "Rovers beat City easily on Sunday")
    expect(readout).to_contain_text("The first text has 6 tokens and the second 7.")
    assert page.locator("#patch-grid td").count() == 0
    page.locator("#find-version").click()
    expect(page.locator("#changed")).to_have_value("City lost to Rovers.")
    reversed_text = ("Rovers lost to City.", "City lost to Rovers.")
    assert_shows(page, patch_grid(Predictor.load("who_won"), *reversed_text, direction="noising"))


@pytest.mark.smoke
def test_buttons_of_the_article_show_what_they_say_while_the_pointer_lies_still(who_won: str, open_page: Open) -> None:
    page = open_page(who_won, offline=True)
    page.set_viewport_size({"width": 900, "height": 700})  # the picture is above the article
    for name, said in (("positions", "Positions."), ("attention", "Layer 1: attention."), ("off", "output averaged")):
        page.locator(f"#article [data-show={name}]").click()
        page.wait_for_function("() => document.getElementById('picture').getBoundingClientRect().bottom > 0")
        expect(page.locator(".machine-bar p")).to_contain_text(said)
        wait_until_steady(page)
        expect(page.locator(".machine-bar p")).to_contain_text(said)
        page.locator("#back").click()
        expect(page.locator(f"#article section:has([data-show={name}])")).to_be_in_viewport()
    expect(page.locator(".head.off")).to_have_count(1)
    page.locator("#article [data-show=feed-forward]").click()
    expect(page.locator(".head.off")).to_have_count(0)


@pytest.mark.smoke
def test_doubts_stand_at_the_answer(who_won: str, single: str, open_page: Open) -> None:
    page = open_page(who_won, offline=True)
    doubts = page.locator("#doubts")
    write(page, "Apple unveils new phone")
    expect(doubts).to_have_text("Unusual for this model: may be wrong.")
    expect(page.locator(".machine-bar p")).to_contain_text("Unusual for this model: may be wrong.")
    write(page, "City were beaten by Wanderers in the final.")
    expect(doubts).to_be_hidden()
    page = open_page(single)
    write(page, "the " * 400)
    expect(page.locator("#doubts")).to_have_text(re.compile(r"^Only the first \d+ tokens were read\.$"))


def test_the_picture_fits_a_page_of_paper_without_buttons(who_won: str, open_page: Open) -> None:
    page = open_page(who_won, offline=True)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator(".machine-stage").evaluate("(stage) => stage.getBoundingClientRect().width") <= 700
    assert page.locator("button:visible:not(.machine-stage button, .head button)").count() == 0
    assert page.locator(".machine-head:visible").count() == page.locator(".machine-head").count() > 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_a_page_that_computes_something_else_than_python_says_so(who_won: str, open_page: Open, tmp_path: Path) -> None:
    """One that computes the same: test_imported.py."""
    content = Path(urlsplit(who_won).path).read_text("utf-8")
    head, data, rest = re.split(r'(?s)(?<=id="page-data">)(.*?)(?=</script>)', content, maxsplit=1)
    changed = data.replace('"pooling":"class_token"', '"pooling":"mean"')
    assert changed != data
    (tmp_path / "changed.html").write_text(head + changed + rest, "utf-8")
    page = open_page((tmp_path / "changed.html").as_uri())
    expect(page.locator("#problem")).to_contain_text("Do not trust the answers of this page")
    expect(page.locator("#problem")).to_be_visible()
