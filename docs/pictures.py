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
    "steps.png": ("/steps?checkpoint=ag_news&step=softmax&layer=1&head=2", 1280, 880),
    "lesson.png": ("/attention?lesson=attention&lang=en&step=3", 1280, 800),
}
"""For each picture, the page's path, and the width and height of the window in pixels."""
N_COLOURS = 256
"""Number of colours in a picture's palette, which makes files small: the repository keeps each version forever."""


def take(address: str) -> None:
    """Take all pictures of the app at `address`, and write them next to this file."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=ensure_chromium(), args=CHROMIUM_ARGS)
        for name, (path, width, height) in PICTURES.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
            page.goto(f"{address}{path}")
            page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=120_000)
            page.wait_for_load_state("networkidle")
            page.wait_for_selector('[data-testid="stSkeleton"]', state="detached")
            page.wait_for_timeout(3000)  # charts are drawn after the server's last message
            with Image.open(io.BytesIO(page.screenshot())) as picture:
                # k-means preserves greys and the few bright cells of a map.
                with_palette = picture.convert("RGB").quantize(
                    N_COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=4, dither=Image.Dither.NONE
                )
                with_palette.save(FOLDER / name, optimize=True)
            page.close()
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder) / "log") as address:
        take(address)
