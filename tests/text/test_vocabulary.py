import pytest
from hypothesis import given
from hypothesis import strategies as st

from txcls.text.vocabulary import CLS, MASK, PAD, SPECIAL_TOKENS, UNK, Vocabulary

COUNTS = {"b": 5, "a": 5, "c": 9, "rare": 1, "<unk>": 50}


def test_special_tokens_come_first_and_each_has_its_own_id() -> None:
    vocabulary = Vocabulary.from_counts(COUNTS, max_size=100, min_frequency=1)
    assert [vocabulary.id_of(token) for token in SPECIAL_TOKENS] == [PAD, UNK, MASK, CLS] == [0, 1, 2, 3]


def test_frequent_tokens_come_first_and_ties_are_alphabetical() -> None:
    vocabulary = Vocabulary.from_counts(COUNTS, max_size=100, min_frequency=2)
    assert vocabulary.tokens == (*SPECIAL_TOKENS, "c", "a", "b")


def test_an_absent_token_is_unknown_and_an_absent_id_is_refused() -> None:
    vocabulary = Vocabulary.from_counts(COUNTS, max_size=5, min_frequency=1)
    assert vocabulary.id_of("a") == UNK and vocabulary.id_of("c") > UNK
    for index in (-1, 5):
        with pytest.raises(IndexError, match=f"token id {index}"):
            vocabulary.token_of(index)


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 5)), st.integers(5, 12), st.integers(1, 3), st.randoms())
def test_the_vocabulary_depends_only_on_counts(counts: dict[str, int], size: int, min_n: int, random: object) -> None:
    items = list(counts.items())
    random.shuffle(items)  # type: ignore[attr-defined]
    first, second = (Vocabulary.from_counts(c, max_size=size, min_frequency=min_n) for c in (counts, dict(items)))
    assert first == second and hash(first) == hash(second) and len(first) <= size
    assert all(first.id_of(first.token_of(index)) == index for index in range(len(first)))
