"""Shuffled words, three models that differ only in positions, and position encodings: values, curves, dot products."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from txcls.address import PositionVectors, View
from txcls.app import menu
from txcls.app.components.word_bins import word_bins
from txcls.app.shell import checkpoints, compute, layout, lecture, state
from txcls.app.shell.cache import Source
from txcls.app.shell.charts import chart, has_long_names
from txcls.app.shell.controls import choice
from txcls.app.shell.markdown import plain, table
from txcls.app.shell.prediction import (
    MOSTLY_UNKNOWN,
    ask_for_text,
    draw_prediction,
    load_classifier,
    loading_placeholder,
    say_no_tokens,
    warn_if_unknown,
)
from txcls.data.examples import REPORTS
from txcls.data.generated.who_won import TEAMS
from txcls.figures import number_map, position_curves, position_heatmap, shuffle_bars, visible
from txcls.inspection.positions import (
    arrange_words,
    fit_shift,
    position_vectors,
    shift_map,
)
from txcls.model import sinusoidal_encoding
from txcls.predictor import Prediction, Predictor
from txcls.wording import bounded_percentage, percentage

N_SHUFFLES = 20
FORMULA = r"""
\begin{aligned}
PE_{(pos,\,2i)} &= \sin\!\left(pos\,/\,10000^{2i/d_{model}}\right)\\
PE_{(pos,\,2i+1)} &= \cos\!\left(pos\,/\,10000^{2i/d_{model}}\right)
\end{aligned}
"""
MODELS = {
    "who_won": "sines and cosines",
    "who_won_learned": "learned",
    "who_won_none": "none",
}
TRAIN = """
python -m txcls train who_won
python -m txcls train who_won --set model.positions=learned --out checkpoints/who_won_learned
python -m txcls train who_won --set model.positions=none --out checkpoints/who_won_none
"""
Floats = NDArray[np.floating]
MAX_WORDS = 100
SHOWN_DIMENSIONS = 8


@dataclass(frozen=True)
class ShownEncoding:
    """The displayed position vectors: their values, the limit of their colour scale, and how many the text uses."""

    values: Floats
    bound: float | None
    is_learned: bool
    used: int | None


def main() -> None:
    """Draw the page."""
    opened = layout.open_page(menu.POSITIONS)
    placeholder = loading_placeholder(opened, height=480)
    classifier = load_classifier(opened)
    prediction = compute.predict(opened.source, opened.view.text).prediction if opened.has_text else None
    placeholder.empty()
    model = classifier.checkpoint.config.model
    n_tokens = len(prediction.tokens) if prediction is not None else 0
    is_answered = prediction is not None and prediction.label is not None
    experiment = is_answered and set(MODELS) <= set(checkpoints.names())
    if prediction is not None and is_answered:
        if experiment and not lecture.is_on() and _share_unknown(opened.view.text) >= MOSTLY_UNKNOWN:
            warn_if_unknown(prediction)  # the experiment below is about another text, so this one's answer is left out
        else:
            draw_prediction(opened, prediction)
    words, vectors = st.columns(2, gap="large") if experiment else (st.container(), st.container())
    if experiment:
        with words, lecture.slide(lecture.VECTORS):
            _compare_models(opened)
    else:
        with words:
            _order(opened, classifier, prediction)
            if is_answered:
                with lecture.slide(lecture.VECTORS):
                    _compare_models(opened)
    with vectors, lecture.slide(lecture.VECTORS):
        st.subheader("What is added to the tokens?", anchor=False)
        drawn = _encoding(
            opened, kind=model.positions, d_model=model.d_model, max_length=model.max_length, n_tokens=n_tokens
        )
    if experiment:
        _order(opened, classifier, prediction)
    curves, products = st.columns(2, gap="large")
    with curves, lecture.slide(lecture.VECTORS):
        _curves(drawn.values, bound=drawn.bound)
    with products, lecture.slide(lecture.VECTORS):
        _products(drawn.values, learned=drawn.is_learned, used=drawn.used)
    with lecture.slide(lecture.VECTORS):
        _shift(opened, d_model=model.d_model, max_length=model.max_length, kind=model.positions)
    layout.close_page(opened)


def _order(opened: layout.Page, classifier: Predictor, prediction: Prediction | None) -> None:
    """Draw the text's predictions in random orders."""
    with lecture.slide(lecture.VECTORS, lecture.CLASSES):
        st.subheader("Does word order matter for this prediction?", anchor=False)
        if prediction is None:
            ask_for_text("its words are shuffled and classified again.")
        elif prediction.label is None:
            say_no_tokens()
        else:
            _shuffling(opened, classifier.classes)


def _encoding(opened: layout.Page, *, kind: str, d_model: int, max_length: int, n_tokens: int) -> ShownEncoding:
    """Draw the formula or the learned vectors as a heat map."""
    st.markdown(
        "Attention by itself ignores the order of the tokens, so a vector that depends only on the **position** is "
        "added to each token's embedding. *Attention Is All You Need* (2017, section 3.5) uses sines and cosines:"
    )
    st.latex(FORMULA)
    learned = kind == "learned" and opened.view.encoding == "learned"
    if kind == "learned":
        choice(st, "Encoding", get_args(PositionVectors), opened.view, "encoding", key="pe_kind")
    rows, columns = st.columns(2, gap="large")
    length = rows.slider("Positions", 8, 256, min(128, max_length), 8, key="pe_length", persist_state="session")
    width = columns.slider(
        "d_model", 8, 512, min(d_model, 512), 8, key="pe_width", persist_state="session", disabled=learned
    )
    if learned:
        length = min(length, max_length)
        values, bound = position_vectors(checkpoints.classifier(opened.source), length), None
    else:
        values, bound = sinusoidal_encoding(length, width).numpy(), 1.0
    is_added = learned or (kind == "sinusoidal" and width == d_model)
    used = n_tokens if is_added else None
    name = plain(opened.view.checkpoint)
    mark = _whose_vectors(name, kind, values, learned=learned, d_model=d_model, max_length=max_length)
    if used:
        mark += f" The frame marks the {min(used, length)} positions of the text above."
    if is_added and length > max_length:
        mark += f" It has {max_length} positions at most."
    st.markdown(mark)
    chart(
        position_heatmap(values, bound=bound, used=used),
        key="chart_positions",
        alt=f"Heat map of the position encoding, {len(values)} positions by {values.shape[1]} dimensions"
        + ("" if learned else ": high frequencies in the first dimensions, lower ones to the right"),
    )
    return ShownEncoding(values, bound, learned, used)


def _whose_vectors(name: str, kind: str, values: Floats, *, learned: bool, d_model: int, max_length: int) -> str:
    """A sentence on whether the model adds these vectors to its tokens."""
    width = values.shape[1]
    if learned:
        mark = f"✓ This is what **{name}** adds: it has **learned** a vector for each of its {max_length} positions."
        reached = int(np.flatnonzero(np.any(values, axis=1))[-1]) + 1 if np.any(values) else 0
        if reached < len(values):
            mark += f" Those from {reached} on are still zero: no training text was that long."
        return mark
    if kind == "none":
        return f"**{name}** uses no position encoding; the sinusoidal formula is shown instead."
    if kind == "learned":
        return f"This is the formula; **{name}** learned its positions instead."
    if width == d_model:
        return f"✓ This is what **{name}** adds to its tokens: the formula with d_model = {d_model}."
    return f"This is the formula with d_model = {width}; **{name}** uses it with d_model = **{d_model}**."


def _curves(values: Floats, *, bound: float | None) -> None:
    """Draw selected dimensions as curves over positions."""
    n = values.shape[1]
    st.subheader("Single dimensions over positions", anchor=False)
    shown_at_first = (n // 8 // 2 * 2, n // 8 // 2 * 2 + 1, n // 4, n // 2)
    chosen = st.multiselect(
        "Dimensions",
        range(n),
        default=[dimension for dimension in shown_at_first if dimension < n],
        max_selections=8,
        key=f"pe_dimensions_{n}",
    )
    chart(
        position_curves(values, chosen, bound=bound),
        key="chart_curves",
        alt="Curves of dimensions " + (", ".join(map(str, chosen)) or "none") + " over positions",
    )


def _products(values: Floats, *, learned: bool, used: int | None) -> None:
    """Draw the dot product of every pair of positions."""
    st.subheader("Similarity of two positions", anchor=False)
    of_formula = " It depends only on the distance (hence the stripes) and is largest for a position with itself."
    st.markdown("The dot product of their vectors." + ("" if learned else of_formula))
    chart(
        position_heatmap(values @ values.T, columns="position", quantity="dot product", used=used),
        key="chart_products",
        alt=f"Heat map of dot products between {len(values)} positions"
        + ("" if learned else ": bright diagonal, the same along every stripe"),
    )


def _shuffling(opened: layout.Page, classes: tuple[str, ...]) -> None:
    result = compute.shuffle_words(opened.source, opened.view.text, n=N_SHUFFLES)
    best = result.original.ranked[0]
    label = plain(best.label)
    n = len(result.texts)
    n_same = round(result.share_unchanged * n)
    st.markdown(
        f"The same words in {n} random orders: **{n_same} of {n}** are still classified as **{label}**. "
        + ("Word order does not change the class here." if n_same == n else f"Order alone changes {n - n_same}.")
    )
    probability = {score.label: score.probability for score in result.original.ranked}
    chart(
        shuffle_bars(
            classes,
            [probability.get(name, 0.0) for name in classes],
            result.probabilities,
            names_above=has_long_names(classes),
        ),
        key="chart_shuffles",
        alt=f"Bars of class probabilities as typed, {best.label} {percentage(best.probability)} first, and dots for "
        f"{n} shuffled orders; {n_same} keep {best.label}",
    )
    with st.expander("Some of the shuffled texts"):
        for text, row in list(zip(result.texts, result.probabilities, strict=True))[:5]:
            winner = int(row.argmax())
            st.text(f"{classes[winner]} {percentage(row[winner])}:  {text[:400]}")


def _compare_models(opened: layout.Page) -> None:
    """Draw the predictions of three models for the text in another order, and their accuracy on shuffled test texts."""
    st.subheader("Test accuracy by position encoding", anchor=False)
    if not set(MODELS) <= set(checkpoints.names()):
        st.markdown("These checkpoints are not installed. Each trains in about a minute:")
        st.code(TRAIN.strip(), language=None)
        return
    _accuracies()
    st.markdown("**Drag the words into another order**: which predictions change?")
    words = _text_for_the_three(opened.view.text).split()[:MAX_WORDS]
    typed = " ".join(words)
    reordered, answers_place = _reordered(opened.view, typed, words)
    rows = []
    for name, kind in MODELS.items():
        source = checkpoints.source(name)
        classifier = checkpoints.classifier(source)
        figures = classifier.checkpoint.metrics.get("test", {})
        shuffled = figures.get("order", {}).get("words_shuffled")
        answers = [_answer(source, text) for text in (typed, reordered)]
        rows.append((kind, *answers, _share(shuffled)))
    columns = ("positions", "as typed", "in this order", "shuffled texts")
    answers_place.markdown(table(columns, rows, right=columns[3:]))
    st.caption(
        "Accuracies on “Which team won?” (`python -m txcls evaluate`), after the same training on the same reports; "
        "the last column is that on test texts with their words shuffled. Without positions word order cannot matter, "
        "so both predictions agree. Shift and an arrow key move the focused word."
    )


def _text_for_the_three(text: str) -> str:
    """The visitor's text, or a match report if at least half of the text is unknown to these models."""
    share = _share_unknown(text)
    if share < MOSTLY_UNKNOWN:
        return text
    st.caption(
        f"{percentage(share, 0)} of your text is unknown to these models, which know only match reports, so they are "
        "given this one:"
    )
    return REPORTS[0].text


def _share_unknown(text: str) -> float:
    """The share of a text that is unknown to the three models, which have the same vocabulary."""
    return compute.predict(checkpoints.source(next(iter(MODELS))), text).prediction.unknown_share


def _accuracies() -> None:
    """Draw the accuracy of each of the three models, in large type."""
    parts = "".join(
        f"<span>{100 * accuracy:.0f} %<small>{'no positions' if kind == 'none' else kind}</small></span>"
        for name, kind in MODELS.items()
        if (accuracy := checkpoints.summary(name).accuracy) is not None
    )
    st.html(f'<div class="txcls-answer txcls-beside">{parts}</div>')


def _reordered(view: View, typed: str, words: Sequence[str]) -> tuple[str, DeltaGenerator]:
    """Draw the reordered words, which the visitor moves by dragging and with buttons.

    Returns the new text, and a place between words and buttons.

    At first, the winner and another team are swapped, or the whole text is reversed if it does not name two teams.
    """
    linked = sorted(view.order) == list(range(len(words)))
    order = view.order if linked else tuple(_suggested_order(words, _winner(typed)))
    names = [visible(word) for word in words]
    word_bins(
        {"": [names[place] for place in order]},
        label="The text's words; Shift and an arrow key move a word",
        key="order_words",
        on_move=lambda rows: _arrange(_places(names, rows[0])),
    )
    between = st.container()
    with st.container(horizontal=True, gap="small"):
        st.button("As typed", key="order_as_typed", on_click=_arrange, args=(range(len(words)),))
        st.button("Reverse", key="order_reverse", on_click=_arrange, args=(order[::-1],))
        shuffled = np.random.default_rng().permutation(len(words)).tolist()
        st.button("Shuffle", key="order_shuffle", on_click=_arrange, args=(shuffled,))
    return arrange_words(typed, order), between


def _places(words: Sequence[str], arranged: Sequence[str]) -> list[int]:
    """The index in the text of each arranged word; equal words keep their order."""
    places: list[int] = []
    for word in arranged:
        places.append(next(place for place, other in enumerate(words) if other == word and place not in places))
    return places


def _winner(text: str) -> str | None:
    """The team that the first of the three models names."""
    return compute.predict(checkpoints.source(next(iter(MODELS))), text).prediction.label


def _suggested_order(words: Sequence[str], winner: str | None) -> list[int]:
    """The winner and the first other team swapped; all words reversed if the text does not name both."""
    order = list(range(len(words)))
    known = {team.casefold() for team in TEAMS}
    teams = {place: team for place, word in enumerate(words) if (team := word.strip(",.").casefold()) in known}
    winners = [place for place, team in teams.items() if winner is not None and team == winner.casefold()]
    others = [place for place, team in teams.items() if winners and team != teams[winners[0]]]
    if not others:
        return order[::-1]
    order[winners[0]], order[others[0]] = others[0], winners[0]
    return order


def _arrange(places: Sequence[int]) -> None:
    state.change_view(order=tuple(places))


def _answer(source: Source, text: str) -> str:
    prediction = compute.predict(source, text).prediction
    if prediction.label is None:
        return "no tokens"
    return f"**{plain(prediction.label)}** {bounded_percentage(prediction.ranked[0].probability)}"


def _share(value: object) -> str:
    return percentage(value, 2) if isinstance(value, float) else "not measured"


def _shift(opened: layout.Page, *, d_model: int, max_length: int, kind: str) -> None:
    """Draw the linear map that shifts positions by k: for sinusoids, a rotation of each pair of dimensions."""
    st.subheader("Is a shift by k a linear map?", anchor=False)
    width = d_model - d_model % 2
    length = max_length if max_length >= 16 else 64
    if width < 2:
        return
    st.markdown(
        "For sines and cosines it is: one matrix maps every position t to t + k. It rotates each pair of dimensions by "
        "k times its frequency, so a head can learn to attend k tokens back from any position. **Learned** positions "
        "need not have such a matrix. The errors are those of the best linear map, fitted on every other position and "
        "tested on the rest: 0 is exact, 1 is no better than predicting the mean."
    )
    st.latex(
        r"\begin{pmatrix} \sin\omega(t+k) \\ \cos\omega(t+k) \end{pmatrix} = \begin{pmatrix} \cos\omega k & "
        r"\sin\omega k \\ -\sin\omega k & \cos\omega k \end{pmatrix} \begin{pmatrix} \sin\omega t \\ "
        r"\cos\omega t \end{pmatrix}"
    )
    k = st.slider("k", 1, min(32, length - 8), 1, key=f"shift_k_{length}", width=420)
    left, right = st.columns([2, 3], gap="large")
    with left:
        rows = [("sines and cosines", fit_shift(sinusoidal_encoding(length, width).numpy(), k))]
        n_fitted = (length - k + 1) // 2
        learned = kind == "learned" and max_length >= 16
        if learned and n_fitted > width:
            own = position_vectors(checkpoints.classifier(opened.source), length)
            rows.append((f"learned by {plain(opened.view.checkpoint)}", fit_shift(own, k)))
        columns = ("positions", "error where fitted", "error elsewhere")
        cells = [(name, f"{shift.fitted:.3f}", f"{shift.held_out:.3f}") for name, shift in rows]
        st.markdown(table(columns, cells, right=columns[1:]))
        st.caption(f"{length} positions of {width} numbers.")
        if learned and n_fitted <= width:
            st.caption(
                f"The learned positions of {plain(opened.view.checkpoint)} cannot be tested: a linear map fits any "
                f"{n_fitted} vectors of {width} numbers exactly, even random ones."
            )
    with right:
        shown = min(SHOWN_DIMENSIONS, width)
        chart(
            number_map(
                shift_map(width, k)[:shown, :shown],
                rows=[str(d) for d in range(shown)],
                row_title="dimension after",
                column_title="dimension",
                bound=1.0,
            ),
            key="chart_shift",
            alt=f"Heat map of the matrix that shifts sinusoids by {k}, its first {shown} dimensions: 2 by 2 blocks "
            "along the diagonal, zeros elsewhere",
        )


if __name__ == "__main__":
    main()
