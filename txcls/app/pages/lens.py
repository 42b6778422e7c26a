"""The class head applied after every block, and the contribution of each part to the predicted class."""

import html

import numpy as np
import streamlit as st

from txcls.app import menu
from txcls.app.shell import compute, layout, lecture
from txcls.app.shell.charts import chart, window
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import classify_text
from txcls.figures import contribution_bars, label, lens_lines, minus, percent, token_rows, visible
from txcls.wording import percentage

STYLE = """
<style>
.txcls-steps {display: grid; grid-template-columns: auto auto auto; gap: 0.15rem 1.2rem; width: fit-content;}
.txcls-steps {font-size: 1.05rem; overflow-wrap: anywhere;}
.txcls-steps > :nth-child(3n) {text-align: right; font-variant-numeric: tabular-nums;}
</style>
"""


def main() -> None:
    """Draw the page."""
    opened = layout.open_page(menu.LENS)
    st.html(STYLE)
    read = classify_text(opened, "the class head is applied to its state after every block.")
    if read is not None and read.has_label:
        with lecture.slide(lecture.ATTENTION, lecture.FEED_FORWARD, lecture.CLASSES):
            _decision(opened, read.classifier.classes)
        post_norm = read.classifier.checkpoint.config.model.norm == "post"
        _contributions(opened, read.classifier.classes, post_norm=post_norm)
        with lecture.slide(lecture.ATTENTION, lecture.FEED_FORWARD):
            _norms(opened, post_norm=post_norm)
    layout.close_page(opened)


def _decision(opened: layout.Page, classes: tuple[str, ...]) -> None:
    lens = compute.class_lens(opened.source, opened.view.text)
    st.subheader("What would the model predict if it stopped here?", anchor=False)
    lines, steps = st.columns([3, 2], gap="large")
    with lines:
        chart(
            lens_lines(lens.states, classes, lens.probabilities),
            key="chart_lens",
            alt="Class probabilities after each block: "
            + "; ".join(
                f"{state}: {classes[int(row.argmax())][:30]} {percentage(row.max(), 0)}"
                for state, row in zip(lens.states, lens.probabilities, strict=True)
            ),
        )
        st.caption(
            "The model's own final steps (norm, pooling, class head), applied to the residual stream after each block "
            "as if it were the last one: the “logit lens”."
        )
    with steps:
        cells = "".join(
            f"<div>{html.escape(state)}</div><b>{html.escape(classes[int(row.argmax())])}</b>"
            f"<div>{percent(float(row.max()))}</div>"
            for state, row in zip(lens.states, lens.probabilities, strict=True)
        )
        st.html(f'<div class="txcls-steps"><div>after</div><div>predicted class</div><div></div>{cells}</div>')
        st.info(
            "**Approximate**, except for the last row, which is the model's prediction. The class head was trained on "
            "the last state only: applied to earlier states, it shows what it can read from them, not what the model "
            "“thinks”. The calibration, too, was fitted to the last state."
        )


def _contributions(opened: layout.Page, classes: tuple[str, ...], *, post_norm: bool) -> None:
    """Draw how much each part adds to the difference between the logits of the predicted class and the runner-up."""
    lens = compute.class_lens(opened.source, opened.view.text)
    winner, second = (int(place) for place in np.argsort(-lens.logits, kind="stable")[:2])
    between = lens.contributions[:, :, winner] - lens.contributions[:, :, second]  # sources T
    sources = (*lens.sources, "biases")
    values = np.append(between.sum(axis=1), lens.bias[winner] - lens.bias[second])
    tokens = lens.traced.tokens
    shown = window(len(tokens), key="lens_window")
    names = [token.label for token in tokens[shown]]
    first, other = (plain(visible(classes[place][:40])) for place in (winner, second))
    bars, of_tokens = st.columns([2, 3], gap="large")
    with bars, lecture.slide(lecture.ATTENTION, lecture.FEED_FORWARD, lecture.CLASSES):
        st.subheader(f"Which part decides between {first} and {other}?", anchor=False)
        st.markdown(
            f"The logit of **{first}** is **{minus(f'{values.sum():.2f}')}** above that of **{other}**, the runner-up. "
            "The last state is the sum of what each part wrote to the residual stream, so the bars sum to this "
            f"difference. Orange: in favour of {first}; blue: in favour of {other}."
        )
        chart(
            contribution_bars(sources, values, title=f"logit of {label(classes[winner])} − {label(classes[second])}"),
            key="chart_contributions",
            alt=f"What each part adds to the logit of {classes[winner][:40]} beyond that of {classes[second][:40]}: "
            + ", ".join(
                f"{source} " + minus(f"{value + 0.0:+.2f}")
                for source, value in zip(sources, values.round(2), strict=True)
            ),
        )
        st.caption(
            "**Direct logit attribution** ([Elhage et al. 2021](https://transformer-circuits.pub/2021/framework)): "
            + ("each norm's mean and scale" if post_norm else "the final norm's scale")
            + " and the pooling weights are fixed at their values for this text, which makes the rest linear. It "
            "counts only what a part adds directly, not what later parts compute from it. So a part with a short bar "
            "can still be necessary: the Switchboard tests that."
        )
    with of_tokens, lecture.slide(lecture.ATTENTION, lecture.FEED_FORWARD, lecture.CLASSES):
        st.subheader("Through which token?", anchor=False)
        st.markdown("The same for the last state of each token, weighted as in pooling.")
        chart(
            token_rows(lens.sources, names, between[:, shown], title="logits", signed=True, form="+.2f"),
            key="chart_contribution_map",
            alt=f"Heat map of what {len(lens.sources)} parts add through each of {len(names)} tokens, from "
            f"{between[:, shown].min():.2f} to {between[:, shown].max():.2f}",
        )


def _norms(opened: layout.Page, *, post_norm: bool) -> None:
    """Draw the norm of each token's state after every block."""
    lens = compute.class_lens(opened.source, opened.view.text)
    tokens = lens.traced.tokens
    shown = window(len(tokens), key="norms_window")
    names = [token.label for token in tokens[shown]]
    st.subheader("Norm of the residual stream", anchor=False)
    lengths = lens.norms.mean(axis=1)
    st.markdown(
        "The Euclidean norm of each token's state after every block. Mean over the tokens: "
        + ", ".join(f"**{length:.1f}** ({state})" for state, length in zip(lens.states, lengths, strict=True))
        + ". "
        + (
            "LayerNorm after each block resets it."
            if post_norm
            else "It grows as blocks add to it, so later blocks must write larger vectors to have the same effect. The "
            "final LayerNorm gives all tokens the same scale before the class head."
        )
    )
    chart(
        token_rows(lens.states, names, lens.norms[:, shown], title="norm", signed=False, form=".2f"),
        key="chart_lengths",
        alt=f"Heat map of the norm of {len(lens.states)} states of {len(names)} tokens, from "
        f"{np.min(lens.norms[:, shown]):.1f} to {np.max(lens.norms[:, shown]):.1f}",
    )


if __name__ == "__main__":
    main()
