"""The pages in lecture mode."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.drawn import charts_of, html_of, open_page
from tests.app.tiny import LEARNED, MANY, PAIRS, PLAIN
from tests.conftest import TEXTS, slow_but
from txcls.app.menu import PAGES
from txcls.app.shell import checkpoints, compute, lecture
from txcls.app.shell.lecture import MIN_FONT_PX, STEPS, step_part

TEXT = "banks signed a deal after the election"
NAMES = [page.name for page in PAGES]
WITHOUT_SLIDES = {"atlas", "film", "playground"}
"""Pages that show nothing for a checkpoint without an atlas or snapshots, and one that is only a frame."""


def slides(app: AppTest) -> list[dict[str, Any]]:
    return list(app.session_state["_slides"])


def fonts(figure: Any) -> Iterator[float]:
    """All font sizes in part of a figure."""
    if isinstance(figure, list):
        for part in figure:
            yield from fonts(part)
    elif isinstance(figure, dict):
        for name, part in figure.items():
            if name.endswith("font") and "size" in part:
                yield from part["size"] if isinstance(part["size"], list) else [part["size"]]
            elif name != "template":
                yield from fonts(part)


def axes_and_legends(figure: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Settings of axes and legends, whose font size Streamlit's theme would otherwise set."""
    for name, part in figure["layout"].items():
        if name.startswith(("xaxis", "yaxis")):
            yield part.get("tickfont", {})
            if "title" in part:
                yield part["title"].get("font", {})
        if name == "legend":
            yield part.get("font", {})


@pytest.mark.parametrize("name", [PLAIN, *slow_but([], [LEARNED, PAIRS, MANY])])
def test_every_page_consists_of_slides_with_large_type(name: str) -> None:
    for page in NAMES:
        app = open_page(page, mode="lecture", checkpoint=name, text=TEXT)
        assert app.query_params["mode"] == "lecture"
        assert not app.title and not any(box.key == "checkpoint_box" for box in app.selectbox), page
        assert page in ("atlas", "train", "batch", "report", "playground") or app.text_area[0].value == TEXT
        assert bool(slides(app)) == (page not in WITHOUT_SLIDES), page
        for chart in charts_of(app):
            assert min(fonts(chart.figure)) >= MIN_FONT_PX, (page, chart.key)
            assert all(font["size"] >= MIN_FONT_PX for font in axes_and_legends(chart.figure)), (page, chart.key)


def test_the_button_starts_lecture_mode_which_links_keep_and_an_unknown_mode_is_ignored() -> None:
    app = open_page("attention", mode="cinema", text=TEXT)
    assert app.title[0].value and not slides(app) and "mode" not in app.query_params
    usual = [chart.key for chart in charts_of(app)]
    assert "F9" in app.button(key="lecture_start").label
    app.button(key="lecture_start").click().run()
    assert slides(app) and not app.title and {chart.key for chart in charts_of(app)} >= set(usual)
    links = [parse_qs(link.proto.query_string) for link in app.get("page_link")]
    assert links and all(link["mode"] == ["lecture"] for link in links)


@pytest.mark.parametrize("section", ["arcs", "rollout"])
def test_each_part_of_attention_is_a_slide_whichever_one_is_chosen(section: str) -> None:
    app = open_page("attention", mode="lecture", text=TEXT, section=section)
    keys = {chart.key for chart in charts_of(app)}
    assert keys > {"chart_arcs", "chart_query_key", "chart_entropy", "chart_rollout", "chart_pooling"}
    assert len(slides(app)) == 6 and slides(app)[-1]["shows"] == (lecture.POOLING,)
    assert ("section" in app.query_params) == (section != "arcs"), "kept for when lecture mode ends"


def test_vectors_are_bars_unless_a_matrix_that_they_are_computed_from_stands_beside_them() -> None:
    kinds = {
        step: charts_of(open_page("steps", mode="lecture", text=TEXT, step=step))[0].figure["data"][0]["type"]
        for step in ("pooled", "logits", "class_softmax")
    }
    assert kinds == {"pooled": "heatmap", "logits": "heatmap", "class_softmax": "bar"}
    app = open_page("steps", mode="lecture", checkpoint=MANY, text=TEXT, step="logits")
    [bars] = charts_of(app)[0].figure["data"]
    assert bars["type"] == "bar" and len(bars["customdata"]) == 10, "as many as there is room for in large type"


def test_the_strip_says_that_an_answer_to_unknown_words_means_nothing() -> None:
    assert "<b>Means nothing</b>, 100 % is unknown:" in html_of(
        open_page("attention", mode="lecture", text="שלום עולם")
    )
    assert "Means nothing" not in html_of(open_page("attention", mode="lecture", text=TEXTS[0]))


def test_with_an_empty_text_a_page_has_no_slides() -> None:
    app = open_page("attention", mode="lecture", text="")
    assert any("Type a few words" in info.value for info in app.info) and not slides(app)


def test_the_map_marks_the_part_of_each_step() -> None:
    app = open_page("steps", mode="lecture", text=TEXT, step="scores", layer="2")
    assert slides(app)[0]["shows"] == ("attn.1",)
    assert step_part("expand", 0) == "ff.0" and step_part("logits", None) == "classes"
    for name in (PLAIN, LEARNED, PAIRS):
        for step in compute.walk_through(checkpoints.source(name), TEXT).steps:
            assert step.layer is not None or step.name in STEPS, step.name


def test_operands_are_drawn_beside_the_result_and_follow_the_selected_cell() -> None:
    app = open_page("steps", mode="lecture", text=TEXT, step="scores", layer="1", head="1")

    def frames() -> list[tuple[float, float]]:
        lines = [trace for trace in charts_of(app)[0].figure["data"] if trace["type"] == "scatter"]
        return [(min(line["x"]) + 0.5, min(line["y"]) + 0.5) for line in lines[:3]]

    app.selectbox(key="step_box_Row_T").set_value(2).run()
    app.selectbox(key="step_box_Column_T").set_value(4).run()
    assert frames() == [(4, 2), (0, 2), (4, 0)]
    app.selectbox(key="step_box_Row_T").set_value(5).run()
    assert frames() == [(4, 5), (0, 5), (4, 0)]
