"""The part of the Report page that lists the training rows nearest to a text."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from txcls.app.pages.report import compute as compute_report
from txcls.app.pages.report import rows as report_rows
from txcls.app.shell import checkpoints, compute, layout, state
from txcls.app.shell.cache import Source, cached
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import ask_for_text, say_no_tokens
from txcls.errors import TxclsError
from txcls.evaluation.report import some_rows
from txcls.inspection.principal_components import pool_texts
from txcls.predictor import Predictor

N_NEAREST = 20
MAX_ROWS = 1_000
"""Most training rows that are compared, a random choice where there are more."""


@dataclass(frozen=True, eq=False)
class _PooledRows:
    """M of the `total` training rows: their texts, class names and pooled vectors (M, D)."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    vectors: NDArray[np.float32]
    total: int

    @property
    def n_bytes(self) -> int:
        return self.vectors.nbytes + sum(4 * len(text) + 160 for text in self.texts)


@dataclass(frozen=True, slots=True)
class NearestRows:
    """The nearest of `n_compared` training rows out of `total`: (text, label, cosine), nearest first."""

    rows: tuple[tuple[str, str, float], ...]
    n_compared: int
    total: int


@cached(heavy=True, size=lambda pooled: pooled.n_bytes)
def _pooled_training_rows(source: Source) -> _PooledRows:
    rows, classifier = compute_report.training_rows(source), checkpoints.classifier(source)
    sample = some_rows(rows, most=MAX_ROWS)
    readable = [n for n, text in enumerate(sample.texts) if classifier.encoder.encode(text).has_words]
    texts = tuple(sample.texts[n] for n in readable)
    labels = tuple(sample.classes[sample.labels[n]] for n in readable)
    return _PooledRows(texts, labels, pool_texts(classifier, texts).vectors, len(rows))


def nearest_training_rows(source: Source, text: str, *, n: int = N_NEAREST) -> NearestRows:
    """The n training rows whose pooled vectors have the largest cosine with that of a text.

    Raises:
        DataError: the training rows are not on this machine.
        TraceError: the text has no tokens.
    """
    pooled = _pooled_training_rows(source)
    query = compute.pool_texts(source, (text,)).vectors[0]  # D
    norms = np.linalg.norm(pooled.vectors, axis=1) * np.linalg.norm(query)  # M
    cosines = pooled.vectors @ query / np.maximum(norms, 1e-12)  # M
    order = np.argsort(-cosines, kind="stable")[:n]
    rows = tuple((pooled.texts[k], pooled.labels[k], round(float(cosines[k]), 4)) for k in order)
    return NearestRows(rows, len(pooled.texts), pooled.total)


def draw(opened: layout.Page, classifier: Predictor) -> None:
    """A text box, a button, and the nearest training rows once the button is clicked."""
    st.subheader("Training rows nearest to a text", anchor=False)
    key = f"{layout.TEXT_BOX}_{opened.info.name}"
    st.text_area("Text", key=key, height=84, on_change=state.follow("text", key), placeholder="Type or paste a text …")
    if not opened.has_text:
        ask_for_text("the training rows nearest to it are listed here.")
        return
    if compute.predict(opened.source, opened.view.text).prediction.label is None:
        say_no_tokens()
        return
    requested = f"report_nearest_{opened.source.name}"
    if not st.session_state.get(requested):
        st.button(
            "Find the nearest training rows",
            key="report_find_nearest",
            on_click=lambda: st.session_state.update({requested: True}),
        )
        return
    try:
        with st.spinner("reading training rows …"):
            nearest = nearest_training_rows(opened.source, opened.view.text)
    except TxclsError as error:
        st.info(f"This needs the training rows of {plain(classifier.name)}. {plain(str(error))}")
        return
    report_rows.table("", ("text", "label", "cosine"), nearest.rows, key="nearest")
    sampled = "" if nearest.n_compared == nearest.total else f" of {nearest.total:,}, drawn at random"
    st.caption(
        f"Cosine similarity of pooled vectors, among {nearest.n_compared:,} training rows{sampled}. The classifier "
        "represents these rows alike. That is **not a cause**: only training without a row shows what it contributed."
    )
