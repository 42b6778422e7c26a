import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tokenize import NLTKWordTokenizer

from tests.text.strategies import texts
from txcls.data.published import read_ag_news
from txcls.text.words import have_spaces, separate_full_stops, tokenize_words, words


@pytest.mark.parametrize(
    "text, tokens",
    [
        ("", []),
        (" \n\t ", []),
        ("Good muffins cost $3.88 (roughly 3,36 euros).", "Good muffins cost $ 3.88 ( roughly 3,36 euros ) ."),
        ("She said: \"I can't.\" ''Go'' ``now``", "She said : \" I ca n't . \" '' Go '' `` now ``"),
        (
            "Stocks fell. The U.S. said so, Mr. J. Doe of Acme Inc. too",
            "Stocks fell . The U.S. said so , Mr. J. Doe of Acme Inc. too",
        ),
        ("It was 3.5. See a.com. Wait... no", "It was 3.5 . See a.com . Wait ... no"),
        ("gonna cannot it's", "gon na can not it 's"),
        ("日本語 🎉 שלום", "日本語 🎉 שלום"),
    ],
)
def test_word_tokens_of_known_sentences(text: str, tokens: str | list[str]) -> None:
    assert words(text) == (tokens.split() if isinstance(tokens, str) else tokens)


@given(texts)
def test_tokens_cover_the_text_except_whitespace(text: str) -> None:
    end = 0
    for start, stop, token in tokenize_words(text):
        assert text[end:start].strip() == ""
        assert token == text[start:stop]
        assert token and not any(character.isspace() for character in token)
        end = stop
    assert text[end:].strip() == ""


QUOTES = re.compile("\"|``|''")
SPLIT_WORDS = (
    "cannot gimme d'ye more'n wanna 'tis 'twas n't don't 's 'll plain U.S. Mr. inc. e.g. a.com 3,36 x -- ... :"
)
MARKS = ("``", "''", '"', "'", ")", "]", "’", "”", ".", ".)", '."', '. "', " ", "  ", "\n", "\x1c", "\u2028", "\u0301")
PIECES = st.sampled_from([*SPLIT_WORDS.split(), *MARKS])


@settings(max_examples=400)
@given(texts | st.lists(PIECES, max_size=12).map("".join) | st.lists(PIECES, max_size=9).map(" ".join))
def test_tokens_are_nltks_except_for_quotes(text: str) -> None:
    """NLTK replaces double quotes with `` and ''; our tokens have the characters of the text."""
    expected = NLTKWordTokenizer().tokenize(separate_full_stops(text))
    assert [QUOTES.sub("", token) for token in words(text)] == [QUOTES.sub("", token) for token in expected]


def test_token_offsets_are_nltks_on_news(published_data: Path) -> None:
    tokenizer = NLTKWordTokenizer()
    for text in read_ag_news(published_data / "ag_news" / "test.csv.gz").texts[:1000]:
        if separate_full_stops(text) == text:
            spans = [(start, end) for start, end, _ in tokenize_words(text)]
            assert spans == list(tokenizer.span_tokenize(text))


@pytest.mark.parametrize(
    "kind, expected",
    [
        ("whitespace", ["It's", "5:30;", "the", '"end"', "(or", "not)."]),
        ("basic_english", ["It", "'", "s", "5", "30", "the", "end", "(", "or", "not", ")", "."]),
    ],
)
def test_simple_tokenizers(kind: str, expected: list[str]) -> None:
    text = 'It\'s 5:30; the "end"\n(or not).'
    assert words(text, kind) == expected
    assert [(text[start:end], token) for start, end, token in tokenize_words(text, kind)] == [(t, t) for t in expected]


def test_texts_without_spaces_between_words_are_recognised() -> None:
    assert have_spaces([]) and have_spaces(["a", "internationalisation is long, but the mean counts"])
    assert not have_spaces(["好", "没有送水没有送水没有送水没有送水没有送水没有送水"])
