"""The page Report in a browser."""

import pytest
from playwright.sync_api import Page, expect

from tests.app.tiny import PLAIN
from tests.browser.conftest import Server
from tests.browser.visiting import cells, settle, text_box, visit
from tests.conftest import CLASSES, TEXTS
from txcls.data.types import LabelledTexts
from txcls.evaluation.report import report_on
from txcls.inference.predictor import Predictor

ROWS = LabelledTexts(
    [f"{text} {n}" for n in range(6) for text in TEXTS],
    [(n + k) % 4 for n in range(6) for k in range(len(TEXTS))],
    CLASSES,
)
FILE = "\n".join(
    ["text,label", *(f'"{text}",{CLASSES[label]}' for text, label in zip(ROWS.texts, ROWS.labels, strict=True))]
)


def upload(page: Page) -> None:
    page.get_by_text("Use a table of your own instead").click()
    page.locator('[data-testid="stFileUploaderDropzoneInput"], input[type="file"]').first.set_input_files(
        {"name": "mine.csv", "mimeType": "text/csv", "buffer": FILE.encode()}
    )
    expect(page.get_by_text("On 48 rows of mine.csv", exact=True)).to_be_visible()
    settle(page)


@pytest.mark.smoke
def test_an_uploaded_table_is_measured_and_a_row_opens_in_classify(page: Page, server: Server) -> None:
    visit(page, server, "report", checkpoint=PLAIN)
    upload(page)
    report = report_on(Predictor.load(server.log.parent / "checkpoints" / PLAIN), ROWS, rows_description="")
    assert report.confusion is not None and report.predictions is not None
    confusion = cells(page, "chart_confusion")
    assert confusion.shape == (4, 4)
    assert sorted(confusion.sum(axis=1).round(3)) == [1, 1, 1, 1]
    table = page.locator(".st-key-report_mistakes [data-testid=stDataFrameResizable]")
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 15, box["y"] + 55)  # the checkbox of the first row
    expect(page.locator("h1")).to_have_text("Which class does this text belong to?")
    settle(page)
    expect(text_box(page)).to_have_value(report.predictions.mistakes()[0].text)


def test_the_confusion_matrix_is_beside_the_metrics_in_a_wide_window_and_below_them_on_a_phone(
    page: Page, server: Server
) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    visit(page, server, "report", checkpoint=PLAIN)
    upload(page)
    metrics, matrix = page.locator(".st-key-report_metrics"), page.locator(".st-key-chart_confusion")
    left, right = metrics.bounding_box(), matrix.bounding_box()
    assert left and right and left["x"] + left["width"] <= right["x"] and right["y"] + right["height"] <= 800
    page.set_viewport_size({"width": 390, "height": 844})
    settle(page)
    above, below = metrics.bounding_box(), matrix.bounding_box()
    assert above and below and above["y"] + above["height"] <= below["y"]
