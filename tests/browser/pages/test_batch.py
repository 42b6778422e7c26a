"""The page Batch in a browser: upload a file and download it with predictions; cancel a long job."""

import csv
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.visiting import settle
from tests.conftest import TEXTS
from txcls.inference.predictor import Predictor

pytestmark = pytest.mark.timeout(300)


def upload(page: Page, server: Server, path: Path) -> None:
    page.goto(f"{server.address}/batch")
    page.wait_for_selector('[data-testid="stFileUploader"]')
    settle(page)
    page.locator('input[type="file"]').first.set_input_files(str(path))
    expect(page.locator(".st-key-start_batch button:visible").first).to_be_visible()


def test_a_file_comes_back_with_the_class_of_each_row(
    page: Page, server: Server, answers: Predictor, tmp_path: Path
) -> None:
    with (tmp_path / "Our texts.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "message"), *enumerate(TEXTS), (99, "=1+1 the bank")])
    upload(page, server, tmp_path / "Our texts.csv")
    page.locator(".st-key-start_batch button:visible").first.click()
    expect(page.locator(".st-key-chart_classified .js-plotly-plot")).to_be_visible()
    review_below = page.get_by_role("combobox", name="Leave to a human below")
    expect(review_below).to_have_value("no row")  # a rerun does not empty the box
    with page.expect_download() as downloading:
        page.locator("#download_batch:visible").first.click()
    assert downloading.value.suggested_filename == "Our texts-classified.csv"
    with Path(downloading.value.path()).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    expected = [str(prediction.label) for prediction in answers.predict(list(TEXTS))]
    assert [row["predicted_label"] for row in rows[:-1]] == expected
    assert rows[-1]["message"] == "'=1+1 the bank" and "probability_3" in rows[0]
