"""Execute examples/first_steps.ipynb and save its outputs, with Plotly figures as static images.

python -m examples.refresh_notebook     # needs requirements-dev.txt, and Chromium for the images

GitHub does not show interactive figures. Run this after a change to a shipped checkpoint.
"""

import base64
import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).with_name("first_steps.ipynb")
FIGURE = "application/vnd.plotly.v1+json"
WIDTH = 820


def executed(path: Path = NOTEBOOK) -> nbformat.NotebookNode:
    """The notebook with new outputs, with figures as Plotly JSON.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    root = str(NOTEBOOK.parent.parent)
    with patch.dict(os.environ, {"PLOTLY_RENDERER": "plotly_mimetype", "PYTHONPATH": root}):
        notebook = nbformat.read(path, as_version=4)
        resources = {"metadata": {"path": root}}
        NotebookClient(notebook, timeout=300, record_timing=False, coalesce_streams=True, resources=resources).execute()
    return notebook


def outputs(notebook: nbformat.NotebookNode, kind: str) -> list[tuple[int, Any]]:
    """(cell number, data) of every output with the media type `kind`."""
    return [
        (number, output["data"][kind])
        for number, cell in enumerate(notebook.cells)
        for output in cell.get("outputs", ())
        if kind in output.get("data", {})
    ]


def with_pictures(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The same notebook with each figure rendered as a PNG."""
    from playwright.sync_api import sync_playwright
    from plotly.offline import get_plotlyjs

    from tests.browser.chromium import ensure_chromium

    draw = """async ([figure, width]) => {
        const container = document.body.appendChild(document.createElement("div"));
        const height = figure.layout.height || 450;
        await Plotly.newPlot(container, figure.data, {...figure.layout, width, height, paper_bgcolor: "white"});
        return Plotly.toImage(container, {format: "png", width, height});
    }"""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=ensure_chromium(), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_content("<body></body>")
        page.add_script_tag(content=get_plotlyjs())
        for cell in notebook.cells:
            for output in cell.get("outputs", ()):
                if FIGURE in output.get("data", {}):
                    data_url = page.evaluate(draw, [json.loads(json.dumps(output["data"][FIGURE])), WIDTH])
                    picture = data_url.partition(",")[2]
                    assert base64.b64decode(picture).startswith(b"\x89PNG")
                    output["data"] = {"image/png": picture, "text/plain": "Figure"}
        browser.close()
    return notebook


if __name__ == "__main__":
    nbformat.write(with_pictures(executed()), NOTEBOOK)
