import pytest
from hypothesis import given

from tests.text.strategies import texts
from txcls.config import TextConfig
from txcls.errors import ConfigError
from txcls.text.cleaning import clean
from txcls.text.subwords import BYTES, BytePairs
from txcls.text.vocabulary import SPECIAL_TOKENS

CORPUS = ["the lowest newest widest", "the lower the newer", "<pad> <unk> <cls> <pad> <unk> <cls>"] * 10
PAIRS = BytePairs.fit(CORPUS, TextConfig(tokenizer="bpe", max_vocabulary=320))


def test_frequent_words_become_one_token_and_its_place_leaves_out_the_space() -> None:
    text = "the newest the"
    tokens = PAIRS.tokenize(text)
    assert [text[start:end] for start, end, _ in tokens] == ["the", "newest", "the"]
    assert tokens[0][2] == tokens[2][2]


def test_size_is_bounded_and_bytes_are_all_there() -> None:
    assert len(PAIRS.vocabulary) <= 320
    assert len(BytePairs.fit([], TextConfig(tokenizer="bpe", max_vocabulary=260)).vocabulary) == 260


def test_too_small_a_vocabulary_is_refused_with_the_field_named() -> None:
    with pytest.raises(ConfigError, match=r"text\.max_vocabulary: 259 .* give 260 or more"):
        BytePairs.fit(CORPUS, TextConfig(tokenizer="bpe", max_vocabulary=BYTES + 3))


@given(texts)
def test_no_token_is_special_or_unknown_whatever_is_typed(text: str) -> None:
    cleaned = clean(text, [])
    tokens = PAIRS.tokenize(cleaned)
    assert all(len(SPECIAL_TOKENS) <= index < len(PAIRS.vocabulary) for _, _, index in tokens)
    assert bool(tokens) == bool(cleaned.strip())


@given(texts)
def test_tokens_cover_the_text_in_order_and_spell_it(text: str) -> None:
    cleaned = clean(text, [])
    tokens = PAIRS.tokenize(cleaned)
    covered = {i for start, end, _ in tokens for i in range(start, end)}
    assert all(i in covered or cleaned[i].isspace() for i in range(len(cleaned)))
    assert all(start < end for start, end, _ in tokens)
    assert [start for start, _, _ in tokens] == sorted(start for start, _, _ in tokens)


@given(texts)
def test_fast_ids_are_those_with_places(text: str) -> None:
    cleaned = clean(text, [])
    assert PAIRS.ids([cleaned, "the"])[0] == [index for _, _, index in PAIRS.tokenize(cleaned)]


def test_it_survives_being_written_and_read() -> None:
    read = BytePairs.from_dict(PAIRS.to_dict())
    assert read.ids(CORPUS) == PAIRS.ids(CORPUS) and read.vocabulary == PAIRS.vocabulary


@pytest.mark.parametrize(
    "change, problem",
    [
        ({"tokens": [*SPECIAL_TOKENS, "a"]}, "tokens: the byte"),
        ({"tokens": 3}, "tokens: wanted a list"),
        ({"merges": [["q", "x"]]}, "merges: .*does not join"),
        ({"merges": [["a"]]}, "merges: wanted pairs"),
        ({"merges": {}}, "merges: wanted a list"),
    ],
)
def test_damaged_tables_are_refused_with_the_field_named(change: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        BytePairs.from_dict({**PAIRS.to_dict(), **change})
