"""The home page: the predicted class, what the model read of the text, and its predictions on test texts."""

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from txcls.address import LONGEST_LINKED_TEXT, MAX_ROWS, SWITCH, params_from_view
from txcls.app import pages
from txcls.app.components.machine import machine
from txcls.app.shell import checkpoints, compute, layout, lecture, model_parts, state, token_html
from txcls.app.shell.cache import Source
from txcls.app.shell.charts import chart, has_long_names
from txcls.app.shell.markdown import plain, table
from txcls.app.shell.prediction import (
    LoadingPlaceholder,
    ask_for_text,
    facts_of,
    load_classifier,
    prediction_html,
    say_no_tokens,
    warn_if_unknown,
)
from txcls.data.datasets import dataset_info, dataset_names, is_available
from txcls.errors import TxclsError
from txcls.figures import probability_bars, training_curves
from txcls.figures.lines import of_runs
from txcls.predictor import Predictor
from txcls.web.export import unsupported
from txcls.wording import percentage

STEPS = {
    "words": "tokens",
    "positions": "positions",
    "attn": "softmax",
    "ff": "add_ff",
    "pool": "pooled",
    "answer": "calibrated",
}
"""For each part of the picture, the step that Step by step opens on."""
QUESTIONS = {
    "ag_news": "Which section does this news text belong to?",
    "huffpost": "Which section does this news text belong to?",
    "imdb": "Is this review positive or negative?",
    "clinc150": "What does this query ask for?",
    "who_won": "Who won, by this report?",
}
"""The heading of the page, by data set."""
LINKS = (pages.TOKENS, pages.STEPS, pages.ATTENTION, pages.POSITIONS, pages.WHAT_IF, pages.TRAIN, pages.REPORT)


def main() -> None:
    """Draw the page."""
    opened = layout.open_page(pages.CLASSIFY, box_height=74, examples="buttons", compare=True, questions=QUESTIONS)
    classifier = _two(opened) if opened.view.versus else _one(opened)
    if opened.has_text and len(opened.view.text) > LONGEST_LINKED_TEXT:
        st.caption("This text is too long for the address bar: a link to this page will not include it.")
    with st.expander(f"How {plain(classifier.name)} was trained"):
        checkpoint = classifier.checkpoint
        _training(checkpoint.history, checkpoint.metrics, checkpoint.config.train.runs)
    model_parts.parameters(classifier.checkpoint.model, classifier.name)
    _download(opened.source, classifier)
    _test_texts(opened, classifier)
    layout.close_page(opened, LINKS)


def _one(opened: layout.Page) -> Predictor:
    """The whole model in one picture; the prediction of one checkpoint, beside what it read."""
    with lecture.slide(own_keys=True):
        picture = st.container()
    with lecture.slide(lecture.CLASSES):
        answer, reading = st.columns([3, 2], gap="large")
    with answer:
        st.subheader("Prediction", anchor=False)
        result = st.container()
        with result:
            if opened.has_text:
                placeholder = LoadingPlaceholder(opened, height=380)
            else:
                ask_for_text("the prediction appears here as you type.")
    with reading:
        if opened.has_text:
            st.subheader("What the model read", anchor=False)
        read = st.container()
    classifier = load_classifier(opened)
    if opened.has_text:
        placeholder.remove()
        with picture:
            _picture(opened, classifier)
        with result:
            if _answer(opened, opened.source, classifier, key="chart_bars"):
                _choose_k(opened, len(classifier.classes))
                took = compute.predict(opened.source, opened.view.text).milliseconds
                st.caption(
                    f"Computed in {took:.1f} ms on this machine's CPU. The probabilities sum to 100 % over all "
                    f"{len(classifier.classes)} classes and were calibrated on validation texts. {_beyond(opened)}"
                )
        with read:
            _read(opened, opened.source, classifier)
    return classifier


def _beyond(opened: layout.Page) -> str:
    """A sentence on texts unlike those that the probabilities were calibrated on."""
    if checkpoints.summary(opened.view.checkpoint).dataset == "who_won":
        return (
            "They hold for sentences of its grammar, which *Build a sentence* writes; for others, however similar, "
            "even a confident prediction may be wrong."
        )
    return "For texts unlike those, even a confident prediction may be wrong."


def _picture(opened: layout.Page, classifier: Predictor) -> None:
    """The whole model, computed and drawn in the browser at every key press."""
    if unsupported(classifier.checkpoint):
        return
    heads = [part for part in opened.view.switched if part[0].isdigit() and not part.endswith("ff")]
    machine(
        f"{opened.source.name} {opened.source.state}",
        partial(checkpoints.packed_classifier, opened.source),
        text=opened.view.text,
        box=f"{layout.TEXT_BOX}_{opened.info.name}",
        off=heads,
        how="uniform" if opened.view.heads == "uniform" else opened.view.off,
        key="machine",
        on_arrived=state.change_view,
        on_switch=partial(_switch_heads, opened.view.switched),
        on_open=_open_head,
        on_part=_open_part,
    )
    target = st.session_state.pop("_open_page", None)
    if target is not None:
        st.switch_page(target, query_params=params_from_view(state.shown_view()))


def _switch_heads(before: Sequence[str], off: list[str]) -> None:
    others = [part for part in before if not part[0].isdigit() or part.endswith("ff")]
    state.change_view(switched=(*others, *(head for head in off if SWITCH.fullmatch(head))))


def _open_head(layer: int, head: int) -> None:
    state.change_view(layer=max(layer, 0), head=max(head, 0))
    st.session_state["_open_page"] = pages.ATTENTION.path


def _open_part(part: str) -> None:
    place, _, name = part.removeprefix("layers.").rpartition(".")
    if name in STEPS:
        state.change_view(step=STEPS[name], layer=int(place or 0))
        st.session_state["_open_page"] = pages.STEPS.path


def _two(opened: layout.Page) -> Predictor:
    """The predictions of two checkpoints, side by side."""
    if not opened.has_text:
        ask_for_text("the predictions of both checkpoints appear here as you type.")
    placeholder = LoadingPlaceholder(opened, height=380)
    try:
        source = checkpoints.source(opened.view.versus)
        classifier, other = (checkpoints.classifier(shown) for shown in (opened.source, source))
    except TxclsError as error:
        layout.stop_with(error)
    placeholder.remove()
    opened.facts.empty()  # each column has its own
    answered = []
    pairs = ((opened.source, classifier, "chart_bars"), (source, other, "chart_bars_versus"))
    with lecture.slide(lecture.CLASSES):
        columns = st.columns(2, gap="large")
    for column, (of, shown, key) in zip(columns, pairs, strict=True):
        with column:
            st.subheader(plain(shown.checkpoint.config.title or shown.name), anchor=False)
            st.html(f'<div class="txcls-facts">{facts_of(shown)}</div>')
            if opened.has_text:
                answered.append(_answer(opened, of, shown, key=key))
    if any(answered):
        _choose_k(opened, max(len(classifier.classes), len(other.classes)))
        n = " and ".join(str(len(shown.classes)) for shown in (classifier, other))
        st.caption(
            f"The probabilities of each sum to 100 % over all its classes ({n}); they were calibrated on "
            "validation texts."
        )
    if opened.has_text:
        for column, (of, shown, _) in zip(st.columns(2, gap="large"), pairs, strict=True):
            with column:
                st.subheader(f"What {plain(shown.name)} read", anchor=False)
                _read(opened, of, shown)
    return classifier


def _answer(opened: layout.Page, source: Source, classifier: Predictor, *, key: str) -> bool:
    """The ranked classes; False if the text has no tokens."""
    prediction = compute.predict(source, opened.view.text).prediction
    if prediction.label is None:
        say_no_tokens()
        return False
    warn_if_unknown(prediction)
    st.html(prediction_html(prediction, large=True))
    if prediction.out_of_scope:
        st.caption(
            f"This text scores below the threshold, fitted on validation texts, that separates texts of the "
            f"{len(classifier.classes)} classes from others. The classes are ranked nevertheless:"
        )
    k = min(opened.view.k, len(classifier.classes), MAX_ROWS)
    shown, hidden = prediction.ranked[:k], prediction.ranked[k:]
    other = sum(score.probability for score in hidden)
    words = ", ".join(f"{score.label} {percentage(score.probability)}" for score in shown)
    chart(
        probability_bars(
            [score.label for score in shown],
            [score.probability for score in shown],
            other=(len(hidden), other),
            names_above=has_long_names(classifier.classes),
        ),
        key=key,
        alt=f"Bar chart of class probabilities: {words}" + (f", all others {percentage(other)}" if hidden else ""),
        file_name=f"{source.name}-prediction",
    )
    return True


def _read(opened: layout.Page, source: Source, classifier: Predictor) -> None:
    """The text as the checkpoint read it."""
    prediction = compute.predict(source, opened.view.text).prediction
    st.html(
        token_html.marked_text(
            prediction.text,
            prediction.tokens,
            truncated_at=prediction.truncated_at,
            limit=classifier.encoder.max_length,
        )
    )


def _choose_k(opened: layout.Page, n_classes: int) -> None:
    most = min(n_classes, MAX_ROWS)
    if most < 2:
        return
    st.session_state["k_box"] = min(opened.view.k, most)
    if most <= 6:
        st.segmented_control("Classes shown", range(1, most + 1), key="k_box", required=True, on_change=_k_changed)
    else:
        st.slider("Classes shown", 1, most, key="k_box", on_change=_k_changed, width=420)


def _k_changed() -> None:
    state.change_view(k=int(st.session_state["k_box"]))


def _training(history: Sequence[Mapping[str, Any]], metrics: Mapping[str, Any], runs: int) -> None:
    if history:
        best = next((row for row in reversed(history) if row.get("best")), history[-1])
        chart(
            training_curves(history, runs=runs),
            key="chart_training",
            alt="Loss and accuracy during training, up to "
            f"{percentage(best.get('validation_accuracy', 0))} on validation texts",
            file_name="training",
        )
        if runs > 1:
            st.caption(of_runs(runs))
    split = "test" if "test" in metrics else "validation"
    per_class = metrics.get(split, {}).get("per_class", [])
    if per_class:
        if len(per_class) > 12:
            per_class = sorted(per_class, key=lambda figures: figures["f1"])
            st.caption(f"{len(per_class)} classes, lowest F1 first.")
        columns = ("class", "precision", "recall", "F1", f"{split} texts")
        rows = [
            (
                plain(str(row["label"])),
                *(f"{row[name]:.3f}" for name in ("precision", "recall", "f1")),
                f"{row['support']:,}",
            )
            for row in per_class
        ]
        with st.container(height=480 if len(per_class) > 12 else "content", border=False):
            st.markdown(table(columns, rows, right=columns[1:]))


def _download(source: Source, classifier: Predictor) -> None:
    """The classifier as one file, written when the section is opened."""
    name = plain(classifier.name)
    with st.expander(f"{name} as a file that needs no server", key="export", on_change="rerun") as section:
        if not section.open:
            return
        if sentence := unsupported(classifier.checkpoint):
            st.info(plain(sentence) + ".")
            return
        st.markdown(
            "One HTML file that contains the model: text box, probabilities, every attention head, switches for heads, "
            "and the class lens. It opens from a disk, an e-mail or a learning platform, works without a network, and "
            "sends no text anywhere. `python -m txcls export page` writes the same file, or a folder for a static host."
        )
        st.download_button(
            f"Download {name}.html",
            checkpoints.exported_page(source),
            file_name=f"{classifier.name}.html",
            mime="text/html",
            key="export_page",
            on_click="ignore",
        )


def _test_texts(opened: layout.Page, classifier: Predictor) -> None:
    """Random test texts with true and predicted class, if the data set is on this machine."""
    name = plain(classifier.name)
    with st.expander(f"Random test texts of {name}", key="test_texts", on_change="rerun") as section:
        if not section.open:
            return
        missing = "" if checkpoints.has_kept_rows(opened.source) else _how_to_get(classifier)
        if missing:
            st.info(missing)
            return
        try:
            test_texts = checkpoints.test_texts(opened.source)
            _drawn(opened, classifier, test_texts)
        except TxclsError as error:
            st.warning(plain(str(error)))


def _how_to_get(classifier: Predictor) -> str:
    """Why there are no test texts, and how to get them; "" if there are some."""
    dataset = classifier.checkpoint.config.data.dataset
    if dataset not in dataset_names():
        return "This checkpoint was trained on a user's own file, which it does not contain: there are no test texts."
    if is_available(dataset):
        return ""
    info = dataset_info(dataset)
    how = (
        f"Download it with `python -m txcls data fetch {dataset}`"
        if info.files
        else f"Its publisher requires a login: download it from {info.homepage}"
    )
    return (
        f"The texts of {plain(info.title)} are not on this machine, and checkpoints do not contain them. {how}, "
        f"or put them into a folder `{dataset}` and start the app with `TXCLS_DATA` set to its parent folder."
    )


def _drawn(opened: layout.Page, classifier: Predictor, test_texts: checkpoints.TestTexts) -> None:
    controls = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    n = controls.slider("Number of texts", 5, 100, 20, 5, key="draw_n", persist_state="session", width=260)
    seed = controls.number_input("Seed", 0, 999_999, 0, key="draw_seed", persist_state="session", width=160)
    controls.button("Draw others", key="draw_others", on_click=_draw_others)
    with_outside = False
    if test_texts.outside and classifier.checkpoint.scope is not None:
        with_outside = st.toggle(
            f"Include out-of-scope texts ({len(test_texts.outside):,}, beside {len(test_texts.rows):,} in scope)",
            key="draw_outside",
            persist_state="session",
        )
    drawn = compute.draw(opened.source, n=int(n), seed=int(seed), with_outside=with_outside)
    n_right = sum(text.is_right for text in drawn)
    st.markdown(
        f"**{n_right} of {len(drawn)} right** ({percentage(n_right / len(drawn), 0)})"
        + (
            "; rejecting a text that belongs to one of the classes counts as wrong."
            if classifier.checkpoint.scope is not None
            else "."
        )
    )
    st.html(token_html.drawn_texts(drawn))
    info = test_texts.dataset.info
    st.caption(
        f"Drawn from the {len(test_texts.rows):,} test texts of {plain(info.title)}, as stored on this machine. "
        f"Terms: {plain(info.terms)}."
    )


def _draw_others() -> None:
    st.session_state["draw_seed"] = random.randrange(1_000_000)


if __name__ == "__main__":
    main()
