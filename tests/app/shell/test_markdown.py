import pytest
from markdown_it import MarkdownIt

from txcls.app.shell.markdown import WORD_JOINER, escape


@pytest.mark.parametrize(
    "text", ["**bold** _x_ `y`", "$a$ :red[b] <b>", "# one", "- two", "[a](javascript:alert(1))", "a & b; 100 %"]
)
def test_markdown_is_escaped(text: str) -> None:
    [paragraph] = [token for token in MarkdownIt("commonmark").parse(escape(text)) if token.type == "inline"]
    assert paragraph.children is not None
    assert {token.type for token in paragraph.children} <= {"text", "text_special"}
    assert "".join(token.content for token in paragraph.children) == text


@pytest.mark.parametrize("text", ["http://evil.example", "see HTTPS://a.b", "www.evil.example", "a@b.example"])
def test_an_address_does_not_become_a_link(text: str) -> None:
    escaped = escape(text)
    assert WORD_JOINER in escaped and escaped.replace(WORD_JOINER, "").replace("\\", "") == text
    for start in ("http\\:", "https\\:", "www\\.", "b@"):
        assert start not in escaped.lower()
