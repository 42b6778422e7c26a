import json
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.strategies import texts
from txcls.config import TextConfig
from txcls.text import tokenizer as tokenizer_module
from txcls.text.subwords import to_bytes
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import CLS, MASK, PAD, SPECIAL_TOKENS, UNK, Vocabulary

CORPUS = ["the cat sat on the mat .", "a dog bit the cat", "it 's raining cats and dogs , end ."] * 3
STEPS = ("html_entities", "html_tags", "urls", "backslashes", "lowercase", "whitespace")


def fit(kind: str = "word", *, max_length: int = 8, class_token: bool = False, cleaning: Any = STEPS) -> Tokenizer:
    config = TextConfig.model_validate({"tokenizer": kind, "min_frequency": 1, "cleaning": cleaning})
    return Tokenizer.fit(CORPUS, config, max_length=max_length, class_token=class_token)


TOKENIZERS = [
    fit(kind, class_token=class_token, cleaning=cleaning)
    for kind in ("word", "bpe")
    for class_token in (False, True)
    for cleaning in (STEPS, (), ("punctuation", "whitespace"))
]
tokenizers = st.sampled_from(TOKENIZERS)
MERGED_BYTES = Tokenizer.fit(
    ["éè ñé 日本日日 🎉🎈🎉 жеж", "è🎉日 本ж"] * 3,
    TextConfig.model_validate({"tokenizer": "bpe", "max_vocabulary": 290, "cleaning": ()}),
    max_length=200,
)
"""Has subwords that are parts of characters, and subwords of several characters that end inside a character."""


@given(tokenizers, texts)
def test_encoding_never_raises_and_encode_ids_gives_the_same_ids(tokenizer: Tokenizer, text: str) -> None:
    encoding = tokenizer.encode(text)
    assert tokenizer.encode_ids([text])[0].tolist() == encoding.ids
    assert len(encoding.ids) <= tokenizer.max_length
    assert encoding.text == text
    assert all(0 <= index < tokenizer.vocab_size for index in encoding.ids)


@given(tokenizers, texts)
def test_token_offsets_are_ordered_and_inside_the_text(tokenizer: Tokenizer, text: str) -> None:
    encoding = tokenizer.encode(text)
    typed = [token for token in encoding.tokens if not token.is_special]
    assert encoding.has_words == bool(typed)
    assert all(0 <= token.start < token.end <= len(text) for token in typed)
    assert all(first.start <= second.start for first, second in pairwise(typed))
    if encoding.truncated_at is not None:
        assert len(encoding.tokens) == tokenizer.max_length
        assert typed[-1].start <= encoding.truncated_at < len(text)
    assert [token.is_special for token in encoding.tokens] == [tokenizer.class_token] * tokenizer.class_token + [
        False
    ] * len(typed)


def test_token_offsets_point_into_the_original_text() -> None:
    text = "The  CAT &amp; <b>it #39;s</b> zzz"
    tokens = fit(max_length=20).encode(text).tokens
    shown = [(token.text, text[token.start : token.end]) for token in tokens]
    assert shown == [
        ("the", "The"), ("cat", "CAT"), ("&", "&amp;"), ("it", "it"), ("'s", "#39;s"), ("zzz", "zzz"),
    ]  # fmt: skip
    assert [token.text for token in tokens if token.is_unknown] == ["&", "zzz"]
    assert {token.id for token in tokens if token.is_unknown} == {UNK}


@given(texts | st.text(st.sampled_from("éèñ日本🎉🎈 aж"), max_size=30))
def test_tokens_with_incomplete_characters_have_parts(typed: str) -> None:
    for token in MERGED_BYTES.encode(typed).tokens:
        raw = to_bytes(MERGED_BYTES.vocabulary.token_of(token.id))
        assert raw is not None
        try:
            raw.decode()
        except UnicodeDecodeError:
            assert token.parts
        else:
            assert not token.parts


@pytest.mark.parametrize("kind", ["word", "bpe"])
@pytest.mark.parametrize("text", ["", " ", "\n\t\x00 \u200b", "<br>", "http://a.b"])
def test_texts_without_words_have_no_tokens(kind: str, text: str) -> None:
    for class_token in (False, True):
        encoding = fit(kind, class_token=class_token).encode(text)
        assert not encoding.has_words and len(encoding.tokens) == class_token


@pytest.mark.parametrize("kind", ["word", "bpe"])
@pytest.mark.parametrize("typed", ["<pad>", "<unk>", "<mask>", "<cls>"])
def test_special_tokens_cannot_be_typed(kind: str, typed: str) -> None:
    tokenizer = fit(kind, cleaning=())
    ids = {token.id for token in tokenizer.encode(f"a {typed} {typed}x").tokens}
    assert not ids & {0, 2, 3}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["word", "bpe"])
@pytest.mark.parametrize(
    "text",
    ["the cat " * 125_000, "x" * 100_000, "." * 100_000, '"' * 100_000, "👩‍👩‍👧" * 20_000, "\u0301" * 100_000,
     " " * 1_000_000, "&lt;" * 250_000, "<b>" * 333_000, "שלום " * 200_000, "日" * 100_000],
    ids=["words", "word", "stops", "quotes", "emoji", "accents", "spaces", "entities", "tags", "hebrew", "chinese"],
)  # fmt: skip
def test_a_megabyte_or_a_very_long_word_is_encoded_in_linear_time(kind: str, text: str) -> None:
    tokenizer = fit(kind, max_length=128)
    tokenizer.encode("warm up")

    def seconds(text: str) -> float:
        began = time.process_time()  # excludes the time of other processes
        tokenizer.encode(text)
        return time.process_time() - began

    eighth = min(seconds(text[: len(text) // 8]) for _ in range(3))
    assert min(seconds(text) for _ in range(2)) < 3 * 8 * eighth + 0.05  # in quadratic time: 64 times
    encoding = tokenizer.encode(text)
    assert tokenizer.encode_ids([text])[0].tolist() == encoding.ids


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_a_prefix_of_a_long_text_gives_the_same_tokens_as_all_of_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = (
        'The U.S. said: "it #39;s &lt;b&gt;raining&lt;/b&gt; <a href="x y">cats</a>, can\'t stop." '
        "See http://a.b/c now... "
    )
    novel = "".join(f"{i} {sentence[i % 40 :]}" for i in range(2_000))
    tokenizer = fit(kind, max_length=400)
    from_prefix = tokenizer.encode(novel)
    monkeypatch.setattr(tokenizer_module, "WINDOW", len(novel))
    assert len(novel) > 4 * 32_768 and tokenizer.encode(novel) == from_prefix


@pytest.mark.parametrize("tokenizer", TOKENIZERS[::3], ids=range(len(TOKENIZERS[::3])))
def test_tokenizers_are_the_same_after_saving(tokenizer: Tokenizer) -> None:
    restored = Tokenizer.from_dict(json.loads(json.dumps(tokenizer.to_dict())))
    assert restored.to_dict() == tokenizer.to_dict()
    assert [restored.encode(text) for text in CORPUS] == [tokenizer.encode(text) for text in CORPUS]


def test_special_tokens_come_first_then_frequent_ones_and_ties_are_alphabetical() -> None:
    counts = {"b": 5, "a": 5, "c": 9, "rare": 1, "<unk>": 50}
    vocabulary = Vocabulary.from_counts(counts, max_size=100, min_frequency=2)
    assert vocabulary.tokens == (*SPECIAL_TOKENS, "c", "a", "b")
    assert [vocabulary.id_of(token) for token in SPECIAL_TOKENS] == [PAD, UNK, MASK, CLS] == [0, 1, 2, 3]
    assert Vocabulary.from_counts(dict(reversed(counts.items())), max_size=6, min_frequency=2).tokens[4:] == ("c", "a")
    assert vocabulary.id_of("rare") == UNK
    for index in (-1, 7):
        with pytest.raises(IndexError, match=f"token id {index}"):
            vocabulary.token_of(index)
