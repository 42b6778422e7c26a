"""Word order and position encodings: models that differ in their positions, shuffled words, and the vectors."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import get_args

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from txcls.app import menu
from txcls.app.components.word_bins import word_bins
from txcls.app.shell import cached_results, checkpoints, layout, lecture, view_state
from txcls.app.shell.cache import Source
from txcls.app.shell.charts import chart, has_long_names
from txcls.app.shell.controls import choice
from txcls.app.shell.markdown import plain, table
from txcls.app.shell.prediction import (
    ask_for_text,
    draw_prediction,
    load_classifier,
    loading_placeholder,
    say_no_tokens,
)
from txcls.app.shell.sections import Part, draw_sections
from txcls.data.examples import REPORTS
from txcls.data.generated.who_won import TEAMS
from txcls.figures import number_map, position_curves, position_heatmap, shuffle_bars, visible
from txcls.inference.predictor import Prediction, Predictor
from txcls.inspection.circuit import Circuit
from txcls.inspection.positions import arrange_words, fit_shift, position_vectors, shift_map
from txcls.lessons.page_address import PositionVectors
from txcls.model import sinusoidal_encoding
from txcls.text.tokens import Token
from txcls.wording import bounded_percentage, percentage

N_SHUFFLES = 20
LITTLE = 0.02
"""If shuffling costs less accuracy than this, word order is said to hardly matter."""
ABOUT_VECTORS = (
    "Attention ignores the order of the tokens, so each token’s embedding gets the vector of its **position** added: "
    "in *Attention Is All You Need* (2017, §\u00a03.5), sines and cosines with d = d_model.\n\n"
    r"$PE_{(pos,\,2i)} = \sin\left(pos\,/\,10000^{2i/d}\right)$, "
    r"$PE_{(pos,\,2i+1)} = \cos\left(pos\,/\,10000^{2i/d}\right)$"
)
MODELS = {"who_won": "sinusoidal", "who_won_learned": "learned", "who_won_none": "none"}
"""The position encodings of three checkpoints that are otherwise trained alike."""
TRAIN_COMMANDS = """
python -m txcls train who_won
python -m txcls train who_won --set model.positions=learned --out checkpoints/who_won_learned
python -m txcls train who_won --set model.positions=none --out checkpoints/who_won_none
"""
Floats = NDArray[np.floating]
MAX_WORDS = 40
"""Maximum number of words that can be dragged."""
ABOUT_DRAGGING = "Shift and an arrow key move the focused word. A random guess is one of the teams that a text names."
ENCODING_NAMES = {"sinusoidal": "sines and cosines", "learned": "learned", "none": "none"}
N_SHOWN_DIMENSIONS = 8


@dataclass(frozen=True)
class ShownEncoding:
    """The displayed position vectors, the limit of their colour scale, and those that the text uses, also in words."""

    values: Floats
    bound: float | None
    is_learned: bool
    n_used: int | None
    used: str


def main() -> None:
    """Draw the page."""
    has_all = set(MODELS) <= set(checkpoints.names())
    page = layout.open_page(menu.POSITIONS, prefers=tuple(MODELS) if has_all else ())
    placeholder = loading_placeholder(page, height=480)
    classifier = load_classifier(page)
    prediction = cached_results.predict(page.source, page.view.text).prediction if page.has_text else None
    placeholder.empty()
    model = classifier.checkpoint.config.model
    tokens = prediction.tokens if prediction is not None else ()
    has_label = prediction is not None and prediction.label is not None
    if prediction is not None and has_label:
        draw_prediction(page, classifier, prediction)
    compares = has_all and page.view.checkpoint in MODELS
    with st.container(key="position_columns"):
        words_column, vectors_column = st.columns(2, gap="large")
    with words_column, lecture.slide(lecture.VECTORS):
        _draw_order(page, prediction, compares=compares, positions=model.positions)
    with vectors_column, lecture.slide(lecture.VECTORS):
        encoding = _draw_encoding(
            page, kind=model.positions, d_model=model.d_model, max_length=model.max_length, tokens=tokens
        )
    parts = [
        Part("similarity", "Similar positions", partial(_draw_products, encoding), (lecture.VECTORS,)),
        Part("dimensions", "Single dimensions", partial(_draw_curves, encoding), (lecture.VECTORS,)),
        Part(
            "shift",
            "A shift by k",
            partial(_draw_shift, page, d_model=model.d_model, max_length=model.max_length, kind=model.positions),
            (lecture.VECTORS,),
        ),
    ]
    if not compares:
        draw = partial(_draw_models, f"{layout.TEXT_BOX}_{page.info.name}", has_all=has_all)
        parts.insert(0, Part("models", "Three models", draw, (lecture.VECTORS,)))
    if has_label:
        draw = partial(_draw_shuffles, page, classifier, compares=compares)
        parts.insert(0, Part("shuffles", "Random orders", draw, (lecture.VECTORS, lecture.CLASSES)))
    draw_sections(page.view, parts)
    layout.close_page(page)


def _draw_encoding(
    page: layout.Page, *, kind: str, d_model: int, max_length: int, tokens: Sequence[Token]
) -> ShownEncoding:
    """Draw a heat map of the position vectors, the learned ones or those of the formula."""
    st.subheader("What is added to each token?", anchor=False, help=ABOUT_VECTORS)
    shows_learned = kind == "learned" and page.view.encoding == "learned"
    if kind == "learned":
        choice(st, "Encoding", get_args(PositionVectors), page.view, "encoding", key="pe_kind")
    encoding_map = st.container()
    with st.container() if lecture.is_on() else st.expander("Other sizes"):
        rows, columns = st.columns(2, gap="large")
    length = rows.slider("Positions", 8, 256, min(128, max_length), 8, key="pe_length", persist_state="session")
    width = columns.slider(
        "d_model", 8, 512, min(d_model, 512), 8, key="pe_width", persist_state="session", disabled=shows_learned
    )
    if shows_learned:
        length = min(length, max_length)
        values, bound = position_vectors(checkpoints.classifier(page.source), length), None
    else:
        values, bound = sinusoidal_encoding(length, width).numpy(), 1.0
    is_added = shows_learned or (kind == "sinusoidal" and width == d_model)
    used = len(tokens) if is_added else None
    positions = _positions_of(tokens[:length])
    about = _vectors_sentence(kind, values, learned=shows_learned, d_model=d_model, max_length=max_length)
    if used:
        about += f" Framed: {positions}."
    with encoding_map:
        st.markdown(about)
        chart(
            position_heatmap(values, bound=bound, used=used),
            key="chart_positions",
            grows=True,
            alt=f"Heat map of the position encoding, {len(values)} positions by {values.shape[1]} dimensions"
            + ("" if shows_learned else ": high frequencies in the first dimensions, lower ones to the right"),
        )
    return ShownEncoding(values, bound, shows_learned, used, positions)


def _positions_of(tokens: Sequence[Token]) -> str:
    """The number of a text's positions, and what is at them if not only its own tokens."""
    added = [f"`{token.text}`" for token in tokens if token.is_special]
    n = len(tokens) - len(added)
    positions = f"{len(tokens)} position{'s' * (len(tokens) != 1)}"
    if not added:
        is_split = any(a.end == b.start and (a.text[-1:] + b.text[:1]).isalpha() for a, b in pairwise(tokens))
        return f"the text's {positions}" + ", one per token (a word can have several)" * is_split
    return f"{positions} ({' and '.join([*added, f'{n} token' + 's' * (n != 1)])})"


def _vectors_sentence(kind: str, values: Floats, *, learned: bool, d_model: int, max_length: int) -> str:
    """A sentence on whether the model adds these vectors to its tokens."""
    if learned:
        n_trained = int(np.flatnonzero(np.any(values, axis=1))[-1]) + 1 if np.any(values) else 0
        untrained = f"; from position {n_trained} on still zero, since no training text was that long"
        return f"This model **learned** a vector for each position{untrained if n_trained < len(values) else ''}."
    if kind not in ("sinusoidal", "learned"):
        return "This model adds nothing; these are the sines and cosines of other models."
    if kind == "learned":
        return "This model learned its positions instead of these sines and cosines."
    if values.shape[1] == d_model:
        return "A row is the vector of sines and cosines that this model adds at one position."
    return f"This model adds such vectors with d_model = **{d_model}**."


def _draw_curves(encoding: ShownEncoding) -> None:
    """Draw selected dimensions as curves over positions."""
    values = encoding.values
    n = values.shape[1]
    sine = n // 8 // 2 * 2
    st.subheader("Single dimensions over positions", anchor=False)
    if not encoding.is_learned:
        st.markdown(f"Each pair of dimensions ({sine} and {sine + 1}) has one frequency; higher pairs are slower.")
    preselected = (sine, sine + 1, n // 4, n // 2)
    curves = st.container()
    chosen = st.multiselect(
        "Dimensions",
        range(n),
        default=[dimension for dimension in preselected if dimension < n],
        max_selections=8,
        key=f"pe_dimensions_{n}",
    )
    with curves:
        chart(
            position_curves(values, chosen, bound=encoding.bound),
            key="chart_curves",
            alt="Curves of dimensions " + (", ".join(map(str, chosen)) or "none") + " over positions",
            grows=True,
        )


def _draw_products(encoding: ShownEncoding) -> None:
    """Draw the dot product of every pair of positions."""
    values, learned, used = encoding.values, encoding.is_learned, encoding.n_used
    st.subheader("Similarity of two positions", anchor=False)
    about = "The dot product of their vectors" + ("" if learned else " depends only on the distance: hence the stripes")
    frame = f" Framed: {encoding.used}." if used else ""
    st.markdown(f"{about}.{frame}")
    figure = position_heatmap(values @ values.T, columns="position", quantity="dot product", used=used)
    # Plotly's own margins would not settle around a square map in a narrow window.
    figure.update_layout(margin={"l": 78, "t": 68, "b": 78})
    figure.update_xaxes(automargin=False)
    figure.update_yaxes(automargin=False)
    chart(
        figure,
        key="chart_products",
        alt=f"Heat map of dot products between {len(values)} positions"
        + ("" if learned else ": bright main diagonal, constant along each diagonal"),
        grows=True,
    )


def _draw_shuffles(page: layout.Page, classifier: Predictor, *, compares: bool) -> None:
    """Draw the text's predictions in random orders, and the accuracy on test texts with shuffled words."""
    st.subheader("Does word order matter for this prediction?", anchor=False)
    classes = classifier.classes
    result = cached_results.predict_shuffled(page.source, page.view.text, n=N_SHUFFLES)
    best = result.original.ranked[0]
    label = plain(best.label)
    n = len(result.texts)
    n_same = round(result.share_unchanged * n)
    st.markdown(
        f"In **{n_same} of {n}** random orders, the same words are still classified as **{label}**. "
        + _accuracy_sentence(classifier) * compares  # else _draw_order has it
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


def _accuracy_sentence(classifier: Predictor) -> str:
    """A sentence on the accuracy on test texts, as written and shuffled; "" if not measured."""
    metrics = classifier.checkpoint.metrics.get("test", {})
    shuffled = metrics.get("order", {}).get("words_shuffled")
    if shuffled is None:
        return ""
    return (
        f"On {metrics['n']:,} test texts, accuracy is **{percentage(metrics['accuracy'])}** in the original order and "
        f"**{percentage(shuffled)}** with shuffled words"
        + (": order hardly matters to this model." if metrics["accuracy"] - shuffled < LITTLE else ".")
    )


def _guess_among_teams(classifier: Predictor) -> float | None:
    """The accuracy on test reports of a random guess among the teams that a report names; None if not measured."""
    circuit = Circuit.of(classifier)
    return None if circuit is None else circuit.guess.get("test")


def _draw_order(page: layout.Page, prediction: Prediction | None, *, compares: bool, positions: str) -> None:
    """Draw the text's words to drag, and both orders' predictions by the page's model or by `MODELS`."""
    st.subheader("Drag the words: what changes?", anchor=False, help=ABOUT_DRAGGING)
    if prediction is None:
        ask_for_text("you can drag its words into another order.")
        return
    if prediction.label is None:
        say_no_tokens()
        return
    words = page.view.text.split()
    orders = "both orders" + (f" of the first {MAX_WORDS} words" if len(words) > MAX_WORDS else "")
    words = _separate_punctuation(words[:MAX_WORDS])
    text = _attach_punctuation(" ".join(words))
    sources = [checkpoints.source(model) for model in MODELS] if compares else [page.source]
    order, already = page.view.order, ""
    if sorted(order) != list(range(len(words))):  # the visitor has not changed it
        order = tuple(_suggested_order(words, cached_results.predict(sources[0], text).prediction.label))
        is_swap = order != tuple(range(len(words)))[::-1]
        already = (
            "Two teams are already swapped. " if is_swap else "The words are already reversed. " * (len(words) > 1)
        )
    readers = "Three models that differ only in their positions read" if compares else "The model reads"
    st.markdown(f"{already}{readers} {orders}.")
    reordered, table_container = _draw_words(words, order)
    predictions = [[_prediction_text(source, shown) for shown in (text, reordered)] for source in sources]
    first, rows = ["positions"], [[ENCODING_NAMES.get(positions, positions), *predictions[0]]]
    if compares:
        first = ["positions", "test accuracy"]
        rows = [[*row[:2], *cells] for row, cells in zip(_accuracies(), [*predictions, ["", ""]], strict=True)]
    table_container.markdown(table((*first, "original order", "in this order"), rows))
    if compares:
        st.markdown("Without positions, word order cannot matter.")
    elif sentence := _accuracy_sentence(checkpoints.classifier(page.source)):
        st.markdown(sentence)


def _draw_models(text_box: str, *, has_all: bool) -> None:
    """Draw the accuracies of `MODELS`, and a button that shows them; how to train them if some are missing."""
    st.subheader("Does a model need positions?", anchor=False)
    if not has_all:
        st.markdown(
            "The three models that show this are not installed. Each trains in two to three minutes on one core:"
        )
        st.code(TRAIN_COMMANDS.strip(), language=None)
        return
    st.markdown(
        "Three other models, trained alike except for their positions, predict which team won a match; a random guess "
        "is one of the teams that a text names."
    )
    st.markdown(table(("positions", "test accuracy", "with shuffled words"), _accuracies()))
    st.button("Drag the words of a match report", key="open_report", on_click=_open_report, args=(text_box,))


def _open_report(text_box: str) -> None:
    """Show the first of `MODELS` and a match report; for callbacks."""
    view_state.forget_own_view()
    view_state.change_view(checkpoint=next(iter(MODELS)))
    view_state.put_text(REPORTS[0].text, text_box)


def _accuracies() -> list[tuple[str, str, str]]:
    """Position encoding, accuracy on test reports and that with shuffled words of each of `MODELS`, and of a guess."""
    classifiers = [checkpoints.classifier(checkpoints.source(name)) for name in MODELS]
    tests = [classifier.checkpoint.metrics.get("test", {}) for classifier in classifiers]
    rows = [
        (kind, _accuracy_text(test.get("accuracy")), _accuracy_text(test.get("order", {}).get("words_shuffled")))
        for kind, test in zip(map(ENCODING_NAMES.__getitem__, MODELS.values()), tests, strict=True)
    ]
    guess = _accuracy_text(_guess_among_teams(classifiers[0]))
    return [*rows, ("random guess", guess, guess)]


def _draw_words(words: Sequence[str], order: Sequence[int]) -> tuple[str, DeltaGenerator]:
    """Draw the draggable words and, below them, buttons; return the new text, and a container above the buttons."""
    names = [visible(word) for word in words]
    word_bins(
        {"": [names[index] for index in order]},
        label="The text's words; Shift and an arrow key move a word",
        key="order_words",
        on_move=lambda rows: _set_order(_indices(names, rows[0])),
    )
    container = st.container()
    with st.container(horizontal=True, gap="small"):
        st.button("Original order", key="order_as_typed", on_click=_set_order, args=(range(len(words)),))
        st.button("Reverse", key="order_reverse", on_click=_set_order, args=(order[::-1],))
        shuffled = np.random.default_rng().permutation(len(words)).tolist()
        st.button("Shuffle", key="order_shuffle", on_click=_set_order, args=(shuffled,))
    return _attach_punctuation(arrange_words(" ".join(words), order)), container


def _indices(words: Sequence[str], reordered: Sequence[str]) -> list[int]:
    """The index in the text of each reordered word; equal words keep their order."""
    indices: list[int] = []
    for word in reordered:
        indices.append(next(index for index, other in enumerate(words) if other == word and index not in indices))
    return indices


def _separate_punctuation(words: Sequence[str]) -> list[str]:
    """The words, with punctuation at the end of a word as a word of its own: it stays in place when words are moved."""
    return re.sub(r"(?<![,.;:!?])([,.;:!?]+)(?!\S)", r" \1", " ".join(words)).split()


def _attach_punctuation(text: str) -> str:
    """The inverse of `_separate_punctuation`: some models tell whether a space precedes a token."""
    return re.sub(r" ([,.;:!?]+)(?!\S)", r"\1", text)


def _suggested_order(words: Sequence[str], winner: str | None) -> list[int]:
    """Swap the winner and the first other team; reverse all words if the text does not name both."""
    order = list(range(len(words)))
    known_teams = {team.casefold() for team in TEAMS}
    teams = {i: team for i, word in enumerate(words) if (team := word.casefold()) in known_teams}
    winners = [i for i, team in teams.items() if winner is not None and team == winner.casefold()]
    others = [i for i, team in teams.items() if winners and team != teams[winners[0]]]
    if not others:
        return order[::-1]
    order[winners[0]], order[others[0]] = others[0], winners[0]
    return order


def _set_order(order: Sequence[int]) -> None:
    view_state.change_view(order=tuple(order))


def _prediction_text(source: Source, text: str) -> str:
    prediction = cached_results.predict(source, text).prediction
    if prediction.label is None:
        return "no tokens"
    return f"**{plain(prediction.label)}** {bounded_percentage(prediction.ranked[0].probability)}"


def _accuracy_text(accuracy: float | None) -> str:
    return "not measured" if accuracy is None else percentage(accuracy)


def _draw_shift(page: layout.Page, *, d_model: int, max_length: int, kind: str) -> None:
    """Draw the linear map that shifts positions by k; for sinusoids, it rotates each pair of dimensions."""
    st.subheader("Is a shift by k a linear map?", anchor=False)
    width = d_model - d_model % 2
    length = max_length if max_length >= 16 else 64
    if width < 2:
        return
    st.markdown(
        "For sines and cosines, yes: one matrix maps the vector of any position t to that of t + k, so a head can "
        "learn to attend k tokens back from anywhere."
    )
    st.latex(
        r"\begin{pmatrix} \sin\omega(t+k) \\ \cos\omega(t+k) \end{pmatrix} = \begin{pmatrix} \cos\omega k & "
        r"\sin\omega k \\ -\sin\omega k & \cos\omega k \end{pmatrix} \begin{pmatrix} \sin\omega t \\ "
        r"\cos\omega t \end{pmatrix}"
    )
    k = st.slider("k", 1, min(32, length - 8), 1, key=f"shift_k_{length}", width=420)
    table_column, map_column = st.columns([2, 3], gap="large")
    with table_column:
        rows = [("sines and cosines", fit_shift(sinusoidal_encoding(length, width).numpy(), k))]
        n_fitted = (length - k + 1) // 2
        learned = kind == "learned" and max_length >= 16
        if learned and n_fitted > width:
            vectors = position_vectors(checkpoints.classifier(page.source), length)
            rows.append(("learned by this model", fit_shift(vectors, k)))
        st.markdown(
            "The error of a linear map fitted to half of the positions; 0 is exact, and 1 is that of the mean vector."
        )
        columns = ("vectors", "fitted half", "other half")
        rows_of_table = [(name, f"{shift.fitted:.3f}", f"{shift.held_out:.3f}") for name, shift in rows]
        st.markdown(table(columns, rows_of_table, right=columns[1:]))
        if learned and n_fitted <= width:
            st.caption(
                f"The learned positions cannot be tested: a linear map fits any {n_fitted} vectors of {width} numbers "
                "exactly, even random ones."
            )
    with map_column:
        n_shown = min(N_SHOWN_DIMENSIONS, width)
        st.markdown(f"The matrix for k = {k}: its first {n_shown} rows and columns.")
        figure = number_map(
            shift_map(width, k)[:n_shown, :n_shown],
            rows=[str(d) for d in range(n_shown)],
            row_title="dimension after",
            column_title="dimension before",
            bound=1.0,
        )
        if lecture.is_on():
            # No scale, to leave the room to the map; plotly's own margins would not settle in a low one.
            figure.update_layout(coloraxis_showscale=False, margin={"l": 68, "t": 72})
            figure.update_xaxes(automargin=False)
            figure.update_yaxes(automargin=False)
        chart(
            figure,
            key="chart_shift",
            alt=f"Heat map of the matrix that shifts sinusoids by {k}, its first {n_shown} dimensions: 2 by 2 blocks "
            "along the diagonal, zeros elsewhere",
        )


if __name__ == "__main__":
    main()
