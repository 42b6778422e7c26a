"""Experiments inside the model: patch a part, keep few attention rows."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, get_args

import numpy as np
import streamlit as st
import torch

from txcls.app.shell import cached_results, layout, lecture, view_state
from txcls.app.shell.charts import chart
from txcls.app.shell.controls import choice, clicked_point
from txcls.app.shell.large import may_compute
from txcls.app.shell.markdown import plain, table
from txcls.data.generated.who_won import roles_of_text
from txcls.errors import TraceError
from txcls.figures import compared_bars, minus, patch_map, rows_diagram
from txcls.figures.colours import MARK
from txcls.figures.style import frame_cells
from txcls.inference.predictor import Predictor
from txcls.inspection.circuit import Circuit, Row, roles_of
from txcls.inspection.patching import Direction, Group, PatchGrid, Route, parts_of
from txcls.text.formatting import bounded_percentage, largest_margin, percentage
from txcls.text.tokens import Token
from txcls.text.vocabulary import CLS

ABOUT_CELLS = (
    "A cell is a state or a head’s output at a token, copied from one text into the other. Its number is the share of "
    "the difference between the predictions (the logit of the first text’s class minus that of the second’s) that "
    "moves in this pair of texts. Shares can be negative or above 1, and do not add up over cells."
)
ABOUT_CIRCUIT = (
    "Accuracy on {texts} texts; 95 % intervals: at most {margin}. A row is one head’s attention from one kind of token "
    "(team: every team, including those of other matches). A greedy search on {n_search:,} validation texts kept the "
    "rows, each time the one that raised accuracy most; other sets may do as well. Control: {controls} sets of as many "
    "rows, of the first row and others that can affect the prediction (for one row: any other row), mean and best. All "
    "but these: this row and those above it uniform, all others kept. Uniform rows still mix the tokens’ values, and "
    "the feed-forward blocks are unchanged."
)
DIRECTION_NAMES = {"denoising": "first → second text", "noising": "second → first text"}
N_BARS = 2
"""Number of classes drawn as bars; more do not fit on one screen."""


def may_patch(page: layout.Page, classifier: Predictor, changed: str) -> bool:
    """Whether to compute the grid; if not, draw the way of the difference through the layers, and a button."""
    n_texts = len(parts_of(classifier.checkpoint.config.model)) * len(classifier.encode(page.view.text).tokens)
    if may_compute(page, classifier, n_texts=n_texts, what="the grid of all parts and tokens", key="patch"):
        return True
    try:
        route = cached_results.patch_route(page.source, page.view.text, changed, direction=page.view.direction)
    except TraceError as error:
        st.info(f"There is no grid for these two texts: {plain(str(error))}.")
    else:
        _draw_route(page, route)
    return False


def grid_of(page: layout.Page, changed: str) -> PatchGrid | str:
    """The patching grid of the two texts, or the reason why there is none."""
    try:
        return cached_results.patch_grid(page.source, page.view.text, changed, direction=page.view.direction)
    except TraceError as error:
        return str(error)


def draw_patching(
    page: layout.Page, classifier: Predictor, grid: PatchGrid, changed: str, left: Any, right: Any
) -> None:
    """Draw the way of the difference, its maps, and the prediction with one cell patched."""
    part, token = _patched_cell(page.view.patched, grid)
    before, after, source, target = grid.corrupted, grid.logits[part, token], "first", "second"
    if grid.direction == "noising":
        before, source, target = grid.clean, "second", "first"
    names = [_pair_label(old, new) for old, new in zip(grid.clean_tokens, grid.corrupted_tokens, strict=True)]
    route = cached_results.patch_route(page.source, page.view.text, changed, direction=page.view.direction)
    with left:
        _draw_route(page, route)
    with lecture.slide(lecture.ATTENTION) if lecture.is_on() else nullcontext():  # a slide has no room for both maps
        cell_place, heads_place = st.columns([2, 3], gap="large") if lecture.is_on() else (left, right)
    part_name = grid.parts[part].name
    with cell_place:
        st.markdown(
            f"**{part_name[0].upper() + part_name[1:]}** at **{plain(names[token])}**, copied from the {source} text "
            f"into the {target}, moves **{_share(grid.values[part, token])}** of the difference.",
            help=ABOUT_CELLS,
        )
        _draw_bars(classifier, len(names), before, after, (f"{target} text", "patched"), key="chart_patched")
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
                _frame_stage(figure, route, page.view.stage)
            about = "**Outputs of the heads**"
            if kind == "states":
                about = (
                    f"**States:** each cell copies one token’s state after one layer from the {source} text into the "
                    f"{target}; its number is the share of the difference between the predictions that moves with it. "
                    "Click a cell."
                )
                if "class token" in route.tokens:
                    name = plain(classifier.tokenizer.vocabulary.token_of(CLS))
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
        choice(
            st, "Copied from", get_args(Direction), page.view, "direction", key="patch_direction",
            names=DIRECTION_NAMES.__getitem__, label_visibility="collapsed",
        )  # fmt: skip


STAGES: dict[Group, tuple[str, str]] = {
    "changed": ("1 · It begins", "the words that differ"),
    "others": ("2 · It spreads", "the other words"),
    "class token": ("3 · It is read", "the class token, from which the answer is computed"),
}
"""For each group of tokens, the name of its step, and the group in a sentence."""


def _draw_route(page: layout.Page, route: Route) -> None:
    """Draw the steps of the difference's way as buttons, a sentence on the chosen one, and what carries it."""
    row = st.container(horizontal=True, gap="small", key="route_steps")
    for group in route.tokens:
        stage = "" if page.view.stage == group else group
        row.button(
            STAGES[group][0],
            key=f"stage_{group.replace(' ', '_')}",
            type="primary" if page.view.stage == group else "secondary",
            on_click=view_state.change_view,
            kwargs={"stage": stage},
        )
    if page.view.stage and page.view.stage in route.tokens:
        states = route.states[page.view.stage]
        after = ", ".join(f"**{_share(share)}** after layer {layer}" for layer, share in enumerate(states[1:], start=1))
        st.markdown(
            f"Copying the states of {STAGES[page.view.stage][1]} moves **{_share(states[0])}** of the difference "
            f"before layer 1, {after}."
        )
    st.markdown(
        f"Copying all attention patterns moves **{_share(route.patterns)}** of the difference between the predictions; "
        f"copying all value vectors, **{_share(route.values)}**."
    )


def _frame_stage(figure: Any, route: Route, group: Group) -> None:
    """Frame the tokens of a group in the layers in which their states carry at least a quarter of the difference."""
    for layer, share in enumerate(route.states.get(group, ())):
        if share >= 0.25:
            for token in route.tokens[group]:
                frame_cells(figure, (layer, layer + 1), (token, token + 1), colour=MARK, width=2)


def _share(value: float) -> str:
    return minus(percentage(round(float(value), 2) + 0.0, 0))  # + 0.0 turns -0.0 into 0.0


def _patched_cell(selected: tuple[int, ...], grid: PatchGrid) -> tuple[int, int]:
    """The view's cell if it is in the grid; otherwise the largest effect of a head."""
    n_parts, n_tokens = grid.values.shape
    if len(selected) == 2 and 0 < selected[0] <= n_parts and 0 < selected[1] <= n_tokens:
        return selected[0] - 1, selected[1] - 1
    heads = [n for n, part in enumerate(grid.parts) if part.head is not None]
    largest = int(np.abs(grid.values[heads]).argmax())
    return heads[largest // n_tokens], largest % n_tokens


def _pair_label(old: Token, new: Token) -> str:
    return old.label if old.id == new.id else f"{old.label} / {new.label}"


def _select_clicked(chart_key: str) -> None:
    if (point := clicked_point(chart_key)) is not None:
        view_state.change_view(patched=(int(point[0]) + 1, int(point[1]) + 1))


def _draw_bars(
    classifier: Predictor, n_tokens: int, before: Any, after: Any, names: tuple[str, str], *, key: str
) -> None:
    """Draw bars of the class probabilities before and after, from the logits of a text of `n_tokens` tokens."""
    old, new = (
        classifier.calibrated(torch.from_numpy(logits)[None], n_tokens=n_tokens)[0].tolist()
        for logits in (before, after)
    )
    best = int(np.argmax(new))
    chart(
        compared_bars(
            classifier.classes, old, new, original=names[0], changed=names[1], n_rows=N_BARS, names_above=True
        ),
        key=key,
        alt=f"Class probabilities, {names[0]} and {names[1]}; the prediction is then {classifier.classes[best]}, "
        f"{percentage(new[best])}",
    )


def draw_kept_rows(page: layout.Page, classifier: Predictor, circuit: Circuit, left: Any, right: Any) -> None:
    """Draw a few attention rows, and the prediction and accuracy if only these are kept and all others are uniform."""
    n_rows = min(page.view.rows or len(circuit.kept), len(circuit.kept))
    rows = tuple(step.row for step in circuit.kept[:n_rows])
    tokens = classifier.tokenizer.encode(page.view.text).tokens
    roles = tuple(roles_of(tokens, roles_of_text(page.view.text)))
    result = cached_results.keep_rows(page.source, page.view.text, roles, rows)
    with left:
        splits = ["test"] if lecture.is_on() else list(circuit.n)  # in lecture mode, only one column fits
        table_rows = [("a guess among the teams", *_accuracies(circuit.guess, splits), "", "")]
        table_rows.append(("none", *_accuracies(circuit.none, splits), "", ""))
        for n, step in enumerate(circuit.kept):
            name = str(n + 1) if lecture.is_on() else f"{'+ ' * bool(n)}{step.row}"
            name = f"**{name}**" if n < n_rows else name
            control = f"{percentage(step.control['test'])} ({percentage(step.control_most['test'])})"
            without = percentage(step.without["test"])
            table_rows.append((name, *_accuracies(step.accuracy, splits), control, without))
        table_rows.append((f"all {circuit.n_rows}", *_accuracies(circuit.whole, splits), "", ""))
        columns = ("rows kept", *splits, "control", "all but these")
        columns = columns[: len(columns) - lecture.is_on()]
        texts = " and ".join(f"{n:,} {split}" for split, n in circuit.n.items())
        controls = "all" if circuit.all_controls else f"up to {circuit.n_controls} random"
        st.markdown(
            table(columns, [row[: len(columns)] for row in table_rows], right=columns[1:]),
            help=ABOUT_CIRCUIT.format(
                texts=texts,
                margin=largest_margin(min(circuit.n.values())),
                n_search=circuit.n_search,
                controls=controls,
            ),
        )
    with right:
        choice(
            st, "Attention rows kept; all others are uniform", range(1, len(circuit.kept) + 1), page.view, "rows",
            key="kept_rows", selected=n_rows,
        )  # fmt: skip
        predictions = [classifier.classes[int(logits.argmax())] for logits in (result.original, result.kept)]
        probability = float(classifier.calibrated(torch.from_numpy(result.kept)[None], n_tokens=len(tokens)).max())
        kept = "this row" if n_rows == 1 else f"these {n_rows} rows"
        st.markdown(
            f"With the weights of {kept}, and uniform weights in all others: **{plain(predictions[1])}** "
            f"({bounded_percentage(probability)}); with all rows: **{plain(predictions[0])}**."
        )
        if "team" not in roles:
            st.info("This text does not name teams like a match report, so only the class token's rows are kept.")
        attention_rows = [
            (row.layer, row.head, query, result.attention[row.layer, row.head, query])
            for row in rows
            for query, role in enumerate(roles)
            if role == row.role
        ]
        chart(
            rows_diagram(
                [token.label for token in result.tokens],
                attention_rows,
                n_layers=classifier.checkpoint.config.model.n_layers,
            ),
            key="chart_rows",
            alt=f"The tokens layer by layer, with the attention of {_row_names(rows)} drawn between them",
        )


def _accuracies(accuracy: Mapping[str, float], splits: Sequence[str]) -> tuple[str, ...]:
    return tuple(percentage(accuracy[split]) for split in splits)


def _row_names(rows: tuple[Row, ...]) -> str:
    return ", ".join(map(str, rows))
