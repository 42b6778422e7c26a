"""The answer of a page's classifier: load it, classify the text, and say so where there is nothing to classify."""

import html
from dataclasses import dataclass

import streamlit as st

from txcls.app.shell import compute, layout, lecture, loading
from txcls.app.shell import sentence_builder as report_builder
from txcls.errors import TxclsError
from txcls.figures import percent, visible
from txcls.predictor import Prediction, Predictor
from txcls.wording import percentage


class Waiting:
    """A placeholder of fixed height while the checkpoint loads for the first time, until `over`."""

    def __init__(self, page: layout.Page, *, height: int) -> None:
        self._slot = st.empty()
        if not loading.is_loaded(page.source):
            self._slot.skeleton(height)

    def over(self) -> None:
        """Remove the placeholder."""
        self._slot.empty()


@dataclass(frozen=True)
class Read:
    """The classifier and its prediction for the text; the label is None if the text has no tokens."""

    classifier: Predictor
    prediction: Prediction

    @property
    def is_answered(self) -> bool:
        """Whether the text had any tokens to classify."""
        return self.prediction.label is not None


def read_text(page: layout.Page, what: str) -> Read | None:
    """Load the checkpoint, classify the page's text and draw the answer; None if the box is empty.

    An empty box, or a text without tokens, gets a friendly line instead; `what` says what a text would show.
    """
    if not page.has_text:
        invite(what)
        load(page)
        return None
    waiting = Waiting(page, height=480)
    classifier = load(page)
    prediction = compute.predict(page.source, page.view.text).prediction
    waiting.over()
    if prediction.label is None:
        nothing_to_read()
    else:
        draw_answer(page, prediction)
    return Read(classifier, prediction)


MOSTLY = 0.5
"""From this share of unknown words on, an answer is said to mean nothing."""


def draw_answer(page: layout.Page, prediction: Prediction) -> None:
    """The answer beside the examples, and a warning if it means nothing; in lecture mode both are in the strip."""
    share = prediction.unknown_share
    if not lecture.is_on():
        page.answer.html(answer_html(prediction))
        say_unknown(prediction)
    elif share >= MOSTLY:
        before = f"<b>Means nothing</b>, {percentage(share, 0)} is unknown"
        page.answer.html(answer_html(prediction, before=before))
    else:
        page.answer.html(answer_html(prediction))


def say_unknown(prediction: Prediction) -> None:
    """A warning if most of the text is made of words that the model does not know."""
    share = prediction.unknown_share
    if share >= MOSTLY:
        how = "" if prediction.unknown else "; they are spelled out in single letters or bytes"
        st.warning(
            f"**This answer means nothing**: {percentage(share, 0)} of the letters of this text are in words that are "
            f"not in the model's vocabulary{how}. A model has no way not to answer.",
        )


def load(page: layout.Page) -> Predictor:
    """Load the page's classifier and draw the line about it; if it cannot be loaded, show why and end the run."""
    try:
        classifier = loading.classifier(page.source)
    except TxclsError as error:
        layout.stop_with(error)
    if not lecture.is_on():
        page.facts.html(layout.facts_html(facts(classifier)))
    if loading.summary(page.view.checkpoint).dataset == "who_won":
        report_builder.offer_known_words(
            page.unknown, classifier, page.view.text, f"{layout.TEXT_BOX}_{page.info.name}"
        )
    return classifier


def facts(classifier: Predictor) -> str:
    """One line of HTML: name, title (unless the picker shows it), test accuracy, number of parameters."""
    checkpoint = classifier.checkpoint
    parts = [f"<b>{html.escape(classifier.name)}</b>"]
    if checkpoint.config.title and len(loading.names()) < 2:
        parts.append(html.escape(checkpoint.config.title))
    for split in ("test", "validation"):
        if split in checkpoint.metrics:
            figures = checkpoint.metrics[split]
            parts.append(f"<b>{percentage(figures['accuracy'])}</b> right on {figures['n']:,} {split} texts")
            break
    parts.append(f"<b>{classifier.n_parameters:,}</b> parameters")
    return " · ".join(parts)


def answer_html(prediction: Prediction, *, large: bool = False, before: str = "Prediction") -> str:
    """The predicted class and its probability, as HTML; a text that seems out of scope is said to be so first.

    `before` stands before a small answer.
    """
    best = prediction.ranked[0]
    label = html.escape(visible(best.label))
    outside = prediction.out_of_scope is True
    if large:
        words = (
            f"? Probably none of these<small>nearest: {label}, {percent(best.probability)}</small>"
            if outside
            else f"{label}<small>{percent(best.probability)}</small>"
        )
        return f'<div class="txcls-answer{" txcls-outside" * outside}" role="status">{words}</div>'
    words = (
        f"<b>probably none of these</b> (nearest: {label}, {percent(best.probability)})"
        if outside
        else f"<b>{label}</b>, {percent(best.probability)}"
    )
    return f'<div class="txcls-strip" role="status">{before}: {words}</div>'


def invite(what: str) -> None:
    """A friendly line for an empty text box."""
    st.info(f"Type a few words above, or pick one of the texts: {what}")


def nothing_to_read() -> None:
    """A friendly line for a text without tokens."""
    st.info("After cleaning, no tokens are left of this text. A few words are enough.")
