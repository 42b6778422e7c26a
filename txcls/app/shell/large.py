"""Large imported models: what takes long waits behind a button that says how long."""

import streamlit as st

from txcls.app.shell import cached_results, layout
from txcls.inference.predictor import Predictor
from txcls.web.export import too_large

MAX_SECONDS = 10.0
"""What takes longer than this is computed only when it is asked for."""
SPEED_UP = 0.6
"""A text in a batch takes about this share of the time that it takes alone."""


def may_compute(page: layout.Page, classifier: Predictor, *, n_texts: float, what: str, key: str) -> bool:
    """Whether to compute something that takes as long as predicting `n_texts` texts; if not, draw a button for it.

    It is computed at once unless the model is large and it would take more than `MAX_SECONDS`. `what` completes the
    button's label: "Compute …".
    """
    if too_large(classifier.checkpoint) is None:
        return True
    seconds = SPEED_UP * n_texts * cached_results.predict(page.source, page.view.text).milliseconds / 1000
    asked_for = st.session_state.setdefault("asked_for", set())
    asked = (key, page.source.state, page.view.text)
    if seconds <= MAX_SECONDS or asked in asked_for:
        return True
    duration = f"{10 * round(seconds / 10):.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"
    st.button(f"Compute {what} (about {duration})", key=f"compute_{key}", on_click=asked_for.add, args=(asked,))
    return False
