"""Switch heads, feed-forward blocks and embeddings off, and watch the answer move."""

from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

from txcls.app import experiments, loaders, page
from txcls.figures import FEED_FORWARD, effect_board, label, moved_bars, percent
from txcls.inspection import AccuracyEffects, Change, Means

if TYPE_CHECKING:
    from txcls.predict import Classifier

LINKS = (page.STEPS, page.ATTENTION, page.EXPLANATION, page.LENS)
OFF = {"zero": "zeros", "mean": "its mean"}
HEADS = {"off": "off", "uniform": "even", "shuffled": "shuffled"}
EXTRAS: dict[Literal["positions", "bigrams"], str] = {"positions": "position vectors", "bigrams": "bigram vectors"}
Place = tuple[int, int]


def main() -> None:
    """Draw the page."""
    opened = page.open_page(page.SWITCHBOARD)
    read = page.read_text(opened, "then switch parts of the model off and watch the answer move.")
    if read is not None and read.is_answered:
        _experiment(opened, read.classifier, str(read.prediction.label))
    page.close_page(opened, LINKS)


def _experiment(opened: page.Page, classifier: "Classifier", winner: str) -> None:
    means = Means.of(classifier)
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.subheader("Click a head to change it", anchor=False)
        controls = st.container(horizontal=True, gap="medium")
    with right:
        st.subheader("The answer", anchor=False)
        bars = st.container()
        below = st.container()
    off, heads = _choices(controls, means)
    how: Any = off if heads == "off" else heads
    with below:
        chosen, changes = _switches(opened, classifier, off=off, how=how)
    effects = experiments.ablate_each(opened.source, opened.view.text, heads=how, off=off)
    with left:
        page.chart(
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
            on_select=_clicked,
        )
        st.caption(
            f"Each cell: by how many percentage points the probability of **{page.plain(winner)}** "
            f"({percent(float(effects.original.max()))}) moves when this part **alone** is changed, the rest left as "
            "it is. Blue: it falls without the part; orange: it rises. FF is the layer's feed-forward block, which can "
            "only be switched off. Parts can stand in for one another: a small number does not mean that a part does "
            "nothing."
        )
        _what_off_means(means, off=off, heads=heads)
    with bars:
        _answer(opened, classifier, changes, winner)
    _accuracy(classifier, off)


def _choices(place: Any, means: Means | None) -> tuple[Any, str]:
    """What stands in a part's place, and what is done with a head."""
    heads = place.segmented_control(
        "A changed head is …", list(HEADS), format_func=HEADS.__getitem__, default="off", required=True,
        key="switch_heads", persist_state="session",
    )  # fmt: skip
    off = "zero"
    if means is not None:
        off = place.segmented_control(
            "Off means replaced by …", list(OFF), format_func=OFF.__getitem__, default="zero", required=True,
            key="switch_off", persist_state="session",
        )  # fmt: skip
    return off, heads


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
    opened: page.Page, classifier: "Classifier", *, off: Any, how: Any
) -> tuple[set[Place], tuple[Change, ...]]:
    """The parts that are switched, as cells of the board and as changes; chosen without a mouse here."""
    config = classifier.checkpoint.config.model
    tokens = loaders.look(opened.source, opened.view.text).tokens
    places = [(layer, head) for layer in range(config.n_layers) for head in (*range(config.n_heads), FEED_FORWARD)]
    key = _parts_key(opened.source)
    st.session_state["switch_key"] = key
    parts = st.multiselect(
        "Changed heads and feed-forward blocks (FF)", places, format_func=_part, key=key, persist_state="session",
        placeholder="none: click the board, or choose here",
    )  # fmt: skip
    has = {"positions": config.positions != "none", "bigrams": config.ngram_buckets > 0}
    extras = st.pills(
        "Embeddings switched off", [name for name in EXTRAS if has[name]], format_func=EXTRAS.__getitem__,
        selection_mode="multi", key=f"switch_extras_{opened.source.name}", persist_state="session",
    ) if any(has.values()) else []  # fmt: skip
    silent = st.multiselect(
        "Tokens silenced before the first layer", range(len(tokens)),
        format_func=lambda place: f"{place + 1} · {page.plain(label(tokens[place].text))}",
        key=f"switch_tokens_{hash((opened.source, tuple(token.id for token in tokens)))}", placeholder="none",
    )  # fmt: skip
    chosen = set(parts)
    changes = [
        Change("feed_forward", off, layer) if head == FEED_FORWARD else Change("head", how, layer, head)
        for layer, head in sorted(chosen)
    ]
    changes += [Change(name, off) for name in extras or []]
    changes += [Change("token", off, index=place) for place in silent]
    if changes:
        st.button("Switch everything on again", on_click=_reset, args=(opened.source.name,), key="switch_reset")
    return chosen, tuple(changes)


def _answer(opened: page.Page, classifier: "Classifier", changes: tuple[Change, ...], winner: str) -> None:
    result = experiments.ablate(opened.source, opened.view.text, changes)
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
        line += f" **{page.plain(now)}**, {percent(float(after.max()))}."
    st.markdown(line)
    page.chart(
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
    page.chart(
        effect_board(
            found.heads - found.accuracy,
            found.feed_forward - found.accuracy,
            title="points",
            what="Test accuracy",
            digits=2,
            clickable=False,
        ),
        key="chart_accuracy",
        alt="Board of heads and feed-forward blocks, coloured by how far test accuracy moves without each",
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


def _parts_key(source: loaders.Source) -> str:
    return f"switch_parts_{source.name}"


def _board_key(source: loaders.Source) -> str:
    # A chart keeps what was clicked, so that a second click on the same cell would be no news: each gets a new chart.
    return f"chart_board_{source.name}_{st.session_state.get('switch_clicks', 0)}"


def _clicked() -> None:
    state = st.session_state
    clicks = state.get("switch_clicks", 0)
    name = state["switch_key"].removeprefix("switch_parts_")
    points = state[f"chart_board_{name}_{clicks}"]["selection"]["points"]
    if not points:
        return
    place = tuple(int(one) for one in points[0]["customdata"][:2])
    parts = list(state.get(state["switch_key"], []))
    state[state["switch_key"]] = [one for one in parts if one != place] if place in parts else [*parts, place]
    state["switch_clicks"] = clicks + 1


def _reset(name: str) -> None:
    for key in list(st.session_state):
        if str(key) in (f"switch_parts_{name}", f"switch_extras_{name}") or str(key).startswith("switch_tokens_"):
            st.session_state[key] = []


if __name__ == "__main__":
    main()
