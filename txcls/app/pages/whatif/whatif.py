"""Compare two versions of a text, run experiments inside the model, search for a small edit that flips the class."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from txcls.app import menu
from txcls.app.lessons import lesson
from txcls.app.pages.whatif import experiments
from txcls.app.shell import cached_results, checkpoints, layout, lecture, token_html, view_state
from txcls.app.shell.charts import chart, has_long_names
from txcls.app.shell.controls import choice
from txcls.app.shell.large import may_compute
from txcls.app.shell.markdown import plain, table
from txcls.app.shell.prediction import classify_text
from txcls.data.datasets import Example
from txcls.data.generated.agreement import with_other_number
from txcls.data.generated.who_won import swap_teams
from txcls.figures import compared_bars, compared_effects, visible
from txcls.inference.predictor import Prediction, Predictor
from txcls.inspection.circuit import Circuit
from txcls.inspection.counterfactuals import FlipSearch, TextComparison, TokenPair, align_tokens
from txcls.lessons.page_address import Experiment, View
from txcls.text.formatting import bounded_percentage, class_title, percentage
from txcls.text.tokens import Token

SECOND_BOX = f"{layout.TEXT_BOX}_changed"  # begins like the first box's key, so that it is also submitted while typing
EXPERIMENT_NAMES = {"words": "The words", "patch": "Inside the model", "circuit": "The circuit"}
CLASS_CHANGES: Mapping[str, tuple[str, Callable[[str], str | None]]] = {
    "who_won": ("Exchange the teams", swap_teams),
    "agreement": ("Change the first noun's number", with_other_number),
}
"""Keyed by data set: a button's label, and the function that changes a text so that its class often changes."""
MAX_PAIRS = 40
"""Maximum number of words whose effects are drawn; of longer texts, the changed and the most influential words."""
MAX_FLIPS, MAX_ON_SLIDE = 12, 4
"""Maximum number of changes listed that flip the class."""
MAX_SEARCHED = 24
"""Maximum number of tokens of a text that a slide searches without being asked."""
SEARCH = "Which single word flips the answer?"
STYLE = """
<style>
.txcls-aligned {display: flex; flex-wrap: wrap; gap: 0.4rem 0.3rem; padding: 0.2rem 0 0.6rem;}
.txcls-pair {display: inline-flex; flex-direction: column; align-items: center; border-radius: 6px; padding: 2px 7px;
  border: 1px solid color-mix(in srgb, currentColor 20%, transparent); line-height: 1.45; max-width: 100%;
  overflow-wrap: anywhere;}
.txcls-pair:not(.same) {border: 2px solid var(--txcls-mark);
  background: color-mix(in srgb, var(--txcls-mark) 14%, transparent);}
.txcls-pair.removed {border-style: dashed;}
.txcls-pair del {opacity: 0.75;}
.txcls-pair ins {text-decoration: none; font-weight: 650;}
@media (max-width: 640px) {.stApp .st-key-text_box_changed textarea {min-height: 58px;}}
[class*="st-key-slide_"] .st-key-text_box_changed :is(.stTextArea > div:last-child, .stTextArea > div:last-child *) {
  height: 2.5rem !important; min-height: 0 !important; padding-block: 0.1rem;}
</style>
"""


def main() -> None:
    """Draw the page."""
    page = layout.open_page(menu.WHAT_IF, first_text=_one_word_example)
    with lecture.slide(lecture.WORDS, lecture.CLASSES):
        above = st.container()
        changed = _draw_second_box(page.view) if page.has_text else ""
        controls = (above if lecture.is_on() else st).container(horizontal=True, vertical_alignment="center")
        answer = controls.container(key="lead", width="content")
        with st.container(key="whatif_columns"):
            left, right = st.columns([2, 3], gap="large")
    classified = classify_text(page, "then change a word in a second box and see what changes.")
    if classified is not None and classified.has_label:
        st.html(STYLE)
        after = cached_results.predict(page.source, changed).prediction
        if after.label is None:
            st.info("The changed text has no tokens after cleaning. A few words are enough.")
        else:
            if lesson.now() is None or not lecture.is_on():  # a lesson's slide has its own question, and little height
                layout.lead(page, _answer(classified.prediction, after), place=answer)
            _draw_experiment(page, classified.classifier, changed, controls, left, right)
        with (
            lecture.slide(lecture.WORDS, lecture.CLASSES),
            st.container() if lecture.is_on() else st.expander(SEARCH, expanded=page.view.flips),  # inside the slide
        ):
            _draw_search(page, len(classified.prediction.tokens))
    layout.close_page(page)


def _one_word_example(name: str) -> str:
    """A checkpoint's first example whose other version differs in one word; its first example if there is none."""

    def n_changed(example: Example) -> int:
        return sum(map(str.__ne__, example.text.split(), example.changed.split()))

    examples = checkpoints.examples(name)
    return next((example for example in examples if n_changed(example) == 1), examples[0]).text


def _draw_second_box(view: View) -> str:
    """Draw the second box, which initially holds the other version of an example or the same text; return its text."""
    shown_text = view.changed or _other_version(view) or view.text
    if SECOND_BOX not in st.session_state or st.session_state.get("_changed_shown") != shown_text:
        st.session_state[SECOND_BOX] = shown_text
    st.session_state["_changed_shown"] = shown_text
    st.text_area(
        "**Change a word here:**",
        value=shown_text,  # if the browser draws the box only after a second run, only this sets its text
        key=SECOND_BOX,
        height=74,
        placeholder="Change the text here …",
        on_change=_follow_second_box,
        args=(_other_version(view) or view.text,),
    )
    return shown_text


def _other_version(view: View) -> str:
    """The other version of the text if it is an example that has one; otherwise ""."""
    examples = checkpoints.examples(view.checkpoint)
    return next((example.changed for example in examples if example.text == view.text), "")


def _follow_second_box(initial_text: str) -> None:
    text = st.session_state[SECOND_BOX] or ""
    _compare_with("" if text == initial_text or not text.strip() else text)


def _compare_with(changed: str) -> None:
    view_state.change_view(changed=changed)


def _draw_experiment(
    page: layout.Page, classifier: Predictor, changed: str, controls: Any, left: Any, right: Any
) -> None:
    """Draw the comparison of the text with the changed one, or the experiment that the visitor has chosen."""
    circuit = Circuit.of(classifier)
    options: list[Experiment] = ["words", "patch", *(("circuit",) if circuit is not None else ())]
    chosen = page.view.experiment if page.view.experiment in options else "words"
    choice(
        controls, "Show", options, page.view, "experiment", key="experiment", selected=chosen,
        names=EXPERIMENT_NAMES.__getitem__, label_visibility="collapsed",
    )  # fmt: skip
    label, change_class = CLASS_CHANGES.get(checkpoints.summary(page.view.checkpoint).dataset, ("", lambda text: None))
    if not lecture.is_on() and (counterfactual := change_class(page.view.text)) is not None:
        controls.button(label, key="twin", on_click=_compare_with, args=(counterfactual,))
    if chosen == "patch":
        if not experiments.may_patch(page, classifier, changed):
            return
        grid = experiments.grid_of(page, changed)
        if isinstance(grid, str):
            right.info(f"There is no grid for these two texts: {plain(grid)}.")
        else:
            experiments.draw_patching(page, classifier, grid, changed, left, right)
    elif chosen == "circuit" and circuit is not None:
        experiments.draw_kept_rows(page, classifier, circuit, left, right)
    elif may_compute(
        page,
        classifier,
        n_texts=2 * len(classifier.encode(changed).tokens),
        what="the effect of each word",
        key="words",
    ):
        comparison = cached_results.compare_texts(page.source, page.view.text, changed)
        _draw_comparison(comparison, classifier.classes, left, right)


def _answer(first: Prediction, second: Prediction) -> str:
    """What the change does to the prediction; a change of one token is named."""
    before, after = first.ranked[0], second.ranked[0]
    was, now = (bounded_percentage(best.probability) for best in (before, after))
    if first.text == second.text:
        return "Both boxes hold the same text: **change a word in the second one**."
    pairs = align_tokens(*([token.text for token in prediction.tokens] for prediction in (first, second)))
    changes = [pair for pair in pairs if pair.change != "same"]
    change = "The change"
    if len(changes) == 1:
        change += f" **{plain(_pair_name(changes[0], first, second))}**"
    if before.label == after.label:
        return f"{change} leaves the answer **{plain(class_title(after.label))}**: {was} before, {now} after."
    old, new = (plain(class_title(best.label)) for best in (before, after))
    return f"{change} turns **{old}** ({was}) into **{new}** ({now})."


def _draw_comparison(comparison: TextComparison, classes: Sequence[str], left: Any, right: Any) -> None:
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
        if not lecture.is_on():  # the chart needs the height, and names the changed words too
            st.html(_aligned_html(comparison))
        _draw_effects(comparison)


def _aligned_html(comparison: TextComparison) -> str:
    """The aligned tokens of both texts as HTML, one above the other where they differ."""
    old, new = comparison.before.tokens, comparison.after.tokens
    parts = []
    for pair in comparison.pairs[: token_html.MAX_CHIPS]:
        old_label, new_label = _label_html(old, pair.before), _label_html(new, pair.after)
        content = new_label
        if pair.change != "same":
            content = f"<del>{old_label}</del>" * (old_label != "") + f"<ins>{new_label}</ins>" * (new_label != "")
        parts.append(f'<span class="txcls-pair {pair.change}">{content}</span>')
    n_hidden = len(comparison.pairs) - token_html.MAX_CHIPS
    more = f" … and {n_hidden:,} more" if n_hidden > 0 else ""
    return f'<div class="txcls-aligned">{"".join(parts)}{more}</div>'


def _label_html(tokens: Sequence[Token], index: int | None) -> str:
    return "" if index is None else token_html.escape(tokens[index].label[:40])


def _draw_effects(comparison: TextComparison) -> None:
    before = _effects_of_pairs(comparison.pairs, comparison.effects_before, "before")
    after = _effects_of_pairs(comparison.pairs, comparison.effects_after, "after")
    if not (np.isfinite(before).any() or np.isfinite(after).any()):
        st.caption("A text of a single word has nothing to leave out.")
        return
    strength = np.nan_to_num(np.fmax(np.abs(before), np.abs(after)))
    shown = _pairs_to_draw(comparison.pairs, strength)
    names = [_pair_name(comparison.pairs[n], comparison.before, comparison.after) for n in shown]
    st.markdown(
        f"A bar up: this token makes **{plain(class_title(comparison.label))}** more probable; down: less probable.",
        help=f"Measured by leaving it out. Shown are the changed tokens and the strongest others, at most {MAX_PAIRS}.",
    )
    chart(
        compared_effects(names, before[shown], after[shown], class_name=comparison.label),
        key="chart_effects",
        alt=f"Bars of each word's effect on the probability of {comparison.label} in both texts; strongest: "
        f"{names[int(strength[shown].argmax())]}",
    )


def _effects_of_pairs(pairs: Sequence[TokenPair], effects: np.ndarray, side: str) -> np.ndarray:
    indices = [getattr(pair, side) for pair in pairs]
    return np.array([np.nan if index is None else effects[index] for index in indices])


def _pairs_to_draw(pairs: Sequence[TokenPair], strength: np.ndarray) -> list[int]:
    """Indices of the pairs to draw: all if there are few, otherwise the changed and the strongest ones."""
    is_changed = np.array([pair.change != "same" for pair in pairs])
    return sorted(np.argsort(-strength - is_changed, kind="stable")[:MAX_PAIRS].tolist())


def _pair_name(pair: TokenPair, before: Prediction, after: Prediction) -> str:
    old = "" if pair.before is None else before.tokens[pair.before].label
    new = "" if pair.after is None else after.tokens[pair.after].label
    return old if pair.change == "same" else f"{old[:12] or '∅'} → {new[:12] or '∅'}"


def _draw_search(page: layout.Page, n_tokens: int) -> None:
    if lecture.is_on():
        st.subheader(SEARCH, anchor=False)
    table_container = st.empty()
    st.markdown(
        "Each word is tried in eleven ways: left out, and replaced by each of the ten words most similar to it.",
        help="The **distance** of two words is 1 − cosine of their vectors; leaving a word out counts as distance 1.",
    )
    key = (page.source, page.view.text)
    if st.session_state.get("flip_key") != key:
        st.session_state["flip_key"], st.session_state["flip_found"] = key, None
        st.session_state["flip_running"] = page.view.flips or (  # a link to a search starts it
            lecture.is_on() and n_tokens <= MAX_SEARCHED
        )
    search: FlipSearch | None = st.session_state["flip_found"]
    running = bool(st.session_state["flip_running"])
    controls = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    if running:
        controls.button("Stop", key="flip_stop", on_click=_set_running, args=(False,))
    elif search is None or search.done < search.total:
        controls.button("Search", key="flip_start", on_click=_set_running, args=(True,), type="primary")
    bar = controls.empty()
    if running:
        # Any click ends this run of the page, so the results so far are stored in the session state.
        bar.progress(0.0, text="searching …")
        for search in cached_results.flips(page.source, page.view.text):
            st.session_state["flip_found"] = search
            _draw_progress(bar, search)
            with table_container.container():
                _draw_flips(search, choose=False)
        st.session_state["flip_running"] = False
        st.rerun()
    elif search is not None:
        if search.done < search.total:
            _draw_progress(bar, search)
        with table_container.container():
            _draw_flips(search, choose=True)


def _set_running(running: bool) -> None:
    st.session_state["flip_running"] = running
    if running:
        view_state.change_view(flips=True)
        st.session_state["flip_found"] = None


def _draw_progress(bar: st.delta_generator.DeltaGenerator, search: FlipSearch) -> None:
    share = search.done / search.total if search.total else 1.0
    bar.progress(share, text=f"{search.done:,} of {search.total:,} changes tried")


def _draw_flips(search: FlipSearch, *, choose: bool) -> None:
    if not search.flips:
        first = "" if search.done == search.total else "first "
        st.markdown(f"None of the {first}{search.done:,} changes of one word flips the class.")
        return
    most = MAX_ON_SLIDE if lecture.is_on() else MAX_FLIPS
    which = f"; the {most} smallest" if len(search.flips) > most else ""
    verb = "flips" if len(search.flips) == 1 else "flip"
    smallest = search.flips[0]
    word = _short_word(smallest.word)
    change = f"{word} → {_short_word(smallest.replacement)}" if smallest.replacement else f"remove {word}"
    st.markdown(
        f"**{plain(change)}** is the smallest change: **{plain(class_title(smallest.label))}**, "
        f"{percentage(smallest.probability)}. **{len(search.flips):,}** of the {search.done:,} changes tried {verb} "
        f"the class{which}."
    )
    rows = []
    for flip in search.flips[:most]:
        word = plain(_short_word(flip.word))
        edit = f"{word} → **{plain(_short_word(flip.replacement))}**" if flip.replacement else f"~~{word}~~"
        rows.append((f"{flip.size:.3f}", edit, plain(class_title(flip.label)), percentage(flip.probability)))
    columns = ("distance", "change", "new class", "probability")
    st.markdown(table(columns, rows, right=("distance", "probability")))
    if choose:
        st.button(
            "Copy the smallest change to the second box",
            key="flip_use",
            on_click=_compare_with,
            args=(smallest.text,),
        )


def _short_word(word: str) -> str:
    return visible(word[:30])


if __name__ == "__main__":
    main()
