"""A page's model and its prediction: load, classify, ask for a text, say what is missing, postpone what takes long."""

import html
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from txcls.app.shell import cached_results, checkpoints, known_words, layout, lecture
from txcls.errors import TxclsError
from txcls.figures import percent, visible
from txcls.inference.predictor import Prediction, Predictor
from txcls.text.formatting import UNUSUAL, class_title, percentage
from txcls.web.export import too_large

MAX_SECONDS = 2.0
"""What takes longer than this is computed only when it is asked for."""


def loading_placeholder(page: layout.Page, *, height: int) -> DeltaGenerator:
    """A placeholder of fixed height while the checkpoint loads for the first time; `empty()` removes it."""
    placeholder = st.empty()
    if not checkpoints.is_loaded(page.source):
        placeholder.skeleton(height)
    return placeholder


@dataclass(frozen=True)
class ClassifiedText:
    """The classifier and its prediction for the text; the label is None if the text has no tokens."""

    classifier: Predictor
    prediction: Prediction

    @property
    def has_label(self) -> bool:
        """Whether the text has any tokens to classify."""
        return self.prediction.label is not None


def classify_text(page: layout.Page, purpose: str, *, before: str = "Prediction") -> ClassifiedText | None:
    """Load the checkpoint, classify the page's text and draw the prediction; None if the box is empty.

    `purpose` completes the line shown for an empty box: what the page does with a text. `before` is the text before the
    prediction.
    """
    if not page.has_text:
        ask_for_text(purpose)
        load_classifier(page)
        return None
    placeholder = loading_placeholder(page, height=480)
    classifier = load_classifier(page)
    prediction = cached_results.predict(page.source, page.view.text)
    placeholder.empty()
    if prediction.label is None:
        say_no_tokens()
    else:
        draw_prediction(page, classifier, prediction, before=before)
    return ClassifiedText(classifier, prediction)


def draw_prediction(
    page: layout.Page, classifier: Predictor, prediction: Prediction, *, before: str = "Prediction"
) -> None:
    """Draw the prediction below the text, or in the strip in lecture mode."""
    page.answer.html(prediction_html(classifier, prediction, before=before))


def load_classifier(page: layout.Page) -> Predictor:
    """Load the page's classifier and draw the line about it; if it cannot be loaded, show why and end the run."""
    try:
        classifier = checkpoints.classifier(page.source)
    except TxclsError as error:
        layout.stop_with(error)
    if not lecture.is_on():
        page.facts.html(layout.facts_html(model_facts_html(classifier)))
    if checkpoints.summary(page.view.checkpoint).dataset == "who_won":
        text_box = f"{layout.TEXT_BOX}_{page.info.name}"
        known_words.offer_known_words(page.unknown, classifier, page.view.text, text_box)
    return classifier


def model_facts_html(classifier: Predictor) -> str:
    """One line of HTML: test accuracy and number of parameters, after the title if no picker shows it."""
    checkpoint = classifier.checkpoint
    has_picker = len(checkpoints.names()) > 1
    parts = [] if has_picker else [f"<b>{html.escape(checkpoints.title(classifier.name))}</b>"]
    if split := next((split for split in ("test", "validation") if split in checkpoint.metrics), None):
        metrics = checkpoint.metrics[split]
        parts.append(f"<b>{percentage(metrics['accuracy'])}</b> accuracy on {metrics['n']:,} {split} texts")
    elif checkpoint.config.imported:
        parts.append("Imported, not measured or calibrated here")
    size = f"<b>{classifier.n_parameters:,}</b> parameters"
    return f"{' · '.join(parts)}<span> · {size}</span>" if parts else size


def prediction_html(
    classifier: Predictor, prediction: Prediction, *, large: bool = False, before: str = "Prediction"
) -> str:
    """The predicted class, its probability and reasons for doubt, as HTML; `before` precedes a small prediction.

    A text that seems out of scope is marked as such.
    """
    best = prediction.ranked[0]
    label = f"<bdi>{html.escape(visible(class_title(best.label)))}</bdi>"
    probability = percent(best.probability)
    is_out_of_scope = prediction.is_out_of_scope is True
    doubts = [UNUSUAL] * prediction.is_unusual
    if prediction.truncated_at is not None:
        doubts.append(f"Only the first {classifier.tokenizer.max_length:,} tokens were read")
    doubt = "".join(f' <span class="txcls-doubt">{sentence}.</span>' for sentence in doubts)
    if large:
        words = f"{label}<small>{probability}</small>"
        if is_out_of_scope:
            words = f"? Probably none of these<small>nearest: {label}, {probability}</small>"
        return f'<div class="txcls-answer{" txcls-outside" * is_out_of_scope}" role="status">{words}{doubt}</div>'
    words = f"<b>{label}</b>, {probability}"
    if is_out_of_scope:
        words = f"<b>probably none of these</b> (nearest: {label}, {probability})"
    return f'<div class="txcls-strip" role="status">{before}: {words}{doubt}</div>'


def ask_for_text(purpose: str) -> None:
    """Draw a line that asks for a text; `purpose` says what the page does with it."""
    st.info(f"Type a few words above, or pick one of the texts: {purpose}")


def say_no_tokens() -> None:
    """Draw a line for a text without tokens."""
    st.info("After cleaning, this text has no tokens left. A few words are enough.")


def say_not_measured(page: layout.Page, what: str) -> None:
    """Draw a note that a checkpoint lacks the measurement that `txcls measure NAME WHAT` makes."""
    if checkpoints.summary(page.source.name).imported:
        st.info(f"The {what} of this model were not measured: it was imported without labelled texts.")
        return
    st.info(
        "Not measured for this checkpoint. If its data set is on this machine, "
        f"`python -m txcls measure {page.source.name} {what} --write` measures it and saves the result."
    )


def may_compute(page: layout.Page, what: str, *, n_texts: int) -> bool:
    """Whether to compute something that takes as long as predicting `n_texts` texts; if not, draw a button for it.

    It is computed at once unless the model is large and it would take more than `MAX_SECONDS`. `what` completes the
    button's label: "Compute …".
    """
    classifier = checkpoints.classifier(page.source)
    if too_large(classifier.checkpoint) is None:
        return True
    n_tokens = len(classifier.encode(page.view.text).tokens)
    seconds = n_texts * n_tokens * cached_results.seconds_per_token(page.source)
    asked_for = st.session_state.setdefault("asked_for", set())
    asked = (what, page.source.state, page.view.text)
    if seconds <= MAX_SECONDS or asked in asked_for:
        return True
    wait = f"{10 * max(1, round(seconds / 10))} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"
    st.button(f"Compute {what} (about {wait})", key=f"compute_{what}", on_click=asked_for.add, args=(asked,))
    return False
