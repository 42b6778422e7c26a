"""The class head applied after every block, and the parts that the last state is the sum of."""

import html

import numpy as np
import streamlit as st

from txcls.app import compute, layout, pages
from txcls.figures import lens_lines, percent, share_bars, token_rows

LINKS = (pages.STEPS, pages.ATTENTION, pages.SWITCHBOARD, pages.EXPLANATION)
STYLE = """
<style>
.txcls-steps {display: grid; grid-template-columns: auto auto auto; gap: 0.15rem 1.2rem; width: fit-content;}
.txcls-steps {font-size: 1.05rem; overflow-wrap: anywhere;}
.txcls-steps > :nth-child(3n) {text-align: right; font-variant-numeric: tabular-nums;}
</style>
"""


def main() -> None:
    """Draw the page."""
    opened = layout.open_page(pages.LENS)
    st.html(STYLE)
    read = layout.read_text(opened, "the class head is applied to its state after every block.")
    if read is not None and read.is_answered:
        _decision(opened, read.classifier.classes)
        _stream(opened, post_norm=read.classifier.checkpoint.config.model.norm == "post")
    layout.close_page(opened, LINKS)


def _decision(opened: layout.Page, classes: tuple[str, ...]) -> None:
    lens = compute.lens(opened.source, opened.view.text)
    st.subheader("What would the model predict if it stopped here?", anchor=False)
    st.markdown(
        "Every block adds to the residual stream. Here the model's own final steps (norm, pooling, class head) are "
        "applied to the state after each block as if it were the last one (the “logit lens”)."
    )
    lines, steps = st.columns([3, 2], gap="large")
    with lines:
        layout.chart(
            lens_lines(lens.states, classes, lens.probabilities),
            key="chart_lens",
            alt="Class probabilities after each block: "
            + "; ".join(
                f"{state}: {classes[int(row.argmax())][:30]} {row.max():.0%}"
                for state, row in zip(lens.states, lens.probabilities, strict=True)
            ),
            file_name=f"{opened.view.checkpoint}-lens",
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
            "the last state only: applied to earlier ones, it shows what it can read from them, not what the model "
            "“thinks”. The calibration is that of the last state, too."
        )


def _stream(opened: layout.Page, *, post_norm: bool) -> None:
    lens = compute.lens(opened.source, opened.view.text)
    tokens = lens.traced.tokens
    shown = layout.window(len(tokens), key="lens_window")
    names = [token.text for token in tokens[shown]]
    st.subheader("What is the last state made of?", anchor=False)
    bars, share_map = st.columns([2, 3], gap="large")
    mean = lens.shares @ lens.weights
    with bars:
        st.markdown(
            "The last state is the sum of what each part wrote to the residual stream. A part's share is the length of "
            "its contribution along the direction of the sum, so shares sum to 100 %; tokens are weighted as in "
            "pooling. **This is geometry, not importance**: a part with a large share can lower the probability of the "
            "predicted class, and one with a small share can decide it. The Switchboard measures effects on the "
            "prediction."
        )
        layout.chart(
            share_bars(lens.sources, mean),
            key="chart_shares",
            alt="Share of each part in the last state: "
            + ", ".join(f"{source} {share:.0%}" for source, share in zip(lens.sources, mean, strict=True)),
            file_name=f"{opened.view.checkpoint}-shares",
        )
        if post_norm:
            st.caption(
                "In this model a norm follows each sum and rescales everything written before. It is applied to each "
                "part with the mean and scale that it has on this text, so that the parts still sum to the state."
            )
    with share_map:
        st.markdown("The same for each token. Blue: the contribution points against the last state.")
        layout.chart(
            token_rows(lens.sources, names, lens.shares[:, shown], title="share", signed=True, form=".0%"),
            key="chart_share_map",
            alt=f"Heat map of the shares of {len(lens.sources)} parts in the last states of {len(names)} tokens, from "
            f"{lens.shares[:, shown].min():.0%} to {lens.shares[:, shown].max():.0%}",
            file_name=f"{opened.view.checkpoint}-share-map",
        )
    st.subheader("Norm of the residual stream", anchor=False)
    lengths = lens.lengths.mean(axis=1)
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
    layout.chart(
        token_rows(lens.states, names, lens.lengths[:, shown], title="norm", signed=False, form=".2f"),
        key="chart_lengths",
        alt=f"Heat map of the norm of {len(lens.states)} states of {len(names)} tokens, from "
        f"{np.min(lens.lengths[:, shown]):.1f} to {np.max(lens.lengths[:, shown]):.1f}",
        file_name=f"{opened.view.checkpoint}-lengths",
    )


if __name__ == "__main__":
    main()
