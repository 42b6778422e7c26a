"""The home page: which class the text belongs to, and what of it the model read."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from txcls.app import loaders, page, state, tokens
from txcls.figures import probability_bars, training_curves


def main() -> None:
    """Draw the page."""
    opened = page.open_page("classify", "What is this text about?", box_height=112, examples="buttons")
    answer, reading = st.columns([3, 2], gap="large")
    with answer:
        st.subheader("Prediction", anchor=False)
        result = st.container()
        if not opened.has_text:
            with result:
                page.invite("the answer appears here as you type.")
        else:
            with result:
                waiting = page.Waiting(opened, height=380)
    with reading:
        if opened.has_text:
            st.subheader("What the model read", anchor=False)
        read = st.container()
    classifier = page.load(opened)
    if opened.has_text:
        timed = loaders.predict(opened.source, opened.view.text)
        prediction = timed.prediction
        waiting.over()
        n_classes = len(classifier.classes)
        k = min(opened.view.k, n_classes, state.MOST_ROWS)
        with result:
            if prediction.label is None:
                page.nothing_to_read()
            else:
                st.html(page.answer_html(prediction, large=True))
                shown, hidden = prediction.scores[:k], prediction.scores[k:]
                other = sum(score.probability for score in hidden)
                words = ", ".join(f"{score.label} {score.probability:.1%}" for score in shown)
                page.chart(
                    probability_bars(
                        [score.label for score in shown],
                        [score.probability for score in shown],
                        other=(len(hidden), other),
                    ),
                    key="chart_bars",
                    alt=f"Bar chart of class probabilities: {words}" + (f", all others {other:.1%}" if hidden else ""),
                    file_name=f"{opened.view.checkpoint}-prediction",
                )
                _choose_k(k, n_classes)
                st.caption(
                    f"Computed in {timed.milliseconds:.1f} ms on this machine's processor. The bars share 100 % over "
                    f"all {n_classes} classes; the percentages were calibrated on validation texts."
                )
        with read:
            st.html(
                tokens.tokens_html(
                    prediction.text,
                    prediction.tokens,
                    truncated_at=prediction.truncated_at,
                    limit=classifier.encoder.max_length,
                )
            )
            if len(opened.view.text) > state.LONGEST_LINKED_TEXT:
                st.caption("This text is too long for the address bar: a link to this page opens without it.")
    with st.expander("How this checkpoint was trained"):
        _training(classifier.checkpoint.history, classifier.checkpoint.metrics)
    page.close_page(
        opened,
        {
            page.TOKENS: "How did the text become numbers? →",
            page.ATTENTION: "Where did the heads look? →",
            page.POSITIONS: "How did word order get in? →",
        },
    )


def _choose_k(k: int, n_classes: int) -> None:
    most = min(n_classes, state.MOST_ROWS)
    st.session_state["k_box"] = k
    if most <= 6:
        st.segmented_control(
            "Classes listed one by one", range(1, most + 1), key="k_box", required=True, on_change=_k_changed
        )
    else:
        st.slider("Classes listed one by one", 1, most, key="k_box", on_change=_k_changed)


def _k_changed() -> None:
    state.change_view(k=int(st.session_state["k_box"]))


def _training(history: Sequence[Mapping[str, Any]], metrics: Mapping[str, Any]) -> None:
    if history:
        kept = next((row for row in reversed(history) if row.get("best")), history[-1])
        page.chart(
            training_curves(history),
            key="chart_training",
            alt=f"Loss and accuracy while training; the kept weights reach {kept.get('validation_accuracy', 0):.1%} on "
            "validation texts",
            file_name="training",
        )
    split = "test" if "test" in metrics else "validation"
    per_class = metrics.get(split, {}).get("per_class", [])
    if per_class:
        rows = [f"| class | precision | recall | F1 | {split} texts |", "|---|---:|---:|---:|---:|"]
        rows += [
            f"| {page.plain(str(one['label']))} | {one['precision']:.3f} | {one['recall']:.3f} | {one['f1']:.3f} "
            f"| {one['support']:,} |"
            for one in per_class
        ]
        st.markdown("\n".join(rows))


if __name__ == "__main__":
    main()
