"""The menu, the URLs and the links between pages."""

from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.app.drawn import go_to, open_page, says
from txcls.address import View
from txcls.app.menu import PAGES
from txcls.app.shell import state

SECTIONS = {
    "Try": {"Classify": "", "Lessons": "lessons", "Playground": "playground"},
    "Inside": {
        "Tokens": "tokens", "Step by step": "steps", "Attention": "attention", "Positions": "positions",
        "Class lens": "lens",
    },
    "Experiments": {
        "Switchboard": "switchboard", "What if": "whatif", "Head atlas": "atlas", "Explanation": "explanation",
        "Training film": "film", "Neighbourhood": "neighbourhood",
    },
    "Language model": {"Language model": "language"},
    "Your texts": {"Train": "train", "Report": "report", "Batch": "batch"},
}  # fmt: skip
"""The pages in each section of the menu, with their URL paths, which must not change because saved links use them."""


def test_the_menu_and_the_addresses_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    menus: list[dict[str, list[Any]]] = []
    navigation = st.navigation

    def listen(pages: dict[str, list[Any]], **options: Any) -> Any:
        menus.append(pages)
        return navigation(pages, **options)

    monkeypatch.setattr(st, "navigation", listen)
    open_page("classify")
    menu = {section: {page.title: page.url_path for page in pages} for section, pages in menus[0].items()}
    assert [(section, list(pages.items())) for section, pages in menu.items()] == [
        (section, list(pages.items())) for section, pages in SECTIONS.items()
    ]


def test_the_home_page_says_what_it_is_and_offers_three_things_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    def offered(app: AppTest) -> list[str]:
        return [link.proto.page for link in app.get("page_link") if link.proto.label in labels]

    labels = ("a lesson →", "switching heads off →", "your own table →")
    app = open_page("classify")
    assert says(app.markdown, "is a Transformer text classifier")
    assert offered(app) == ["lessons", "switchboard", "train"]
    assert not offered(open_page("classify", mode="lecture"))
    monkeypatch.setattr("txcls.app.shell.heads.CHECKPOINT_WHERE_HEADS_MATTER", "not installed")
    assert offered(open_page("classify")) == ["lessons", "train"]


def test_every_page_is_headed_by_its_question_and_links_to_others_in_the_menus_order() -> None:
    app = open_page("classify", text="banks signed a deal")
    order = [page.question for page in PAGES]
    for here, page in enumerate(PAGES):
        go_to(app, page.name)
        assert not app.exception
        assert app.title[0].value == page.question
        labels = [link.proto.label for link in app.get("page_link")]
        links = [label for label in labels if label.strip("←→ ") in order]
        places = [order.index(label.strip("←→ ")) for label in links]
        assert len(places) >= 3 and places == sorted(places) and here not in places, page.name
        for place, label in zip(places, links, strict=True):
            assert label.startswith("← ") == (place < here) and label.endswith(" →") == (place > here), label
        for link in app.get("page_link"):
            assert "text=banks" in link.proto.query_string or link.proto.label not in links, page.name


@pytest.mark.attack
def test_a_checkpoint_that_is_removed_while_it_is_open_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    session = {"_view": View(checkpoint="gone"), "_published": {}, "box": ""}
    monkeypatch.setattr(st, "session_state", session)
    monkeypatch.setattr(st, "query_params", SimpleNamespace(to_dict=dict))
    assert state.current_view(["ag_news"], text_box="box", first_text=str).checkpoint == "ag_news"
    assert session["_more_notes"] == ["The checkpoint “gone” is no longer here; ag_news is shown instead."]


def test_a_first_run_that_was_interrupted_before_its_url_was_written_is_continued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = {"_view": View(checkpoint="ag_news", text="old"), "box": "old"}
    monkeypatch.setattr(st, "session_state", session)
    monkeypatch.setattr(st, "query_params", SimpleNamespace(to_dict=lambda: {"text": "new"}))
    assert state.current_view(["ag_news"], text_box="box", first_text=str).text == "new" and session["box"] == "new"
