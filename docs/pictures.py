"""Take the pictures of the documents in the running app: `make pictures`."""

import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.browser.chromium import ensure_chromium
from tests.browser.server import CHROMIUM_ARGS, serve

FOLDER = Path(__file__).parent
PICTURES = {
    "whole-model.png": ("/", 1920, 1040),
    "steps.png": ("/steps?checkpoint=ag_news", 1280, 880),
    "lesson.png": ("/attention?lesson=attention&lang=en&step=3", 1280, 800),
}
"""For each picture the page, and the width and height of the window in pixels."""
COLOURS = 256
"""Number of colours of a picture: a palette, because each version stays in the repository's history."""


def take(address: str) -> None:
    """Take all pictures of the app at `address` and write them beside this file."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=ensure_chromium(), args=CHROMIUM_ARGS)
        for name, (place, width, height) in PICTURES.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
            page.goto(f"{address}{place}")
            page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=120_000)
            page.wait_for_load_state("networkidle")
            page.wait_for_timeout(3000)  # charts are drawn after the last message of the server
            with Image.open(io.BytesIO(page.screenshot())) as picture:
                # With means of what falls to each colour, neither greys nor a map's few bright cells change.
                few = picture.convert("RGB").quantize(
                    COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=4, dither=Image.Dither.NONE
                )
                few.save(FOLDER / name, optimize=True)
            page.close()
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder) / "log") as address:
        take(address)
