"""The app in a real browser, as a visitor uses it. Console errors, tracebacks and foreign requests fail any test."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Download, Page, expect

from tests.app.tiny import LEARNED, MANY, PAIRS, PLAIN, SAYS, SAYS_WORDS
from tests.browser.conftest import Server, Watch
from txcls.app.examples import EXAMPLES
from txcls.classifier import Classifier

CHART = ".js-plotly-plot"


def settle(page: Page) -> None:
    """Wait until Streamlit has finished its run."""
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)


def visit(page: Page, server: Server, path: str = "", *, wait_for: str = CHART, **params: object) -> None:
    page.goto(f"{server.address}/{path}" + (f"?{urlencode(params)}" if params else ""))
    page.wait_for_selector(wait_for)
    settle(page)


def text_box(page: Page):  # type: ignore[no-untyped-def]
    return page.locator('[class*="st-key-text_box"] textarea')


def query(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


@pytest.fixture(scope="session")
def answers(server: Server) -> Classifier:
    return Classifier.load(server.log.parent / "checkpoints" / PLAIN)


def answer(classifier: Classifier, text: str) -> str:
    return str(classifier.predict([text])[0].label)


@pytest.mark.parametrize("path, heading", [("", "about"), ("attention", "head look"), ("positions", "word order")])
@pytest.mark.parametrize("scheme, width", [("light", 1280), ("dark", 390)])
def test_page_opens_with_described_charts_and_no_sideways_scrolling(
    context: BrowserContext, server: Server, path: str, heading: str, scheme: str, width: int
) -> None:
    page = context.new_page()
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 850})
    visit(page, server, path)
    expect(page.locator("h1")).to_contain_text(heading)
    charts = page.locator(".stPlotlyChart")
    assert charts.count() >= 1
    for chart in charts.all():
        assert chart.locator("[aria-label]").count() or chart.get_attribute("aria-label")
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width


def test_answer_follows_the_typing_and_goes_into_the_url(page: Page, server: Server, answers: Classifier) -> None:
    visit(page, server)
    text = "the goalkeeper saved a late penalty"
    text_box(page).fill("")
    text_box(page).press_sequentially(text, delay=5)
    expect(page.locator(".txcls-text")).to_have_text(text)
    expect(page.locator(".txcls-answer")).to_contain_text(answer(answers, text))
    settle(page)
    assert query(page)["text"] == text
    assert text_box(page).input_value() == text


def test_what_is_typed_before_the_page_is_drawn_is_answered(page: Page, server: Server, answers: Classifier) -> None:
    page.goto(f"{server.address}/attention")
    text = "the goalkeeper saved a late penalty"
    text_box(page).fill(text)
    expect(page.get_by_text("Prediction:").first).to_contain_text(answer(answers, text))
    page.wait_for_url(lambda url: "goalkeeper" in url)
    settle(page)
    assert text_box(page).input_value() == text


def test_example_answers_with_one_click(page: Page, server: Server, answers: Classifier) -> None:
    visit(page, server)
    page.get_by_role("button", name=EXAMPLES[3].title).click()
    expect(text_box(page)).to_have_value(EXAMPLES[3].text)
    expect(page.locator(".txcls-answer")).to_contain_text(answer(answers, EXAMPLES[3].text))


def test_empty_text_invites_and_script_is_only_text(page: Page, server: Server) -> None:
    visit(page, server)
    text_box(page).fill("")
    expect(page.get_by_text("Type a few words above")).to_be_visible()
    page.evaluate("window.harm = 0")
    text_box(page).fill("<script>window.harm = 1</script><img src=x onerror='window.harm = 1'> shares fell")
    expect(page.locator(".txcls-text")).to_contain_text("<script>window.harm = 1</script>")
    settle(page)
    assert page.evaluate("window.harm") == 0
    assert page.locator(".txcls-text script, .txcls-text img").count() == 0


def test_a_megabyte_is_answered_and_marked_as_cut(page: Page, server: Server) -> None:
    visit(page, server)
    text_box(page).fill("shares fell after the report " * 35_000)
    expect(page.locator(".txcls-cut").first).to_be_visible()
    expect(page.get_by_text("too long for the address bar")).to_be_visible()
    page.get_by_role("link", name="Where does each head look?").click()
    page.wait_for_selector(CHART)
    settle(page)


def test_clicking_a_map_in_the_grid_enlarges_that_head(page: Page, server: Server) -> None:
    visit(page, server, "attention", text="the bank raised its rates again")
    plot = page.locator(f".st-key-chart_grid {CHART} .nsewdrag").first
    box = plot.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.7)
    page.wait_for_timeout(200)
    page.mouse.click(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.7)
    expect(page.get_by_role("heading", name="Layer 2, head 2", exact=True)).to_be_visible()
    settle(page)
    assert query(page)["layer"] == "2" and query(page)["head"] == "2"


def test_deep_link_and_reload_open_the_same_view(page: Page, server: Server) -> None:
    visit(page, server, "attention", checkpoint=LEARNED, text="voters went to the polls", layer=2, head=3)
    for _ in range(2):
        expect(page.get_by_role("heading", name="Layer 2, head 3", exact=True)).to_be_visible()
        expect(text_box(page)).to_have_value("voters went to the polls")
        expect(page.locator(".txcls-facts")).to_contain_text(LEARNED)
        page.reload()
        page.wait_for_selector(CHART)
        settle(page)


def test_state_is_carried_through_the_menu_and_back_again(page: Page, server: Server) -> None:
    visit(page, server)
    text_box(page).fill("a new chip doubles the speed of phones")
    expect(page.locator(".txcls-text")).to_have_text("a new chip doubles the speed of phones")
    for name in ("Tokens", "Attention", "Positions", "Language model", "Classify"):
        page.get_by_role("link", name=name, exact=True).click()
        page.wait_for_url(re.compile(r"/(\?|$)" if name == "Classify" else f"/{name.split()[0].lower()}"))
        settle(page)
        expect(text_box(page)).to_have_value("a new chip doubles the speed of phones")
    page.wait_for_url(re.compile("text=a"))


def test_browser_back_returns_to_the_text_before(page: Page, server: Server) -> None:
    visit(page, server, text="shares fell")
    text_box(page).fill("voters went to the polls")
    expect(page.locator(".txcls-text")).to_have_text("voters went to the polls")
    settle(page)
    page.go_back()
    expect(text_box(page)).to_have_value("shares fell")


def test_bad_parameters_are_explained_not_raised(page: Page, server: Server) -> None:
    page.goto(f"{server.address}/attention?layer=99&k=abc&head=-1&checkpoint=%00%FF&text=shares%ED%A0%80fell")
    page.wait_for_selector(CHART)
    settle(page)
    expect(page.get_by_text("no layer 99")).to_be_visible()
    expect(page.get_by_text("k=abc")).to_be_visible()


@pytest.mark.parametrize("kind", ["PNG", "SVG"])
def test_chart_is_saved_in_both_formats(page: Page, server: Server, kind: str, tmp_path: Path) -> None:
    visit(page, server)
    with page.expect_download() as caught:
        page.locator(".st-key-save_chart_bars").get_by_role("button", name=f"as {kind}").click()
    download: Download = caught.value
    saved = tmp_path / download.suggested_filename
    download.save_as(saved)
    assert saved.name == f"{PLAIN}-prediction.{kind.lower()}"
    if kind == "PNG":
        assert saved.read_bytes().startswith(b"\x89PNG")
    else:
        assert ET.parse(saved).getroot().tag.endswith("svg")


def test_positions_sliders_and_dimensions_redraw(page: Page, server: Server) -> None:
    visit(page, server, "positions")
    expect(page.get_by_text("This is what")).to_be_visible()
    slider = page.locator(".st-key-pe_width input[type=range]")
    slider.focus()
    slider.press("ArrowRight")
    expect(page.get_by_text("This is the formula with d_model = 24")).to_be_visible()
    settle(page)


@pytest.mark.parametrize("scheme, width", [("light", 1280), ("dark", 390)])
@pytest.mark.parametrize("name", [PLAIN, PAIRS])
def test_tokens_page_opens_without_sideways_scrolling(
    context: BrowserContext, server: Server, name: str, scheme: str, width: int
) -> None:
    page = context.new_page()
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 850})
    visit(page, server, "tokens", wait_for=".txcls-merges", checkpoint=name)
    expect(page.locator("h1")).to_contain_text("become numbers")
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width


def test_tokens_follow_the_typing(page: Page, server: Server) -> None:
    visit(page, server, "tokens", wait_for=".txcls-merges")
    text_box(page).fill("The <b>goalkeeper</b> saved a zyzzyva")
    expect(page.locator(".txcls-edits").first).to_contain_text("<b>")
    expect(page.locator(".txcls-chip.unknown").first).to_contain_text("zyzzyva")
    expect(page.locator("ins").first).to_be_visible()
    settle(page)
    assert query(page)["text"] == "The <b>goalkeeper</b> saved a zyzzyva"
    assert page.locator(".txcls-text script, .txcls-text b").count() == 0


def test_slider_takes_merges_back_and_a_typed_word_is_followed(page: Page, server: Server) -> None:
    visit(page, server, "tokens", wait_for=".txcls-merges", text="the goalkeeper saved a late penalty")
    slider = page.locator('[class*="st-key-merges_"] input[type=range]')
    slider.focus()
    slider.press("Home")
    expect(page.get_by_text("before any merge")).to_be_visible()
    expect(page.locator(".txcls-merges .now")).to_have_count(0)
    slider.press("ArrowRight")
    expect(page.get_by_text(re.compile("^Merge 1 of"))).to_be_visible()
    expect(page.locator(".txcls-chip.new")).to_have_count(1)
    box = page.locator('[class*="st-key-merge_word_"] input')
    box.fill("striker")
    box.press("Enter")
    expect(page.locator(".txcls-merges tbody tr").last).to_contain_text("␣s · t · r · i · k")
    settle(page)


def test_vocabulary_search_finds_and_misses(page: Page, server: Server) -> None:
    visit(page, server, "tokens", wait_for=".txcls-merges")
    box = page.locator(".st-key-vocabulary_query input")
    box.fill("BANK")
    box.press("Enter")
    expect(page.get_by_text("bank is in the vocabulary")).to_be_visible()
    box.fill("goalkeepr")
    box.press("Enter")
    expect(page.get_by_text("goalkeepr is no token")).to_be_visible()
    expect(page.locator(".txcls-chip", has_text="goalkeeper").last).to_be_visible()
    settle(page)


def test_second_checkpoint_is_picked_shared_and_put_away(page: Page, server: Server) -> None:
    visit(page, server, text="shares fell")
    page.locator(".st-key-versus_box input").click()
    page.get_by_role("option", name=re.compile(f"^{MANY} ")).click()
    expect(page.locator(".txcls-answer")).to_have_count(2)
    expect(page.get_by_text("Probably none of these")).to_be_visible()
    settle(page)
    assert query(page)["versus"] == MANY
    page.reload()
    expect(page.locator(".txcls-answer")).to_have_count(2)
    settle(page)
    page.locator(".st-key-versus_box").get_by_role("button", name=re.compile("clear", re.IGNORECASE)).click()
    expect(page.locator(".txcls-answer")).to_have_count(1)
    settle(page)
    assert "versus" not in query(page)


@pytest.mark.parametrize("scheme, width", [("light", 1280), ("dark", 390)])
@pytest.mark.parametrize("part", ["fill", "continue", "masks"])
def test_language_page_opens_without_sideways_scrolling(
    context: BrowserContext, server: Server, part: str, scheme: str, width: int
) -> None:
    page = context.new_page()
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 850})
    visit(page, server, "language", part=part, added="20.21.22", top_k=5)
    expect(page.locator("h1")).to_contain_text("what comes next")
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width


def test_a_word_is_blanked_by_a_click_and_by_the_keyboard(page: Page, server: Server) -> None:
    visit(page, server, "language", text="the goalkeeper saved a late penalty")
    strip = page.locator(".st-key-strip_fill")
    strip.get_by_role("button", name="saved", exact=True).click()
    expect(page.get_by_text("saved was typed there")).to_be_visible()
    expect(strip.locator("[aria-pressed=true]")).to_have_text("▁▁▁▁")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_text("late was typed there")).to_be_visible()
    settle(page)
    assert query(page)["blank"] == "5"
    assert strip.locator("button[tabindex='0']").count() == 1, "one tab stop, the arrows do the rest"
    page.reload()
    expect(page.get_by_text("late was typed there")).to_be_visible()
    text_box(page).fill("<b>shares</b> fell")
    expect(strip.locator("button")).to_have_count(2)
    expect(page.get_by_text("shares was typed there")).to_be_visible()
    settle(page)


def test_a_text_grows_by_chips_bars_and_sampling_and_shrinks_again(page: Page, server: Server) -> None:
    visit(page, server, "language", part="continue", text="the bank", causal=SAYS_WORDS)
    added = page.locator(".st-key-strip_continue .added")
    offered = page.locator(".st-key-strip_next button")
    first = offered.nth(1).text_content()
    offered.nth(1).click()
    expect(added).to_have_text([first or ""])
    settle(page)
    for n in (2, 3):  # the same bar twice: the second click is no undoing of the first
        best = offered.first.text_content() or ""
        bar = page.locator(f".st-key-chart_next {CHART} .bars .point path").first.bounding_box()
        assert bar
        page.mouse.click(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
        expect(added).to_have_count(n)
        expect(added.last).to_have_text(best)
        settle(page)
    page.get_by_role("button", name="Sample 10").click()
    expect(added).to_have_count(13)
    page.get_by_role("button", name="Undo").click()
    expect(added).to_have_count(12)
    settle(page)
    assert len(query(page)["added"].split(".")) == 12
    page.reload()
    expect(added).to_have_count(12)
    page.locator(".st-key-strip_continue").get_by_role("button", name="bank", exact=True).click()
    expect(page.get_by_text("bank was typed there")).to_be_visible()
    expect(added).to_have_count(0)
    page.get_by_role("button", name="Start again").click()
    expect(page.get_by_text("bank was typed there")).to_have_count(0)
    settle(page)
    assert "added" not in query(page) and "upto" not in query(page)


def test_language_models_are_picked_and_masks_compared(page: Page, server: Server) -> None:
    visit(page, server, "language", text="the bank raised")
    page.get_by_text("Two masks", exact=True).click()
    expect(page.get_by_text("9 of 16 looks")).to_have_count(0)
    expect(page.get_by_text("16 of 16 looks are allowed")).to_be_visible()
    page.locator(".st-key-causal_box input").click()
    page.get_by_role("option", name=re.compile(f"^{SAYS_WORDS} ")).click()
    expect(page.get_by_text("10 of 16 looks are allowed")).to_be_visible()
    settle(page)
    assert query(page)["causal"] == SAYS_WORDS != SAYS and query(page)["part"] == "masks"


def test_layer_norms_code_stands_under_its_formula(page: Page, server: Server) -> None:
    visit(page, server, "attention")
    page.get_by_text("LayerNorm").click()
    expect(page.locator("code", has_text="class LayerNorm(nn.Module):")).to_be_visible()
    expect(page.locator(".katex").first).to_be_visible()
    settle(page)


@pytest.mark.parametrize("width", [1280, 390])
def test_many_classes_are_readable_at_any_width(context: BrowserContext, server: Server, width: int) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 850})
    visit(page, server, checkpoint=MANY, k=20)
    names = page.locator(f".st-key-chart_bars {CHART} .annotation-text")
    expect(names).to_have_count(21)
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
    chart = page.locator(".st-key-chart_bars").bounding_box()
    for name in names.all():
        box = name.bounding_box()
        assert box and chart and chart["x"] <= box["x"] and box["x"] + box["width"] <= chart["x"] + chart["width"]


def test_random_test_texts_are_drawn_and_drawn_anew(page: Page, server: Server) -> None:
    visit(page, server, checkpoint=MANY)
    page.get_by_text("Random test texts of").click()
    expect(page.locator(".txcls-drawn > div")).to_have_count(40)
    expect(page.get_by_text(re.compile(r"\d+ of 20 right"))).to_be_visible()
    before = page.locator(".txcls-drawn").text_content() or ""
    page.get_by_role("button", name="Draw others").click()
    expect(page.locator(".txcls-drawn")).not_to_have_text(before)
    settle(page)


def test_the_watch_notices_console_errors_script_errors_and_foreign_requests(browser: Browser) -> None:
    watch = Watch()
    page = browser.new_page()
    watch.on(page, "127.0.0.1:1")
    page.evaluate("console.error('broken'); setTimeout(() => { throw new Error('thrown') })")
    page.evaluate("fetch('http://elsewhere.invalid/font.woff2').catch(() => 0)")
    page.close()
    found = " ".join(watch.problems)
    assert "broken" in found and "thrown" in found and "elsewhere.invalid" in found
