from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.app.drawn import body_text, chart, html_of, numbers, open_page
from tests.app.reports import REPORT, measurements, save_reports_model
from tests.app.tiny import PLAIN
from tests.conftest import TEXTS
from txcls.app.shell import markdown
from txcls.figures import FEED_FORWARD
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import Ablation, Means, ablate, ablate_each

TEXT = "banks signed a deal after the election"


def plain() -> Predictor:
    return Predictor.load(PLAIN)


def assert_bars(app: AppTest, changed: np.ndarray) -> None:
    """The bars of the changed model are of the two classes with the highest probability before or after."""
    shown = np.argsort(-np.maximum(ablate(plain(), TEXT, []).original, changed))[:2]
    np.testing.assert_allclose(
        sorted(numbers(chart(app, "chart_moved").figure["data"][1]["x"])), sorted(changed[shown]), atol=1e-6
    )


def written(app: AppTest, key: str) -> list[list[float]]:
    """The numbers in the cells of a board."""
    rows = chart(app, key).figure["data"][0]["text"]
    return [[float(cell.replace("−", "-")) for cell in row if cell] for row in rows]


def parts(app: AppTest) -> object:
    """The list of the parts that are switched off."""
    [control] = [control for control in app.multiselect if control.key and control.key.startswith("switch_parts")]
    return control


def test_a_link_opens_with_its_switches_and_board_and_bars_are_the_librarys() -> None:
    app = open_page("heads", text=TEXT, switched="2.1,1.ff,t2,9.1")
    control = app.segmented_control(key="switch_heads")
    assert control.value == "zero" and len(control.options) == 2, "no means were measured"
    assert parts(app).value == [(0, FEED_FORWARD), (1, 0), 1], "it has no more"  # type: ignore[attr-defined]
    effects = ablate_each(plain(), TEXT)
    expected = 100 * np.column_stack([effects.heads, effects.feed_forward])
    np.testing.assert_allclose(written(app, "chart_board"), expected, atol=0.0501)
    others = [Ablation("feed_forward", "zero", 0), Ablation("token", "zero", index=1)]
    changed = ablate(plain(), TEXT, [[Ablation("head", "zero", 1, 0), *others]]).changed[0]
    assert_bars(app, changed)
    app.segmented_control(key="switch_heads").set_value("uniform").run()
    changed = ablate(plain(), TEXT, [[Ablation("head", "uniform", 1, 0), *others]]).changed[0]
    assert_bars(app, changed)
    parts(app).set_value([(0, 1), 1]).run()  # type: ignore[attr-defined]
    assert app.query_params["switched"] == "1.2,t2"
    parts(app).set_value([]).run()  # type: ignore[attr-defined]
    assert "switched" not in app.query_params and "Of all heads" in body_text(app), "one head is always off"


def test_heads_are_replaced_by_their_means_where_these_were_measured(measured: Predictor) -> None:
    app = open_page("heads", text=TEXTS[0])
    assert app.segmented_control(key="switch_heads").value == "mean"
    effects = ablate_each(measured, TEXTS[0], heads="mean", feed_forward="mean", means=Means.of(measured))
    expected = 100 * np.column_stack([effects.heads, effects.feed_forward])
    np.testing.assert_allclose(written(app, "chart_board"), expected, atol=0.0501)
    parts(app).set_value(["positions"]).run()  # type: ignore[attr-defined]
    assert app.query_params["switched"] == "positions" and "Without **position vectors**" in body_text(app)
    changed = ablate(measured, TEXTS[0], [[Ablation("positions", "mean")]], means=Means.of(measured)).changed[0]
    assert f"{changed.max():.1%}".replace("%", "\u00a0%") in body_text(app)


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    save_reports_model(tmp_path / "who_won")


def test_a_card_says_what_was_measured_of_its_head(reports: None) -> None:
    app = open_page("heads", checkpoint="who_won", text=REPORT, layer="1", head="1")
    text = body_text(app) + html_of(app)
    for words in ("to 50.0\u00a0%", "95\u00a0% (92 to 98\u00a0%)", "**1.1**", "**2.2**", "40 test texts"):
        assert words in text, words
    distances = chart(app, "chart_table").figure["data"][0]["y"]
    np.testing.assert_allclose(numbers(distances), measurements().head(0, 0).distances)


def test_pages_open_on_a_confirmed_head_unless_the_address_names_one(reports: None) -> None:
    for params, head in (({}, "1.1"), ({"layer": "2"}, "2.2"), ({"head": "2"}, "1.2")):
        app = open_page("steps", checkpoint="who_won", text=REPORT, step="scores", **params)  # type: ignore[arg-type]
        assert app.subheader[0].value.endswith(f"head {head}"), params


def test_the_page_names_and_opens_on_the_head_with_the_largest_effect() -> None:
    app = open_page("heads", text=TEXT)
    effects = ablate_each(plain(), TEXT)
    layer, head = np.unravel_index(np.abs(effects.heads).argmax(), effects.heads.shape)
    words, name = body_text(app), markdown.escape(f"head {layer + 1}.{head + 1}")
    assert f"Of all heads, **{name}** (framed) matters most" in words, "a feed-forward block may matter more"
    before, after = effects.original.max(), effects.original.max() + effects.heads[layer, head]
    changed = ablate(plain(), TEXT, [[Ablation("head", "zero", int(layer), int(head))]]).changed[0]
    says = f" {'falls' if after < before else 'rises'} from {before:.1%} to {after:.1%}"
    if changed.argmax() != effects.original.argmax():
        says = f" ({before:.1%}) becomes **{plain().classes[int(changed.argmax())]}** ({changed.max():.1%})"
    assert says.replace("%", "\u00a0%") in words
    assert app.subheader[0].value == f"Head {layer + 1}.{head + 1}"
