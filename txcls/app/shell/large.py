"""Large imported models: what takes long waits behind a button that says how long."""

import time

import streamlit as st
import torch

from txcls.app.shell import checkpoints, layout
from txcls.app.shell.cache import Source, cached
from txcls.inference.predictor import Predictor
from txcls.web.export import too_large

MAX_SECONDS = 10.0
"""What takes longer than this is computed only when it is asked for."""
BATCH = 4
"""Number of texts with which the speed is measured."""


@cached()
def seconds_per_text(source: Source, n_tokens: int) -> float:
    """How long a text of this length takes in a batch."""
    classifier, ids = checkpoints.classifier(source), torch.ones(BATCH, n_tokens, dtype=torch.int64)
    durations = []
    for _ in range(2):
        began = time.perf_counter()
        classifier.logits(ids)
        durations.append(time.perf_counter() - began)
    return min(durations) / BATCH


def duration(seconds: float) -> str:
    """A duration in words, roughly."""
    return f"about {10 * max(1, round(seconds / 10))} s" if seconds < 100 else f"about {seconds / 60:.0f} minutes"


def may_compute(page: layout.Page, classifier: Predictor, *, n_texts: float, what: str, key: str) -> bool:
    """Whether to compute something that takes as long as predicting `n_texts` texts; if not, draw a button for it.

    It is computed at once unless the model is large and it would take more than `MAX_SECONDS`. `what` completes the
    button's label: "Compute …".
    """
    if too_large(classifier.checkpoint) is None:
        return True
    seconds = n_texts * seconds_per_text(page.source, len(classifier.encode(page.view.text).tokens))
    asked_for = st.session_state.setdefault("asked_for", set())
    asked = (key, page.source.state, page.view.text)
    if seconds <= MAX_SECONDS or asked in asked_for:
        return True
    st.button(f"Compute {what} ({duration(seconds)})", key=f"compute_{key}", on_click=asked_for.add, args=(asked,))
    return False
