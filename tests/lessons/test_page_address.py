from dataclasses import fields
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txcls.lessons.page_address import (
    MAX_LINKED_CHARACTERS,
    MAX_LINKED_CONTINUATION,
    UNSET,
    View,
    params_from_view,
    sendable,
    view_from_params,
)

NAMES = ("ag_news", "learned")
FIELDS = [field.name for field in fields(View)]


@pytest.mark.parametrize(
    "view, params",
    [
        (View("learned", "ag_news", "a & b = ü ?", k=2, layer=1, head=3), {"layer": "2", "head": "4"}),
        (
            View("learned", part="continue", masked="a", causal="b", blank=3, upto=4, added=(7, 0, 12),
                 temperature=0.35, top_k=50, top_p=0.9, seed=11),
            {},
        ),
        (
            View("learned", cell=("row3", "D15"), query=4, section="score", pair=(2, 5), order=(2, 0, 1), flips=True,
                 mode="lecture"),
            {"cell": "row3.D15", "order": "2.0.1", "pair": "2.5", "flips": "on"},
        ),
        (View("learned", training_step=123_456), {"training_step": "123456"}),
        (View("learned", playground="task=ends&layers=0&text=a+b"), {"playground": "task=ends&layers=0&text=a+b"}),
        (View("learned", experiment="patch", patched=(3, 5)), {"patched": "3.5"}),
        (
            View("learned", switched=("1.3", "2.ff", "positions", "t4"), heads="uniform"),
            {"switched": "1.3,2.ff,positions,t4"},
        ),
        (View("learned"), {"layer": None, "k": None, "added": None, "mode": None}),
    ],
)  # fmt: skip
def test_a_view_survives_the_way_through_a_url(view: View, params: dict[str, str | None]) -> None:
    written = params_from_view(view)
    assert {name: written.get(name) for name in params} == params
    assert view_from_params(written, checkpoints=NAMES) == (view, [])


@pytest.mark.parametrize(
    "name, raw",
    [
        *(("k", raw) for raw in ("abc", "", "1.5", "½", "9" * 6000, "\ud800")),
        *(("added", raw) for raw in ("x.y", "1..-", "1,2", "½", "9" * 6000, "\ud800")),
        *((name, raw) for name in ("order", "pair") for raw in ("x", "1..2", "½", "9" * 6000, "\ud800", "row-1")),
        ("temperature", "nan"), ("top_p", "much"), ("seed", "1.5"), ("training_step", "early"),
        ("checkpoint", "../../etc"), ("versus", "gone"),
        *(("playground", raw) for raw in ("ends", "task=gone", "layers=9", "\ud800", "text=" + "a" * 501, "mode=on")),
        *(("playground", raw) for raw in ("start=zip", "lesson=why-4")),
    ],
    ids=lambda value: str(value)[:10].encode("ascii", "replace").decode(),
)  # fmt: skip
def test_a_malformed_value_is_ignored_with_a_note(name: str, raw: str) -> None:
    view, notes = view_from_params({name: raw}, checkpoints=NAMES)
    assert view == View(checkpoint="ag_news") and len(notes) == 1
    notes[0].encode()


def test_long_texts_and_continuations_stay_out_of_the_url() -> None:
    assert "text" in params_from_view(View(text="x" * MAX_LINKED_CHARACTERS))
    assert "text" not in params_from_view(View(text="x" * (MAX_LINKED_CHARACTERS + 1)))
    assert "added" not in params_from_view(View(added=tuple(range(MAX_LINKED_CONTINUATION + 1))))


@given(st.dictionaries(st.sampled_from(FIELDS), st.text()))
def test_any_parameters_give_a_view_that_can_be_sent(params: dict[str, str]) -> None:
    view, _ = view_from_params(params, checkpoints=NAMES)
    assert view.checkpoint in NAMES
    assert view.k >= 1 and view.layer >= UNSET and view.head >= UNSET
    urlencode(params_from_view(view)).encode()


@given(st.text(st.characters(codec=None)))
def test_sendable_text_is_utf8_and_changes_only_lone_surrogates(text: str) -> None:
    sent = sendable(text)
    sent.encode()
    assert sendable(sent) == sent
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert sent == text
