from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.strategies import texts
from txcls.config import TextConfig
from txcls.text.cleaning import clean
from txcls.text.subwords import BYTES, BytePairs, spell
from txcls.text.vocabulary import SPECIAL_TOKENS

CORPUS = ["the lowest newest widest", "the lower the newer", "<pad> <unk> <cls> <pad> <unk> <cls>"] * 10
PAIRS = BytePairs.fit(CORPUS, TextConfig(tokenizer="bpe", max_vocabulary=320))


@given(texts)
def test_no_token_of_a_text_is_special_or_unknown(text: str) -> None:
    cleaned = clean(text, [])
    tokens = PAIRS.tokenize(cleaned)
    assert all(len(SPECIAL_TOKENS) <= index < len(PAIRS.vocabulary) for _, _, index in tokens)
    assert bool(tokens) == bool(cleaned.strip())


@given(texts)
def test_tokens_cover_the_text_in_order(text: str) -> None:
    cleaned = clean(text, [])
    tokens = PAIRS.tokenize(cleaned)
    covered = {i for start, end, _ in tokens for i in range(start, end)}
    assert all(i in covered or cleaned[i].isspace() for i in range(len(cleaned)))
    assert all(start < end for start, end, _ in tokens)
    assert [start for start, _, _ in tokens] == sorted(start for start, _, _ in tokens)


def build_pieces(pairs: BytePairs, text: str) -> list[str]:
    """The pieces of a text after all merges of `BytePairs.build`."""
    pieces: list[str] = []
    for part in pairs.parts(text):
        merges = pairs.merges_of(part)
        pieces += merges[-1].pieces if merges else part
    return pieces


@given(texts)
def test_build_gives_the_tokens_of_the_tokenizers_library(text: str) -> None:
    cleaned = clean(text, [])
    assert build_pieces(PAIRS, cleaned) == [PAIRS.vocabulary.token_of(index) for _, _, index in PAIRS.tokenize(cleaned)]


OVERLAPPING = [("a", "b"), ("b", "a"), ("a", "a"), ("ab", "a"), ("a", "ba"), ("aa", "a"), ("aba", "b"), ("b", "b")]


@given(st.text("abĠ", max_size=12))
def test_build_gives_the_same_tokens_if_pairs_overlap(part: str) -> None:
    tokens = [*PAIRS.vocabulary.tokens[: BYTES + 4], *dict.fromkeys("".join(pair) for pair in OVERLAPPING)]
    pairs = BytePairs(tokens, OVERLAPPING)
    text = part.replace("Ġ", " ").strip()
    assert build_pieces(pairs, text) == [pairs.vocabulary.token_of(index) for _, _, index in pairs.tokenize(text)]


def test_every_pair_was_the_most_frequent_when_learned() -> None:
    parts = Counter(part for text in CORPUS for part in PAIRS.parts(text))
    split = {part: tuple(part) for part in parts}
    for pair in PAIRS.merges:
        counts: Counter[tuple[str, str]] = Counter()
        for part, pieces in split.items():
            for adjacent in pairwise(pieces):
                counts[adjacent] += parts[part]
        assert counts[pair] == max(counts.values())
        for part, pieces in split.items():
            joined, rest = [], list(pieces)
            while rest:
                width = 2 if tuple(rest[:2]) == pair else 1
                joined.append("".join(rest[:width]))
                del rest[:width]
            split[part] = tuple(joined)


@pytest.mark.parametrize(
    "piece, readable",
    [("Ġthe", "␣the"), ("Ġ", "␣"), ("naÃ¯ve", "naïve"), ("ðŁ", "\\xf0\\x9f"), ("<pad>", "<pad>"), ("日", "日")],
)
def test_tokens_are_spelled_readably(piece: str, readable: str) -> None:
    assert spell(piece) == readable
