import nbformat
import pytest

from examples.refresh_notebook import FIGURE, NOTEBOOK, executed, outputs


@pytest.fixture(scope="module")
def committed() -> nbformat.NotebookNode:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    return notebook


@pytest.mark.slow  # a quick test already runs the code of README.md
def test_no_cell_of_the_notebook_fails_and_the_same_cells_draw(committed: nbformat.NotebookNode) -> None:
    fresh = executed()
    figures = outputs(fresh, FIGURE)
    assert [cell for cell, _ in figures] == [cell for cell, _ in outputs(committed, "image/png")] and len(figures) >= 4
    assert all(figure["data"] for _, figure in figures)
    for new, old in zip(fresh.cells, committed.cells, strict=True):
        types = ([output.output_type for output in cell.get("outputs", ())] for cell in (new, old))
        assert next(types) == next(types)


def test_the_notebook_is_committed_with_outputs_and_small(committed: nbformat.NotebookNode) -> None:
    assert NOTEBOOK.stat().st_size < 300_000
    code = [cell for cell in committed.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    printed = [output for cell in code for output in cell.outputs]
    assert not [output for output in printed if output.output_type == "error" or output.get("name") == "stderr"]
