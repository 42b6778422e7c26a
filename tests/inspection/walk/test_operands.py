"""The operands of a step are what its arithmetic reads."""

import numpy as np
import pytest

from tests.app.tiny import LEARNED, PAIRS, PLAIN, save_tiny_checkpoints
from txcls.inspection.walk import Walk, walk_through
from txcls.predictor import Predictor

TEXT = "the bank raised its rates again"
BY_FORMULA = {"text", "tokens", "ids", "positions"}


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> list[Walk]:
    root = tmp_path_factory.mktemp("walked")
    save_tiny_checkpoints(root)
    return [walk_through(Predictor.load(root / name), TEXT) for name in (PLAIN, LEARNED, PAIRS)]


def used(step, head, i, j):
    """What of each operand goes into the number at (i, j)."""
    parts = []
    for one in step.operands:
        cells = one.cells(head)
        parts.append({"row": lambda c=cells: c[i], "column": lambda c=cells: c[:, j], "cell": lambda c=cells: c[i, j]})
        parts[-1] = parts[-1][one.used]()
    return parts


def test_every_step_with_numbers_has_operands_that_fit_beside_them(walks):
    for walk in walks:
        for step in walk.steps:
            assert bool(step.operands) == (step.name not in BY_FORMULA), step.name
            for one in step.operands:
                r, c = one.cells(step.values.shape[0] - 1).shape
                rows, columns = step.values.shape[1:]
                assert {"row": r == rows, "column": c == columns, "cell": (r, c) == (rows, columns)}[one.used], (
                    step.name
                )


def test_products_sums_and_softmaxes_of_the_operands_are_the_arithmetics(walks):
    seen = set()
    for walk in walks:
        for step in (step for step in walk.steps if step.operands):
            head, (rows, columns) = step.values.shape[0] - 1, step.values.shape[1:]
            i, j = rows - 1, columns - 1
            made, parts = step.explain(i, j, head=head), used(step, head, i, j)
            if len(parts) == 2 and made.terms is not None:
                np.testing.assert_allclose(np.ravel(parts[0]) * np.ravel(parts[1]), made.terms[:, 2], atol=1e-5)
                seen.add("product")
            elif len(parts) == 2:
                assert float(parts[0] + parts[1]) == pytest.approx(made.value, abs=1e-5)
                seen.add("sum")
            elif step.name in ("softmax", "pool_weights", "class_softmax"):
                powers = np.exp(parts[0] - parts[0].max())
                assert powers[i if step.name != "softmax" else j] / powers.sum() == pytest.approx(made.value, abs=1e-5)
                seen.add("softmax")
            elif step.name.startswith("norm"):
                np.testing.assert_allclose(parts[0], made.terms[:, 0], atol=1e-5)
                seen.add("norm")
    assert seen == {"product", "sum", "softmax", "norm"}
