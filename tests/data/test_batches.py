import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from txcls.config import TextConfig
from txcls.data.batches import MAX_TOKENS, TokenisedTexts, batches_by_length, length_bucketed_batches, pad_batch
from txcls.data.types import LabelledTexts
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import UNK

DATA = LabelledTexts(["a b c", "", "b", "c c c c c c"], [0, 1, 1, 0], ("x", "y"))
ENCODER = Tokenizer.fit(DATA.texts, TextConfig(min_frequency=1), max_length=4)
random_lengths = st.lists(st.integers(0, 300), max_size=200)


def test_each_text_has_its_ids_and_label() -> None:
    tokenised = TokenisedTexts.encode(ENCODER, DATA)
    assert [tokenised[i].tolist() for i in (0, 2, 3)] == [ENCODER.encode(DATA.texts[i]).ids for i in (0, 2, 3)]
    assert tokenised.labels.tolist() == DATA.labels and tokenised.lengths.tolist() == [3, 1, 1, 4]
    with pytest.raises(IndexError, match="expected 0 to 3"):
        tokenised[4]
    truncated = tokenised.truncate(np.array([2, 5, 1, 3]))
    assert [truncated[i].tolist() for i in range(4)] == [tokenised[i].tolist()[:n] for i, n in enumerate((2, 5, 1, 3))]


def test_a_batch_is_padded_to_its_longest_text() -> None:
    ids, labels = pad_batch(TokenisedTexts.encode(ENCODER, DATA), [2, 0, 1])
    a, b, c = (ENCODER.vocabulary.id_of(token) for token in "abc")
    assert ids.tolist() == [[b, 0, 0], [a, b, c], [UNK, 0, 0]]
    assert (ids.dtype, labels.dtype, labels.tolist()) == (np.int64, np.int64, [1, 0, 1])
    lengths = np.array([0, 5, 12, 19, 30]).cumsum()
    texts = TokenisedTexts(np.ones(lengths[-1], dtype=np.int32), lengths, np.zeros(4, dtype=np.int64))
    widths = [pad_batch(texts, [row], multiple=8)[0].shape[1] for row in range(4)]
    assert widths == [5, 12, 24, 30], "rounded up from 16, at most to the length of the longest text"


@given(st.lists(st.integers(1, 60), min_size=1, max_size=20), st.integers(2, 25), st.booleans())
def test_windows_have_every_token_in_order_and_a_bounded_length(
    lengths: list[int], max_length: int, has_class_token: bool
) -> None:
    ids = np.arange(10, 10 + sum(lengths), dtype=np.int32)
    texts = TokenisedTexts(ids, np.cumsum([0, *lengths]), np.arange(len(lengths)))
    windows = texts.split_windows(max_length, first=3 if has_class_token else None)
    window_ids = [windows[i].tolist() for i in range(len(windows))]
    assert max(map(len, window_ids)) <= max_length
    assert not has_class_token or all(ids[0] == 3 for ids in window_ids)
    for text in range(len(texts)):
        parts = [ids[has_class_token:] for ids, n in zip(window_ids, windows.labels, strict=True) if n == text]
        assert [index for part in parts for index in part] == texts[text].tolist()
        assert max(map(len, parts)) - min(map(len, parts)) <= 1 and all(parts), "nearly equal"
        assert len(parts) == -(-lengths[text] // (max_length - has_class_token)), "no more than needed"


@given(random_lengths, st.integers(1, 40), st.integers(0, 400), st.integers(0, 2**40), st.integers(0, 50))
def test_every_row_is_in_one_bounded_batch_and_batches_repeat_with_seed_and_epoch(
    lengths: list[int], size: int, limit: int, seed: int, epoch: int
) -> None:
    first, second = (
        length_bucketed_batches(lengths, batch_size=size, batch_tokens=limit, seed=seed, epoch=epoch) for _ in range(2)
    )
    assert sorted(int(row) for batch in first for row in batch) == list(range(len(lengths)))
    assert [batch.tolist() for batch in first] == [batch.tolist() for batch in second]
    if limit:
        assert all(len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= limit for batch in first)
    else:
        assert all(1 <= len(batch) <= size for batch in first) and len(first) == -(-len(lengths) // size)


def test_batches_have_texts_of_similar_length_and_change_with_the_epoch() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 5_000)
    epochs = [length_bucketed_batches(lengths, batch_size=32, seed=0, epoch=epoch) for epoch in (0, 1)]
    padded = sum(len(batch) * lengths[batch].max() for batch in epochs[0])
    assert padded < 1.05 * lengths.sum()
    assert {frozenset(batch.tolist()) for batch in epochs[0]} != {frozenset(batch.tolist()) for batch in epochs[1]}
    assert [lengths[batch].max() for batch in epochs[0]] != sorted(lengths[batch].max() for batch in epochs[0])


def test_token_batches_are_nearly_full() -> None:
    lengths = np.random.default_rng(0).integers(1, 128, 20_000)
    batches = length_bucketed_batches(lengths, batch_size=1, batch_tokens=8192, seed=0, epoch=0)
    assert lengths.sum() > 0.95 * 8192 * len(batches)


@settings(max_examples=100)
@given(lengths=st.lists(st.integers(0, 20_000), max_size=120), size=st.integers(1, 64))
def test_inference_batches_are_sorted_by_length_and_bounded(lengths: list[int], size: int) -> None:
    batches = list(batches_by_length(lengths, batch_size=size))
    order = [int(row) for batch in batches for row in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[row] for row in order] == sorted(lengths)
    for batch in batches:
        assert 1 <= len(batch) <= size
        assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= MAX_TOKENS
