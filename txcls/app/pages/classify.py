"""The home page: the whole model in one picture, the predicted class, and the text as the model read it."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from txcls.app import menu
from txcls.app.components.widgets import live_picture
from txcls.app.lessons import lesson
from txcls.app.shell import cached_results, checkpoints, layout, lecture, token_html, view_state
from txcls.app.shell.cache import Source
from txcls.app.shell.charts import chart, has_long_names
from txcls.app.shell.heads import CHECKPOINT_WHERE_HEADS_MATTER, draw_replacement, replacement
from txcls.app.shell.markdown import escape, table
from txcls.app.shell.prediction import (
    ask_for_text,
    load_classifier,
    loading_placeholder,
    model_facts_html,
    prediction_html,
    say_no_tokens,
)
from txcls.config.places import not_available
from txcls.data.datasets import REPORTS
from txcls.errors import TxclsError
from txcls.evaluation.evaluate import accepted_out_of_scope
from txcls.figures import class_colours, probability_bars
from txcls.inference.predictor import Predictor
from txcls.lessons.page_address import MAX_LINKED_CHARACTERS, MAX_SHOWN_CLASSES, SWITCH, View, params_from_view
from txcls.text.formatting import percentage
from txcls.web.export import too_large, unsupported

STEP_OF_PART = {
    "words": "tokens",
    "positions": "positions",
    "attn": "softmax",
    "ff": "add_ff",
    "pool": "pooled",
    "answer": "calibrated",
}
"""The step that Step by step opens for each part of the picture."""
QUESTIONS = {
    "ag_news": "Which section is this news text from?",
    "huffpost": "Which section is this news text from?",
    "imdb": "Is this review positive or negative?",
    "clinc150": "What does this query ask for?",
    "who_won": "Who won, according to this report?",
    "who_won_small": "Who won, according to this report?",
    "repeated_word": "Does a word occur twice?",
    "agreement": "Singular or plural after these words?",
}
"""The heading of the page, keyed by data set."""


def main() -> None:
    """Draw the page."""
    page = layout.open_page(menu.CLASSIFY, examples="buttons", compare=True, questions=QUESTIONS)
    classifier = _compare_checkpoints(page) if page.view.versus else _draw_checkpoint(page)
    if page.has_text and len(page.view.text) > MAX_LINKED_CHARACTERS:
        st.caption("This text is too long for the address bar: a link to this page will not include it.")
    _draw_download(page.source, classifier)
    layout.close_page(page)


def _draw_welcome() -> None:
    """Draw links to three things to try."""
    params = view_state.link_params(view_state.shown_view())
    with st.container(key="welcome", horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("Then try", width="content")
        st.page_link(menu.LESSONS.path, label="a lesson →", query_params=params)
        if CHECKPOINT_WHERE_HEADS_MATTER in checkpoints.names():
            view = View(checkpoint=CHECKPOINT_WHERE_HEADS_MATTER, text=REPORTS[0].text)
            st.page_link(menu.HEADS.path, label="switching heads off →", query_params=params_from_view(view))
        st.page_link(menu.PLAYGROUND.path, label="your own table →", query_params=params)


def _draw_checkpoint(page: layout.Page) -> Predictor:
    """Draw the picture of the whole model, and the prediction beside the text as read."""
    with lecture.slide(own_keys=True):
        picture = st.container()
    welcome = st.container()
    with lecture.slide(lecture.CLASSES):
        places = [st.container(), st.container()] if lecture.is_on() else st.columns([3, 2], gap="large")
    prediction_column, text_column = places
    with prediction_column:
        how = ", and were calibrated on validation texts."
        if checkpoints.summary(page.source.name).imported:
            how = "; they are not calibrated, since this model was imported."
        title = "How sure is the model?" if lecture.is_on() else "Prediction"
        st.subheader(title, anchor=False, help=f"The probabilities sum to 100 % over all classes{how}")
        result = st.container()
        with result:
            if page.has_text:
                placeholder = loading_placeholder(page, height=380)
            else:
                ask_for_text("the prediction appears here as you type.")
    with text_column:
        if page.has_text:
            st.subheader("Your text in tokens", anchor=False)
        text_as_read = st.container()
    classifier = load_classifier(page)
    if page.has_text:
        placeholder.empty()
    with picture:  # without a text, the browser keeps the picture of the previous one
        _draw_picture(page, classifier)
    with welcome:
        if not lecture.is_on() and lesson.now() is None:
            _draw_welcome()
    if page.has_text:
        with result:
            if _draw_prediction(page, page.source, classifier, key="chart_bars"):
                _choose_k(page, len(classifier.classes))
        with text_as_read:
            _draw_text_as_read(page, page.source, classifier)
    return classifier


def _draw_picture(page: layout.Page, classifier: Predictor) -> None:
    """Draw the whole model, which the browser recomputes at every keystroke."""
    reason = not_available(classifier.checkpoint.config.model, "picture")
    if problem := too_large(classifier.checkpoint):
        reason = f"not available for this model: {problem}"
    if reason:
        st.info(escape(f"The picture of the whole model is {reason}."))
        layout.draw_link(page, menu.ATTENTION, "See what its heads attend to →")
        return
    heads = [part for part in page.view.switched if part[0].isdigit() and not part.endswith("ff")]
    live_picture(
        f"{page.source.name} {page.source.state}",
        partial(checkpoints.packed_classifier, page.source),
        text=page.view.text,
        question=QUESTIONS.get(checkpoints.summary(page.view.checkpoint).dataset, page.info.question) * lecture.is_on(),
        box=f"{layout.TEXT_BOX}_{page.info.name}",
        switched_off_heads=heads,
        how=replacement(classifier, page.view),
        key="live_picture",
        on_arrived=view_state.change_view,
        on_switch=partial(_switch_heads, page.view.switched),
        on_open=_open_head,
        on_part=_open_part,
    )
    if heads:
        draw_replacement(classifier, page.view, key="picture_heads")
    target = st.session_state.pop("_open_page", None)
    if target is not None:
        st.switch_page(target, query_params=params_from_view(view_state.shown_view()))


def _switch_heads(switched: Sequence[str], heads_off: list[str]) -> None:
    others = [part for part in switched if not part[0].isdigit() or part.endswith("ff")]
    view_state.change_view(switched=(*others, *(head for head in heads_off if SWITCH.fullmatch(head))))


def _open_head(layer: int, head: int) -> None:
    view_state.change_view(layer=max(layer, 0), head=max(head, 0))
    st.session_state["_open_page"] = menu.ATTENTION.path


def _open_part(part: str) -> None:
    layer, _, name = part.removeprefix("layers.").rpartition(".")
    if name in STEP_OF_PART:
        view_state.change_view(step=STEP_OF_PART[name], layer=int(layer or 0))
        st.session_state["_open_page"] = menu.STEPS.path


def _compare_checkpoints(page: layout.Page) -> Predictor:
    """Draw the predictions of two checkpoints, side by side."""
    if not page.has_text:
        ask_for_text("the predictions of both checkpoints appear here as you type.")
    placeholder = loading_placeholder(page, height=380)
    try:
        source = checkpoints.source(page.view.versus)
        classifier, other = map(checkpoints.classifier, (page.source, source))
    except TxclsError as error:
        layout.stop_with(error)
    placeholder.empty()
    page.facts.empty()  # each column has its own line
    which_have_tokens = []
    pairs = ((page.source, classifier, "chart_bars"), (source, other, "chart_bars_versus"))
    with lecture.slide(lecture.CLASSES):
        columns = st.columns(2, gap="large")
    for column, (shown_source, shown_classifier, key) in zip(columns, pairs, strict=True):
        with column:
            st.subheader(escape(checkpoints.title(shown_source.name)), anchor=False)
            st.html(f'<div class="txcls-facts">{model_facts_html(shown_classifier)}</div>')
            if page.has_text:
                which_have_tokens.append(_draw_prediction(page, shown_source, shown_classifier, key=key))
    if any(which_have_tokens):
        _choose_k(page, max(len(classifier.classes), len(other.classes)))
    if page.has_text:
        for column, (shown_source, shown_classifier, _) in zip(st.columns(2, gap="large"), pairs, strict=True):
            with column:
                st.subheader("Your text in tokens", anchor=False)
                _draw_text_as_read(page, shown_source, shown_classifier)
    layout.draw_link(page, menu.ATTENTION, "Compare what their heads attend to →")
    with st.expander("Compare them on the same test rows", key="same_rows", on_change="rerun") as expander:
        if expander.open:
            _draw_same_rows(page.source, source)
    return classifier


def _draw_same_rows(first: Source, second: Source) -> None:
    """Draw the accuracy of two checkpoints on the same test rows, and how fast they learned."""
    try:
        rows = cached_results.same_rows(first, second)
    except TxclsError as error:
        st.info(escape(str(error)))
    else:
        names = [escape(checkpoints.title(source.name)) for source in (first, second)]
        st.markdown(table(("", *names), rows.table, right=names))


def _draw_prediction(page: layout.Page, source: Source, classifier: Predictor, *, key: str) -> bool:
    """Draw the ranked classes; return False if the text has no tokens."""
    prediction = cached_results.predict(source, page.view.text)
    if prediction.label is None:
        say_no_tokens()
        return False
    st.html(prediction_html(classifier, prediction, large=True))
    if prediction.is_out_of_scope:
        st.caption(
            f"This text scores below the threshold, fitted on validation texts, that separates texts of the "
            f"{len(classifier.classes)} classes from all others. The classes are ranked nevertheless:"
        )
    elif sentence := accepted_out_of_scope(classifier.checkpoint.metrics):
        st.caption(f"Not rejected as out of scope. {sentence}")
    k = min(page.view.k, len(classifier.classes), MAX_SHOWN_CLASSES)
    shown, hidden = prediction.ranked[:k], prediction.ranked[k:]
    other_probability = sum(score.probability for score in hidden)
    colours = class_colours([prediction.probabilities[name] for name in classifier.classes])
    probabilities = ", ".join(f"{score.label} {percentage(score.probability)}" for score in shown)
    chart(
        probability_bars(
            [score.label for score in shown],
            [score.probability for score in shown],
            colours=[colours[classifier.classes.index(score.label)] for score in shown],
            other=(len(hidden), other_probability),
            names_above=has_long_names(classifier.classes),
        ),
        key=key,
        file_prefix=source.name,
        alt=f"Bar chart of class probabilities: {probabilities}"
        + (f", all others {percentage(other_probability)}" if hidden else ""),
    )
    return True


def _draw_text_as_read(page: layout.Page, source: Source, classifier: Predictor) -> None:
    """Draw the text as the checkpoint read it."""
    prediction = cached_results.predict(source, page.view.text)
    truncated_at, limit = prediction.truncated_at, classifier.tokenizer.max_length
    lower = "lowercase" in classifier.tokenizer.config.cleaning
    st.html(
        token_html.marked_text(prediction.text, prediction.tokens, truncated_at=truncated_at, limit=limit, lower=lower)
    )


def _choose_k(page: layout.Page, n_classes: int) -> None:
    limit = min(n_classes, MAX_SHOWN_CLASSES)
    if limit < 2 or lecture.is_on():
        return
    st.session_state["k_box"] = min(page.view.k, limit)
    store = view_state.store_value_of("k", "k_box")
    if limit <= 6:
        st.segmented_control("Classes shown", range(1, limit + 1), key="k_box", required=True, on_change=store)
    else:
        st.slider("Classes shown", 1, limit, key="k_box", on_change=store, width=420)


def _draw_download(source: Source, classifier: Predictor) -> None:
    """Offer the classifier as one file, which is created when the section is opened."""
    with st.expander("This model as a file that needs no server", key="export", on_change="rerun") as expander:
        if not expander.open:
            return
        if reason := unsupported(classifier.checkpoint):
            st.info(escape(reason) + ".")
            return
        st.markdown(
            "One HTML file that contains the model: text box, probabilities, every attention head, switches for heads, "
            "and the class lens. It opens from a disk, an e-mail or a learning platform, works without a network, and "
            "sends no text anywhere. `python -m txcls export page` writes the same file, or a folder for a static host."
        )
        st.download_button(
            f"Download {escape(classifier.name)}.html",
            checkpoints.exported_page(source),
            file_name=f"{classifier.name}.html",
            mime="text/html",
            key="export_page",
            on_click="ignore",
        )


if __name__ == "__main__":
    main()
