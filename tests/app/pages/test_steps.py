import gc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from streamlit.testing.v1 import AppTest

from tests.app.drawn import BAD_TEXTS, body_text, figures_of, html_of, numbers, open_page, type_text
from tests.app.tiny import PAIRS, PLAIN
from tests.conftest import slow_but
from txcls.app.shell import cached_results, checkpoints
from txcls.app.shell.cache import shared_cache
from txcls.inspection.steps import Walk, WalkStep
from txcls.inspection.steps.arithmetic import number

TEXT = "the bank raised its rates again"


def walk_of(name: str = PLAIN, text: str = TEXT) -> Walk:
    return cached_results.walk_through(checkpoints.source(name), text)


def test_a_session_does_not_keep_the_arrays_of_all_steps() -> None:
    app = open_page("steps", text=TEXT, step="scores")
    assert any(type(thing) is Walk for thing in gc.get_objects()), "cached"
    shared_cache().clear()
    gc.collect()
    assert not any(type(thing) in (Walk, WalkStep) for thing in gc.get_objects())
    assert heading(app)


def heading(app: AppTest) -> str:
    return str(app.subheader[0].value) if app.subheader else "Text"


def drawn_numbers(app: AppTest) -> NDArray[Any]:
    """The numbers of the step's heat map, or of its bars in vector order."""
    data = figures_of(app)[0]["data"][0]
    if data["type"] != "bar":
        return numbers(data["z"])
    return numbers(data["x" if data.get("orientation") == "h" else "y"])[np.argsort(data["customdata"])]


@pytest.mark.parametrize("name", slow_but([PLAIN], [PLAIN, PAIRS]))
def test_next_goes_through_every_step_and_back_again(name: str) -> None:
    app = open_page("steps", checkpoint=name, text=TEXT, step="text", head="1")
    walk = walk_of(name)
    for place, step in enumerate(walk.steps):
        assert not app.exception and step.title in heading(app)
        if place:
            assert app.query_params["step"] == step.name
        if step.layer is not None:
            assert f"Layer {step.layer + 1} " in heading(app)
            assert dict(app.query_params).get("layer", "1") == str(step.layer + 1)
        assert [code.value for code in app.code] == [code.code for code in step.code]
        if step.formula:
            assert app.latex[0].value.strip("$\n") == step.formula
        assert len(app.get("plotly_chart")) == (step.values is not None or not place)  # at first, the class lens
        if step.values is not None:
            np.testing.assert_allclose(drawn_numbers(app).ravel(), step.cells(0).ravel(), atol=1e-6)
        if place < len(walk.steps) - 1:
            if walk.steps[place].layer == 0 and walk.steps[place + 1].layer == 1:
                app.selectbox(key="step_box").set_value(place + 1).run()
            else:
                app.button(key="step_next").click().run()
    assert app.button(key="step_next").disabled
    app.button(key="step_back").click().run()
    assert walk.steps[-2].title in heading(app)


def test_the_chosen_numbers_arithmetic_is_spelled_out_with_all_its_terms() -> None:
    app = open_page("steps", text=TEXT, step="scores", head="2")
    app.selectbox(key="step_box_Row_T").set_value(1).run()
    app.selectbox(key="step_box_Column_T").set_value(4).run()
    step = walk_of().steps[walk_of().find("scores", 0)]
    arithmetic = step.explain(1, 4, head=1)
    assert app.latex[1].value.count(r"\\") >= 3 and number(float(step.cells(1)[1, 4])) in app.latex[1].value
    assert all(line in app.latex[1].value for line in arithmetic.lines)
    assert arithmetic.terms is not None and html_of(app).count("<tr><td>") == len(arithmetic.terms) == 8
    assert f"{arithmetic.terms[3, 2]:.4f}".replace("-", "−") in html_of(app)


def test_next_and_back_skip_the_later_layers_unless_one_was_entered_and_the_page_opens_at_the_text() -> None:
    app, steps = open_page("steps", text=TEXT), walk_of().steps
    assert heading(app) == "Text"
    last = [step.name for step in steps if step.layer == 0][-1]
    after = next(step for step in steps[walk_of().find(last, 0) :] if step.layer is None)
    app = open_page("steps", text=TEXT, step=last)
    app.button(key="step_next").click().run()
    assert after.title in heading(app) and "Layer" not in heading(app)
    app.button(key="step_back").click().run()
    assert heading(app).startswith("Layer 1 ") and dict(app.query_params).get("step") == last
    assert "Next skips" in body_text(app)


def test_a_link_opens_with_the_chosen_cell() -> None:
    app = open_page("steps", text=TEXT, step="softmax", head="2", cell="row3.T1")
    assert [app.selectbox(key=f"step_box_{place}_T").value for place in ("Row", "Column")] == [3, 1]
    app.selectbox(key="step_box_Column_T").set_value(2).run()
    assert app.query_params["cell"] == "row3.T2"


def test_the_page_opens_on_the_class_lens() -> None:
    app, lens = open_page("steps", text=TEXT), walk_of().steps[walk_of().find("lens")]
    order = np.argsort(-lens.cells()[-1], kind="stable")
    np.testing.assert_allclose(numbers(figures_of(app)[0]["data"][0]["z"]), lens.cells()[:, order[:6]], atol=1e-6)


@pytest.mark.parametrize("text", ["", "bank", BAD_TEXTS["right to left"], BAD_TEXTS["emoji"]])
def test_an_odd_text_raises_no_error_at_the_softmax_step(text: str) -> None:
    app = open_page("steps", text="the bank", step="softmax")
    type_text(app, text)
    app.run()
    assert not app.exception and not app.error and app.query_params["step"] == "softmax"
