"""Similar words and similar texts: their vectors in two dimensions, and nearest neighbours by cosine similarity."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from txcls.app import menu
from txcls.app.shell import checkpoints, compute, layout, lecture, state
from txcls.app.shell.charts import chart
from txcls.app.shell.controls import clicked_point
from txcls.app.shell.markdown import plain, table
from txcls.app.shell.prediction import classify_text
from txcls.errors import TxclsError
from txcls.figures import class_colours, minus, text_scatter, token_scatter, visible
from txcls.inspection.principal_components import TokenPlane
from txcls.predictor import Predictor
from txcls.text.vocabulary import SPECIAL_TOKENS
from txcls.wording import percentage

N_TEST_TEXTS = 300
MAX_WORDS = 30
"""Maximum number of tokens of the text whose nearest neighbours are listed."""
N_NEAREST = 6
N_NEAREST_TEXTS, N_NEAREST_TEXTS_ON_A_SLIDE = 8, 4
MAX_WORDS_ON_A_SLIDE = 5
CHOSEN_TEXT = "near_text"
"""Where the session keeps the text whose nearest texts are listed."""
ABOUT_PAGE = (
    "The lists compare vectors in all dimensions. The plots show them along their first two principal components: "
    "points that are close in a plot need not be similar."
)


def main() -> None:
    """Draw the page."""
    opened = layout.open_page(menu.NEIGHBOURHOOD)
    read = classify_text(opened, "its words and its vector are drawn among others.")
    if read is not None and read.has_label:
        with lecture.slide(lecture.POOLING):
            _texts(opened, read.classifier)
        with lecture.slide(lecture.VECTORS):
            _words(opened)
        st.caption(ABOUT_PAGE)
    layout.close_page(opened)


def _words(opened: layout.Page) -> None:
    """Draw the token embeddings, and the nearest neighbours of each token of the text."""
    st.subheader("Its words among the vocabulary", anchor=False)
    plane = compute.token_plane(opened.source, opened.view.text)
    names = compute.spellings(opened.source)
    own = [names[index] for index in plane.own]
    chosen = opened.view.word if len(SPECIAL_TOKENS) <= opened.view.word < len(names) else 0
    nearest = dict(plane.nearest)
    if chosen and chosen not in nearest:
        nearest[chosen] = tuple(compute.nearest_tokens(opened.source, chosen))[:N_NEAREST]
    plot, beside = st.columns([3, 2], gap="large")
    n = len(names) - len(SPECIAL_TOKENS)
    with plot:
        chart(
            token_scatter(
                plane.points,
                [names[index] for index in plane.ids],
                plane.own_points,
                own,
                plane.shares.tolist(),
                ids=plane.ids,
                own_ids=plane.own,
                near=[chosen, *(other for other, _ in nearest.get(chosen, ()))],
            ),
            key=f"chart_words_{chosen}",
            on_select=lambda: _word_clicked(f"chart_words_{chosen}"),
            alt=f"Scatter of {len(plane.ids):,} token vectors in two dimensions, {len(own)} of them of this text",
        )
    with beside:
        _nearest_words(plane, names, chosen, nearest)
    st.caption(
        f"Token embeddings, before any layer. Grey: the first {len(plane.ids):,} of {n:,} tokens of the vocabulary; "
        f"large: the {len(own)} distinct tokens of this text. The two axes explain {percentage(plane.shares.sum(), 0)} "
        f"of the variance{'' if plane.shares.sum() > 0.5 else ', so the plot shows little of the distances'}."
    )


def _nearest_words(
    plane: TokenPlane, names: Sequence[str], chosen: int, nearest: Mapping[int, Sequence[tuple[int, float]]]
) -> None:
    """Draw the nearest tokens of each token of the text, after those of the chosen one."""
    if not plane.own and not chosen:
        st.info("No word of this text is in the vocabulary, so none has an embedding of its own.")
        return
    st.markdown(
        "**Nearest in all dimensions**, by cosine similarity (at most 1). Click a word of the plot for its own."
    )
    rows = []
    most = MAX_WORDS_ON_A_SLIDE if lecture.is_on() else MAX_WORDS
    for index in list(dict.fromkeys([*([chosen] if chosen else []), *plane.own]))[:most]:
        near = ", ".join(f"{_plain(names[other])} {_cosine(cosine)}" for other, cosine in nearest[index])
        rows.append((f"{'▶ ' * (index == chosen)}**{_plain(names[index])}**", near))
    with st.container(height=420 if len(rows) > 10 else "content", border=False):
        st.markdown(table(("token", "nearest"), rows))
    if len(plane.own) > most:
        st.caption(f"The first {most} of {len(plane.own)}.")


def _word_clicked(key: str) -> None:
    if (clicked := clicked_point(key)) is not None:
        state.change_view(word=int(clicked[0] if isinstance(clicked, list) else clicked))


def _texts(opened: layout.Page, classifier: Predictor) -> None:
    """Draw the pooled vectors of the text and of others, beside the nearest texts to this one or to a clicked one."""
    plot, beside = st.columns([3, 2], gap="large")
    with plot:
        st.subheader("The text among other texts", anchor=False)
        others, what = _other_texts(opened)
    own = compute.predict(opened.source, opened.view.text).prediction.probabilities
    pooled = compute.pool_texts(opened.source, tuple(others))
    plane = compute.text_plane(opened.source, opened.view.text, tuple(others))
    with plot:
        chart(
            text_scatter(
                plane.points,
                pooled.labels,
                others,
                plane.own.tolist(),
                plane.own_label,
                plane.shares.tolist(),
                classes=classifier.classes,
                colours=class_colours([own[name] for name in classifier.classes]),
            ),
            key="chart_texts",
            alt=f"Scatter of the pooled vectors of {len(others)} texts by predicted class: "
            + ", ".join(f"{count} {name[:30]}" for name, count in Counter(pooled.labels).most_common())
            + f"; this text among them, {plane.own_label}",
            on_select=lambda: _text_clicked(others),
        )
        st.caption(
            f"Each point is the pooled vector that the class head reads: {what}. Colours and symbols show "
            f"predicted classes, right or wrong. The axes explain {percentage(plane.shares.sum(), 0)} of the variance."
        )
    with beside:
        chosen = st.session_state.get(CHOSEN_TEXT)
        cosines, whose = plane.cosines, "this text"
        if chosen in others:
            unit = pooled.vectors / np.linalg.norm(pooled.vectors, axis=1, keepdims=True)
            place = others.index(chosen)
            cosines, whose = np.where(np.arange(len(others)) == place, -2.0, unit @ unit[place]), f"“{_start(chosen)}”"
        st.subheader("Nearest texts", anchor=False)
        st.markdown(
            f"To **{plain(whose)}**, by cosine similarity in all dimensions. Click a point for its nearest texts."
        )
        most = N_NEAREST_TEXTS_ON_A_SLIDE if lecture.is_on() else N_NEAREST_TEXTS
        nearest = [n for n in np.argsort(-cosines, kind="stable")[:most] if cosines[n] > -2]
        rows = [(_cosine(cosines[n]), _unbroken(pooled.labels[n]), plain(_start(others[n]))) for n in nearest]
        st.markdown(table(("cosine", "predicted", "text"), rows, right=("cosine",)))


def _other_texts(opened: layout.Page) -> tuple[list[str], str]:
    """The texts to compare with, and what they are: examples, and test texts if they are on this machine."""
    has_rows = checkpoints.has_stored_rows(opened.source)
    examples = checkpoints.examples(opened.view.checkpoint)
    others = [example.text for example in examples if example.text != opened.view.text]
    what = f"{len(others)} {'of your test texts' if has_rows else 'example texts of this app'}"
    wanted = st.toggle(
        f"Show up to {N_TEST_TEXTS} test texts",
        value=True,
        key="with_test_texts",
        persist_state="session",
        help="Drawn at random from the held-out rows. This needs the data set on this machine.",
    )
    if wanted:
        try:
            drawn = compute.some_test_texts(opened.source, N_TEST_TEXTS)
            more = [text for text in drawn if text != opened.view.text and text not in others]
            others += more
            what += f" and {len(more)} {'drawn at random' if has_rows else 'texts from the local test set'}"
        except TxclsError as error:
            st.caption(f"The examples only: {plain(str(error).replace('`', ''))}")
    return others, what


def _text_clicked(others: Sequence[str]) -> None:
    if (clicked := clicked_point("chart_texts")) is not None:
        place = int(clicked[0] if isinstance(clicked, list) else clicked)
        st.session_state[CHOSEN_TEXT] = others[place] if 0 <= place < len(others) else None


def _start(text: str) -> str:
    return " ".join(visible(text[:90]).split()) + ("…" if len(text) > 90 else "")


def _unbroken(name: str) -> str:
    """A class name; a short one is not wrapped in a narrow column."""
    return plain(name).replace(" ", "\u00a0" if len(name) <= 16 else " ")


def _plain(token: str) -> str:
    return plain(visible(token[:30]))


def _cosine(value: float) -> str:
    return minus(f"{value:.2f}")


if __name__ == "__main__":
    main()
