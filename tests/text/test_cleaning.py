import re
import sys
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.strategies import texts
from txcls.text.cleaning import ELEMENTS, STEPS, clean, clean_aligned, explain_cleaning

ALL = tuple(name for name in STEPS if name != "as_typed")
some_steps = st.lists(st.sampled_from(ALL), unique=True)


@pytest.mark.parametrize(
    "step, typed, cleaned",
    [
        ("html_entities", "AT&amp;T &lt;b&gt; &#39;x&#39; &eacute;", "AT&T <b> 'x' é"),
        (
            "html_entities",
            "It #39;s Lynch  amp; Co. the  quot;Nose quot; for #36;5",
            'It\'s Lynch & Co. the "Nose" for$5',
        ),
        ("html_entities", "#39;Tis & ; a&b; &bogus; amp;", "'Tis & ; a&b; &bogus;&"),
        ("html_entities", "dash #151; and &#146;", "dash— and ’"),
        ("html_tags", 'a <b>bold</b> <A HREF="x">link</A> <br/><!-- <i> no -->end', "a  bold   link    end"),
        ("html_tags", "1 < 2 and 3 > 2, I <3 you, a<", "1 < 2 and 3 > 2, I <3 you, a<"),
        ("html_tags", "<script>alert(1)</script>", " alert(1) "),
        ("html_tags", "if a<b and c>d, i<n>m, <cls> <3>", "if a<b and c>d, i<n>m, <cls> <3>"),
        ("html_tags", "<!DOCTYPE html><FONT\ncolor=red>a</FoNt ><tt>b</tt><hr noshade/><td nowrap>c", "  a  b   c"),
        ("html_tags", '<p class="MsoNormal">a<o:p></o:p><v:shape id=x>b', " a   b"),
        ("html_tags", "<tablet> <b.> <p$> <me@x.org> <http://x.org>", "<tablet> <b.> <p$> <me@x.org> <http://x.org>"),
        ("urls", "see http://a.b/c?d=1, or (www.x.org). HTTPS://Y.Z/!", "see  , or ( ).  !"),
        ("urls", "awww.that http:// is no address", "awww.that http:// is no address"),
        ("backslashes", "one\\two \\\\three", "one two   three"),
        ("lowercase", "ÄÖ İstanbul ΑΣ", "äö i̇stanbul ας"),
        ("punctuation", "Don't well-known U.S. #1_x é e\u0301 नमस्ते", "Dont well known U S   1 x é é नमस्ते"),
        ("whitespace", " \t a\x00\x01 b\n\n\u00a0c\ufeff\u200bd \u2028", "a b c d"),
    ],
)
def test_effect_of_each_step(step: str, typed: str, cleaned: str) -> None:
    assert clean(typed, [step]) == cleaned


NAMES = st.sampled_from(ELEMENTS).flatmap(lambda name: st.sampled_from([name, name.upper(), name.title()]))


@given(NAMES, st.sampled_from(["<{}>", "</{}>", "<{}/>", "<{} class=x>", '<{}\nid="a b" c>', "<{} hidden>"]))
def test_every_html_element_is_removed(name: str, form: str) -> None:
    assert clean(f"a{form.format(name)}b", ["html_tags"]) == "a b"


@given(texts, some_steps)
def test_alignments_are_of_the_cleaned_text_ordered_and_inside_the_original(text: str, steps: list[str]) -> None:
    cleaned = clean_aligned(text, steps)
    assert cleaned.text == clean(text, steps)
    assert len(cleaned.text) == len(cleaned.starts) == len(cleaned.ends)
    assert all(0 <= start < end <= len(text) for start, end in zip(cleaned.starts, cleaned.ends, strict=True))
    assert list(cleaned.starts) == sorted(cleaned.starts)
    assert list(cleaned.ends) == sorted(cleaned.ends)
    assert not any("\ud800" <= character <= "\udfff" for character in cleaned.text)


ACCENTS = st.text(
    st.characters(categories=["Mn", "Mc"])
    | st.sampled_from("aeE\u2260\uac01\uac00\u1100\u1161\u11a8\u0915\u0995\u212b"),
    max_size=12,
)


@given(texts | ACCENTS, some_steps)
def test_composed_and_decomposed_texts_are_cleaned_to_the_same_text(text: str, steps: list[str]) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert clean(decomposed, steps) == clean(text, steps) == clean(composed, steps)
    assert clean_aligned(text, steps).text == clean_aligned(composed, steps).text
    assert clean(text, []) == re.sub("[\ud800-\udfff]", "\ufffd", composed)


@pytest.mark.slow
def test_every_character_is_composed_as_by_the_standard_library() -> None:
    for first in range(0, sys.maxunicode + 1, 1024):
        characters = [chr(code) for code in range(first, first + 1024) if not 0xD800 <= code <= 0xDFFF]
        decomposed = [unicodedata.normalize("NFD", character) for character in characters]
        for some in (characters, [f"{text}\u0301" for text in characters], [f"{text}\u0323" for text in decomposed]):
            lines = "\n".join(some)  # a line break composes with nothing
            assert clean(lines, []).split("\n") == unicodedata.normalize("NFC", lines).split("\n")


@pytest.mark.parametrize(
    "typed, offsets",
    [
        ("nai\u0308ve", [(0, 1), (1, 2), (2, 4), (4, 5), (5, 6)]),
        ("\u1112\u1161\u11ab.", [(0, 3), (3, 4)]),
        ("e\u0323\u0301\u0308x", [(0, 4), (0, 4), (0, 4), (4, 5)]),
        ("\u0928\u092e\u0938\u094d e\u0301", [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 7)]),
        ("\u0958", [(0, 1), (0, 1)]),
    ],
)
def test_composed_characters_are_aligned_with_all_their_parts(typed: str, offsets: list[tuple[int, int]]) -> None:
    cleaned = clean_aligned(typed, [])
    assert cleaned.text == unicodedata.normalize("NFC", typed)
    assert list(zip(cleaned.starts, cleaned.ends, strict=True)) == offsets


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        *("<", "<!--", "<a", "<b ", "<b/", "<b x", "<b x=", " ", "\n", " \t", "&", "&lt;", " #39;"),
        *("http://", "http://...", "www.", "'", "\\", "İ", "a", "\u0301\u0323"),
    ],
)
def test_cleaning_time_is_not_quadratic(unit: str) -> None:
    """Compare with the time for a text 16 times as long, for which a quadratic step would take 256 times as long."""

    def seconds(length: int) -> float:
        text, durations = unit * (length // len(unit)), []
        for _ in range(5):
            start = time.process_time()
            clean(text, ALL)
            durations.append(time.process_time() - start)
        return min(durations)

    assert seconds(160_000) < 64 * max(seconds(10_000), 1e-4)


@given(texts, some_steps)
def test_edits_rebuild_the_cleaned_text(text: str, steps: list[str]) -> None:
    effects = explain_cleaning(text, steps)
    assert [effect.name for effect in effects] == steps
    assert [effect.after for effect in effects] == [clean(text, steps[:n]) for n in range(1, len(steps) + 1)]
    for step in effects:
        rebuilt, old, new = "", 0, 0
        for start, end, first, last in step.edits:
            assert step.before[old:start] == step.after[new:first]
            assert step.before[start:end] != step.after[first:last]
            rebuilt += step.before[old:start] + step.after[first:last]
            old, new = end, last
        assert rebuilt + step.before[old:] == step.after
        assert bool(step.edits) == (step.before != step.after)


def test_a_text_stays_as_typed_for_tokenizers_with_a_normaliser_of_their_own() -> None:
    assert clean("A\u0300  <b> \ud800", ("as_typed",)) == "A\u0300  <b> \ufffd"
