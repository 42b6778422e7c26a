"""The part of the Report page about training rows: the nearest, and on small data those that taught an answer."""

import streamlit as st

from txcls.app.pages.report import compute_influence
from txcls.app.pages.report import rows as report_rows
from txcls.app.pages.report.compute_influence import TaughtAnswer
from txcls.app.shell import answering, compute, layout, lecture, state
from txcls.app.shell.charts import chart
from txcls.app.shell.markdown import plain
from txcls.errors import TxclsError
from txcls.figures import influence_bars, minus, visible
from txcls.inspection.influence import InfluenceCheck
from txcls.predictor import Predictor
from txcls.wording import percentage

ASKED = "When does the last train to the coast leave tonight?"
"""The text that the small models are asked first."""
_READY, _AGAIN = "report_taught", "report_again"


def draw(opened: layout.Page, classifier: Predictor) -> None:
    """Both parts."""
    if not lecture.is_on():
        _nearest(opened, classifier)
    with lecture.slide(lecture.WORDS, lecture.CLASSES):
        _taught()


def _nearest(opened: layout.Page, classifier: Predictor) -> None:
    st.subheader("Training rows nearest to a text", anchor=False)
    key = f"{layout.TEXT_BOX}_{opened.info.name}"
    st.text_area("Text", key=key, height=84, on_change=state.follow("text", key), placeholder="Type or paste a text …")
    if not opened.has_text:
        answering.invite("the training rows nearest to it are listed here.")
        return
    if compute.predict(opened.source, opened.view.text).prediction.label is None:
        answering.nothing_to_read()
        return
    asked = f"report_nearest_{opened.source.name}"
    if not st.session_state.get(asked):
        chosen = {asked: True}
        st.button(
            "Find the nearest training rows",
            key="report_find_nearest",
            on_click=lambda: st.session_state.update(chosen),
        )
        return
    try:
        with st.spinner("reading training rows …"):
            rows, among, total = compute_influence.nearest(opened.source, opened.view.text)
    except TxclsError as error:
        st.info(f"This needs the training rows of {plain(classifier.name)}. {plain(str(error))}")
        return
    lines = [(one.text, one.label, one.cosine) for one in rows]
    report_rows.table("", ("text", "label", "cosine"), lines, key="nearest")
    part = "" if among == total else f" of {total:,}, drawn at random"
    st.caption(
        f"The cosine of pooled vectors, among {among:,} training rows{part}. These rows look alike to the classifier. "
        "That is **not a cause**: whether they taught it the answer, only training without them can tell."
    )


def _taught() -> None:
    st.subheader("What taught it this?", anchor=False)
    st.markdown(
        "On small data it can be tested which training rows an answer rests on: leave them out, train again, and look. "
        "Here on the **sample set** of everyday messages on six subjects, with small models trained now, on this "
        "machine."
    )
    check = InfluenceCheck.shipped()
    if check is not None:
        _say_check(check)
    if not (compute_influence.is_taught() or st.session_state.get(_READY)):
        st.button(
            f"Train {compute_influence.N_TRAININGS} small models", key="report_teach", type="primary", on_click=_begin
        )
        return
    bar = st.empty()
    compute_influence.taught(on_share=lambda share: bar.progress(min(share, 1.0), "training; any click cancels"))
    bar.empty()
    text = st.text_input("Message", ASKED, key="report_taught_text", max_chars=400)
    if not text.strip():
        answering.invite("a message about cooking, health, money, sport, technology or travel.")
        return
    with st.spinner("comparing gradients …"):
        found = compute_influence.taught_answer(text)
    _answer(found, text)


def _begin() -> None:
    st.session_state[_READY] = True


def _say_check(check: "object") -> None:
    assert isinstance(check, InfluenceCheck)
    verdict = (
        "So the rows named carry answers, more than others of their class do."
        if check.passes
        else "So **the rows named do not clearly carry answers more than others do**; take the list as a guess."
    )
    named, control, apart, low, high = (
        minus(f"{value:+.2f}") for value in (check.named, check.control, check.difference, check.low, check.high)
    )
    st.caption(
        "Rows are named from gradients, averaged over trainings (after [Park et al. "
        "2023](https://arxiv.org/abs/2303.14186)). Checked by training again: "
        f"for {check.n_answers} test texts, the log odds of the answer changed by {named} without the {check.n_rows} "
        f"rows named, and by {control} without {check.n_rows} random others of the same class; difference {apart}, "
        f"95 % interval {low} to {high}, larger for {check.larger} of {check.n_answers} texts "
        f"(`python -m benchmarks.influence`). {verdict}"
    )


def _answer(found: TaughtAnswer, text: str) -> None:
    label = found.classes[found.answer]
    st.markdown(
        f"The answer is **{plain(label)}**, {percentage(found.probabilities[found.answer])}"
        + f", mean of {compute_influence.N_TRAININGS} trainings. The {len(found.named)} training rows of this class "
        f"that "
        "carry it most:"
    )
    if not lecture.is_on():
        lines = [(visible(row), round(effect, 4)) for row, effect in zip(found.texts, found.effects, strict=True)]
        report_rows.table("", ("text", "effect"), lines, key="taught_rows")
    key = (text, found.named)
    if st.session_state.get(_AGAIN) != key:
        st.button(
            f"Train again without these {len(found.named)} rows",
            key="report_train_again",
            on_click=lambda: st.session_state.update({_AGAIN: key}),
        )
        return
    bar = st.empty()

    def show(part: int) -> compute_influence.OnStep:
        return lambda share: bar.progress(min((part + share) / 2, 1.0), "training again; any click cancels")

    without = compute_influence.answer_without(text, found.named, on_share=show(0))
    control = compute_influence.answer_without(text, found.control, on_share=show(1))
    bar.empty()
    named, others = f"without these {len(found.named)} rows", f"without {len(found.control)} random others of the class"
    chart(
        influence_bars(
            found.classes, found.probabilities.tolist(), {named: without.tolist(), others: control.tolist()}
        ),
        key="chart_taught",
        alt=f"Bars of class probabilities: {label} {percentage(found.probabilities[found.answer])} after training on "
        f"all rows, {percentage(without[found.answer])} {named}, {percentage(control[found.answer])} {others}",
        file_name="taught",
    )
    st.caption(
        f"Means of {compute_influence.N_TRAININGS} trainings each. The random rows are the control: leaving out any "
        "rows changes an answer a little."
    )
