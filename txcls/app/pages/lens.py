"""The class head read after every block: where the decision forms, and who wrote what of the last state."""

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
    read = layout.read_text(opened, "the class head reads it after every block.")
    if read is not None and read.is_answered:
        _decision(opened, read.classifier.classes)
        _stream(opened, post_norm=read.classifier.checkpoint.config.model.norm == "post")
    layout.close_page(opened, LINKS)


def _decision(opened: layout.Page, classes: tuple[str, ...]) -> None:
    lens = compute.lens(opened.source, opened.view.text)
    st.subheader("What would it say if it stopped here?", anchor=False)
    st.markdown(
        "Every block adds something to each token's state. Here the model's own last steps (norm, pooling, class head) "
        "read the state after each block as if it were the last."
    )
    lines, steps = st.columns([3, 2], gap="large")
    with lines:
        layout.chart(
            lens_lines(lens.states, classes, lens.probabilities),
            key="chart_lens",
            alt="Class probabilities read after each block: "
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
        st.html(f'<div class="txcls-steps"><div>read after</div><div>best class</div><div></div>{cells}</div>')
        if lens.phrases is not None:
            winner = int(lens.phrases.argmax())
            st.markdown(
                f"Phrases alone say **{layout.plain(classes[winner])}**, {percent(float(lens.phrases[winner]))}. Their "
                "votes read no state: they are the same after every block, and are counted in at each line above."
            )
        st.info(
            "**Approximate**, except for the last line, which is the model's answer. The class head was trained on the "
            "last state only; on earlier ones it shows what it can read there, not what the model “thinks”. "
            "Temperature and calibration are those of the last state too."
        )


def _stream(opened: layout.Page, *, post_norm: bool) -> None:
    lens = compute.lens(opened.source, opened.view.text)
    tokens = lens.traced.tokens
    shown = layout.window(len(tokens), key="lens_window")
    names = [token.text for token in tokens[shown]]
    st.subheader("Who wrote it?", anchor=False)
    bars, share_map = st.columns([2, 3], gap="large")
    mean = lens.shares @ lens.weights
    with bars:
        st.markdown(
            "The last state is a sum of what each part wrote into it. The share is measured along the result; all "
            "shares add up to 100 %, tokens counted as much as pooling counts them."
        )
        layout.chart(
            share_bars(lens.sources, mean),
            key="chart_shares",
            alt="Share of the last state that each part wrote: "
            + ", ".join(f"{source} {share:.0%}" for source, share in zip(lens.sources, mean, strict=True)),
            file_name=f"{opened.view.checkpoint}-shares",
        )
        if post_norm:
            st.caption(
                "In this model a norm follows each sum and rescales all that was written before; it is applied to each "
                "part with the mean and scale that it has on this text, so that the parts still add up."
            )
    with share_map:
        st.markdown("The same, token by token. Blue: what was written points against what came out in the end.")
        layout.chart(
            token_rows(lens.sources, names, lens.shares[:, shown], title="share", signed=True, form=".0%"),
            key="chart_share_map",
            alt=f"Heat map of what {len(lens.sources)} parts wrote into the states of {len(names)} tokens, from "
            f"{lens.shares[:, shown].min():.0%} to {lens.shares[:, shown].max():.0%}",
            file_name=f"{opened.view.checkpoint}-share-map",
        )
    st.subheader("How long is the residual stream?", anchor=False)
    lengths = lens.lengths.mean(axis=1)
    st.markdown(
        "The Euclidean length of each token's state after every block; on average over the tokens "
        + ", ".join(f"**{length:.1f}** ({state})" for state, length in zip(lens.states, lengths, strict=True))
        + ". "
        + (
            "A norm follows each block, and sets the length anew."
            if post_norm
            else "It grows as blocks add to it; what is written late must be long to count beside what is there. The "
            "last norm sets all lengths alike before the head reads them."
        )
    )
    layout.chart(
        token_rows(lens.states, names, lens.lengths[:, shown], title="length", signed=False, form=".2f"),
        key="chart_lengths",
        alt=f"Heat map of the length of {len(lens.states)} states of {len(names)} tokens, from "
        f"{np.min(lens.lengths[:, shown]):.1f} to {np.max(lens.lengths[:, shown]):.1f}",
        file_name=f"{opened.view.checkpoint}-lengths",
    )


if __name__ == "__main__":
    main()
