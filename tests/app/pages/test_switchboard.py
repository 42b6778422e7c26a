"""The Switchboard page: every number agrees with the library."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.app.drawn import body_text, chart, numbers, open_page
from tests.app.tiny import PLAIN
from tests.conftest import TEXTS
from txcls.figures import FEED_FORWARD
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import Change, Means, ablate, ablate_each

TEXT = "banks signed a deal after the election"


def plain() -> Predictor:
    return Predictor.load(PLAIN)


def after(app: AppTest) -> list[float]:
    """The bars of the changed model, lowest bar first."""
    return sorted(numbers(chart(app, "chart_moved").figure["data"][1]["x"]).tolist())


def written(app: AppTest, key: str) -> list[list[float]]:
    """The numbers in the cells of a board."""
    rows = chart(app, key).figure["data"][0]["text"]
    return [[float(cell.replace("−", "-")) for cell in row if cell] for row in rows]


def test_board_and_bars_are_the_librarys() -> None:
    app = open_page("switchboard", text=TEXT)
    effects = ablate_each(plain(), TEXT)
    expected = 100 * np.column_stack([effects.heads, effects.feed_forward])
    np.testing.assert_allclose(written(app, "chart_board"), expected, atol=0.0501)
    app.multiselect(key=f"switch_parts_{PLAIN}").set_value([(1, 0), (0, FEED_FORWARD)]).run()
    assert not app.exception
    changed = ablate(plain(), TEXT, [[Change("head", "zero", 1, 0), Change("feed_forward", "zero", 0)]]).changed[0]
    assert after(app) == pytest.approx(sorted(changed), abs=1e-6)
    assert f"{changed.max():.1%}".replace("%", "\u00a0%") in body_text(app)
    app.segmented_control(key="switch_heads").set_value("uniform").run()
    changed = ablate(plain(), TEXT, [[Change("head", "uniform", 1, 0), Change("feed_forward", "zero", 0)]]).changed[0]
    assert after(app) == pytest.approx(sorted(changed), abs=1e-6)
    app.button(key="switch_reset").click().run()
    assert "Nothing is changed yet" in body_text(app)


def test_switches_are_carried_to_another_text_but_silent_tokens_are_not() -> None:
    app = open_page("switchboard", text=TEXT)
    app.multiselect(key=f"switch_parts_{PLAIN}").set_value([(1, 0)]).run()
    [tokens] = [control for control in app.multiselect if control.key and control.key.startswith("switch_tokens")]
    tokens.set_value([1]).run()
    changes = [Change("head", "zero", 1, 0), Change("token", "zero", index=1)]
    assert after(app) == pytest.approx(sorted(ablate(plain(), TEXT, [changes]).changed[0]), abs=1e-6)
    app.text_area[0].set_value("the bank raised its rates").run()
    assert "With 1 part changed" in body_text(app)


def test_a_link_opens_with_its_switches_and_they_are_in_the_link() -> None:
    app = open_page("switchboard", text=TEXT, switched="2.1,1.ff,t2,9.1", heads="uniform", off="mean")
    changes = [
        Change("head", "uniform", 1, 0), Change("feed_forward", "zero", 0), Change("token", "zero", index=1),
    ]  # fmt: skip
    assert after(app) == pytest.approx(sorted(ablate(plain(), TEXT, [changes]).changed[0]), abs=1e-6), "it has no more"
    assert app.segmented_control(key="switch_heads").value == "uniform"
    app.multiselect(key=f"switch_parts_{PLAIN}").set_value([(0, 1)]).run()
    assert app.query_params["switched"] == "1.2,t2"
    app.text_area[0].set_value("the bank raised its rates").run()
    assert app.query_params["switched"] == "1.2", "the second token is another now"
    app.button(key="switch_reset").click().run()
    assert "switched" not in app.query_params and "Nothing is changed yet" in body_text(app)


def test_mean_ablation_and_accuracy_come_with_a_measured_checkpoint(measured: Predictor) -> None:
    app = open_page("switchboard", text=TEXTS[0])
    app.segmented_control(key="switch_off").set_value("mean").run()
    effects = ablate_each(measured, TEXTS[0], heads="mean", feed_forward="mean", means=Means.of(measured))
    expected = 100 * np.column_stack([effects.heads, effects.feed_forward])
    np.testing.assert_allclose(written(app, "chart_board"), expected, atol=0.0501)
    stored = measured.checkpoint.metrics["heads"]
    parts = np.column_stack([stored["mean"]["heads"], stored["mean"]["feed_forward"]])
    accuracy = 100 * (parts - stored["accuracy"])
    np.testing.assert_allclose(written(app, "chart_accuracy"), accuracy, atol=0.00501)
    assert "Test accuracy without each part, replaced by its mean" in [heading.value for heading in app.subheader]
    assert "8 test texts" in body_text(app) and "8 validation texts" in body_text(app)
    app.toggle(key="switch_positions_mine").set_value(True).run()
    assert not app.exception and "With 1 part changed" in body_text(app)
    assert app.query_params["switched"] == "positions"
    changed = ablate(measured, TEXTS[0], [[Change("positions", "mean")]], means=Means.of(measured)).changed[0]
    assert after(app) == pytest.approx(sorted(changed), abs=1e-6)
