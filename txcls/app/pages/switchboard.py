"""Ablation: switch off heads, feed-forward blocks and embeddings, and see how the prediction changes."""

import math
from typing import Any, get_args

import streamlit as st

from txcls.app import menu
from txcls.app.shell import cached_results, layout, lecture, view_state
from txcls.app.shell.cache import Source
from txcls.app.shell.charts import chart
from txcls.app.shell.controls import choice, clicked_point
from txcls.app.shell.heads import draw_chips, link_where_heads_matter
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import classify_text, say_not_measured
from txcls.figures import (
    FEED_FORWARD,
    class_colours,
    compared_bars,
    head_effects_map,
    label,
    most_probable,
    percent,
    probability_bars,
)
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import Change, Means, OutputAblation
from txcls.inspection.ablation_on_rows import AccuracyEffects
from txcls.inspection.stories import HeadAtlas
from txcls.lessons.page_address import HeadChange, View
from txcls.wording import percentage

OFF_NAMES = {"zero": "zeros", "mean": "its mean"}
POSITIONS = "positions"
"""Name of the position vectors as a part that can be switched off."""
Cell = tuple[int, int]


def main() -> None:
    """Draw the page."""
    page = layout.open_page(menu.SWITCHBOARD)
    classified = classify_text(page, "then switch parts of the model off and see how the prediction changes.")
    if classified is not None and classified.has_label:
        _draw_experiment(page, classified.classifier, str(classified.prediction.label))
    layout.close_page(page)


def _draw_experiment(page: layout.Page, classifier: Predictor, winner: str) -> None:
    means = Means.of(classifier)
    with lecture.slide(lecture.ATTENTION, lecture.FEED_FORWARD), st.container(key="switch_columns"):
        board_column, prediction_column = st.columns([3, 2], gap="large")
    with board_column:
        st.subheader("Click a head to change it", anchor=False)
        settings_container = st.container(key="switch_controls", horizontal=True, gap="medium")
    with prediction_column:
        st.subheader("The prediction", anchor=False)
        outcome_container = st.container(key="switch_outcome")
        bars_container = st.container()
        controls_container = st.container()
    off, heads = _draw_settings(settings_container, page.view, means)
    how: Any = off if heads == "off" else heads
    with controls_container:
        badges, changes = _draw_switches(page, classifier, off=off, how=how)
    effects = cached_results.ablate_each(page.source, page.view.text, heads=how, feed_forward=off)
    with board_column:
        st.markdown(
            f"**Each cell**: percentage points that {plain(winner)} "
            f"({percent(float(effects.original.max()))}) loses (grey) or gains (yellow) if only that part is changed."
        )
        chart(
            head_effects_map(
                effects.heads,
                effects.feed_forward,
                title="points",
                quantity=f"The probability of {label(winner)}",
                badges=badges,
            ),
            key=_board_key(page.source),
            alt=f"Board of {effects.heads.size} heads and {len(effects.feed_forward)} feed-forward blocks, coloured by "
            f"the change in the probability of {winner[:40]} when that part alone is changed",
            on_select=lambda: _switch_clicked(page.source, page.view),
        )
    with st.container(key="switch_about"):
        st.caption(
            "FF is the layer's feed-forward block, which can only be switched off. The board is about this text; a "
            "head's worth, below, is about the accuracy on test texts. "
            "Parts can compensate for each other, so a small change does not mean that a part does nothing."
        )
        _draw_about_changes(means, off=off)
        draw_chips(classifier)
        switched_heads = [(layer, head) for layer, head in badges if head != FEED_FORWARD]
        model = classifier.checkpoint.config.model
        all_heads = [(layer, head) for layer in range(model.n_layers) for head in range(model.n_heads)]
        link_where_heads_matter(classifier, switched_heads or all_heads, target=menu.SWITCHBOARD)
    with bars_container:
        _draw_prediction(page, classifier, changes, winner, outcome_container)
    with lecture.slide(lecture.ATTENTION, lecture.FEED_FORWARD):
        _draw_accuracy(page, classifier, off)


def _draw_settings(container: Any, view: View, means: Means | None) -> tuple[OutputAblation, HeadChange]:
    """Draw controls for what replaces a switched-off part and for what a click does to a head; return their values."""
    by = "zeros" if means is None else "zeros or its mean over many texts"
    about = (
        f"**Off**: its output is replaced by {by}. **Uniform**: each token attends to all tokens equally. "
        "**Shuffled**: each token’s weights go to others at random."
    )
    choice(container, "Set a chosen head to", get_args(HeadChange), view, "heads", key="switch_heads", about=about)
    if means is None:
        return "zero", view.heads
    choice(container, "Replace its output with", list(OFF_NAMES), view, "off", key="switch_off", names=OFF_NAMES.get)
    return view.off, view.heads


def _draw_about_changes(means: Means | None, *, off: str) -> None:
    if means is None:
        st.caption(
            "Off means that a part's output is replaced by zeros. `python -m txcls evaluate CHECKPOINT --heads "
            "--write` measures each part's mean output, which can then replace it instead."
        )
    elif off == "mean":
        st.caption(
            f"Mean ablation: the part's output is replaced by its mean over the tokens of {means.n_texts:,} "
            f"{means.split} texts, which carries no information about this text. The mean of many outputs is "
            "itself an unusual input for the rest of the model, which can also change the prediction."
        )
    else:
        st.caption(
            "Zero ablation: the part's output is replaced by zeros. The rest of the model never saw zeros there in "
            "training, which can itself change the prediction. Mean ablation is an alternative, with a similar caveat: "
            "the mean of many outputs is unlike any single output."
        )


def _draw_switches(
    page: layout.Page, classifier: Predictor, *, off: Any, how: Any
) -> tuple[dict[Cell, str], tuple[Change, ...]]:
    """Draw controls that work without a mouse; return a badge for each changed cell of the board, and all changes."""
    config = classifier.checkpoint.config.model
    tokens = cached_results.patterns(page.source, page.view.text).tokens
    cells = [(layer, head) for layer in range(config.n_layers) for head in (*range(config.n_heads), FEED_FORWARD)]
    has_positions = config.positions != "none"
    switched = page.view.switched
    source = page.source
    keys = (
        f"switch_parts_{source.name}",
        f"switch_positions_{source.name}",
        f"switch_tokens_{hash((source, tuple(token.id for token in tokens)))}",
    )
    changed_cells = [cell for cell in cells if _as_switch(cell) in switched]
    without_positions = has_positions and POSITIONS in switched
    ablated_tokens = [n for n in range(len(tokens)) if _as_switch(n) in switched]
    follow: dict[str, Any] = {"on_change": _follow_controls, "args": keys}
    for key, value in zip(keys, (changed_cells, without_positions, ablated_tokens), strict=True):
        st.session_state[key] = value
    st.multiselect(
        "Changed heads and feed-forward blocks (FF)", cells, format_func=_part_name, key=keys[0],
        placeholder="none: click the board, or choose here", **follow,
    )  # fmt: skip
    if has_positions:
        st.toggle("Switch off the position vectors", key=keys[1], **follow)
    st.multiselect(
        "Tokens ablated before the first layer", range(len(tokens)),
        format_func=lambda n: f"{n + 1} · {plain(label(tokens[n].label))}", key=keys[2],
        placeholder="none", **follow,
    )  # fmt: skip
    changes = [
        Change("feed_forward", off, layer) if head == FEED_FORWARD else Change("head", how, layer, head)
        for layer, head in changed_cells
    ]
    if without_positions:
        changes.append(Change("positions", off))
    changes += [Change("token", off, index=n) for n in ablated_tokens]
    if changes:
        st.button(
            "Switch everything back on", on_click=view_state.change_view, kwargs={"switched": ()}, key="switch_reset"
        )
    badges: dict[Cell, str] = {cell: "off" if cell[1] == FEED_FORWARD else page.view.heads for cell in changed_cells}
    return badges, tuple(changes)


def _follow_controls(parts: str, positions: str, tokens: str) -> None:
    """Copy the values of the three controls with these keys into the view."""
    values = st.session_state
    switched = [_as_switch(part) for key in (parts, tokens) for part in values.get(key) or ()]
    if values.get(positions):
        switched.append(POSITIONS)
    view_state.change_view(switched=tuple(switched))


def _as_switch(part: Cell | int) -> str:
    """The name in the URL of a part: a cell of the board, or the index of a token."""
    if isinstance(part, int):
        return f"t{part + 1}"
    layer, head = part
    return f"{layer + 1}." + ("ff" if head == FEED_FORWARD else str(head + 1))


def _draw_prediction(
    page: layout.Page, classifier: Predictor, changes: tuple[Change, ...], winner: str, outcome: Any
) -> None:
    """Draw the changed prediction, as a sentence in the container `outcome` and as bars."""
    result = cached_results.ablate(page.source, page.view.text, changes)
    after = result.changed[0]
    label_after = classifier.classes[int(after.argmax())]
    n = len(changes)
    if n:
        was = "" if label_after == winner else f"{plain(winner)}, "
        outcome.markdown(
            f"With {n} {'part' if n == 1 else 'parts'} changed, the prediction "
            f"{'stays' if label_after == winner else 'becomes'} **{plain(label_after)}**, "
            f"{percent(float(after.max()))} (as trained: {was}{percent(float(result.original.max()))})."
        )
    else:
        outcome.markdown("Nothing is changed yet: choose a cell of the board.")
    n_rows = 4 if lecture.is_on() else 6  # in lecture mode, only four fit beside the board
    before, colours = result.original.tolist(), class_colours(result.original)
    order = most_probable(n_rows, result.original)
    chart(
        compared_bars(
            classifier.classes, before, after.tolist(), original="as trained", names_above=True, n_rows=n_rows
        )
        if changes
        else probability_bars(
            [classifier.classes[index] for index in order],
            [before[index] for index in order],
            colours=[colours[index] for index in order],
            names_above=True,
        ),
        key="chart_moved",
        alt=f"Class probabilities as trained and with {n} parts changed; {winner[:40]} goes from "
        f"{percentage(result.original.max())} to {percentage(after[result.predicted])}",
    )


def _draw_accuracy(page: layout.Page, classifier: Predictor, off: OutputAblation) -> None:
    """Draw the test accuracy without each part, whose output is replaced as the control says."""
    mean, zero = (AccuracyEffects.of(classifier, method=method) for method in ("mean", "zero"))
    effects = (zero if off == "zero" else mean) or mean
    how = "" if effects is None else f", replaced by {OFF_NAMES[effects.method]}"
    st.subheader(f"Test accuracy without each part{how}", anchor=False)
    if effects is None:
        say_not_measured(page, "--heads")
        return
    heads, feed_forward = effects.heads - effects.accuracy, effects.feed_forward - effects.accuracy
    lecture.caption(
        f"Each cell: the change in accuracy on {effects.n:,} {effects.split} texts ({percentage(effects.accuracy, 2)} "
        "with all parts), in percentage points, when **only** this part’s output is replaced by "
        f"{'its mean over texts' if effects.method == 'mean' else 'zeros'}. "
        "Grey: it falls; yellow: it rises."
    )
    lowest, highest = min(heads.min(), feed_forward.min()), max(heads.max(), feed_forward.max())
    chart(
        head_effects_map(
            heads,
            feed_forward,
            title="points",
            quantity="Test accuracy",
            digits=2,
            clickable=False,
        ),
        key="chart_accuracy",
        alt=f"Board of {effects.heads.size} heads and {len(effects.feed_forward)} feed-forward blocks, coloured by the "
        f"change in {effects.split} accuracy without each, from {100 * lowest:.2f} to {100 * highest:.2f} points",
    )
    all_heads = (
        ("replaced by its mean", None if mean is None else mean.all_heads),
        ("at zero", None if zero is None else zero.all_heads),
        ("attending uniformly", effects.all_uniform),
    )
    together = ", ".join(f"{percentage(accuracy)} with every head {how}" for how, accuracy in all_heads if accuracy)
    st.caption(
        "A head that is worth 2 points above and on other pages has −2.00 here only if replaced by its mean."
        f"{_interval_sentence(classifier)} The mean is one vector, over all tokens of up to 1,000 validation texts. "
        "Means, zeros and uniform attention all give the next layers unusual inputs, and which "
        "costs most differs between heads and models, so none is exactly what the part contributes."
        f"{f' Accuracy with all heads changed: {together}.' if together else ''}"
    )


def _interval_sentence(classifier: Predictor) -> str:
    """A sentence on the widest 95 % interval of a head's worth; empty if there are no intervals."""
    atlas = HeadAtlas.of(classifier)
    changed = [] if atlas is None else [head.changed for head in atlas.heads if head.changed is not None]
    if not changed:
        return ""
    half_width = math.ceil(500 * max(of_head.high - of_head.low for of_head in changed)) / 10
    return f" The 95 % interval of a head’s worth, listed on the page Head atlas, is at most ±{half_width:.1f} points."


def _part_name(cell: Cell) -> str:
    layer, head = cell
    return f"layer {layer + 1}, " + ("FF" if head == FEED_FORWARD else f"head {head + 1}")


def _board_key(source: Source) -> str:
    # A chart keeps its selection and does not report a second click on a cell, so each click creates a new chart.
    return f"chart_board_{source.name}_{st.session_state.get('switch_clicks', 0)}"


def _switch_clicked(source: Source, view: View) -> None:
    point = clicked_point(_board_key(source))
    if point is None:
        return
    name = _as_switch((int(point[0]), int(point[1])))
    others = tuple(switch for switch in view.switched if switch != name)
    view_state.change_view(switched=others if name in view.switched else (*others, name))
    st.session_state["switch_clicks"] = st.session_state.get("switch_clicks", 0) + 1


if __name__ == "__main__":
    main()
