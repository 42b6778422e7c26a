"""The page Train in a browser: only its visitor sees the trained classifier, and can download and reopen it."""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Server, watched
from tests.browser.visiting import query, settle
from txcls.inference.predictor import Predictor

ROWS = [
    ("please refund the bill that i paid twice", "money"),
    ("the invoice shows a wrong amount", "money"),
    ("my parcel did not arrive on friday", "post"),
    ("the courier left the box in the rain", "post"),
]
SECRET = "zanzibarquote"
"""A word that occurs only in one visitor's table."""

HAS_LEARNED = (
    "() => document.querySelector('.st-key-chart_live .js-plotly-plot')?._fullData?.some((curve) => curve.x?.length)"
)
"""Whether the curves have a point, which means that training is running."""

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lines = [f"{number},{text} {SECRET} {number % 9},{label}" for number in range(20) for text, label in ROWS]
    lines += ["80,who sent me this,money", "81,who sent me this,post", "82,,post"]
    path = tmp_path / "Letters to us.csv"
    path.write_text("\n".join(["id,message,kind", *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def other(browser: Browser, server: Server) -> Iterator[Page]:
    """A page of another visitor, at the same time as the first."""
    with watched(browser, server, viewport={"width": 1280, "height": 900}) as context:
        yield context.new_page()


def open_train(page: Page, server: Server) -> None:
    page.goto(f"{server.address}/train")
    page.wait_for_selector('[data-testid="stFileUploader"]')
    settle(page)


def upload(page: Page, path: Path, *, at: int = 0) -> None:
    page.locator('input[type="file"]').nth(at).set_input_files(str(path))


def train(page: Page, server: Server, table: Path) -> None:
    """Upload a table and start training on it."""
    open_train(page, server)
    upload(page, table)
    expect(page.get_by_role("heading", name="Rows to check")).to_be_visible()
    expect(page.get_by_text("rows in your file")).to_be_visible()
    expect(page.locator(".txcls-table").filter(has_text="82, 83")).to_be_visible()
    page.locator(".st-key-start_training button:not([disabled])").first.click()
    expect(page.locator(".st-key-chart_live .js-plotly-plot")).to_be_visible()


def test_a_table_is_trained_on_survives_a_reload_is_stopped_inspected_downloaded_and_opened_again(
    page: Page, other: Page, server: Server, table: Path, tmp_path: Path
) -> None:
    train(page, server, table)
    address = page.url
    assert len(query(page)["job"]) == 32
    page.reload()  # during training
    comparison = page.locator(".st-key-chart_comparison .js-plotly-plot")
    page.wait_for_function(HAS_LEARNED)
    page.locator(".st-key-stop_training button:visible").first.click()
    expect(comparison).to_be_visible(timeout=240_000)
    settle(page)
    assert query(page)["checkpoint"] == "yours · Letters_to_us", "other pages open with it from now on"
    assert SECRET in query(page)["text"]
    expect(page.locator(".txcls-table").filter(has_text="Linear baseline")).to_be_visible()

    # Another visitor sees nothing of it (no name, no text, no classifier), whatever link they open.
    open_train(other, server)
    assert SECRET not in other.content() and "etters_to_us" not in other.content()
    assert "job" not in query(other)
    links = page.locator('a[href*="checkpoint=yours"]').evaluate_all("(all) => all.map((one) => one.href)")
    assert links and all("job=" not in link for link in links)
    other.goto(f"{server.address}/?checkpoint=yours · Letters_to_us")  # a link without the text
    other.wait_for_selector(".txcls-answer")
    settle(other)
    assert query(other)["checkpoint"] == "ag_news"
    assert SECRET not in other.locator('[data-testid="stMain"]').inner_text()

    # Its visitor finds it without that address too, in another tab of the same browser.
    tab = page.context.new_page()
    tab.goto(f"{server.address}/train")
    expect(tab.locator(".st-key-chart_comparison .js-plotly-plot")).to_be_visible()
    assert query(tab)["job"] == query(page)["job"]
    tab.goto(server.address)
    tab.locator(".st-key-checkpoint_box input").click()
    expect(tab.get_by_role("option", name="yours · Letters_to_us")).to_be_visible()
    tab.close()

    # Its visitor can open it on the other pages.
    page.get_by_role("link", name="Classify →").first.click()
    expect(page.locator(".txcls-answer")).to_contain_text("%")
    assert query(page)["checkpoint"] == "yours · Letters_to_us" and query(page)["job"]
    expect(page.locator('[class*="st-key-text_box"] textarea')).to_have_value(query(page)["text"])

    # Report knows the rows that it was trained on.
    page.goto(address.replace("/train", "/report") + "&checkpoint=yours · Letters_to_us")
    expect(page.get_by_role("heading", name="The most confident mistakes")).to_be_visible()
    settle(page)
    page.get_by_role("button", name="Fit the linear baseline").click()
    expect(page.get_by_text("rows the Transformer reaches")).to_be_visible()
    page.get_by_role("button", name="Find doubtful labels").click()
    expect(page.get_by_text(re.compile(r"disagree with (none|\d+) of 82 labels with high confidence"))).to_be_visible()
    page.get_by_text("Use a table of your own instead").click()
    page.locator('input[type="file"]').first.set_input_files(
        {"name": "again.csv", "mimeType": "text/csv", "buffer": table.read_bytes()}
    )
    expect(page.get_by_text("only the 14 rows that were held out from training are used")).to_be_visible()

    # The download is an ordinary checkpoint, which can be opened here again.
    page.goto(address)
    settle(page)
    with page.expect_download() as downloading:
        page.locator("#zip_Letters_to_us:visible").first.click()
    archive_path = tmp_path / "mine.zip"
    downloading.value.save_as(archive_path)
    with zipfile.ZipFile(archive_path) as archive:
        archive.extractall(tmp_path / "unpacked")
    assert Predictor.load(tmp_path / "unpacked" / "Letters_to_us").classes == ("money", "post")
    open_train(other, server)
    other.get_by_text("Open a model that you downloaded here").click()
    upload(other, archive_path, at=1)
    expect(other.get_by_text("Opened as yours · mine")).to_be_visible()
    assert query(other)["job"] != query(page)["job"]
    assert query(other)["checkpoint"] == "yours · mine"

    # A link to somebody else's files does not replace one's own.
    other.goto(address)
    expect(other.get_by_text("yours · Letters_to_us").first).to_be_visible()
    open_train(other, server)
    expect(other.get_by_text("yours · mine").first).to_be_visible()

    # Once removed, it is gone, even for someone who has the address.
    page.locator(".st-key-forget button:visible").first.click()
    expect(page.locator('[data-testid="stFileUploader"]').first).to_be_visible()
    assert "job" not in query(page)
    page.goto(address)
    expect(page.get_by_text("no longer here")).to_be_visible()
    assert SECRET not in server.log.read_text(errors="replace"), "nothing of a table is logged"
