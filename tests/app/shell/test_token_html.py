import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from txcls.app.shell.token_html import escape, ids, marked_text, merges
from txcls.text.tokens import Token


def token(start: int, end: int, *, text: str = "word", unknown: bool = False, special: bool = False) -> Token:
    return Token(text=text, id=7, start=start, end=end, is_unknown=unknown, is_special=special)


def body(html: str) -> str:
    match = re.search(r'<div class="txcls-text" dir="auto">(.*?)</div>', html, re.DOTALL)
    assert match
    return match[1]


def test_every_character_is_shown_once_whatever_the_offsets() -> None:
    text = "shares & <b>prices</b> fell"
    tokens = [token(0, 6), token(4, 8), token(9, 12), token(9, 12), token(100, 200)]
    html = body(marked_text(text, tokens, truncated_at=None, limit=9))
    assert unescape(re.sub(r"<[^>]*>", "", html)) == text


def test_markup_in_text_and_tokens_is_escaped() -> None:
    text = "<script>alert('x')</script>"
    html = marked_text(text, [token(0, 8, text='"><script>')], truncated_at=None, limit=9)
    assert "<script" not in html


def test_long_texts_are_cut_and_the_rest_counted() -> None:
    html = marked_text("word " * 200_000, [token(0, 4)], truncated_at=5, limit=1)
    assert len(html) < 5_000
    assert "999,395 more characters" in html


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_sent_and_holds_no_markup(text: str) -> None:
    escaped = escape(text)
    escaped.encode()
    assert "<" not in escaped and ">" not in escaped
    assert "\x00" not in escaped


@given(st.text(st.characters(codec=None)))
def test_names_of_tokens_are_only_text(name: str) -> None:
    for html in (ids([name], [token(0, 1)]), merges([(name, "1", [name], 0)], current_merge=0)):
        html.encode()
        bare = re.sub(r"<(/?(style|div|span|b|i|small|table|thead|tbody|tr|th|td))\b[^<>]*>", "", html)
        assert "<" not in bare
