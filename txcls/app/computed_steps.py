"""What the pages Step by step, What if and Neighbourhood compute, cached for all sessions as in `loaders`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from txcls.app.loaders import Source, classifier, one_at_a_time, test_texts

if TYPE_CHECKING:
    from txcls.inspection import Comparison, FlipSearch, Plane, PooledTexts, TextPlane, TokenPlane, Walk


@st.cache_resource(max_entries=8, show_spinner=False)  # some megabytes each for long texts, milliseconds to make
def _walk(source: Source, text: str) -> "Walk":
    from txcls.inspection import walk_through

    return walk_through(classifier(source), text)


def walk(source: Source, text: str) -> "Walk":
    """The steps of a text through the checkpoint; TraceError where it holds no token."""
    return _walk(source, text)


@st.cache_data(max_entries=32, show_spinner=False)
def compare(source: Source, before: str, after: str) -> "Comparison":
    """Both versions of a text through the checkpoint; TraceError where one holds no token."""
    from txcls.inspection import compare_texts

    with one_at_a_time:
        return compare_texts(classifier(source), before, after)


def flips(source: Source, text: str) -> "Iterator[FlipSearch]":
    """The search for the smallest change that flips the class, batch by batch; others may compute in between."""
    from txcls.inspection import search_flips

    search = search_flips(classifier(source), text)
    while True:
        with one_at_a_time:
            found = next(search, None)
        if found is None:
            return
        yield found


@st.cache_resource(max_entries=4, show_spinner=False)
def _vocabulary_plane(source: Source) -> "Plane":
    from txcls.inspection import vocabulary_plane

    with one_at_a_time:
        return vocabulary_plane(classifier(source))


@st.cache_data(max_entries=32, show_spinner=False)
def token_plane(source: Source, text: str) -> "TokenPlane":
    """The vocabulary and the text's tokens in the plane; TraceError where the text holds no token."""
    from txcls.inspection import token_plane

    return token_plane(classifier(source), text, plane=_vocabulary_plane(source))


@st.cache_resource(max_entries=8, show_spinner=False)
def _pooled(source: Source, texts: tuple[str, ...]) -> "PooledTexts":
    from txcls.inspection import pool_texts

    with one_at_a_time:
        return pool_texts(classifier(source), texts)


def pooled(source: Source, texts: Sequence[str]) -> "PooledTexts":
    """The pooled vectors of texts and the classes that win on them."""
    return _pooled(source, tuple(texts))


@st.cache_data(max_entries=32, show_spinner=False)
def text_plane(source: Source, text: str, texts: tuple[str, ...]) -> "TextPlane":
    """A text among others in the plane; TraceError where it holds no token."""
    from txcls.inspection import text_plane

    return text_plane(classifier(source), text, _pooled(source, texts))


@st.cache_data(max_entries=4, show_spinner=False)
def some_test_texts(source: Source, n: int) -> tuple[str, ...]:
    """Up to n different test texts with something to read, drawn by chance; DataError where they cannot be read."""
    import numpy as np

    rows = test_texts(source).rows.texts
    order = np.random.default_rng(0).permutation(len(rows))[: 2 * n]
    encoder = classifier(source).encoder
    texts = dict.fromkeys(rows[int(place)] for place in order)
    return tuple(text for text in texts if encoder.encode(text).has_words)[:n]
