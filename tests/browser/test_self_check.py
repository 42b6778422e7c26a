"""An exported page computes three texts as Python did at export, and says so if the answers differ."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE_MS
from tests.browser.exported import Open
from tests.conftest import make_checkpoint
from txcls.inference.predictor import Predictor
from txcls.web.assemble import page_json
from txcls.web.export import describe, export_page

PROBLEM = "Do not trust the answers of this page"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checked")
    make_checkpoint(folder / "model", pooling="mean")
    return export_page([folder / "model"], folder / "page", single_file=True)


def with_description(page: str, change: Any) -> str:
    """The page with its classifier's description changed."""

    def changed(match: re.Match[str]) -> str:
        data = json.loads(match[1])
        change(data["models"][0]["description"])
        return f'id="page-data">{page_json(data).decode("utf-8")}</script>'

    return re.sub(r'id="page-data">(.*?)</script>', changed, page, count=1, flags=re.DOTALL)


def test_a_page_has_three_texts_with_the_probabilities_of_python(page_file: Path) -> None:
    classifier = Predictor.load(page_file.parent.parent / "model")
    checks = describe(classifier)["checks"]
    assert len(checks) == 3 and len({text for text, _ in checks}) == 3
    for text, answers in checks:
        expected = classifier.probabilities([text], precision="float32")[0]
        np.testing.assert_allclose([expected[index] for index, _ in answers], [one for _, one in answers], atol=1e-6)
        assert len(answers) == len(classifier.classes)


def test_a_page_that_computes_the_same_says_nothing(open_page: Open, page_file: Path) -> None:
    page = open_page(page_file.as_uri())
    page.wait_for_selector("html[data-checked]")
    assert float(page.locator("html").get_attribute("data-checked") or "nan") < 1e-5
    expect(page.locator("#problem")).to_be_hidden()


def other_pooling(description: dict[str, Any]) -> None:
    description["config"]["pooling"] = "first"


def no_words(description: dict[str, Any]) -> None:
    description["checks"][0][0] = ""


@pytest.mark.parametrize("change", [other_pooling, no_words])
def test_a_page_that_computes_something_else_says_so(
    open_page: Open, page_file: Path, tmp_path: Path, change: Any
) -> None:
    file = tmp_path / "changed.html"
    file.write_text(with_description(page_file.read_text("utf-8"), change), encoding="utf-8")
    page = open_page(file.as_uri())
    expect(page.locator("#problem")).to_contain_text(PROBLEM, timeout=PATIENCE_MS)
    expect(page.locator("#problem")).to_be_visible()
