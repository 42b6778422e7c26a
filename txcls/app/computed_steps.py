"""What the pages Step by step, What if and Neighbourhood compute, cached for all sessions as in `loaders`."""

from typing import TYPE_CHECKING

import streamlit as st

from txcls.app.loaders import Source, classifier

if TYPE_CHECKING:
    from txcls.inspection import Walk


@st.cache_resource(max_entries=8, show_spinner=False)  # some megabytes each for long texts, milliseconds to make
def _walk(source: Source, text: str) -> "Walk":
    from txcls.inspection import walk_through

    return walk_through(classifier(source), text)


def walk(source: Source, text: str) -> "Walk":
    """The steps of a text through the checkpoint; TraceError where it holds no token."""
    return _walk(source, text)
