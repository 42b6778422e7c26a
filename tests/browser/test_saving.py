"""Saving the pictures of the app, the film and an exported page as SVG and PNG."""

import re
from pathlib import Path
from xml.etree import ElementTree

from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.app.film import FILMED
from tests.browser.conftest import Server
from tests.browser.exported import Open
from tests.browser.visiting import visit

TEXT = "the bank raised its rates again"
SVG = "{http://www.w3.org/2000/svg}"


def saved(page: Page, buttons: Locator, kind: str) -> Path:
    """The file saved by a button, under its suggested name."""
    with page.expect_download() as waiting:
        buttons.get_by_role("button", name=f"Save the picture as {kind.upper()}").click()
    file = Path(waiting.value.path())
    assert waiting.value.suggested_filename.endswith(f".{kind}")
    return file


def texts(svg: Path) -> list[str]:
    """The texts in an SVG, which must not refer to anything external."""
    source = svg.read_text("utf-8")
    assert not re.search(r'(?:href|url\()="?(?:https?:|//|blob:)', source)
    assert "class=" not in source and "<foreignObject" not in source and "var(--" not in source
    root = ElementTree.fromstring(source)
    assert all(element.get("href", "").startswith("data:image/png") for element in root.iter(f"{SVG}image"))
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def colours(png: Path, min_size: tuple[int, int]) -> int:
    """The number of colours in a PNG, which must have at least this size."""
    with Image.open(png) as image:
        assert image.format == "PNG" and image.width >= min_size[0] and image.height >= min_size[1]
        return len(set(image.convert("RGB").resize((400, 200)).get_flattened_data()))


def test_an_exported_page_saves_its_picture_without_a_server(single: str, open_page: Open) -> None:
    page = open_page(f"{single}#text=the+bank+raised&theme=dark", offline=True)
    buttons = page.locator("#picture .save-picture")
    svg = saved(page, buttons, "svg")
    written = texts(svg)
    words = page.locator(".machine-word").all_inner_texts()
    names = page.locator(".machine-bars .name").all_inner_texts()
    shown = {one.removesuffix("…") for one in written} - {""}
    assert words and all(any(name.startswith(one) for one in shown) for name in (*words, *names))
    root = ElementTree.fromstring(svg.read_text("utf-8"))
    assert len(list(root.iter(f"{SVG}image"))) == page.locator(".machine-head canvas").count()
    assert len(list(root.iter(f"{SVG}path"))) == page.locator(".machine-stage svg path").count()
    ground = next(root.iter(f"{SVG}rect")).get("fill")
    assert ground not in (None, "#ffffff"), "the dark theme's"
    assert colours(saved(page, buttons, "png"), (600, 300)) > 20


def test_the_app_saves_the_picture_of_its_home_page_and_of_the_film(page: Page, server: Server) -> None:
    visit(page, server, wait_for=".machine-word", text=TEXT)
    buttons = page.locator(".machine-saving")
    assert {"bank", "raised"} <= set(texts(saved(page, buttons, "svg")))
    assert colours(saved(page, buttons, "png"), (600, 300)) > 20
    visit(page, server, "film", wait_for=".film canvas", checkpoint=FILMED, text=TEXT, training_step=3)
    expect(page.locator(".film .where")).to_have_text("Step 3 of 12")
    buttons = page.locator(".film .save-picture")
    written = texts(saved(page, buttons, "svg"))
    assert "accuracy" in written and "3" in written and "Prediction at this step" in written
    assert not {"Save as", "Guess first"} & set(written)
    assert colours(saved(page, buttons, "png"), (600, 300)) > 20
