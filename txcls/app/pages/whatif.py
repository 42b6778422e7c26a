"""Compare two versions of a text, run experiments inside the model, search for a small edit that flips the class."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import streamlit as st
import torch

from txcls.app import menu
from txcls.app.lessons import lesson
from txcls.app.shell import cached_results, checkpoints, layout, lecture, view_state
from txcls.app.shell.charts import chart, has_long_names
from txcls.app.shell.controls import choice, clicked_point
from txcls.app.shell.markdown import escape, table
from txcls.app.shell.prediction import ClassifiedText, classify_text, may_compute
from txcls.data.generated.agreement import with_other_number
from txcls.data.generated.who_won import swap_teams
from txcls.errors import TraceError
from txcls.figures import compared_bars, compared_effects, minus, patch_map, visible
from txcls.figures.colours import MARK
from txcls.figures.style import frame_cells
from txcls.inference.predictor import Prediction, Predictor
from txcls.inspection.counterfactuals import Flip, FlipSearch, TextComparison, TokenPair, align_tokens
from txcls.inspection.patching import PatchGrid, Route, TokenGroup, parts_of
from txcls.inspection.vocabulary import token_cosines
from txcls.lessons.page_address import View
from txcls.text.formatting import bounded_percentage, class_title, percentage
from txcls.text.vocabulary import CLS

SECOND_BOX = f"{layout.TEXT_BOX}_changed"  # begins like the first box's key, so that it is also submitted while typing
EXPERIMENT_NAMES = {"words": "The words", "patch": "Inside the model"}
CLASS_CHANGES: Mapping[str, tuple[str, Callable[[str], str | None]]] = {
    "who_won": ("Exchange the teams", swap_teams),
    "agreement": ("Change the first noun's number", with_other_number),
}
"""Keyed by data set: a button's label, and the function that changes a text so that its class often changes."""
MAX_PAIRS = 40
"""Maximum number of words whose effects are drawn; of longer texts, the changed and the most influential words."""
MAX_FLIPS, MAX_ON_SLIDE = 12, 4
"""Maximum number of listed changes that flip the class, on a page and on a slide."""
MAX_SEARCHED = 24
"""Maximum number of tokens of a text that a slide searches without being asked."""
SEARCH = "Which single word flips the answer?"
ABOUT_CELLS = (
    "A cell is a state or a head’s output at a token, copied from one text into the other. Its number is the share of "
    "the difference between the predictions (the logit of the first text’s class minus that of the second’s) that "
    "is transferred with it. Shares can be negative or above 1, and need not sum to 1."
)


def main() -> None:
    """Draw the page."""
    page = layout.open_page(menu.WHAT_IF, first_text=_choose_example)
    with lecture.slide(lecture.WORDS, lecture.CLASSES):
        above = st.container()
        changed = _draw_second_box(page.view) if page.has_text else ""
        controls = (above if lecture.is_on() else st).container(horizontal=True, vertical_alignment="center")
        answer = controls.container(key="lead", width="content")
        with st.container(key="whatif_columns"):
            left, right = st.columns([2, 3], gap="large")
    classified = classify_text(page, "then change a word in a second box and see what changes.")
    if classified is not None and classified.has_label:
        before, after = classified.prediction, cached_results.predict(page.source, changed)
        if after.label is None:
            st.info("The changed text has no tokens after cleaning. A few words are enough.")
        else:
            if lesson.now() is None or not lecture.is_on():  # a lesson's slide has its own question, and little height
                layout.draw_answer(page, _answer(before, after), place=answer)
            _draw_experiment(page, classified, after, controls, left, right)
        with (
            lecture.slide(lecture.WORDS, lecture.CLASSES),
            st.container() if lecture.is_on() else st.expander(SEARCH, expanded=page.view.flips),  # inside the slide
        ):
            _draw_search(page, before, _own_change(classified.classifier, before, after))
    layout.close_page(page)


def _choose_example(name: str) -> str:
    """A checkpoint's first example whose other version differs in one word; its first example if there is none."""

    examples = checkpoints.examples(name)
    for example in examples:
        if sum(old != new for old, new in zip(example.text.split(), example.changed.split(), strict=False)) == 1:
            return example.text
    return examples[0].text


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
        on_change=_store_second_text,
        args=(_other_version(view) or view.text,),
    )
    return shown_text


def _other_version(view: View) -> str:
    """The other version of the text if it is an example that has one; otherwise ""."""
    examples = checkpoints.examples(view.checkpoint)
    return next((example.changed for example in examples if example.text == view.text), "")


def _store_second_text(initial_text: str) -> None:
    text = st.session_state[SECOND_BOX] or ""
    _compare_with("" if text == initial_text or not text.strip() else text)


def _compare_with(changed: str) -> None:
    view_state.change_view(changed=changed)


def _draw_experiment(
    page: layout.Page, classified: ClassifiedText, after: Prediction, controls: Any, left: Any, right: Any
) -> None:
    """Draw the comparison of the text with the changed one, or the experiment that the visitor has chosen."""
    classifier, before = classified.classifier, classified.prediction
    chosen = page.view.experiment or "words"
    choice(
        controls, "Show", tuple(EXPERIMENT_NAMES), page.view, "experiment", key="experiment", selected=chosen,
        names=EXPERIMENT_NAMES.__getitem__, label_visibility="collapsed",
    )  # fmt: skip
    label, change_class = CLASS_CHANGES.get(checkpoints.summary(page.view.checkpoint).dataset, ("", lambda text: None))
    if not lecture.is_on() and (counterfactual := change_class(page.view.text)) is not None:
        controls.button(label, key="twin", on_click=_compare_with, args=(counterfactual,))
    if chosen == "patch":
        _draw_patching(page, classifier, after.text, left, right)
        return
    with left:
        _draw_compared_bars(before, after, classifier.classes)
    with right:
        if may_compute(page, "the effect of each word", n_texts=2 * len(after.tokens)):
            _draw_effects(cached_results.compare_texts(page.source, before.text, after.text))


def _answer(first: Prediction, second: Prediction) -> str:
    """What the change does to the prediction; a change of one token is named."""
    before, after = first.ranked[0], second.ranked[0]
    was, now = (bounded_percentage(best.probability) for best in (before, after))
    if first.text == second.text:
        return "Both boxes hold the same text: **change a word in the second one**."
    changes = _list_changes(first, second)
    change = "The change"
    if len(changes) == 1:
        change += f" **{escape(_pair_name(changes[0], first, second))}**"
    if before.label == after.label:
        return f"{change} leaves the answer **{escape(class_title(after.label))}**: {was} before, {now} after."
    old, new = (escape(class_title(best.label)) for best in (before, after))
    return f"{change} turns **{old}** ({was}) into **{new}** ({now})."


def _list_changes(first: Prediction, second: Prediction) -> list[TokenPair]:
    """The tokens that differ."""
    pairs = align_tokens(*([token.text for token in prediction.tokens] for prediction in (first, second)))
    return [pair for pair in pairs if pair.change != "same"]


def _draw_compared_bars(before: Prediction, after: Prediction, classes: Sequence[str]) -> None:
    old, new, was, now = before.probabilities, after.probabilities, before.ranked[0], after.ranked[0]
    chart(
        compared_bars(
            classes,
            [old[name] for name in classes],
            [new[name] for name in classes],
            names_above=has_long_names(classes),
        ),
        key="chart_compared",
        alt=f"Bars of class probabilities for both texts: {was.label} {percentage(was.probability)} as typed, "
        f"{now.label} {percentage(now.probability)} changed",
    )


def _draw_effects(comparison: TextComparison) -> None:
    before = _effects_of_pairs(comparison.pairs, comparison.effects_before, "before")
    after = _effects_of_pairs(comparison.pairs, comparison.effects_after, "after")
    if not (np.isfinite(before).any() or np.isfinite(after).any()):
        st.caption("A text of a single word has nothing to leave out.")
        return
    strength = np.nan_to_num(np.fmax(np.abs(before), np.abs(after)))
    is_changed = np.array([pair.change != "same" for pair in comparison.pairs])
    has_effect = np.isfinite(before) | np.isfinite(after)  # tokens that the model adds have none
    strongest = np.argsort(-strength - is_changed, kind="stable")[:MAX_PAIRS]
    shown = sorted(index for index in strongest.tolist() if has_effect[index])
    names = [_pair_name(comparison.pairs[n], comparison.before, comparison.after) for n in shown]
    st.markdown(
        f"**Which tokens made it {escape(class_title(comparison.label))}?** Effect: probability with the token minus "
        "without.",
        help=f"Shown are the changed tokens and the strongest others, at most {MAX_PAIRS}.",
    )
    figure = compared_effects(names, before[shown], after[shown], class_name=comparison.label)
    chart(
        figure.update_layout(showlegend=False),  # as in the bars beside it
        key="chart_effects",
        grows=True,
        alt=f"Bars of each word's effect on the probability of {comparison.label} in both texts; strongest: "
        f"{names[int(strength[shown].argmax())]}",
    )


def _effects_of_pairs(pairs: Sequence[TokenPair], effects: np.ndarray, side: str) -> np.ndarray:
    indices = [getattr(pair, side) for pair in pairs]
    return np.array([np.nan if index is None else effects[index] for index in indices])


def _pair_name(pair: TokenPair, before: Prediction, after: Prediction) -> str:
    old = "" if pair.before is None else before.tokens[pair.before].label
    new = "" if pair.after is None else after.tokens[pair.after].label
    return old if pair.change == "same" else f"{old[:12] or '∅'} → {new[:12] or '∅'}"


def _own_change(classifier: Predictor, first: Prediction, second: Prediction) -> Flip | None:
    """The visitor's change as a result of the search would be; None unless one token is replaced or left out."""
    changes = _list_changes(first, second)
    if second.label is None or len(changes) != 1 or changes[0].before is None:
        return None
    old = first.tokens[changes[0].before]
    new = None if changes[0].after is None else second.tokens[changes[0].after]
    size = 1.0 if new is None else 1.0 - float(token_cosines(classifier, [old.id])[0, new.id])
    best, replacement = second.ranked[0], "" if new is None else second.text[new.start : new.end]
    word = first.text[old.start : old.end]
    return Flip(changes[0].before, word, replacement, size, second.text, best.label, best.probability)


def _draw_search(page: layout.Page, prediction: Prediction, own: Flip | None) -> None:
    if lecture.is_on():
        st.subheader(SEARCH, anchor=False)
    table_container = st.empty()
    st.markdown(
        "Tried: each word left out, or replaced by each of the ten words most similar to it. **Distance**: 0 for words "
        "with the same vector, 1 for unrelated words or a word left out."
    )
    key = (page.source, page.view.text)
    if st.session_state.get("flip_key") != key:
        st.session_state["flip_key"], st.session_state["flip_found"] = key, None
        st.session_state["flip_running"] = page.view.flips or (  # a link to a search starts it
            lecture.is_on() and len(prediction.tokens) <= MAX_SEARCHED
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
            share = search.done / search.total if search.total else 1.0
            bar.progress(share, text=f"{search.done:,} of {search.total:,} changes tried")
            with table_container.container():
                _draw_flips(search, prediction, own)
        st.session_state["flip_running"] = False
        st.rerun()
    elif search is not None:
        with table_container.container():
            _draw_flips(search, prediction, own)
            if search.flips and not lecture.is_on():
                st.button(
                    "Copy the smallest change to the second box",
                    key="flip_use",
                    on_click=_compare_with,
                    args=(search.flips[0].text,),
                )


def _set_running(running: bool) -> None:
    st.session_state["flip_running"] = running
    if running:
        view_state.change_view(flips=True)
        st.session_state["flip_found"] = None


def _draw_flips(search: FlipSearch, prediction: Prediction, own: Flip | None) -> None:
    """Draw the smallest changes that flip the class, and the visitor's own change among them."""
    found = list(search.flips[: MAX_ON_SLIDE if lecture.is_on() else MAX_FLIPS])
    if found:
        smallest = found[0]
        others = [flip.text for flip in search.flips]
        is_another = own is not None and own.text not in others and own.label != prediction.label
        also_yours = " Your own change, which was not part of the search, flips it too." * is_another
        n = len(search.flips)
        among = f"smallest of **{n:,}** changes that flip it" if n > 1 else "only change that flips it"
        st.markdown(f"**{_edit(smallest)}** is the {among}, of {search.done:,} tried.{also_yours}")
    else:
        first = "" if search.done == search.total else "first "
        st.markdown(f"**None** of the {first}{search.done:,} changes of one word flips it.")
    if own is not None and own.text not in [flip.text for flip in found]:
        found = sorted([*found, own], key=lambda flip: flip.size)
    rows = []
    for flip in found:
        yours = " · **your change**" * (own is not None and flip.text == own.text)
        stays = "stays " * (flip.label == prediction.label)
        answer = f"{stays}{escape(class_title(flip.label))}"
        rows.append((f"{_edit(flip)}{yours}", answer, percentage(flip.probability), f"{flip.size:.2f}"))
    if rows:
        columns = ("change", "answer", "probability", "distance")
        st.markdown(table(columns, rows, right=columns[2:]))


def _edit(flip: Flip) -> str:
    """A change in words, as Markdown: "keys → key"."""
    word, replacement = (escape(visible(text[:30])) for text in (flip.word, flip.replacement))
    return f"{word} → {replacement}" if replacement else f"without {word}"


# Experiments inside the model


def _draw_patching(page: layout.Page, classifier: Predictor, changed: str, left: Any, right: Any) -> None:
    """Draw the route of the difference, its maps, and the prediction with one cell patched; a large grid on demand."""
    view, n_tokens = page.view, len(classifier.encode(page.view.text).tokens)
    n_texts = len(parts_of(classifier.checkpoint.config.model)) * n_tokens
    computes = may_compute(page, "the grid of all parts and tokens", n_texts=n_texts)
    try:
        route = cached_results.patch_route(page.source, view.text, changed)
        grid = None
        if computes:
            grid = cached_results.patch_grid(page.source, view.text, changed)
    except TraceError as error:
        right.info(f"There is no grid for these two texts: {escape(str(error))}.")
        return
    with left:
        _draw_route(page, route)
    if grid is not None:
        _draw_grid(page, classifier, grid, route, left, right)


def _draw_grid(page: layout.Page, classifier: Predictor, grid: PatchGrid, route: Route, left: Any, right: Any) -> None:
    """Draw the maps of the states and heads, and the prediction with one cell patched."""
    part, token = _patched_cell(page.view.patched, grid)
    before, after = grid.corrupted, grid.logits[part, token]
    pairs = zip(grid.clean_tokens, grid.corrupted_tokens, strict=True)
    names = [old.label if old.id == new.id else f"{old.label} / {new.label}" for old, new in pairs]
    with lecture.slide(lecture.ATTENTION) if lecture.is_on() else nullcontext():  # a slide has no room for both maps
        cell_place, heads_place = st.columns([2, 3], gap="large") if lecture.is_on() else (left, right)
    part_name = grid.parts[part].name
    with cell_place:
        st.markdown(
            f"**{part_name[0].upper() + part_name[1:]}** at **{escape(names[token])}**, copied from the first text "
            f"into the second, moves **{_share(grid.values[part, token])}** of the difference.",
            help=ABOUT_CELLS,
        )
        _draw_bars(classifier, len(names), before, after, ("second text", "patched"), key="chart_patched")
    with right:
        states = [n for n, each in enumerate(grid.parts) if each.tap.endswith(("embeddings.out", "resid_post"))]
        heads = [n for n, each in enumerate(grid.parts) if each.head is not None]
        for kind, rows in (("states", states), ("heads", heads)):
            key = f"chart_patching_{kind}_{part + 1}_{token + 1}"  # a chart reports only a new selection
            labels = [grid.parts[n].name.replace("residual after", "after layer").removeprefix("head ") for n in rows]
            figure = patch_map(
                labels,
                names,
                grid.values[rows],
                selected=(rows.index(part), token) if part in rows else None,
                numbers=kind == "states" or not lecture.is_on(),
                ids=rows,
            )
            if kind == "states" and page.view.stage:
                _frame_group(figure, route, page.view.stage)
            about = "**Outputs of the heads**"
            if kind == "states":
                about = (
                    "**States:** each cell copies one token’s state after one layer from the first text into the "
                    "second; its number is the share of the difference between the predictions that moves with it. "
                    "Click a cell."
                )
                if "class token" in route.tokens:
                    name = escape(classifier.tokenizer.vocabulary.token_of(CLS))
                    about += f" {name} is the class token, from which the answer is computed."
            with st.container() if kind == "states" else heads_place:
                st.markdown(about)
                chart(
                    figure.update_layout(coloraxis_showscale=kind == "heads" or lecture.is_on()),
                    key=key,
                    alt=f"Heat map of {len(rows)} {kind} by {len(names)} tokens: the share of the difference between "
                    "the two predictions that moves when one is patched at one token",
                    on_select=partial(_select_clicked, key),
                )


GROUPS: dict[TokenGroup, tuple[str, str]] = {
    "changed": ("1 · It begins", "the words that differ"),
    "others": ("2 · It spreads", "the other words"),
    "class token": ("3 · It is read", "the class token, from which the answer is computed"),
}
"""For each group of tokens, the name of its step, and the group in a sentence."""


def _draw_route(page: layout.Page, route: Route) -> None:
    """Draw the steps of the difference's route as buttons, a sentence on the chosen step, and what carries it."""
    row = st.container(horizontal=True, gap="small", key="route_steps")
    for group in route.tokens:
        stage = "" if page.view.stage == group else group
        row.button(
            GROUPS[group][0],
            key=f"stage_{group.replace(' ', '_')}",
            type="primary" if page.view.stage == group else "secondary",
            on_click=view_state.change_view,
            kwargs={"stage": stage},
        )
    if page.view.stage and page.view.stage in route.tokens:
        states = route.states[page.view.stage]
        after = ", ".join(f"**{_share(share)}** after layer {layer}" for layer, share in enumerate(states[1:], start=1))
        st.markdown(
            f"Share of the difference moved by copying the states of {GROUPS[page.view.stage][1]}: "
            f"**{_share(states[0])}** before layer 1, {after}."
        )
    st.markdown(
        f"Copying all attention patterns moves **{_share(route.patterns)}** of the difference between the predictions; "
        f"copying all value vectors, **{_share(route.values)}**."
    )


def _frame_group(figure: Any, route: Route, group: TokenGroup) -> None:
    """Frame the tokens of a group in the layers in which their states carry at least a quarter of the difference."""
    for layer, share in enumerate(route.states.get(group, ())):
        if share >= 0.25:
            for token in route.tokens[group]:
                frame_cells(figure, (layer, layer + 1), (token, token + 1), colour=MARK, width=2)


def _share(value: float) -> str:
    return minus(percentage(round(float(value), 2) + 0.0, 0))  # + 0.0 turns -0.0 into 0.0


def _patched_cell(selected: tuple[int, ...], grid: PatchGrid) -> tuple[int, int]:
    """The view's cell if it is in the grid; otherwise the one with the largest effect of a head."""
    n_parts, n_tokens = grid.values.shape
    if len(selected) == 2 and 0 < selected[0] <= n_parts and 0 < selected[1] <= n_tokens:
        return selected[0] - 1, selected[1] - 1
    heads = [n for n, part in enumerate(grid.parts) if part.head is not None]
    largest = int(np.abs(grid.values[heads]).argmax())
    return heads[largest // n_tokens], largest % n_tokens


def _select_clicked(chart_key: str) -> None:
    if (point := clicked_point(chart_key)) is not None:
        view_state.change_view(patched=(int(point[0]) + 1, int(point[1]) + 1))


def _draw_bars(
    classifier: Predictor, n_tokens: int, before: Any, after: Any, names: tuple[str, str], *, key: str
) -> None:
    """Draw bars of the class probabilities before and after, from the logits of a text of `n_tokens` tokens."""
    old, new = (
        classifier.calibrate(torch.from_numpy(logits)[None], n_tokens=n_tokens)[0].tolist()
        for logits in (before, after)
    )
    best = int(np.argmax(new))
    chart(
        compared_bars(classifier.classes, old, new, original=names[0], changed=names[1], n_rows=2, names_above=True),
        key=key,
        alt=f"Class probabilities, {names[0]} and {names[1]}; the prediction is then {classifier.classes[best]}, "
        f"{percentage(new[best])}",
    )


if __name__ == "__main__":
    main()
