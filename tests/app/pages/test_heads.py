"""The page Heads and what other pages say about heads: every number agrees with the library."""

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.app.drawn import body_text, chart, html_of, numbers, open_page
from tests.app.reports import REPORT, measurements, save_reports_model
from tests.app.tiny import PLAIN
from tests.conftest import TEXTS
from txcls.app.shell import checkpoints, markdown
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


@pytest.mark.parametrize(
    "switched, names, map_of",
    [
        ("t2", "token 2 “signed”", None),
        ("1.ff", "feed-forward 1", None),
        ("2.1", "head 2.1", "Head 2.1"),
        ("1.2,2.1", "head 1.2 and head 2.1", "Head 1.2"),
    ],
)
def test_the_parts_that_are_off_are_named_and_the_map_is_of_one_of_them(
    switched: str, names: str, map_of: str | None
) -> None:
    app = open_page("heads", text=TEXT, switched=switched)
    largest = ablate_each(plain(), TEXT).heads
    is_largest = map_of == f"Head {'.'.join(str(n + 1) for n in divmod(int(abs(largest).argmax()), 2))}"
    assert is_largest or f"Without **{markdown.plain(names)}**" in body_text(app)
    assert f"as trained and without {names};" in chart(app, "chart_moved").alt, "without Markdown"
    assert [heading.value for heading in app.subheader] == ([] if map_of is None else [map_of])


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


@pytest.mark.parametrize(
    "head, said",
    [
        (
            "1.1",
            (
                "Attends to the previous token.",
                "accuracy on 40 test texts falls from 100.0\u00a0% to 50.0\u00a0%.",
                "95\u00a0% (92 to 98\u00a0%)",
            ),
        ),
        ("2.1", ("The effect of where it looks is small", "hardly any accuracy is lost", "which does not replace it")),
    ],
)
def test_a_card_says_what_was_measured_of_its_head(reports: None, head: str, said: tuple[str, ...]) -> None:
    layer, number = head.split(".")
    app = open_page("heads", checkpoint="who_won", text=REPORT, layer=layer, head=number)
    text = body_text(app) + html_of(app)
    for words in (*said, "**1.1**", "**2.2**", "layer 2", "◐ confirmed in part", "– no rule found", "40 test texts"):
        assert words in text, words
    table = chart(app, "chart_table").figure["data"]
    record = measurements().head(int(layer) - 1, int(number) - 1)
    np.testing.assert_allclose(numbers(table[0]["y"]), record.distances)  # type: ignore[index]


def test_pages_open_on_a_confirmed_head_unless_the_address_names_one(reports: None) -> None:
    for params, head in (({}, "1.1"), ({"layer": "2"}, "2.2"), ({"head": "2"}, "1.2")):
        app = open_page("steps", checkpoint="who_won", text=REPORT, step="scores", **params)  # type: ignore[arg-type]
        assert app.subheader[0].value.endswith(f"head {head}"), params


def test_the_page_opens_on_an_unclear_example_with_its_head_framed_on_the_board() -> None:
    app = open_page("heads")
    first_unclear = next(example.text for example in checkpoints.examples(PLAIN) if not example.label)
    assert app.text_area[0].value == first_unclear
    app = open_page("heads", text=TEXT, layer="2", head="1")
    frame = chart(app, "chart_board").figure["layout"]["shapes"][-1]  # type: ignore[index]
    assert [frame[edge] for edge in ("x0", "x1", "y0", "y1")] == pytest.approx([-0.47, 0.47, 0.54, 1.46])


def test_the_page_names_and_opens_on_the_head_with_the_largest_effect() -> None:
    app = open_page("heads", text=TEXT)
    effects = ablate_each(plain(), TEXT)
    layer, head = np.unravel_index(np.abs(effects.heads).argmax(), effects.heads.shape)
    words, name = body_text(app), markdown.plain(f"head {layer + 1}.{head + 1}")
    assert f"Of all heads, **{name}** (framed) matters most" in words, "a feed-forward block may matter more"
    before, after = effects.original.max(), effects.original.max() + effects.heads[layer, head]
    changed = ablate(plain(), TEXT, [[Ablation("head", "zero", int(layer), int(head))]]).changed[0]
    says = f" {'falls' if after < before else 'rises'} from {before:.1%} to {after:.1%}"
    if changed.argmax() != effects.original.argmax():
        says = f" ({before:.1%}) becomes **{plain().classes[int(changed.argmax())]}** ({changed.max():.1%})"
    assert says.replace("%", "\u00a0%") in words
    assert app.subheader[0].value == f"Head {layer + 1}.{head + 1}"
