"""The text displayed with its tokens."""

import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from txcls.app.shell.token_html import MAX_CHIPS, chips, edits, escape, ids, marked_text, merges, pieces
from txcls.text.cleaning import CleaningStep, explain_cleaning
from txcls.text.tokens import CharacterPart, Token


def token(start: int, end: int, *, text: str = "word", unknown: bool = False, special: bool = False) -> Token:
    return Token(text=text, id=7, start=start, end=end, is_unknown=unknown, is_special=special)


def body(html: str) -> str:
    found = re.search(r'<div class="txcls-text" dir="auto">(.*?)</div>', html, re.DOTALL)
    assert found
    return found[1]


def test_every_character_is_shown_once_whatever_the_offsets() -> None:
    text = "shares & <b>prices</b> fell"
    tokens = [token(0, 6), token(4, 8), token(9, 12), token(9, 12), token(100, 200)]
    shown = body(marked_text(text, tokens, truncated_at=None, limit=9))
    assert unescape(re.sub(r"<[^>]*>", "", shown)) == text


def test_markup_in_text_and_tokens_is_escaped() -> None:
    text = "<script>alert('x')</script>"
    shown = marked_text(text, [token(0, 8, text='"><script>')], truncated_at=None, limit=9)
    assert "<script" not in shown


def test_unknown_special_and_cut_off_parts_are_marked_and_counted() -> None:
    tokens = [token(0, 0, text="<cls>", special=True), token(0, 3, unknown=True), token(4, 7)]
    shown = marked_text("abc def ghi", tokens, truncated_at=8, limit=3)
    assert 'class="txcls-unknown"' in shown and "1 not in the vocabulary" in shown
    assert "&lt;cls&gt;" in shown and "1</span> added by the model" in shown
    assert "✂ ghi" in shown and "reads 3 tokens at most" in shown


def test_a_character_of_several_tokens_names_them_all_in_its_title() -> None:
    tokens = [
        Token("é", 7 + n, 0, 1, is_unknown=False, is_special=False, parts=(CharacterPart(0, n, 2),)) for n in (1, 2)
    ]
    shown = marked_text("é x", tokens, truncated_at=None, limit=3)
    assert 'title="token 1: part 1 of 2 of é, id 8; token 2: part 2 of 2 of é, id 9">é</span>' in shown
    assert "<small>0–1, part 2 of 2 of é</small>" in ids(["x", "y"], tokens)


def test_legend_names_only_the_marks_that_are_there() -> None:
    shown = marked_text("abc", [token(0, 3)], truncated_at=None, limit=3)
    assert "1 token<" in shown
    assert "vocabulary" not in shown and "✂" not in shown


def test_long_texts_are_cut_and_the_rest_counted() -> None:
    shown = marked_text("word " * 200_000, [token(0, 4)], truncated_at=5, limit=1)
    assert len(shown) < 5_000
    assert "999,395 more characters" in shown


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_sent_and_holds_no_markup(text: str) -> None:
    shown = escape(text)
    shown.encode()
    assert "<" not in shown and ">" not in shown
    assert "\x00" not in shown


def edited(step: CleaningStep) -> tuple[str, str]:
    """The text before and after, reconstructed from the displayed edits as far as possible."""
    shown = edits(step).split('dir="auto">')[1].removesuffix("</div>")
    return re.sub("<ins>.*?</ins>", "", shown), re.sub("<del>.*?</del>", "", shown)


def test_edits_strike_out_what_went_and_underline_what_came() -> None:
    (step,) = explain_cleaning("AT&amp;T <b>", ["html_entities"])
    before, after = edited(step)
    assert "<del>&amp;amp;</del><ins>&amp;</ins>" in edits(step)
    assert unescape(re.sub("</?del>", "", before)) == step.before
    assert unescape(re.sub("</?ins>", "", after)) == step.after


def test_edits_far_into_a_long_text_are_in_what_is_shown() -> None:
    (step,) = explain_cleaning("a" * 9000 + "<b>" + "c" * 9000, ["html_tags"])
    shown = edits(step)
    assert "<del>&lt;b&gt;</del>" in shown and len(shown) < 3000
    assert "more characters" in shown


@given(st.text(st.characters(codec=None)))
def test_names_of_tokens_are_only_text(name: str) -> None:
    for shown in (
        ids([name], [token(0, 1)]),
        chips([(name, "1")]),
        pieces([name], new=0),
        merges([(name, "1", "2", name)], now=1),
    ):
        shown.encode()
        bare = re.sub(r"<(/?(style|div|span|b|i|small|table|thead|tbody|tr|th|td))\b[^<>]*>", "", shown)
        assert "<" not in bare


def test_many_tokens_are_cut_and_counted() -> None:
    n = MAX_CHIPS + 7
    shown = ids(["word"] * n, [token(0, 4)] * n)
    assert "and 7 more" in shown and shown.count("<b>") == MAX_CHIPS
