"""How a token's place enters: the encoding, its curves and products, and what shuffling the words does."""

import numpy as np
import streamlit as st

from txcls.app import compute, page, position_lab
from txcls.figures import position_curves, position_heatmap, position_products_map, shuffle_bars

N_SHUFFLES = 20
LINKS = (page.CLASSIFY, page.TOKENS, page.ATTENTION, page.WHAT_IF)
FORMULA = r"""
\begin{aligned}
PE_{(pos,\,2i)} &= \sin\!\left(pos\,/\,10000^{2i/d_{model}}\right)\\
PE_{(pos,\,2i+1)} &= \cos\!\left(pos\,/\,10000^{2i/d_{model}}\right)
\end{aligned}
"""


def main() -> None:
    """Draw the page."""
    opened = page.open_page(page.POSITIONS)
    waiting = page.Waiting(opened, height=480)
    classifier = page.load(opened)
    prediction = compute.predict(opened.source, opened.view.text).prediction if opened.has_text else None
    waiting.over()
    if prediction is not None and prediction.label is not None:
        opened.answer.html(page.answer_html(prediction))
    model = classifier.checkpoint.config.model
    n_tokens = len(prediction.tokens) if prediction is not None else 0
    _encoding(opened, kind=model.positions, d_model=model.d_model, max_length=model.max_length, n_tokens=n_tokens)
    if model.ngram_buckets:
        st.caption(
            f"**{page.plain(opened.view.checkpoint)}** also adds a vector for each pair of neighbouring words, so that "
            "some of their order gets in beside the positions."
        )
    if model.phrases:
        st.caption(
            f"**{page.plain(opened.view.checkpoint)}** also lets phrases of up to {model.phrase_length} words vote, so "
            "that the order of neighbours counts beside the positions."
        )
    st.subheader("Does the order of the words matter for this prediction?", anchor=False)
    if prediction is None:
        page.invite("its words are shuffled and read again.")
    elif prediction.label is None:
        page.nothing_to_read()
    else:
        _shuffling(opened, classifier.classes)
    if prediction is not None and prediction.label is not None:
        position_lab.compare(opened)
    position_lab.shift(opened, d_model=model.d_model, max_length=model.max_length, kind=model.positions)
    page.close_page(opened, LINKS)


def _encoding(opened: page.Page, *, kind: str, d_model: int, max_length: int, n_tokens: int) -> None:
    from txcls.inspection.positions import position_products

    name = page.plain(opened.view.checkpoint)
    text, controls = st.columns([3, 2], gap="large")
    with text:
        st.markdown(
            "Attention alone does not know which word came first. So a vector that depends only on the **position** is "
            "added to each token's embedding. *Attention Is All You Need* (2017, section 3.5) uses sines and cosines:"
        )
        st.latex(FORMULA)
    own = False
    with controls:
        if kind == "learned":
            shown = st.segmented_control(
                "Encoding",
                ["of this checkpoint", "by the formula"],
                default="of this checkpoint",
                required=True,
                key="pe_kind",
            )
            own = shown == "of this checkpoint"
        length = st.slider("Positions", 8, 256, min(128, max_length), 8, key="pe_length", persist_state="session")
        width = st.slider(
            "d_model", 8, 512, min(d_model, 512), 8, key="pe_width", persist_state="session", disabled=own
        )
    if own:
        length = min(length, max_length)
        values = compute.positions(opened.source, length=length).values
        bound = None
        mark = f"✓ This is what **{name}** adds: it **learned** a vector for each of its {max_length} positions."
        reached = int(np.flatnonzero(np.any(values, axis=1))[-1]) + 1 if np.any(values) else 0
        if reached < length:
            mark += f" Those from {reached} on are still zeros: no training text was so long."
    else:
        values = compute.sinusoids(length, width)
        bound = 1.0
        if kind == "none":
            mark = f"**{name}** uses no position encoding: this is the formula alone."
        elif kind == "learned":
            mark = f"This is the formula; **{name}** learned its positions instead."
        elif width == d_model:
            mark = f"✓ This is what **{name}** adds to its tokens: the formula with d_model = {d_model}."
        else:
            mark = f"This is the formula with d_model = {width}; **{name}** uses it with d_model = **{d_model}**."
    is_own = mark.startswith("✓")
    used = n_tokens if is_own else None
    if used:
        mark += f" The frame holds the {min(used, length)} positions that the text above takes up."
    if is_own and length > max_length:
        mark += f" It reads {max_length} positions at most."
    st.markdown(mark)
    values = np.asarray(values)
    n_positions, n_dimensions = values.shape
    page.chart(
        position_heatmap(values, bound=bound, used=used),
        key="chart_positions",
        alt=f"Heat map of the position encoding, {n_positions} positions by {n_dimensions} dimensions"
        + ("" if own else ": fast waves in the first dimensions, slower and slower to the right"),
        file_name=f"positions-{n_positions}x{n_dimensions}",
    )
    curves, products = st.columns(2, gap="large")
    with curves:
        st.subheader("Some dimensions along the positions", anchor=False)
        chosen = st.multiselect(
            "Dimensions",
            range(n_dimensions),
            default=[
                d
                for d in (
                    n_dimensions // 8 // 2 * 2,
                    n_dimensions // 8 // 2 * 2 + 1,
                    n_dimensions // 4,
                    n_dimensions // 2,
                )
                if d < n_dimensions
            ],
            max_selections=8,
            key=f"pe_dimensions_{n_dimensions}",
        )
        page.chart(
            position_curves(values, chosen, bound=bound),
            key="chart_curves",
            alt="Curves of dimensions " + (", ".join(map(str, chosen)) or "none") + " along the positions",
            file_name="position-curves",
        )
    with products:
        st.subheader("How alike two positions are", anchor=False)
        st.markdown(
            "The dot product of their vectors."
            + (
                ""
                if own
                else " It depends on the distance alone, hence the stripes, and is largest for a position with itself."
            )
        )
        page.chart(
            position_products_map(position_products(values), used=used),
            key="chart_products",
            alt="Heat map of dot products between positions"
            + ("" if own else ": bright diagonal, the same along every stripe"),
            file_name="position-products",
        )


def _shuffling(opened: page.Page, classes: tuple[str, ...]) -> None:
    result = compute.shuffle(opened.source, opened.view.text, n=N_SHUFFLES)
    label = page.plain(str(result.original.label))
    n = len(result.texts)
    n_kept = round(result.label_kept * n)
    st.markdown(
        f"The same words in {n} random orders: **{n_kept} of {n}** are still classified as **{label}**. "
        + ("Their order does not decide the class here." if n_kept == n else "So their order has a say here.")
    )
    probability = {score.label: score.probability for score in result.original.scores}
    page.chart(
        shuffle_bars(
            classes,
            [probability.get(name, 0.0) for name in classes],
            result.probabilities,
            names_above=page.has_long_names(classes),
        ),
        key="chart_shuffles",
        alt=f"Probability of each class as typed and for {n} shuffled orders; {n_kept} keep {result.original.label}",
        file_name=f"{opened.view.checkpoint}-shuffled",
    )
    with st.expander("Some of the shuffled texts"):
        for text, row in list(zip(result.texts, result.probabilities, strict=True))[:5]:
            winner = int(row.argmax())
            st.text(f"{classes[winner]} {row[winner]:.1%}:  {text[:400]}")


if __name__ == "__main__":
    main()
