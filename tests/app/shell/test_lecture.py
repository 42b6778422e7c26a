"""The pages in lecture mode."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.drawn import charts_of, html_of, open_page
from tests.app.tiny import MANY, PLAIN
from tests.conftest import slow_but
from txcls.app.menu import PAGES
from txcls.app.shell.lecture import MIN_FONT_PX

TEXT = "banks signed a deal after the election"
NAMES = [page.name for page in PAGES]
WITHOUT_SLIDES = {"film", "playground"}
"""A page that shows nothing for a checkpoint without snapshots, and one that is only a frame."""


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


@pytest.mark.parametrize("name", [PLAIN, *slow_but([], [MANY])])
def test_every_page_consists_of_slides_with_large_type(name: str) -> None:
    for page in NAMES:
        app = open_page(page, mode="lecture", checkpoint=name, text=TEXT)
        assert app.query_params["mode"] == "lecture"
        assert "<h1>" not in html_of(app) and not any(box.key == "checkpoint_box" for box in app.selectbox), page
        assert page in ("report", "playground") or app.text_area[0].value == TEXT
        assert bool(slides(app)) == (page not in WITHOUT_SLIDES), page
        for chart in charts_of(app):
            assert min(fonts(chart.figure)) >= MIN_FONT_PX, (page, chart.key)
            assert all(font["size"] >= MIN_FONT_PX for font in axes_and_legends(chart.figure)), (page, chart.key)
            named = [axis for axis in chart.figure["layout"].values() if isinstance(axis, dict) and "ticktext" in axis]
            assert all(len(axis["tickvals"]) == len(axis["ticktext"]) for axis in named), (page, chart.key)


def test_the_button_starts_lecture_mode_which_links_keep_and_an_unknown_mode_is_ignored() -> None:
    app = open_page("attention", mode="cinema", text=TEXT)
    assert "<h1>Attention</h1>" in html_of(app) and not slides(app) and "mode" not in app.query_params
    usual = [chart.key for chart in charts_of(app)]
    assert "F9" in app.button(key="lecture_start").label
    app.button(key="lecture_start").click().run()
    assert slides(app) and "<h1>" not in html_of(app) and {chart.key for chart in charts_of(app)} >= set(usual)
    links = [parse_qs(link.proto.query_string) for link in app.get("page_link")]
    assert links and all(link["mode"] == ["lecture"] for link in links)
