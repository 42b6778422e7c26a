"""The class head applied after every block, and the contribution of each part to the predicted class."""

import html

import numpy as np
import streamlit as st

from txcls.app import menu
from txcls.app.shell import cached_results, layout, lecture
from txcls.app.shell.charts import chart, window
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import classify_text
from txcls.figures import class_colours, contribution_bars, label, lens_lines, minus, percent, token_rows, visible
from txcls.inspection.lens import ClassLens
from txcls.wording import percentage, signed

STYLE = """
<style>
.txcls-steps {display: grid; grid-template-columns: auto auto auto; gap: 0.15rem 1.2rem; width: fit-content;}
.txcls-steps {font-size: 1.05rem; overflow-wrap: anywhere;}
.txcls-steps > :nth-child(3n) {text-align: right; font-variant-numeric: tabular-nums;}
</style>
"""


def main() -> None:
    """Draw the page."""
    page = layout.open_page(menu.LENS)
    st.html(STYLE)
    classified = classify_text(page, "the class head is applied to the residual stream after every block.")
    if classified is not None and classified.has_label:
        lens = cached_results.class_lens(page.source, page.view.text)
        with lecture.slide(lecture.ATTENTION, lecture.FEED_FORWARD, lecture.CLASSES):
            _draw_lens(lens, classified.classifier.classes)
        post_norm = classified.classifier.checkpoint.config.model.norm == "post"
        _draw_contributions(lens, classified.classifier.classes, post_norm=post_norm)
        with lecture.slide(lecture.ATTENTION, lecture.FEED_FORWARD):
            _draw_norms(lens, post_norm=post_norm)
    layout.close_page(page)


def _draw_lens(lens: ClassLens, classes: tuple[str, ...]) -> None:
    """Draw the class probabilities after every block."""
    st.subheader("Class probabilities after each block", anchor=False)
    chart_column, table_column = st.columns([3, 2], gap="large")
    with chart_column:
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
    with table_column:
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


def _draw_contributions(lens: ClassLens, classes: tuple[str, ...], *, post_norm: bool) -> None:
    """Draw how much each part adds to the difference between the logits of the predicted class and the runner-up."""
    predicted, runner_up = (int(n) for n in np.argsort(-lens.logits, kind="stable")[:2])
    differences = lens.contributions[:, :, predicted] - lens.contributions[:, :, runner_up]  # sources T
    sources = (*lens.sources, "biases")
    values = np.append(differences.sum(axis=1), lens.bias[predicted] - lens.bias[runner_up])
    all_colours = class_colours(lens.probabilities[-1])
    colours = all_colours[runner_up], all_colours[predicted]
    tokens = lens.traced.tokens
    shown_tokens = window(len(tokens), key="lens_window")
    names = [token.label for token in tokens[shown_tokens]]
    predicted_name, runner_up_name = (plain(visible(classes[n][:40])) for n in (predicted, runner_up))
    bars_column, tokens_column = st.columns([2, 3], gap="large")
    with bars_column, lecture.slide(lecture.ATTENTION, lecture.FEED_FORWARD, lecture.CLASSES):
        st.subheader(
            f"What does each part add directly to {predicted_name}, compared with {runner_up_name}?", anchor=False
        )
        st.markdown(
            f"The logit of **{predicted_name}** is **{minus(f'{values.sum():.2f}')}** above that of "
            f"**{runner_up_name}**, the runner-up, before calibration changes the probabilities. The last state is "
            f"the sum of what each part wrote to the residual stream{', after each norm' * post_norm}, so the bars sum "
            f"to this difference. Bars to the right, in the colour of {predicted_name}, are in its favour; those to "
            f"the left in favour of {runner_up_name}."
        )
        chart(
            contribution_bars(
                sources,
                values,
                title=f"logit of {label(classes[predicted])} − {label(classes[runner_up])}",
                colours=colours,
            ),
            key="chart_contributions",
            alt=f"What each part adds to the logit of {classes[predicted][:40]} beyond that of "
            f"{classes[runner_up][:40]}: "
            + ", ".join(f"{source} {signed(value, 2)}" for source, value in zip(sources, values, strict=True)),
        )
        st.caption(
            "**Direct logit attribution** ([Elhage et al. 2021](https://transformer-circuits.pub/2021/framework)): "
            + ("each norm's mean and scale" if post_norm else "the final norm's scale")
            + " and the pooling weights are fixed at their values for this text, which makes the rest linear. It "
            "counts only what a part adds directly, not what later parts compute from it. A part with a short bar can "
            "still be necessary: Switchboard shows what happens without it."
        )
    with tokens_column, lecture.slide(lecture.ATTENTION, lecture.FEED_FORWARD, lecture.CLASSES):
        st.subheader("Through which token?", anchor=False)
        st.markdown("The same differences through each token's last state, weighted as in pooling.")
        chart(
            token_rows(
                lens.sources,
                names,
                differences[:, shown_tokens],
                title="logits",
                colours=colours,
            ),
            key="chart_contribution_map",
            alt=f"Heat map of what {len(lens.sources)} parts add through each of {len(names)} tokens, from "
            f"{differences[:, shown_tokens].min():.2f} to {differences[:, shown_tokens].max():.2f}",
        )


def _draw_norms(lens: ClassLens, *, post_norm: bool) -> None:
    """Draw the norm of each token's state after every block."""
    tokens = lens.traced.tokens
    shown_tokens = window(len(tokens), key="norms_window")
    names = [token.label for token in tokens[shown_tokens]]
    st.subheader("Norm of the residual stream", anchor=False)
    mean_norms = lens.norms.mean(axis=1)
    st.markdown(
        "The Euclidean norm of each token's state after every block: on average over the tokens, "
        f"**{mean_norms[0]:.1f}** after the embeddings and **{mean_norms[-1]:.1f}** after the last block. "
        + (
            "LayerNorm after each block resets it."
            if post_norm
            else "Blocks add to it; where it is larger, a block must write a larger vector to have the same effect. "
            "The final LayerNorm gives all tokens the same scale, up to a learned gain, before the class head."
        )
    )
    chart(
        token_rows(lens.states, names, lens.norms[:, shown_tokens], title="norm"),
        key="chart_lengths",
        alt=f"Heat map of the norm of {len(lens.states)} states of {len(names)} tokens, from "
        f"{np.min(lens.norms[:, shown_tokens]):.1f} to {np.max(lens.norms[:, shown_tokens]):.1f}",
    )


if __name__ == "__main__":
    main()
