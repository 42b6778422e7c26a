"""Word order and position encodings: models that differ in their encoding, shuffled words, and the vectors."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from txcls.app import menu
from txcls.app.components.widgets import word_bins
from txcls.app.shell import cached_results, checkpoints, layout, lecture, view_state
from txcls.app.shell.cache import Source
from txcls.app.shell.charts import chart, has_long_names
from txcls.app.shell.controls import PageSection, draw_sections
from txcls.app.shell.markdown import escape, table
from txcls.app.shell.prediction import (
    ask_for_text,
    draw_prediction,
    load_classifier,
    loading_placeholder,
    say_no_tokens,
)
from txcls.config.places import IMPLEMENTED
from txcls.data.datasets import REPORTS
from txcls.data.generated.who_won import TEAMS
from txcls.figures import MAX_NAMED, compared_bars, minus, position_heatmap, visible
from txcls.inference.predictor import Prediction, Predictor
from txcls.inspection.circuit import Circuit
from txcls.inspection.positions import arrange_words, position_vectors
from txcls.model import sinusoidal_encoding
from txcls.text.formatting import bounded_percentage, class_title, percentage
from txcls.text.tokens import Token

N_SHUFFLES = 20
LITTLE = 0.02
"""If shuffling costs less accuracy than this, word order is said to hardly matter."""
MAX_POSITIONS = 128
"""Maximum number of positions drawn."""
ABOUT_VECTORS = (
    "Attention ignores the order of the tokens, so each token’s embedding gets the vector of its **position** added: "
    "in *Attention Is All You Need* (2017, §\u00a03.5), sines and cosines with d = d_model.\n\n"
    r"$PE_{(pos,\,2i)} = \sin\left(pos\,/\,10000^{2i/d}\right)$, "
    r"$PE_{(pos,\,2i+1)} = \cos\left(pos\,/\,10000^{2i/d}\right)$"
)
FAST_DIMENSIONS = 24
"""Number of the first dimensions of sinusoidal vectors, which change visibly within a sentence."""
MODELS = {"who_won": "sinusoidal", "who_won_learned": "learned", "who_won_none": "none"}
"""The position encodings of three checkpoints that are otherwise trained alike."""
Floats = NDArray[np.floating]
MAX_WORDS = 40
"""Maximum number of words that can be dragged."""
MAX_CLASSES = 7
"""Maximum number of classes whose probabilities in random orders are drawn."""


@dataclass(frozen=True)
class ShownEncoding:
    """Position vectors (T, D), the end of their colour scale, and how many positions the text and the model have."""

    values: Floats
    bound: float | None
    is_learned: bool
    n_used: int
    n_all: int
    added: str = ""  # the special tokens among those of the text, as Markdown


def main() -> None:
    """Draw the page."""
    has_all = set(MODELS) <= set(checkpoints.names())
    page = layout.open_page(menu.POSITIONS, prefers=tuple(MODELS) if has_all else ())
    placeholder = loading_placeholder(page, height=480)
    classifier = load_classifier(page)
    prediction = cached_results.predict(page.source, page.view.text) if page.has_text else None
    placeholder.empty()
    kind = classifier.checkpoint.config.model.positions
    if kind not in IMPLEMENTED["positions"]:
        st.info(f"This page is not available for {kind} positions (model.positions = {kind!r}).")
        layout.close_page(page)
        return
    has_label = prediction is not None and prediction.label is not None
    if prediction is not None and has_label:
        draw_prediction(page, classifier, prediction, before="Prediction, original order")
    compares = has_all and page.view.checkpoint in MODELS
    with lecture.slide(lecture.VECTORS):
        adds_positions = classifier.checkpoint.config.model.adds_positions
        layout.draw_answer(page, _answer(adds_positions=adds_positions, compares=compares), about=ABOUT_VECTORS)
        with st.container(key="position_columns"):
            words_column, vectors_column = st.columns(2, gap="large")
        with words_column:
            tokens, moved = _draw_order(page, prediction, compares=compares, kind=kind)
        with vectors_column:
            encoding = _draw_encoding(classifier, tokens, moved)
    parts = [
        PageSection("vectors", "All positions", partial(_draw_positions, encoding), (lecture.VECTORS,)),
        PageSection("similarity", "Similar positions", partial(_draw_products, encoding), (lecture.VECTORS,)),
    ]
    if has_all:
        draw = partial(_draw_models, None if compares else f"{layout.TEXT_BOX}_{page.info.name}")
        parts.insert(0, PageSection("models", "Three models", draw, (lecture.VECTORS,)))
    if has_label:
        draw = partial(_draw_shuffles, page, classifier, compares=compares)
        parts.insert(0, PageSection("shuffles", "Random orders", draw, (lecture.VECTORS, lecture.CLASSES)))
    draw_sections(page.view, parts)
    layout.close_page(page)


def _answer(*, adds_positions: bool, compares: bool) -> str:
    """The answer to the page's question, and what the visitor can try."""
    if not adds_positions and not compares:
        return "**It does not**: this model adds no vectors for positions. **Drag the words**: its answer stays."
    if compares:
        return (
            "Only by a **vector added at each position**: without position vectors, the answer stays the same in any "
            "order."
        )
    return "By a **vector added at each position**. **Drag the words**: does the answer change?"


def _draw_encoding(classifier: Predictor, tokens: Sequence[Token], moved: Collection[str]) -> ShownEncoding:
    """Draw a heat map of the vectors added to the tokens; for long texts or without position vectors, of all positions.

    The words `moved`, in lower case, are marked.
    """
    model = classifier.checkpoint.config.model
    is_learned, length = model.positions == "learned", min(MAX_POSITIONS, model.max_length)
    if not model.adds_positions:
        values = sinusoidal_encoding(length, model.d_model).numpy()
    else:
        values = position_vectors(classifier, length)
    n_used = 0 if not model.adds_positions else min(len(tokens), length)
    added = ", ".join(escape(token.label) for token in tokens if token.is_special)
    encoding = ShownEncoding(values, None if is_learned else 1.0, is_learned, n_used, model.max_length, added)
    kind = f" ({model.positions})" * model.adds_positions
    st.markdown(f"**What is added to each token{kind}**")
    if not 0 < n_used <= MAX_NAMED:
        _draw_map(encoding, "This model adds nothing; other models add these." * (not model.adds_positions))
        return encoding
    n_shown, n_all = values.shape[1] if is_learned else min(FAST_DIMENSIONS, values.shape[1]), values.shape[1]
    which = f", the first {n_shown} of {n_all} dimensions" * (n_shown < n_all)
    st.markdown(
        f"A row for each position{which}. Rows stay where they are when words move{' (▸ moved)' * bool(moved)}."
    )
    names = [f"▸ {token.label}" if token.text.strip().casefold() in moved else token.label for token in tokens]
    chart(
        position_heatmap(values[:n_used, :n_shown], bound=encoding.bound, names=names),
        key="chart_positions",
        grows=True,
        alt=f"Heat map of the vectors added to the text's {n_used} tokens, {n_shown} dimensions each",
    )
    return encoding


def _draw_positions(encoding: ShownEncoding) -> None:
    """Draw a heat map of all position vectors."""
    st.subheader("How do the vectors tell positions apart?", anchor=False)
    n_trained = int(np.flatnonzero(np.any(encoding.values, axis=1))[-1]) + 1 if np.any(encoding.values) else 0
    about = "**No two rows are alike**." if len(np.unique(encoding.values, axis=0)) == len(encoding.values) else ""
    if not encoding.is_learned:
        about = "**No two rows are alike**: the left columns change fast, the right ones hardly."
    elif n_trained < len(encoding.values):
        about = f"From position {n_trained} on, they are still zero, since no training text was that long."
    _draw_map(encoding, about, key="chart_all_positions")


def _draw_map(encoding: ShownEncoding, about: str, *, key: str = "chart_positions") -> None:
    """Draw a heat map of all position vectors with a sentence; those of the text are framed."""
    n, width = encoding.values.shape
    st.markdown(" ".join(filter(None, [about, "One row per position.", _limits(encoding)])))
    chart(
        position_heatmap(encoding.values, bound=encoding.bound, used=encoding.n_used),
        key=key,
        grows=True,
        alt=f"Heat map of the position vectors, {n} positions by {width} dimensions"
        + ("" if encoding.is_learned else ": high frequencies in the first dimensions, lower ones to the right"),
    )


def _limits(encoding: ShownEncoding) -> str:
    """Which positions are drawn, and which of them are framed."""
    n = len(encoding.values)
    shown = f"Shown: the first {n} of {encoding.n_all} positions. " * (n < encoding.n_all)
    including = f", including {encoding.added}" if encoding.added else ""
    framed = f"Framed: this text’s {min(encoding.n_used, n)} tokens{including}."
    return f"{shown}{framed * bool(encoding.n_used)}".strip()


def _draw_products(encoding: ShownEncoding) -> None:
    """Draw the dot product of every pair of positions."""
    values, learned = encoding.values, encoding.is_learned
    st.subheader("How similar are two positions?", anchor=False)
    about = (
        "Yellow: a large dot product of their vectors."
        if learned
        else "**Neighbouring positions are the most similar**: the dot product of two vectors depends only on their "
        "distance, hence the stripes."
    )
    st.markdown(f"{about} Blank: a position with itself. {_limits(encoding)}")
    products = values @ values.T
    np.fill_diagonal(products, np.nan)  # would be the largest
    figure = position_heatmap(products, columns="position", quantity="dot product", used=encoding.n_used)
    digits = 0 if np.nanmax(np.abs(products)) >= 10 else 2
    ticks = np.linspace(figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax, 5)
    figure.update_layout(
        coloraxis_colorbar={"tickvals": ticks, "ticktext": [minus(f"{tick:.{digits}f}") for tick in ticks]}
    )
    # Plotly's own margins would not settle around a square map in a narrow window.
    figure.update_layout(margin={"l": 78, "t": 84, "b": 104} if lecture.is_on() else {"l": 78, "t": 68, "b": 78})
    figure.update_xaxes(automargin=False)
    figure.update_yaxes(automargin=False)
    chart(
        figure,
        key="chart_products",
        alt=f"Heat map of dot products between {len(values)} positions"
        + ("" if learned else ": constant along each diagonal, brightest beside the main one"),
        grows=True,
    )


def _draw_shuffles(page: layout.Page, classifier: Predictor, *, compares: bool) -> None:
    """Draw the text's predictions in random orders, and the accuracy on test texts with shuffled words."""
    st.subheader("Does word order matter for this prediction?", anchor=False)
    classes = classifier.classes
    result = cached_results.predict_shuffled(page.source, page.view.text, n=N_SHUFFLES)
    best = result.original.ranked[0]
    label = escape(best.label)
    n = len(result.texts)
    n_same = round(result.share_unchanged * n)
    only = "only " * (n_same < n / 2)
    st.markdown(
        f"{'**Yes**: in' if n_same < n else 'In'} {only}**{n_same} of {n}** random orders, the same words are still "
        f"classified as **{label}**. " + _accuracy_sentence(classifier) * compares  # else _draw_order shows it
    )
    probability = {score.label: score.probability for score in result.original.ranked}
    words = set(re.findall(r"\w+", page.view.text.casefold()))
    named = [index for index, name in enumerate(classes) if name.casefold() in words]
    if len(named) < 2:
        named = list(range(len(classes)))
    original, mean = np.array([probability.get(name, 0.0) for name in classes]), result.probabilities.mean(axis=0)
    shown = sorted(named, key=lambda index: (classes[index] != best.label, -mean[index]))[:MAX_CLASSES]
    has_others = len(shown) < len(classes)
    chart(
        compared_bars(
            [*(classes[index] for index in shown), *["all others"] * has_others],
            [*original[shown], *[1 - original[shown].sum()] * has_others],
            [*mean[shown], *[1 - mean[shown].sum()] * has_others],
            original="original order",
            changed=f"mean of {n} random orders",
            n_rows=None,
            names_above=has_long_names(classes),
        ),
        key="chart_shuffles",
        alt=f"Bars of class probabilities in the original order, {best.label} {percentage(best.probability)} first, "
        f"and their means in {n} random orders; {n_same} keep {best.label}",
    )


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


def _draw_order(
    page: layout.Page, prediction: Prediction | None, *, compares: bool, kind: str
) -> tuple[tuple[Token, ...], set[str]]:
    """Draw the text's words to drag, and the predictions of the page's model or of `MODELS` for both orders.

    Returns the tokens in the order shown, () if there are none, and the two swapped words, if any.
    """
    if prediction is None:
        ask_for_text("you can drag its words into another order.")
        return (), set()
    if prediction.label is None:
        say_no_tokens()
        return (), set()
    words = _separate_punctuation(page.view.text.split()[:MAX_WORDS])
    text = _attach_punctuation(" ".join(words))
    sources = [checkpoints.source(model) for model in MODELS] if compares else [page.source]
    order, in_order = page.view.order, tuple(range(len(words)))
    if sorted(order) != list(in_order):  # the visitor has not changed it
        order = tuple(_suggested_order(words, cached_results.predict(sources[0], text).label))
    moved = [words[index] for index, now in zip(in_order, order, strict=True) if index != now]
    change = ""
    if len(moved) == 2:
        change = f": here, **{escape(visible(moved[0]))}** and **{escape(visible(moved[1]))}** are swapped"
    elif order == in_order[::-1]:
        change = ": here, the words are reversed"
    st.markdown(f"**Drag the words**{change}", help="Shift and an arrow key move the focused word.")
    swapped = moved if len(moved) == 2 else []
    reordered = _draw_words(words, order, marked=swapped)
    rows = [
        (f"**{encoding}**", *_compare_orders(source, text, reordered))
        for encoding, source in zip(MODELS.values() if compares else [kind], sources, strict=True)
    ]
    columns = ("positions", "original order", "in this order", "answer")
    st.markdown(table(columns, rows))
    if not compares and (sentence := _accuracy_sentence(checkpoints.classifier(page.source))):
        st.markdown(sentence)
    return cached_results.predict(page.source, reordered).tokens, {word.casefold() for word in swapped}


def _compare_orders(source: Source, text: str, reordered: str) -> tuple[str, str, str]:
    """The predictions for two orders of a text, and whether the class changes."""
    labels, cells = [], []
    for order in (text, reordered):
        prediction = cached_results.predict(source, order)
        labels.append(prediction.label)
        best = prediction.ranked[0] if prediction.label is not None else None
        name = "no tokens" if best is None else escape(class_title(best.label))
        cells.append(name if best is None else f"{name} {bounded_percentage(best.probability)}")
    return cells[0], cells[1], "stays" if labels[0] == labels[1] else "**changes**"


def _draw_models(text_box: str | None) -> None:
    """Draw the accuracies of `MODELS` and of a guess and, with a `text_box`, a button that opens a match report."""
    st.subheader("Does a model need positions?", anchor=False)
    classifiers = [checkpoints.classifier(checkpoints.source(name)) for name in MODELS]
    tests = [classifier.checkpoint.metrics.get("test", {}) for classifier in classifiers]
    accuracies = [(test.get("accuracy"), test.get("order", {}).get("words_shuffled")) for test in tests]
    rows = list(zip(MODELS.values(), accuracies, strict=True))
    need, chance, circuit = "", "", Circuit.of(classifiers[0])
    if circuit is not None and (guess := circuit.guess.get("test")) is not None:
        chance = f" Picking one of the text’s teams at random is right {percentage(guess)} of the time."
        if (without := accuracies[-1][0]) is not None and without - guess < LITTLE:
            need = "**Yes**: without them, it is no better than a random guess among the teams in the text. "
    st.markdown(
        f"{need}Three models, trained alike except for their positions, predict which team won a match.{chance}"
    )
    cells = [(kind, *("not measured" if each is None else percentage(each) for each in pair)) for kind, pair in rows]
    st.markdown(table(("positions", "test accuracy", "with shuffled words"), cells))
    if text_box is not None:
        st.button("Drag the words of a match report", key="open_report", on_click=_open_report, args=(text_box,))


def _open_report(text_box: str) -> None:
    """Show the first of `MODELS` and a match report; for callbacks."""
    view_state.forget_own_view()
    view_state.change_view(checkpoint=next(iter(MODELS)))
    view_state.put_text(REPORTS[0].text, text_box)


def _draw_words(words: Sequence[str], order: Sequence[int], *, marked: Sequence[str]) -> str:
    """Draw the draggable words and, below them, buttons; return the new text."""
    names = [visible(word) for word in words]
    word_bins(
        {"": [names[index] for index in order]},
        label="The text's words; Shift and an arrow key move a word",
        key="order_words",
        marked=list(map(visible, marked)),
        on_move=lambda rows: _set_order(_indices(names, rows[0])),
    )
    with st.container(horizontal=True, gap="small"):
        st.button("Original order", key="order_as_typed", on_click=_set_order, args=(range(len(words)),))
        st.button("Reverse", key="order_reverse", on_click=_set_order, args=(order[::-1],))
        shuffled = np.random.default_rng().permutation(len(words)).tolist()
        st.button("Shuffle", key="order_shuffle", on_click=_set_order, args=(shuffled,))
    return _attach_punctuation(arrange_words(" ".join(words), order))


def _indices(words: Sequence[str], reordered: Sequence[str]) -> list[int]:
    """The index in the text of each reordered word; equal words keep their order."""
    indices: list[int] = []
    for word in reordered:
        indices.append(next(index for index, other in enumerate(words) if other == word and index not in indices))
    return indices


def _separate_punctuation(words: Sequence[str]) -> list[str]:
    """The words, with final punctuation as a separate word, so that it stays in place when words are moved."""
    return re.sub(r"(?<![,.;:!?])([,.;:!?]+)(?!\S)", r" \1", " ".join(words)).split()


def _attach_punctuation(text: str) -> str:
    """Undo `_separate_punctuation`, since some models distinguish tokens that follow a space."""
    return re.sub(r" ([,.;:!?]+)(?!\S)", r"\1", text)


def _suggested_order(words: Sequence[str], winner: str | None) -> list[int]:
    """The order with the winner and the first other team swapped, or reversed if the text does not name both."""
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


if __name__ == "__main__":
    main()
