"""The page What if."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.drawn import each_bad_text, figures_of, go_to, html_of, open_page, words_of
from tests.app.tiny import LEARNED, MANY, PAIRS, PLAIN
from txcls.app.shell import checkpoints, compute

TEXT, CHANGED = "the bank raised its rates again", "the club raised its new rates"
BOX = "text_box_changed"


def change(app: AppTest, text: str) -> AppTest:
    return app.text_area(key=BOX).set_value(text).run()


def test_the_second_box_starts_with_the_first_ones_text_and_follows_it() -> None:
    app = open_page("whatif", text=TEXT)
    assert app.text_area(key=BOX).value == TEXT and "Both boxes hold the same text" in words_of(app)
    app.text_area[0].set_value("shares fell").run()
    assert app.text_area(key=BOX).value == "shares fell" and "changed" not in app.query_params


def test_a_changed_text_is_compared_shared_and_kept() -> None:
    app = change(open_page("whatif", text=TEXT), CHANGED)
    assert app.query_params["changed"] == CHANGED
    shown = html_of(app)
    assert "<del>bank</del><ins>club</ins>" in shown and "1 changed" in shown and "1 removed" in shown
    made = compute.compare_texts(checkpoints.source(PLAIN), TEXT, CHANGED)
    bars = figures_of(app)[0]["data"]
    assert {bar["name"] for bar in bars} == {"as typed", "changed"}  # type: ignore[index, union-attr]
    assert f"{made.after.ranked[0].label}" in words_of(app)
    go_to(app, "classify")
    go_to(app, "whatif")
    assert app.text_area(key=BOX).value == CHANGED and app.text_area[0].value == TEXT


def test_a_link_opens_both_texts() -> None:
    app = open_page("whatif", text=TEXT, changed=CHANGED, checkpoint=LEARNED)
    assert app.text_area(key=BOX).value == CHANGED and "<ins>club</ins>" in html_of(app)


@pytest.mark.parametrize("name", [PLAIN, LEARNED, PAIRS, MANY])
def test_the_search_lists_flips_and_offers_the_smallest(name: str) -> None:
    app = open_page("whatif", checkpoint=name, text=TEXT)
    app.button(key="flip_start").click().run()
    assert not app.exception
    *_, last = compute.flips(checkpoints.source(name), TEXT)
    if not last.flips:
        assert f"None of the {last.total}" in words_of(app)
        return
    assert f"**{len(last.flips):,}** of the {last.total:,} changes" in words_of(app)
    app.button(key="flip_use").click().run()
    assert app.text_area(key=BOX).value == last.flips[0].text
    assert app.query_params["changed"] == last.flips[0].text
    assert "has become" in words_of(app)


def test_a_link_to_a_search_begins_it() -> None:
    app = open_page("whatif", text=TEXT)
    app.button(key="flip_start").click().run()
    assert app.query_params["flips"] == "on"
    linked = open_page("whatif", **dict(app.query_params))
    assert "changes tried" in words_of(linked) or "changes of one word" in words_of(linked)
    linked.text_area[0].set_value("shares fell").run()
    assert "flips" not in linked.query_params


def test_another_text_forgets_what_was_found() -> None:
    app = open_page("whatif", text=TEXT)
    app.button(key="flip_start").click().run()
    app.text_area[0].set_value("shares fell").run()
    assert "changes tried" not in words_of(app)


def test_bad_changed_texts_are_answered_calmly() -> None:
    app = open_page("whatif", text=TEXT)
    for kind in each_bad_text(app, lambda app, text: app.text_area(key=BOX).set_value(text)):
        assert app.text_area[0].value == TEXT, kind
