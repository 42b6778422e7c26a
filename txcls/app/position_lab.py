"""The end of the Positions page: three models that differ in their positions alone, and what a shift by k takes."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from txcls.app import compute, page
from txcls.app.browser import draggable_words
from txcls.figures import number_map, percent, visible
from txcls.inspection.positions import arrange_words, fit_shift, shift_map

MODELS = {
    "positions_sinusoidal": "sines and cosines",
    "positions_learned": "learned",
    "positions_none": "none",
}
TRAIN = """
python -m txcls train positions --out checkpoints/positions_sinusoidal
python -m txcls train positions --set model.positions=learned --out checkpoints/positions_learned
python -m txcls train positions --set model.positions=none --out checkpoints/positions_none
"""
MOST_WORDS = 100
SHOWN_DIMENSIONS = 8


def compare(opened: page.Page) -> None:
    """The text in another order under the three models, and their accuracy on shuffled test texts."""
    st.subheader("Three models that differ in their positions alone", anchor=False)
    if not set(MODELS) <= set(compute.names()):
        st.markdown("They are not among the checkpoints here. Each trains in a few minutes:")
        st.code(TRAIN.strip(), language="sh")
        return
    st.markdown(
        "Trained alike on the same AG News texts, without bigram vectors: order can get in through positions and in no "
        "other way. **Drag the words into another order** and see which of the models notice; by keyboard, "
        "Shift with an arrow key moves the word in focus."
    )
    words = opened.view.text.split()[:MOST_WORDS]
    typed = " ".join(words)
    now = _reordered(typed, words)
    lines = [
        "| positions | as typed | in this order | right on test texts | with their words shuffled |",
        "|---|---|---|---:|---:|",
    ]
    for name, kind in MODELS.items():
        source = compute.source(name)
        classifier = compute.classifier(source)
        figures = classifier.checkpoint.metrics.get("test", {})
        shuffled = figures.get("order", {}).get("words_shuffled")
        answers = [_answer(source, text) for text in (typed, now)]
        lines.append(
            f"| {kind} | {answers[0]} | {answers[1]} | {_share(figures.get('accuracy'))} | {_share(shuffled)} |"
        )
    st.markdown("\n".join(lines))
    st.caption(
        "Without positions the order cannot matter: both columns agree. Accuracies are those that "
        "`python -m txcls evaluate` wrote into the checkpoints."
    )


def _reordered(typed: str, words: Sequence[str]) -> str:
    """The words as the visitor put them: reversed at first, then as dragged and as the buttons say."""
    if st.session_state.get("lab_typed") != typed:
        st.session_state["lab_typed"] = typed
        _arrange(range(len(words) - 1, -1, -1))
    order: tuple[int, ...] = st.session_state["lab_places"]
    draggable_words(
        [visible(word) for word in words],
        order,
        label="The text's words; Shift with an arrow key moves a word",
        key="lab_words",
        on_order=_arrange,
    )
    with st.container(horizontal=True, gap="small"):
        st.button("As typed", key="lab_typed_order", on_click=_arrange, args=(range(len(words)),))
        st.button("Reverse", key="lab_reverse", on_click=_arrange, args=(order[::-1],))
        st.button("Shuffle", key="lab_shuffle", on_click=_shuffle, args=(len(words),))
    return arrange_words(typed, order)


def _arrange(places: Sequence[int]) -> None:
    st.session_state["lab_places"] = tuple(places)


def _shuffle(n: int) -> None:
    _arrange(np.random.default_rng().permutation(n).tolist())


def _answer(source: compute.Source, text: str) -> str:
    prediction = compute.predict(source, text).prediction
    if prediction.label is None:
        return "nothing to read"
    probability = percent(prediction.scores[0].probability).replace("&lt;", "<").replace("&gt;", ">")
    return f"**{page.plain(prediction.label)}** {probability}"


def _share(value: object) -> str:
    return f"{value:.2%}".replace("%", " %") if isinstance(value, float) else "not measured"


def shift(opened: page.Page, *, d_model: int, max_length: int, kind: str) -> None:
    """What a linear map needs to move positions by k: a rotation per pair of dimensions for sinusoids."""
    st.subheader("What does it take to move by k places?", anchor=False)
    width = d_model - d_model % 2
    length = max_length if max_length >= 16 else 64
    if width < 2:
        return
    st.markdown(
        "For sines and cosines one matrix does it, the same wherever one starts: a rotation of each pair of dimensions "
        "by k times its frequency. So attention can learn to look k tokens back. **Learned** positions owe nobody such "
        "a matrix. The errors are those of the best linear map, fitted on every other position and tried on the rest: "
        "0 is exact, 1 is no better than always guessing the mean."
    )
    st.latex(
        r"\begin{pmatrix} \sin\omega(t+k) \\ \cos\omega(t+k) \end{pmatrix} = \begin{pmatrix} \cos\omega k & "
        r"\sin\omega k \\ -\sin\omega k & \cos\omega k \end{pmatrix} \begin{pmatrix} \sin\omega t \\ "
        r"\cos\omega t \end{pmatrix}"
    )
    k = st.slider("k", 1, min(32, length - 8), 1, key=f"lab_k_{length}", width=420)
    left, right = st.columns([2, 3], gap="large")
    with left:
        rows = [("sines and cosines", fit_shift(compute.sinusoids(length, width), k))]
        if kind == "learned" and max_length >= 16:
            own = np.asarray(compute.positions(opened.source, length=length).values)
            rows.append((f"learned by {page.plain(opened.view.checkpoint)}", fit_shift(own, k)))
        lines = ["| positions | error where fitted | error elsewhere |", "|---|---:|---:|"]
        lines += [f"| {name} | {fitted.fitted:.3f} | {fitted.held_out:.3f} |" for name, fitted in rows]
        st.markdown("\n".join(lines))
        st.caption(f"{length} positions of {width} numbers.")
    with right:
        shown = min(SHOWN_DIMENSIONS, width)
        page.chart(
            number_map(
                shift_map(width, k)[:shown, :shown],
                rows=[str(d) for d in range(shown)],
                row_title="dimension after",
                column_title="dimension",
                bound=1.0,
            ),
            key="chart_shift",
            alt=f"Heat map of the matrix that moves sinusoids by {k}, its first {shown} dimensions: 2 by 2 blocks "
            "along the diagonal, zeros elsewhere",
            file_name=f"shift-by-{k}",
        )
