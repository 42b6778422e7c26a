"""The text shown back with its tokens."""

import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from txcls.app.examples import EXAMPLES
from txcls.app.tokens import show, tokens_html
from txcls.text.encoder import Token


def token(start: int, end: int, *, text: str = "word", unknown: bool = False, special: bool = False) -> Token:
    return Token(text=text, id=7, start=start, end=end, is_unknown=unknown, is_special=special)


def body(html: str) -> str:
    found = re.search(r'<div class="txcls-text" dir="auto">(.*?)</div>', html, re.DOTALL)
    assert found
    return found[1]


def test_every_character_is_shown_once_whatever_the_offsets() -> None:
    text = "shares & <b>prices</b> fell"
    tokens = [token(0, 6), token(4, 8), token(9, 12), token(9, 12), token(100, 200)]
    shown = body(tokens_html(text, tokens, truncated_at=None, limit=9))
    assert unescape(re.sub(r"<[^>]*>", "", shown)) == text


def test_markup_in_text_and_tokens_is_escaped() -> None:
    text = "<script>alert('x')</script>"
    shown = tokens_html(text, [token(0, 8, text='"><script>')], truncated_at=None, limit=9)
    assert "<script" not in shown


def test_unknown_special_and_cut_off_parts_are_marked_and_counted() -> None:
    tokens = [token(0, 0, text="<cls>", special=True), token(0, 3, unknown=True), token(4, 7)]
    shown = tokens_html("abc def ghi", tokens, truncated_at=8, limit=3)
    assert 'class="txcls-unknown"' in shown and "1 not in the vocabulary" in shown
    assert "&lt;cls&gt;" in shown and "1</span> added by the model" in shown
    assert "✂ ghi" in shown and "stops after 3 tokens" in shown


def test_legend_names_only_the_marks_that_are_there() -> None:
    shown = tokens_html("abc", [token(0, 3)], truncated_at=None, limit=3)
    assert "1 token<" in shown
    assert "vocabulary" not in shown and "✂" not in shown


def test_a_megabyte_is_shown_short_and_the_rest_counted() -> None:
    shown = tokens_html("word " * 200_000, [token(0, 4)], truncated_at=5, limit=1)
    assert len(shown) < 5_000
    assert "999,395 more characters" in shown


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_sent_and_holds_no_markup(text: str) -> None:
    shown = show(text)
    shown.encode()
    assert "<" not in shown and ">" not in shown
    assert "\x00" not in shown


def test_there_are_a_dozen_examples_with_titles_of_their_own() -> None:
    assert len({example.title for example in EXAMPLES}) == len({example.text for example in EXAMPLES}) == 12
