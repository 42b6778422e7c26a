"""examples/first_steps.ipynb runs from its first to its last cell, and is committed with what it shows."""

import base64
import io

import nbformat
import numpy as np
import pytest
from PIL import Image

from examples.refresh_notebook import FIGURE, NOTEBOOK, executed, outputs


@pytest.fixture(scope="module")
def committed() -> nbformat.NotebookNode:
    found = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(found)
    return found


@pytest.mark.slow  # the code of README.md is run by a quick test
def test_no_cell_fails_and_the_same_cells_draw(committed: nbformat.NotebookNode) -> None:
    fresh = executed()
    drawn = outputs(fresh, FIGURE)
    assert [cell for cell, _ in drawn] == [cell for cell, _ in outputs(committed, "image/png")] and len(drawn) >= 4
    assert all(figure["data"] for _, figure in drawn)
    for new, old in zip(fresh.cells, committed.cells, strict=True):
        assert [one.output_type for one in new.get("outputs", ())] == [
            one.output_type for one in old.get("outputs", ())
        ]


def test_it_is_committed_whole_and_small(committed: nbformat.NotebookNode) -> None:
    assert NOTEBOOK.stat().st_size < 300_000
    code = [cell for cell in committed.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [
        one for cell in code for one in cell.outputs if one.output_type == "error" or one.get("name") == "stderr"
    ]


def test_its_pictures_are_drawn_on_every_part(committed: nbformat.NotebookNode) -> None:
    for _, picture in outputs(committed, "image/png"):
        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(picture))).convert("L"))
        assert pixels.shape[1] >= 600 and pixels.std() > 10
        assert all(half.std() > 2 for half in np.array_split(pixels, 2, axis=1))
