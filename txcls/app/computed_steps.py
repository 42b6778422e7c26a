"""What the pages Step by step, What if and Neighbourhood compute, cached for all sessions as in `loaders`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import streamlit as st

from txcls.app.loaders import Source, classifier, one_at_a_time

if TYPE_CHECKING:
    from txcls.inspection import Comparison, FlipSearch, Walk


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
