import html
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.app.drawn import body_text, chart, go_to, numbers, open_page
from tests.app.tiny import fake_metrics
from tests.conftest import make_checkpoint
from txcls.app.pages.positions import MODELS, _separate_punctuation, _suggested_order
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.data.datasets import REPORTS
from txcls.inference.predictor import Predictor
from txcls.inspection.circuit import Circuit
from txcls.inspection.positions import position_vectors

TEXT = "the bank raised its rates again"


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_test = {"test": 0.5}
    circuit = Circuit({"test": 9}, 9, 1, 1, of_test, of_test, of_test, {"test": 0.352}, (), False)
    for name in MODELS:
        checkpoint = make_checkpoint(tmp_path / name, positions=MODELS[name], max_length=24)
        n = len(checkpoint.classes)
        figures = {
            "accuracy": 0.9, "macro_f1": 0.9, "ece": 0.0, "log_loss": 0.1, "n": 9, "per_class": [], "reliability": [],
            "confusion": [[0] * n for _ in range(n)],
            "order": {"words_shuffled": 0.813, "positions_removed": 0.75, "both": 0.7},
        }  # fmt: skip
        save_checkpoint(replace(checkpoint, metrics={"test": figures, "circuit": circuit.to_dict()}))
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))


def table(app: AppTest) -> list[list[str]]:
    [markdown] = [m.value for m in app.markdown if m.value.startswith("|") and "| original order |" in m.value]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.splitlines()[2:]]


@pytest.fixture
def other(three: None, tmp_path: Path) -> str:
    """The name of another model, which comes first."""
    checkpoint = make_checkpoint(tmp_path / "ag_news", max_length=24)
    figures = fake_metrics(checkpoint.classes) | {"order": {"words_shuffled": 0.625}}
    save_checkpoint(replace(checkpoint, metrics={"test": figures}))
    return "ag_news"


def words_now(app: AppTest) -> list[str]:
    """The words in the order given in the URL, or in the page's own choice if the URL has none."""
    words = TEXT.split()
    linked = dict(app.query_params).get("order")
    places = [int(one) for one in linked.split(".")] if linked else _suggested_order(words, None)
    return [words[place] for place in places]


@pytest.mark.usefixtures("three")
def test_without_positions_no_order_changes_the_answer_and_with_them_some_does() -> None:
    app = open_page("positions", text=TEXT)
    assert words_now(app) == TEXT.split()[::-1], "an order that shows something, before anything is chosen"
    changed: set[str] = set()
    for _ in range(6):
        assert not app.exception
        rows = table(app)
        assert [row[0] for row in rows] == [f"**{name}**" for name in MODELS.values()]
        assert rows[2][1] == rows[2][2] and rows[2][3] == "stays"
        for _, original, shown, answer in rows:
            assert answer == ("stays" if original.split()[0] == shown.split()[0] else "**changes**")
        changed |= {row[0].strip("*") for row in rows if row[1] != row[2]}
        app.button(key="order_shuffle").click().run()
        assert sorted(words_now(app)) == sorted(TEXT.split())
    assert changed == {"sinusoidal", "learned"}
    before = words_now(app)
    app.button(key="order_reverse").click().run()
    assert words_now(app) == before[::-1]
    app.button(key="order_as_typed").click().run()
    assert words_now(app) == TEXT.split() and all(row[1] == row[2] for row in table(app))
    app.segmented_control(key="section").set_value("models").run()
    assert "Picking one of the text’s teams at random is right 35.2\u00a0% of the time." in body_text(app)


def test_a_visitor_without_a_link_sees_the_three_models(other: str) -> None:
    app = open_page("positions")
    assert dict(app.query_params)["checkpoint"] == "who_won"
    assert len(table(app)) == 3
    assert dict(go_to(app, "tokens").query_params)["checkpoint"] == "who_won"
    assert dict(open_page("tokens").query_params)["checkpoint"] == other


def test_another_model_reads_the_text_in_both_orders_and_a_button_shows_the_three(other: str) -> None:
    app = open_page("positions", text=TEXT, checkpoint=other, section="shuffles")
    [row] = table(app)
    best = [Predictor.load(other).predict([order])[0].ranked[0] for order in (TEXT, " ".join(TEXT.split()[::-1]))]
    cells = [f"{score.label} {score.probability:.1%}".replace("%", "\u00a0%") for score in best]
    assert row[:3] == ["**sinusoidal**", *cells]
    accuracies = "**92.5 %** in the original order and **62.5 %** with shuffled words."
    assert accuracies.replace(" %", "\u00a0%") in body_text(app)
    app.segmented_control(key="section").set_value("models").run()
    assert "| learned | 90.0\u00a0% | 81.3\u00a0% |" in body_text(app)
    app.button(key="open_report").click().run()
    assert not app.exception and app.text_area[0].value == REPORTS[0].text
    assert len(table(app)) == len(MODELS)


@pytest.mark.parametrize(
    "text, winner, suggested",
    [
        ("Rovers lost to Wanderers, who beat United.", "Wanderers", "Wanderers lost to Rovers, who beat United."),
        ("rovers beat city", "Rovers", "city beat rovers"),
        ("Rovers beat Rovers", "Rovers", "Rovers beat Rovers"),
        ("The bank beat City", "Rovers", "City beat bank The"),
    ],
)
def test_it_suggests_an_order_in_which_the_winner_and_another_team_are_swapped(
    text: str, winner: str, suggested: str
) -> None:
    words = _separate_punctuation(text.split())
    assert [words[place] for place in _suggested_order(words, winner)] == _separate_punctuation(suggested.split())


@pytest.mark.parametrize("pooling, names", [("class_token", ["<cls>", *TEXT.split()]), ("mean", TEXT.split())])
def test_the_rows_of_the_map_are_the_tokens_in_the_order_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pooling: str, names: list[str]
) -> None:
    make_checkpoint(tmp_path / "named", pooling=pooling, max_length=24)
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    app = open_page("positions", text=TEXT, order="0.1.2.3.4.5", section="similarity")
    figure = chart(app, "chart_positions").figure
    shown = [html.unescape(name) for name in figure["layout"]["yaxis"]["ticktext"]]
    assert shown == names
    vectors = position_vectors(Predictor.load("named"), len(names))
    np.testing.assert_allclose(numbers(figure["data"][0]["z"]), vectors, atol=1e-6)
    assert f"Framed: this text’s {len(names)} tokens" in body_text(app), "of the map of similar positions"
    app.button(key="order_reverse").click().run()
    figure = chart(app, "chart_positions").figure
    assert figure["layout"]["yaxis"]["ticktext"][-6:] == TEXT.split()[::-1]
    np.testing.assert_allclose(numbers(figure["data"][0]["z"]), vectors, atol=1e-6)
