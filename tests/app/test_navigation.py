"""The menu, the addresses and the links between the pages, as the running app has them."""

from typing import Any

import pytest
import streamlit as st

from tests.app.drawn import go_to, open_page
from txcls.app.pages import PAGES

ADDRESSES = {
    "Classify": "",
    "Lessons": "lessons",
    "Tokens": "tokens",
    "Step by step": "steps",
    "Attention": "attention",
    "Head atlas": "atlas",
    "Switchboard": "switchboard",
    "Explanation?": "explanation",
    "Class lens": "lens",
    "Training film": "film",
    "Positions": "positions",
    "What if": "whatif",
    "Neighbourhood": "neighbourhood",
    "Language model": "language",
    "Train": "train",
    "Report": "report",
    "Batch": "batch",
}
"""Title in the menu, in its order, and address: links that people have saved lead there."""


def test_the_menu_and_the_addresses_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    menus: list[list[Any]] = []
    navigation = st.navigation

    def listen(pages: list[Any], **options: Any) -> Any:
        menus.append(pages)
        return navigation(pages, **options)

    monkeypatch.setattr(st, "navigation", listen)
    open_page("classify")
    assert {page.title: page.url_path for page in menus[0]} == ADDRESSES
    assert [page.title for page in menus[0]] == list(ADDRESSES)


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
            assert "text=banks" in link.proto.query_string, page.name
