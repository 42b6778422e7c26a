"""Switch heads, feed-forward blocks and embeddings off, and watch the answer move."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

from txcls.app import compute, layout, pages, state
from txcls.figures import FEED_FORWARD, effect_board, label, moved_bars, percent
from txcls.inspection import AccuracyEffects, Change, Means

if TYPE_CHECKING:
    from txcls.predict import Classifier
    from txcls.text.encoder import Token

LINKS = (pages.STEPS, pages.ATTENTION, pages.EXPLANATION, pages.LENS)
OFF = {"zero": "zeros", "mean": "its mean"}
HEADS = {"off": "off", "uniform": "even", "shuffled": "shuffled"}
EXTRAS: dict[Literal["positions", "bigrams", "phrases"], str] = {
    "positions": "position vectors",
    "bigrams": "bigram vectors",
    "phrases": "votes of phrases",
}
Place = tuple[int, int]


def main() -> None:
    """Draw the page."""
    opened = layout.open_page(pages.SWITCHBOARD)
    read = layout.read_text(opened, "then switch parts of the model off and watch the answer move.")
    if read is not None and read.is_answered:
        _experiment(opened, read.classifier, str(read.prediction.label))
    layout.close_page(opened, LINKS)


def _experiment(opened: layout.Page, classifier: "Classifier", winner: str) -> None:
    means = Means.of(classifier)
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.subheader("Click a head to change it", anchor=False)
        controls = st.container(horizontal=True, gap="medium")
    with right:
        st.subheader("The answer", anchor=False)
        bars = st.container()
        below = st.container()
    off, heads = _choices(controls, opened.view, means)
    how: Any = off if heads == "off" else heads
    with below:
        chosen, changes = _switches(opened, classifier, off=off, how=how)
    effects = compute.ablate_each(opened.source, opened.view.text, heads=how, off=off)
    with left:
        layout.chart(
            effect_board(
                effects.heads,
                effects.feed_forward,
                title="points",
                what=f"The probability of {label(winner)}",
                chosen=chosen,
            ),
            key=_board_key(opened.source),
            alt=f"Board of {effects.heads.size} heads and {len(effects.feed_forward)} feed-forward blocks, coloured by "
            f"how far the probability of {winner[:40]} moves when that part alone is changed",
            file_name=f"{opened.view.checkpoint}-switchboard",
            on_select=lambda: _clicked(opened.source, opened.view),
        )
        st.caption(
            f"Each cell: by how many percentage points the probability of **{layout.plain(winner)}** "
            f"({percent(float(effects.original.max()))}) moves when this part **alone** is changed, the rest left as "
            "it is. Blue: it falls without the part; orange: it rises. FF is the layer's feed-forward block, which can "
            "only be switched off. Parts can stand in for one another: a small number does not mean that a part does "
            "nothing."
        )
        _what_off_means(means, off=off, heads=heads)
    with bars:
        _answer(opened, classifier, changes, winner)
    _accuracy(classifier, off)


def _choices(place: Any, view: state.View, means: Means | None) -> tuple[state.Substitute, state.HeadChange]:
    """What stands in a part's place, and what is done with a head."""
    st.session_state["switch_heads"] = view.heads
    place.segmented_control(
        "A changed head is …", list(HEADS), format_func=HEADS.__getitem__, required=True,
        key="switch_heads", on_change=layout.follow("heads", "switch_heads"),
    )  # fmt: skip
    if means is None:
        return "zero", view.heads
    st.session_state["switch_off"] = view.off
    place.segmented_control(
        "Off means replaced by …", list(OFF), format_func=OFF.__getitem__, required=True,
        key="switch_off", on_change=layout.follow("off", "switch_off"),
    )  # fmt: skip
    return view.off, view.heads


def _what_off_means(means: Means | None, *, off: str, heads: str) -> None:
    lines = []
    if heads == "uniform":
        lines.append("Even: a head that looks at all tokens alike still passes their values on, but no longer chooses.")
    elif heads == "shuffled":
        lines.append("Shuffled: each token keeps its weights, but they fall on other tokens (always the same shuffle).")
    if means is None:
        lines.append(
            "Off means zeros. What each part writes on average could stand there too, once "
            "`python -m txcls evaluate CHECKPOINT --heads --write` has measured it."
        )
    elif off == "mean":
        lines.append(
            f"The mean is what the part writes on average over the tokens of {means.n_texts:,} {means.split} texts: it "
            "says nothing of this text. No single text looks like the average, so that the rest of the model may go "
            "wrong for that alone."
        )
    else:
        lines.append(
            "Zeros are something that the rest of the model has never seen, so that it may go wrong for that alone. "
            "The mean is another choice, with a fault of its own: no single text looks like the average."
        )
    st.caption(" ".join(lines))


def _switches(
    opened: layout.Page, classifier: "Classifier", *, off: Any, how: Any
) -> tuple[set[Place], tuple[Change, ...]]:
    """The parts that are switched, as cells of the board and as changes; chosen without a mouse here."""
    config = classifier.checkpoint.config.model
    tokens = compute.look(opened.source, opened.view.text).tokens
    places = [(layer, head) for layer in range(config.n_layers) for head in (*range(config.n_heads), FEED_FORWARD)]
    has = {
        "positions": config.positions != "none",
        "bigrams": config.ngram_buckets > 0,
        "phrases": config.phrases > 0,
    }
    extras = [name for name in EXTRAS if has[name]]
    switched = opened.view.switched
    keys = [_parts_key(opened.source), f"switch_extras_{opened.source.name}", _tokens_key(opened.source, tokens)]
    chosen = [place for place in places if _as_switch(place) in switched]
    gone = [name for name in extras if name in switched]
    silent = [place for place in range(len(tokens)) if _as_switch(place) in switched]
    follow: dict[str, Any] = {"on_change": _choose, "args": (keys,)}
    for key, values in zip(keys, (chosen, gone, silent), strict=True):
        st.session_state[key] = values
    st.multiselect(
        "Changed heads and feed-forward blocks (FF)", places, format_func=_part, key=keys[0],
        placeholder="none: click the board, or choose here", **follow,
    )  # fmt: skip
    if extras:
        st.pills(
            "Embeddings and votes switched off" if config.phrases else "Embeddings switched off", extras,
            format_func=EXTRAS.__getitem__, selection_mode="multi", key=keys[1], **follow,
        )  # fmt: skip
    st.multiselect(
        "Tokens silenced before the first layer", range(len(tokens)),
        format_func=lambda place: f"{place + 1} · {layout.plain(label(tokens[place].text))}", key=keys[2],
        placeholder="none", **follow,
    )  # fmt: skip
    changes = [
        Change("feed_forward", off, layer) if head == FEED_FORWARD else Change("head", how, layer, head)
        for layer, head in chosen
    ]
    changes += [Change(name, off) for name in gone]
    changes += [Change("token", off, index=place) for place in silent]
    if changes:
        st.button("Switch everything on again", on_click=state.change_view, kwargs={"switched": ()}, key="switch_reset")
    return set(chosen), tuple(changes)


def _choose(keys: list[str]) -> None:
    """What the three boxes hold becomes what is switched."""
    chosen = [one for key in keys for one in st.session_state.get(key) or ()]
    state.change_view(switched=tuple(map(_as_switch, chosen)))


def _as_switch(part: Place | int | str) -> str:
    """A part as it stands in the link: a cell of the board, the place of a token, or the name of an embedding."""
    if isinstance(part, str):
        return part
    if isinstance(part, int):
        return f"t{part + 1}"
    layer, head = part
    return f"{layer + 1}." + ("ff" if head == FEED_FORWARD else str(head + 1))


def _answer(opened: layout.Page, classifier: "Classifier", changes: tuple[Change, ...], winner: str) -> None:
    result = compute.ablate(opened.source, opened.view.text, changes)
    after = result.changed[0]
    now = classifier.classes[int(after.argmax())]
    n = len(changes)
    if not n:
        line = "Nothing is changed yet."
    elif now == winner:
        line = f"With {n} {'part' if n == 1 else 'parts'} changed the answer stays"
    else:
        line = f"With {n} {'part' if n == 1 else 'parts'} changed the answer becomes"
    if n:
        line += f" **{layout.plain(now)}**, {percent(float(after.max()))}."
    st.markdown(line)
    layout.chart(
        moved_bars(classifier.classes, result.original.tolist(), after.tolist()),
        key="chart_moved",
        alt=f"Class probabilities as trained and with {n} parts changed; {winner[:40]} goes from "
        f"{result.original.max():.1%} to {after[result.winner]:.1%}",
        file_name=f"{opened.view.checkpoint}-switched",
    )


def _accuracy(classifier: "Classifier", off: Any) -> None:
    st.subheader("What each part is worth on test texts", anchor=False)
    found = AccuracyEffects.of(classifier, off=off)
    if found is None:
        st.info(
            "Not measured for this checkpoint. Where its data are on the machine, "
            f"`python -m txcls evaluate {classifier.name} --heads --write` does so once and keeps it."
        )
        return
    heads, feed_forward = found.heads - found.accuracy, found.feed_forward - found.accuracy
    lowest, highest = min(heads.min(), feed_forward.min()), max(heads.max(), feed_forward.max())
    layout.chart(
        effect_board(
            heads,
            feed_forward,
            title="points",
            what="Test accuracy",
            digits=2,
            clickable=False,
        ),
        key="chart_accuracy",
        alt=f"Board of {found.heads.size} heads and {len(found.feed_forward)} feed-forward blocks, coloured by how far "
        f"{found.split} accuracy moves without each, from {100 * lowest:.2f} to {100 * highest:.2f} points",
        file_name=f"{classifier.name}-head-accuracy",
    )
    st.caption(
        f"By how many points accuracy on {found.n:,} {found.split} texts ({found.accuracy:.2%} with all parts) moves "
        f"when this part alone is replaced by {OFF[off]}, for every text. Measured once by `txcls evaluate --heads` "
        "and kept with the checkpoint; it does not depend on the text above."
    )


def _part(place: Place) -> str:
    layer, head = place
    return f"layer {layer + 1}, " + ("FF" if head == FEED_FORWARD else f"head {head + 1}")


def _parts_key(source: compute.Source) -> str:
    return f"switch_parts_{source.name}"


def _tokens_key(source: compute.Source, tokens: Sequence["Token"]) -> str:
    return f"switch_tokens_{hash((source, tuple(token.id for token in tokens)))}"


def _board_key(source: compute.Source) -> str:
    # A chart keeps what was clicked, so that a second click on the same cell would be no news: each gets a new chart.
    return f"chart_board_{source.name}_{st.session_state.get('switch_clicks', 0)}"


def _clicked(source: compute.Source, view: state.View) -> None:
    points = st.session_state[_board_key(source)]["selection"]["points"]
    if not points:
        return
    layer, head = (int(one) for one in points[0]["customdata"][:2])
    part = _as_switch((layer, head))
    others = tuple(one for one in view.switched if one != part)
    state.change_view(switched=others if part in view.switched else (*others, part))
    st.session_state["switch_clicks"] = st.session_state.get("switch_clicks", 0) + 1


if __name__ == "__main__":
    main()
