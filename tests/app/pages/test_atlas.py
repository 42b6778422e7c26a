"""The Head atlas page, the chips on other pages, and the head that pages open with."""

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.drawn import body_text, chart, go_to, html_of, numbers, open_page
from tests.app.reports import REPORT, atlas, save_reports_model


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    save_reports_model(folder / "who_won")
    return folder


@pytest.fixture(autouse=True)
def _these_models_only(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(models))


def heads(app: AppTest) -> list[str]:
    """The heads, in the order in which they are listed."""
    return re.findall(r"<b>Head (\d+\.\d+)</b>", html_of(app))


def test_every_head_has_a_card_with_its_map_story_verdict_and_figures() -> None:
    app = open_page("atlas", checkpoint="who_won")
    html = html_of(app)
    for words in (
        "76 points<small>of accuracy are lost without head 2.2<span>: 76 more of 100 answers are wrong</span></small>",
        "In its map, each row is a token; its bright cells are the tokens it attends to",
        "A test confirmed the sentence on 1 of 4 cards.</span> <details>",
        "✓</span> confirmed</span>",
        "With the same weight on every token, accuracy falls; with weight only on the answer, 100\u00a0% (90 to",
        "◐</span> partly confirmed</span>",
        "with weight only on itself, 50\u00a0% (40 to 60\u00a0%) of the lost accuracy comes back.",
        "✗</span> refuted</span>", ", −20", "○</span> pattern looks clear, not needed by itself",
        "worth 76 points of accuracy (76 to 76)",
        "worth 0.0 points of accuracy (−0.4 to 0.3)",
        "The class token attends to the team that is predicted", "The best candidate story is refuted",
        "<b>1.00</b> (0.90 to 1.00), control <b>−0.09</b>",
        "output at its mean <b>76.0</b> · output at zero <b>38.0</b> · uniform weights <b>19.0</b>",
        "0.99 (uniform 0.06)", "<b>0.40</b> of uniform", "too little is lost to judge: uniform weights",
    ):  # fmt: skip
        assert words in html, words
    assert "attends to markers" not in html, "a refuted story is no caption"
    assert "accuracy is 40.0\u00a0% instead of 100.0\u00a0%" in body_text(app)
    assert "20.0\u00a0% with these lists shuffled, mean of 5 draws; 40 test texts" in body_text(app)
    assert re.search(r"Each map shows the clearest of \d+ texts\.", html)
    assert "Each of 1 of" not in body_text(app)
    assert "One head can be mean-ablated at a cost of under 0.5 points of accuracy (95 % interval)" in body_text(app)
    assert heads(app) == ["2.2", "1.1", "1.2", "2.1"], "by worth"
    assert "The class token attends to the team that is predicted</p>" in html
    assert re.search(r"Framed: &lt;cls&gt; → \w+\.", html)
    assert "<b>Team it names</b>: the team that the model predicts." in html
    assert "4 tokens" not in chart(app, "chart_head_1_1").alt and "head 2.2" in chart(app, "chart_head_1_1").alt


def test_without_a_checkpoint_in_the_address_the_one_with_the_most_confirmed_stories_is_shown(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "who_won").symlink_to(models / "who_won")
    save_reports_model(tmp_path / "ag_news", measured=False)
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    app = open_page("atlas")
    assert app.query_params["checkpoint"] == "who_won" and len(heads(app)) == 4
    assert not app.warning, "nobody chose ag_news"
    assert go_to(app, "attention").query_params["checkpoint"] == "who_won", "the next page goes on with the same model"
    app = open_page("atlas", checkpoint="ag_news")
    assert app.query_params["checkpoint"] == "ag_news" and not app.warning
    app = go_to(open_page("classify", checkpoint="ag_news"), "atlas")
    assert go_to(app, "attention").query_params["checkpoint"] == "ag_news", "the visitor's own model"
    app = go_to(open_page("classify", checkpoint="ag_news"), "atlas")
    app.selectbox(key="checkpoint_box").set_value("ag_news").run()
    assert app.query_params["checkpoint"] == "ag_news", "a choice is kept"


def test_a_slide_has_one_head_with_its_colour_scale_and_defines_the_words_on_its_chip() -> None:
    app = open_page("atlas", checkpoint="who_won", mode="lecture")
    layouts = [chart(app, f"chart_head_{head}").figure["layout"] for head in ("1_1", "0_0", "0_1", "1_0")]
    assert all(layout["coloraxis"]["showscale"] for layout in layouts)
    first, *_, last = re.findall(r'<p class="txcls-terms">(.*?)</p>', html_of(app))[:4]
    assert "Not needed by itself" not in first
    assert "Not needed by itself" in last


def test_the_selected_heads_attention_by_kinds_is_drawn_against_chance() -> None:
    app = open_page("atlas", checkpoint="who_won")
    assert "head 2.2" in chart(app, "chart_kinds").alt, "the head that is worth most"
    app.button(key="atlas_kinds_0_1").click().run()
    heat_map = chart(app, "chart_kinds")
    table = atlas().table
    assert numbers(heat_map.figure["data"][0]["z"]) == pytest.approx(table.attention[0, 1] - table.chance, abs=1e-5)
    assert "head 1.2" in heat_map.alt and "team it names to team it names" in heat_map.alt
    assert (app.query_params["layer"], app.query_params["head"]) == ("1", "2")


def test_accuracies_with_all_heads_replaced_have_their_interval_and_control() -> None:
    text = body_text(open_page("atlas", checkpoint="who_won"))
    assert "restore 14\u00a0% (10 to 20\u00a0%) of what uniform attention loses, the shuffled lists −14\u00a0%." in text


def test_pages_open_on_a_confirmed_or_a_clear_head_unless_the_address_names_one() -> None:
    for params, head_name in (
        ({}, "2.2"),
        ({"layer": "1"}, "1.2"),
        ({"head": "1"}, "1.1"),
        ({"layer": "1", "head": "2"}, "1.2"),
    ):
        app = open_page("steps", checkpoint="who_won", text=REPORT, step="scores", **params)
        layer, head = head_name.split(".")
        heading = app.subheader[0].value
        assert f"Layer {layer}" in heading and f"head {head}" in heading, (params, head_name)
    app = open_page("attention", checkpoint="who_won", text=REPORT)
    assert any(element.value == "Layer 2, head 2" for element in app.subheader), "the head of a confirmed story"


def test_attention_explains_the_words_on_the_chip_of_its_head() -> None:
    for head, story, words, others in (
        ("2", "The class token attends to the team that is predicted. ", "**Worth**", "**Not tested**"),
        ("1", "Clear pattern, not tested: ", "**Not tested**", "comes back"),
    ):
        text = body_text(open_page("attention", checkpoint="who_won", text=REPORT, layer="2", head=head))
        assert story in text and words in text and "**Worth**: points of accuracy lost" in text, head
        assert others not in text, head


def box(app: AppTest, name: str) -> object:
    return app.selectbox(key=f"report_{name}")


def test_select_boxes_write_a_sentence_of_the_grammar() -> None:
    app = open_page("classify", checkpoint="who_won", text="anything")
    for name, value, expected in (
        ("winner", "United", "United beat City."),
        ("loser", "Albion", "United beat Albion."),
        ("main", "passive", "Albion were beaten by United."),
        ("first", "lost to", "Albion, who lost to Athletic last week, were beaten by United."),
        ("second", "whom", "Albion, who lost to Athletic last week, were beaten by United, whom City beat last week."),
        ("first", "", "Albion were beaten by United, whom City beat last week."),
        ("second", "", "Albion were beaten by United."),
        ("main", "not but lost", "Not United but Albion lost the match."),
        ("main", "inverse", "Albion lost to United."),
        ("ending", "at home", "Albion lost to United at home."),
        ("winner", "Albion", "Athletic lost to Albion at home."),
    ):
        box(app, name).set_value(value).run()  # type: ignore[attr-defined]
        assert not app.exception
        assert app.text_area[0].value == app.query_params["text"] == expected, (name, value)
    app.button(key="report_exchange").click().run()
    assert app.text_area[0].value == "Albion lost to Athletic at home."
    assert "txcls-answer" in html_of(app)
