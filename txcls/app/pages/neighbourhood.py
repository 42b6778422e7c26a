"""Similar words and texts: their vectors in two dimensions, and nearest neighbours by cosine similarity."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from txcls.app import menu
from txcls.app.shell import cached_results, checkpoints, layout, lecture, view_state
from txcls.app.shell.charts import chart
from txcls.app.shell.controls import clicked_point
from txcls.app.shell.markdown import plain, table
from txcls.app.shell.prediction import classify_text
from txcls.errors import TxclsError
from txcls.figures import class_colours, minus, text_scatter, token_scatter, visible
from txcls.inference.predictor import Predictor
from txcls.inspection.principal_components import TokenPlane
from txcls.text.cleaning import clean
from txcls.text.vocabulary import SPECIAL_TOKENS
from txcls.wording import percentage, start_of

N_TEST_TEXTS = 300
MAX_WORDS = 30
"""Maximum number of tokens of the text whose nearest neighbours are listed."""
N_NEAREST = 6
N_NEAREST_TEXTS, N_NEAREST_TEXTS_PER_SLIDE = 8, 4
MAX_WORDS_PER_SLIDE = 5
CHOSEN_TEXT = "near_text"
"""Key in the session state of the clicked text, to which the nearest texts are listed."""
ABOUT_PAGE = (
    "The lists compare vectors in all dimensions. The plots show them along their first two principal components: "
    "points that are close in a plot need not be similar."
)


def main() -> None:
    """Draw the page."""
    page = layout.open_page(menu.NEIGHBOURHOOD)
    classified = classify_text(page, "its words and its vector appear among others.")
    if classified is not None and classified.has_label:
        with lecture.slide(lecture.POOLING):
            _draw_texts(page, classified.classifier)
        with lecture.slide(lecture.VECTORS):
            _draw_words(page)
        st.caption(ABOUT_PAGE)
    layout.close_page(page)


def _draw_words(page: layout.Page) -> None:
    """Draw the token embeddings, and the nearest neighbours of each token of the text."""
    st.subheader("The text's words in the vocabulary", anchor=False)
    plane = cached_results.token_plane(page.source, page.view.text)
    names = cached_results.token_strings(page.source)
    text_names = [names[index] for index in plane.text_ids]
    clicked = page.view.word if len(SPECIAL_TOKENS) <= page.view.word < len(names) else 0
    nearest = dict(plane.nearest)
    if clicked and clicked not in nearest:
        nearest[clicked] = tuple(cached_results.nearest_tokens(page.source, clicked))[:N_NEAREST]
    plot_column, list_column = st.columns([3, 2], gap="large")
    n = len(names) - len(SPECIAL_TOKENS)
    with plot_column:
        chart(
            token_scatter(
                plane.points,
                [names[index] for index in plane.ids],
                plane.text_points,
                text_names,
                plane.shares.tolist(),
                ids=plane.ids,
                text_ids=plane.text_ids,
                near=[clicked, *(other for other, _ in nearest.get(clicked, ()))],
            ),
            key=f"chart_words_{clicked}",
            on_select=lambda: _select_word(f"chart_words_{clicked}"),
            alt=f"Scatter of {len(plane.ids):,} token vectors in two dimensions, {len(text_names)} from this text",
        )
    with list_column:
        _draw_nearest_words(plane, names, clicked, nearest)
    st.caption(
        f"Token embeddings, before any layer. Grey: the first {len(plane.ids):,} of {n:,} tokens of the vocabulary; "
        f"large: the {len(text_names)} distinct tokens of this text, named where there is room. The axes explain "
        f"{percentage(plane.shares.sum(), 0)} of the "
        f"variance{'' if plane.shares.sum() > 0.5 else ', so the plot shows little of the distances'}."
    )


def _draw_nearest_words(
    plane: TokenPlane, names: Sequence[str], clicked: int, nearest: Mapping[int, Sequence[tuple[int, float]]]
) -> None:
    """Draw the nearest tokens of the clicked token, then those of each token of the text."""
    if not plane.text_ids and not clicked:
        st.info("No word of this text is in the vocabulary, so none has an embedding.")
        return
    st.markdown(
        "**Nearest in all dimensions**, by cosine similarity (at most 1). Click a word in the plot to list its nearest."
    )
    rows = []
    limit = MAX_WORDS_PER_SLIDE if lecture.is_on() else MAX_WORDS
    for index in list(dict.fromkeys([*([clicked] if clicked else []), *plane.text_ids]))[:limit]:
        near = ", ".join(f"{_token_text(names[other])} {_cosine_text(cosine)}" for other, cosine in nearest[index])
        rows.append((f"{'▶ ' * (index == clicked)}**{_token_text(names[index])}**", near))
    with st.container(height=560 if len(rows) > 10 else "content", border=False, key="nearest_words"):
        st.markdown(table(("token", "nearest"), rows))
    if len(plane.text_ids) > limit:
        st.caption(f"The first {limit} of {len(plane.text_ids)}.")


def _select_word(key: str) -> None:
    if (clicked := clicked_point(key)) is not None:
        view_state.change_view(word=int(clicked[0] if isinstance(clicked, list) else clicked))


def _draw_texts(page: layout.Page, classifier: Predictor) -> None:
    """Draw the pooled vectors of this and other texts, and the texts nearest to this one or to a clicked one."""
    plot_column, list_column = st.columns([3, 2], gap="large")
    with plot_column:
        st.subheader("Texts by predicted class", anchor=False)
        chart_container = st.container()
        others, description = _other_texts(page)
    probabilities = cached_results.predict(page.source, page.view.text).prediction.probabilities
    pooled = cached_results.pool_texts(page.source, tuple(others))
    plane = cached_results.text_plane(page.source, page.view.text, tuple(others))
    with chart_container:
        chart(
            text_scatter(
                plane.points,
                pooled.labels,
                list(map(_beginning, others)),
                plane.text_point.tolist(),
                plane.text_label,
                plane.shares.tolist(),
                classes=classifier.classes,
                colours=class_colours([probabilities[name] for name in classifier.classes]),
            ),
            key="chart_texts",
            alt=f"Scatter of the pooled vectors of {len(others)} texts by predicted class: "
            + ", ".join(f"{count} {name[:30]}" for name, count in Counter(pooled.labels).most_common())
            + f"; this text among them, {plane.text_label}",
            on_select=lambda: _select_text(others),
        )
        st.caption(
            f"Each point is the pooled vector that the class head reads: {description}. The predicted "
            "class need not be right. "
            f"The axes explain {percentage(plane.shares.sum(), 0)} of the variance."
        )
    with list_column:
        clicked = st.session_state.get(CHOSEN_TEXT)
        cosines, compared_with = plane.cosines, "this text"
        if clicked in others:
            unit = pooled.vectors / np.linalg.norm(pooled.vectors, axis=1, keepdims=True)
            index = others.index(clicked)
            cosines = np.where(np.arange(len(others)) == index, -2.0, unit @ unit[index])  # excludes the text itself
            compared_with = f"“{_beginning(clicked)}”"
        st.subheader("Nearest texts", anchor=False)
        st.markdown(
            f"To **{plain(compared_with)}**, by cosine similarity in all dimensions. Click a point to list its nearest."
        )
        limit = N_NEAREST_TEXTS_PER_SLIDE if lecture.is_on() else N_NEAREST_TEXTS
        nearest = [n for n in np.argsort(-cosines, kind="stable")[:limit] if cosines[n] > -2]
        rows = [(_cosine_text(cosines[n]), _unbroken(pooled.labels[n]), plain(_beginning(others[n]))) for n in nearest]
        st.markdown(table(("cosine", "predicted", "text"), rows, right=("cosine",)))


def _other_texts(page: layout.Page) -> tuple[list[str], str]:
    """The texts to compare with (examples, and test texts if they are on this machine), and a description of them."""
    examples = checkpoints.examples(page.view.checkpoint)
    others = [example.text for example in examples if example.text != page.view.text]
    description = f"{len(others)} example texts of this app"
    shows_test_texts = st.toggle(
        f"Show up to {N_TEST_TEXTS} test texts",
        value=True,
        key="with_test_texts",
        persist_state="session",
        help="Drawn at random from the held-out rows. This needs the data set on this machine.",
    )
    if shows_test_texts:
        try:
            drawn = cached_results.some_test_texts(page.source, N_TEST_TEXTS)
            new_texts = [text for text in drawn if text != page.view.text and text not in others]
            others += new_texts
            description += f" and {len(new_texts)} texts from the local test set"
        except TxclsError as error:
            st.caption(f"Only the examples are shown: {plain(str(error).replace('`', ''))}")
    return others, description


def _select_text(others: Sequence[str]) -> None:
    if (clicked := clicked_point("chart_texts")) is not None:
        index = int(clicked[0] if isinstance(clicked, list) else clicked)
        st.session_state[CHOSEN_TEXT] = others[index] if 0 <= index < len(others) else None


def _beginning(text: str) -> str:
    limit = 50 if lecture.is_on() else 90
    return visible(start_of(clean(text, ("html_entities", "whitespace")), limit=limit))


def _unbroken(name: str) -> str:
    """A class name in Markdown; a short one does not wrap in a narrow column."""
    return plain(name).replace(" ", "\u00a0" if len(name) <= 16 else " ")


def _token_text(token: str) -> str:
    return plain(visible(token[:30]))


def _cosine_text(value: float) -> str:
    return minus(f"{value:.2f}")


if __name__ == "__main__":
    main()
