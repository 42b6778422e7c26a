"""The view and the URL that stands for it."""

from dataclasses import fields
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txcls.lessons.address import (
    LONGEST_LINKED_CONTINUATION,
    LONGEST_LINKED_TEXT,
    OPEN,
    View,
    params_from_view,
    sendable,
    view_from_params,
)

NAMES = ("ag_news", "learned")
FIELDS = ("topk", *(field.name for field in fields(View)))


def test_view_survives_the_way_through_a_url() -> None:
    view = View(checkpoint="learned", versus="ag_news", text="a & b = ü ?", k=2, layer=1, head=3)
    assert view_from_params(params_from_view(view), checkpoints=NAMES) == (view, [])


def test_empty_text_is_not_taken_for_no_text() -> None:
    assert view_from_params({"text": ""}, checkpoints=NAMES)[0].text == ""
    assert view_from_params({}, checkpoints=NAMES)[0].text


def test_layers_and_heads_count_from_one_in_the_url() -> None:
    assert params_from_view(View(layer=1, head=2))["layer"] == "2"
    assert view_from_params({"layer": "1", "head": "1"}, checkpoints=NAMES)[0].layer == 0


@pytest.mark.parametrize(
    "raw, expected", [("0", 0), ("-7", 0), ("99", 98), ("9" * 30, 9999), (" 2 ", 1)], ids=lambda v: str(v)[:6]
)
def test_numbers_out_of_range_become_the_nearest(raw: str, expected: int) -> None:
    assert view_from_params({"layer": raw}, checkpoints=NAMES)[0].layer == expected


@pytest.mark.parametrize("raw", ["abc", "", "1.5", "½", "9" * 6000, "\ud800"])
def test_what_is_no_number_is_ignored_with_a_note(raw: str) -> None:
    view, notes = view_from_params({"k": raw}, checkpoints=NAMES)
    assert view.k == View().k
    assert len(notes) == 1
    notes[0].encode()


def test_unknown_checkpoint_falls_back_with_a_note() -> None:
    view, notes = view_from_params({"checkpoint": "../../etc"}, checkpoints=NAMES)
    assert view.checkpoint == "ag_news"
    assert "../../etc" in notes[0]


def test_a_checkpoint_is_not_compared_with_itself_or_with_what_is_not_there() -> None:
    assert view_from_params({"checkpoint": "learned", "versus": "learned"}, checkpoints=NAMES)[0].versus == ""
    view, notes = view_from_params({"versus": "gone"}, checkpoints=NAMES)
    assert view.versus == "" and "gone" in notes[0]


def test_long_text_stays_out_of_the_url() -> None:
    assert "text" in params_from_view(View(text="x" * LONGEST_LINKED_TEXT))
    assert "text" not in params_from_view(View(text="x" * (LONGEST_LINKED_TEXT + 1)))


def test_what_is_sampled_survives_the_way_through_a_url() -> None:
    view = View(
        checkpoint="learned", part="continue", masked="a", causal="b", blank=3, upto=4, added=(7, 0, 12),
        temperature=0.35, top_k=50, top_p=0.9, seed=11,
    )  # fmt: skip
    assert view_from_params(params_from_view(view), checkpoints=NAMES) == (view, [])
    assert params_from_view(View(checkpoint="learned")).keys() == {"checkpoint", "text"}


def test_everything_that_a_visitor_sets_survives_the_way_through_a_url() -> None:
    view = View(
        checkpoint="learned", cell=("row3", "D15"), predict=True, guess=2, target="probability", baseline="zero",
        query=4, section="score", pair=(2, 5), encoding="formula", order=(2, 0, 1), flips=True, word=77, mode="lecture",
    )  # fmt: skip
    params = params_from_view(view)
    assert (params["cell"], params["order"], params["pair"], params["predict"]) == ("row3.D15", "2.0.1", "2.5", "on")
    assert view_from_params(params, checkpoints=NAMES) == (view, [])


@pytest.mark.parametrize("raw", ["x", "1..2", "½", "9" * 6000, "\ud800", "row", "row-1", "d1", "on on"])
def test_a_choice_that_cannot_be_read_is_left_out(raw: str) -> None:
    fields = ("cell", "predict", "flips", "target", "baseline", "encoding")
    view, notes = view_from_params(dict.fromkeys(fields, raw), checkpoints=NAMES)
    assert (view, notes) == (View(checkpoint="ag_news"), [])
    view, notes = view_from_params({"order": raw, "pair": raw}, checkpoints=NAMES)
    assert (view.order, view.pair, len(notes)) == ((), (), 2)
    notes[0].encode()


def test_the_training_step_survives_the_way_through_a_url() -> None:
    view = View(checkpoint="learned", training_step=123_456)
    assert params_from_view(view)["training_step"] == "123456"
    assert view_from_params(params_from_view(view), checkpoints=NAMES) == (view, [])
    for raw, step, n_notes in (("-7", 0, 0), ("9" * 30, 10**12, 0), ("early", 0, 1)):
        view, notes = view_from_params({"training_step": raw}, checkpoints=NAMES)
        assert (view.training_step, len(notes)) == (step, n_notes)


def test_switches_survive_the_way_through_a_url() -> None:
    view = View(checkpoint="learned", switched=("1.3", "2.ff", "positions", "t4"), heads="uniform", off="mean")
    assert params_from_view(view)["switched"] == "1.3,2.ff,positions,t4"
    assert view_from_params(params_from_view(view), checkpoints=NAMES) == (view, [])


@pytest.mark.parametrize("raw", ["0.1", "1", "1.FF", "t0", "t", "heads", "1.-1", "²", "\u0663.1", "\ud800", "9" * 6000])
def test_what_is_no_part_of_a_model_is_not_switched_and_said(raw: str) -> None:
    view, notes = view_from_params({"switched": f"1.2,{raw},1.2", "heads": raw, "off": raw}, checkpoints=NAMES)
    assert (view.switched, view.heads, view.off, len(notes)) == (("1.2",), "off", "zero", 1)
    notes[0].encode()


def test_a_long_continuation_stays_out_of_the_url() -> None:
    assert "added" not in params_from_view(View(added=tuple(range(LONGEST_LINKED_CONTINUATION + 1))))


def test_settings_of_sampling_out_of_range_become_the_nearest() -> None:
    view, notes = view_from_params({"temperature": "9", "top_p": "0", "seed": "-1", "top_k": "-3"}, checkpoints=NAMES)
    assert (view.temperature, view.top_p, view.seed, view.top_k, notes) == (2.0, 0.05, 0, 0, [])
    view, notes = view_from_params({"temperature": "nan", "top_p": "much", "seed": "1.5"}, checkpoints=NAMES)
    assert (view.temperature, view.top_p, view.seed, len(notes)) == (1.0, 1.0, 0, 3)


@pytest.mark.parametrize("raw", ["x.y", "1..-", "1,2", "½", "9" * 6000, "\ud800"])
def test_a_continuation_that_cannot_be_read_is_left_out_with_a_note(raw: str) -> None:
    view, notes = view_from_params({"added": raw}, checkpoints=NAMES)
    assert view.added == () and "continuation" in notes[0]


@given(st.dictionaries(st.sampled_from(FIELDS), st.text()))
def test_any_parameters_give_a_view_that_can_be_sent(params: dict[str, str]) -> None:
    view, _ = view_from_params(params, checkpoints=NAMES)
    assert view.checkpoint in NAMES
    assert view.k >= 1 and view.layer >= OPEN and view.head >= OPEN
    urlencode(params_from_view(view)).encode()


@given(st.text(st.characters(codec=None)))
def test_sendable_text_is_utf8_and_changes_only_lone_surrogates(text: str) -> None:
    sent = sendable(text)
    sent.encode()
    assert sendable(sent) == sent
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert sent == text
