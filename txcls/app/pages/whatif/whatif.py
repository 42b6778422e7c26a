"""Two versions of a text side by side, experiments inside the model, and a search for the smallest change of a word
that flips the class."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from txcls.address import Experiment, View
from txcls.app import menu
from txcls.app.pages.whatif import experiments
from txcls.app.shell import checkpoints, compute, layout, lecture, state, token_html
from txcls.app.shell.charts import chart, has_long_names
from txcls.app.shell.controls import choice
from txcls.app.shell.markdown import plain, table
from txcls.app.shell.prediction import classify_text
from txcls.data.generated.agreement import with_other_number
from txcls.data.generated.who_won import swap_teams
from txcls.figures import compared_bars, compared_effects, visible
from txcls.inspection.circuit import Circuit
from txcls.inspection.counterfactuals import FlipSearch, TextComparison, TokenPair
from txcls.predictor import Prediction, Predictor
from txcls.text.tokens import Token
from txcls.wording import bounded_percentage, percentage

BOX = f"{layout.TEXT_BOX}_changed"  # starts like the first box's key to submit while typing too
EXPERIMENTS = {"words": "The words", "patch": "Patching", "point": "Point it", "circuit": "The circuit"}
TWINS: Mapping[str, tuple[str, Callable[[str], str | None]]] = {
    "who_won": ("Exchange the teams", swap_teams),
    "agreement": ("Change the first noun's number", with_other_number),
}
"""Keyed by data set: another version of the text that often gets another prediction, and the name of its button."""
MAX_PAIRS = 40
"""Maximum number of words whose effects are drawn; in longer texts, the changed and the most influential words."""
MAX_FLIPS = 12
STYLE = """
<style>
.txcls-aligned {display: flex; flex-wrap: wrap; gap: 0.4rem 0.3rem; padding: 0.2rem 0 0.6rem;}
.txcls-pair {display: inline-flex; flex-direction: column; align-items: center; border-radius: 6px; padding: 2px 7px;
  border: 1px solid color-mix(in srgb, currentColor 20%, transparent); line-height: 1.45; max-width: 100%;
  overflow-wrap: anywhere;}
.txcls-pair.changed {border: 2px solid #E69F00; background: color-mix(in srgb, #E69F00 14%, transparent);}
.txcls-pair.removed {border: 2px dashed #D55E00; background: color-mix(in srgb, #D55E00 12%, transparent);}
.txcls-pair.added {border: 2px solid #1F83C4; background: color-mix(in srgb, #1F83C4 14%, transparent);}
.txcls-pair del {opacity: 0.75;}
.txcls-pair ins {text-decoration: none; font-weight: 650;}
</style>
"""


def main() -> None:
    """Draw the page."""
    opened = layout.open_page(menu.WHAT_IF, box_height=68)
    with lecture.slide(lecture.WORDS, lecture.CLASSES), st.container(key="whatif_columns"):
        left, right = st.columns([2, 3], gap="large")
    with left:
        changed = _second_box(opened.view) if opened.has_text else ""
    read = classify_text(opened, "then change a word in a second box and see what changes.")
    if read is not None and read.has_label:
        st.html(STYLE)
        if compute.predict(opened.source, changed).prediction.label is None:
            st.info("The changed text has no tokens after cleaning. A few words are enough.")
        else:
            _experiment(opened, read.classifier, changed, left, right)
        with lecture.slide(lecture.WORDS, lecture.CLASSES):
            _search(opened)
    layout.close_page(opened)


def _second_box(view: View) -> str:
    """Draw the second box; it initially holds the other version of an example, or otherwise the same text."""
    shown_text = view.changed or _other_version(view) or view.text
    if BOX not in st.session_state or st.session_state.get("_changed_shown") != shown_text:
        st.session_state[BOX] = shown_text
    st.session_state["_changed_shown"] = shown_text
    st.text_area(
        "Second text: change it",
        key=BOX,
        height=68,
        placeholder="Change the text here …",
        on_change=_box_changed,
        args=(_other_version(view) or view.text,),
    )
    return shown_text


def _other_version(view: View) -> str:
    """Another version of the text, if it is an example that has one; otherwise ""."""
    return next((one.changed for one in checkpoints.examples(view.checkpoint) if one.text == view.text), "")


def _box_changed(unchanged: str) -> None:
    typed = st.session_state[BOX] or ""
    _compare_with("" if typed == unchanged or not typed.strip() else typed)


def _compare_with(changed: str) -> None:
    state.change_view(changed=changed)


def _experiment(opened: layout.Page, classifier: Predictor, changed: str, left: Any, right: Any) -> None:
    """Draw the comparison of the two texts, or the experiment that the visitor has chosen."""
    circuit = Circuit.of(classifier)
    with left:
        _say_what_changed(*(compute.predict(opened.source, text).prediction for text in (opened.view.text, changed)))
    grid = experiments.grid_of(opened, changed)
    offered: list[Experiment] = ["words", "patch", *(("point", "circuit") if circuit is not None else ())]
    chosen = opened.view.experiment
    if chosen not in offered:
        chosen = "words" if isinstance(grid, str) else "patch"
    line = right.container(horizontal=True, vertical_alignment="center")
    label, twin_of = TWINS.get(checkpoints.summary(opened.view.checkpoint).dataset, ("", lambda text: None))
    if not lecture.is_on() and (twin := twin_of(opened.view.text)) is not None:
        line.button(label, key="twin", on_click=_compare_with, args=(twin,))
    choice(
        line, "Show", offered, opened.view, "experiment", key="experiment", selected=chosen,
        names=EXPERIMENTS.__getitem__, label_visibility="collapsed",
    )  # fmt: skip
    if chosen == "patch" and isinstance(grid, str):
        right.info(f"There is no grid for these two texts: {plain(grid)}.")
    elif chosen == "patch" and not isinstance(grid, str):
        experiments.patching(opened, classifier, grid, left, right, line)
    elif chosen == "point" and circuit is not None:
        experiments.pointing(opened, classifier, circuit, left, right)
    elif chosen == "circuit" and circuit is not None:
        experiments.kept_rows(opened, classifier, circuit, left, right)
    else:
        _compare(compute.compare_texts(opened.source, opened.view.text, changed), classifier.classes, left, right)


def _say_what_changed(first: Prediction, second: Prediction) -> None:
    before, after = first.ranked[0], second.ranked[0]
    if first.text == second.text:
        st.markdown("Both boxes hold the same text. **Change a word in the second one**, or search for a change below.")
    elif before.label == after.label:
        st.markdown(
            f"Still **{plain(after.label)}**: {bounded_percentage(before.probability)} as typed, "
            f"{bounded_percentage(after.probability)} changed."
        )
    else:
        st.markdown(
            f"**{plain(before.label)}** ({bounded_percentage(before.probability)}) has become "
            f"**{plain(after.label)}** ({bounded_percentage(after.probability)})."
        )


def _compare(comparison: TextComparison, classes: Sequence[str], left: Any, right: Any) -> None:
    before, after = comparison.before.ranked[0], comparison.after.ranked[0]
    with left:
        old, new = (
            {score.label: score.probability for score in prediction.ranked}
            for prediction in (comparison.before, comparison.after)
        )
        chart(
            compared_bars(
                classes,
                [old[name] for name in classes],
                [new[name] for name in classes],
                names_above=has_long_names(classes),
            ),
            key="chart_compared",
            alt=f"Bars of class probabilities for both texts: {before.label} {percentage(before.probability)} as "
            f"typed, {after.label} {percentage(after.probability)} changed",
        )
    with right:
        st.html(_aligned_html(comparison))
        _effects(comparison)


def _aligned_html(comparison: TextComparison) -> str:
    """The tokens of both texts, aligned, one above the other where they differ."""
    old, new = comparison.before.tokens, comparison.after.tokens
    counts = {kind: sum(pair.change == kind for pair in comparison.pairs) for kind in ("changed", "removed", "added")}
    summary = ", ".join(f"{n} {kind}" for kind, n in counts.items() if n) or "nothing changed"
    parts = []
    for pair in comparison.pairs[: token_html.MAX_CHIPS]:
        was, now = _shown(old, pair.before), _shown(new, pair.after)
        inner = now if pair.change == "same" else f"<del>{was}</del>" * (was != "") + f"<ins>{now}</ins>" * (now != "")
        parts.append(f'<span class="txcls-pair {pair.change}">{inner}</span>')
    rest = len(comparison.pairs) - token_html.MAX_CHIPS
    more = f" … and {rest:,} more" if rest > 0 else ""
    return (
        f'<div class="txcls-aligned">{"".join(parts)}{more}</div>'
        f'<div class="txcls-legend">{len(comparison.pairs):,} aligned tokens: {summary}. Struck through: as typed; '
        "bold: changed.</div>"
    )


def _shown(read: Sequence[Token], place: int | None) -> str:
    return "" if place is None else token_html.escape(read[place].label[:40])


def _effects(comparison: TextComparison) -> None:
    before = _by_pair(comparison.pairs, comparison.effects_before, "before")
    after = _by_pair(comparison.pairs, comparison.effects_after, "after")
    if not (np.isfinite(before).any() or np.isfinite(after).any()):
        st.caption("A text of a single word has nothing to leave out.")
        return
    shown = _pairs_to_draw(comparison.pairs, before, after)
    names = [_name(comparison, comparison.pairs[n]) for n in shown]
    strongest = shown[
        int(np.nanargmax(np.nan_to_num(np.maximum(np.abs(before[shown]), np.abs(after[shown])), nan=0.0)))
    ]
    chart(
        compared_effects(names, before[shown], after[shown], of=comparison.label),
        key="chart_effects",
        alt=f"Bars of each word's effect on the probability of {comparison.label} in both texts; strongest: "
        f"{_name(comparison, comparison.pairs[strongest])}",
    )
    n = len(comparison.pairs)
    note = "" if len(shown) == n else f" Shown: the changed and the strongest words, {len(shown)} of {n}."
    st.caption(
        f"**Leave one out**: how much the probability of {plain(comparison.label)} falls when the word is removed "
        f"from its text. Negative values are evidence against it.{note}"
    )


def _by_pair(pairs: Sequence[TokenPair], effects: np.ndarray, side: str) -> np.ndarray:
    places = [getattr(pair, side) for pair in pairs]
    return np.array([np.nan if place is None else effects[place] for place in places])


def _pairs_to_draw(pairs: Sequence[TokenPair], before: np.ndarray, after: np.ndarray) -> list[int]:
    """Indices of the pairs to draw: all if there are few, otherwise the changed and the strongest ones."""
    if len(pairs) <= MAX_PAIRS:
        return list(range(len(pairs)))
    strength = np.nan_to_num(np.fmax(np.abs(before), np.abs(after)), nan=0.0)
    strength += np.array([pair.change != "same" for pair in pairs], dtype=float)
    return sorted(np.argsort(-strength, kind="stable")[:MAX_PAIRS].tolist())


def _name(comparison: TextComparison, pair: TokenPair) -> str:
    old = "" if pair.before is None else comparison.before.tokens[pair.before].label
    new = "" if pair.after is None else comparison.after.tokens[pair.after].label
    return old if pair.change == "same" else f"{old[:12]} → {new[:12]}"


def _search(opened: layout.Page) -> None:
    st.subheader("The smallest change that flips the class", anchor=False)
    st.markdown(
        "Each word is removed in turn, then replaced by each of its ten nearest neighbours in the embedding. The "
        "**size** of a replacement is 1 − cosine of the two words' vectors; removing a word has size 1."
    )
    key = (opened.source, opened.view.text)
    if st.session_state.get("flip_key") != key:
        st.session_state["flip_key"], st.session_state["flip_found"] = key, None
        st.session_state["flip_running"] = opened.view.flips  # a link to a search starts it
    search: FlipSearch | None = st.session_state["flip_found"]
    running = bool(st.session_state["flip_running"])
    row = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    if running:
        row.button("Stop", key="flip_stop", on_click=_set_running, args=(False,))
    else:
        row.button("Search", key="flip_start", on_click=_set_running, args=(True,), type="primary")
    bar, table = row.empty(), st.empty()
    if running:
        # A click on Stop, or on anything else, ends this run of the page; the results so far are in the session state.
        bar.progress(0.0, text="searching …")
        for search in compute.flips(opened.source, opened.view.text):
            st.session_state["flip_found"] = search
            _progress(bar, search)
            with table.container():
                _flips(search, choose=False)
        st.session_state["flip_running"] = False
        st.rerun()
    elif search is not None:
        _progress(bar, search)
        with table.container():
            _flips(search, choose=True)


def _set_running(running: bool) -> None:
    st.session_state["flip_running"] = running
    if running:
        state.change_view(flips=True)
        st.session_state["flip_found"] = None


def _progress(bar: st.delta_generator.DeltaGenerator, search: FlipSearch) -> None:
    share = search.done / search.total if search.total else 1.0
    bar.progress(share, text=f"{search.done:,} of {search.total:,} changes tried")


def _flips(search: FlipSearch, *, choose: bool) -> None:
    if not search.flips:
        first = "" if search.done == search.total else "first "
        st.markdown(f"None of the {first}{search.done:,} changes of one word flips the class.")
        return
    more = f"; the {MAX_FLIPS} smallest" if len(search.flips) > MAX_FLIPS else ""
    st.markdown(f"**{len(search.flips):,}** of the {search.done:,} changes tried flip the class{more}:")
    rows = []
    for flip in search.flips[:MAX_FLIPS]:
        word = plain(_short(flip.word))
        change = f"{word} → **{plain(_short(flip.replacement))}**" if flip.replacement else f"~~{word}~~"
        rows.append((f"{flip.size:.3f}", change, plain(flip.label), percentage(flip.probability)))
    columns = ("size", "change", "new class", "probability")
    st.markdown(table(columns, rows, right=("size", "probability")))
    if choose:
        smallest = search.flips[0]
        word = _short(smallest.word)
        what = f"{word} → {_short(smallest.replacement)}" if smallest.replacement else f"remove {word}"
        st.button(
            f"Copy the smallest change to the second box: {plain(what)}",
            key="flip_use",
            on_click=_compare_with,
            args=(smallest.text,),
        )


def _short(word: str) -> str:
    return visible(word[:30])


if __name__ == "__main__":
    main()
