"""Heads: replace parts of the model on this text, and see what is known of each head on test texts."""

import html
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from txcls.app import menu
from txcls.app.shell import cached_results, checkpoints, heads, layout, lecture, view_state
from txcls.app.shell.cache import Source
from txcls.app.shell.charts import chart
from txcls.app.shell.compute_queue import my_turn
from txcls.app.shell.controls import clicked_point
from txcls.app.shell.large import duration, may_compute, seconds_per_text
from txcls.app.shell.markdown import plain, table
from txcls.app.shell.prediction import classify_text, say_not_measured
from txcls.data.datasets import sentences
from txcls.evaluation.predict_logits import classifier_of
from txcls.figures import (
    FEED_FORWARD,
    attention_map,
    compared_bars,
    head_effects_map,
    label,
    percent,
    table_chart,
    visible,
)
from txcls.figures.style import SCALE_BELOW
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import Change, Means, PartEffects
from txcls.inspection.heads import (
    VERDICT_MARKS,
    VERDICT_NAMES,
    HeadMeasurements,
    HeadRecord,
    all_heads_sentence,
    interval_words,
    nats,
    restored_sentence,
    sentence,
    share_words,
    worth_words,
)
from txcls.inspection.heads.replacing import worths
from txcls.lessons.page_address import UNSET, View
from txcls.text.formatting import class_title, head_name, percentage
from txcls.text.tokens import Token

POSITIONS = "positions"
"""Name of the position vectors as a part that can be switched off."""
N_BARS = 4
"""Number of classes drawn as bars."""
N_WORTHS = 24
"""Number of heads listed of an imported model."""
MAX_TOKENS = 24
"""Maximum number of tokens on the map of the chosen head."""
HOW_MEASURED = (
    "Two **worths**: the points of test accuracy lost with the head’s output *averaged* over many texts, which "
    "removes what it says about this one, and with *another text’s* output in its place, which may contradict it. A "
    "head that costs little averaged may still be one of several that do the same thing.\n\n"
    "The **rule**: a fixed table learned from the head’s attention on {n_training:,} training texts (a weight for "
    "each distance, for each token, or both, whatever the query) replaces its attention on {n:,} test texts. The "
    "*effect* of attention is the change of the output distribution (KL divergence) with uniform attention in its "
    "place; *kept* is the share of it that the table undoes, with a 95 % interval over texts. The control is the same "
    "table with its weights shuffled among tokens of similar frequency and among distances. A rule is **confirmed** "
    "if the lower end of the interval, corrected for all {n_tests} tables tested, is at least 75 % and the table "
    "costs under 1 point as measured, **confirmed in part** from 50 %, whatever it costs; both if the share is also "
    "at least 25 points above the control. The sentence names the largest weights; what was tested is the whole "
    "table. If uniform attention changes the output by under 0.005 nats (upper end of the interval) and costs under "
    "half a point as measured, the effect of where the head looks is **small by itself**, with a rule or without. If "
    "it is not and there is no rule, the head is **undecided** if a corrected interval reaches 50 %, and **no rule** "
    "was **found** if none does. A loss of accuracy is *not certain* if its 95 % interval begins below 0.1 points, "
    "and *hardly any* if it ends below half a point; *none measured* means no lower accuracy on these texts, which "
    "does not exclude a small loss."
)
Cell = tuple[int, int]
Part = Cell | int | str
"""A head or feed-forward block, the index of a token, or the position vectors."""


def main() -> None:
    """Draw the page."""
    preferred = heads.CHECKPOINT_WHERE_HEADS_MATTER
    prefers = (preferred,) if preferred in checkpoints.names() else ()
    page = layout.open_page(menu.HEADS, first_text=_ambiguous_example, prefers=prefers)
    classified = classify_text(page, "then switch parts of the model off and see how the prediction changes.")
    if classified is not None and classified.has_label:
        classifier = classified.classifier
        if not may_compute(
            page, classifier, n_texts=_n_parts(classifier), what="the effect of each part on this text", key="parts"
        ):
            _draw_worths(page, classifier)
            layout.close_page(page)
            return
        how = heads.replacement(classifier, page.view)
        off = how if how != "uniform" else heads.output_replacement(classifier)  # of all parts but heads
        effects = cached_results.ablate_each(page.source, page.view.text, heads=how, feed_forward=off)
        page = heads.open_on_head(_with_head(page, effects), classifier)
        measured = HeadMeasurements.of(classifier)
        with lecture.slide(lecture.ATTENTION, lecture.FEED_FORWARD):
            lead = st.container(key="lead")
            with st.container(key="switch_columns"):
                board, card = st.columns([2, 3], gap="large")
        with board:
            winner = str(classified.prediction.label)
            parts = _draw_board(page, classifier, winner, effects, how=how)
            if parts:
                changes = tuple(_as_change(part, how, off) for part in parts)
                _draw_prediction(page, classifier, parts, changes, winner, lead)
            else:
                _say_largest(page, winner, effects, lead)
        with card:
            _draw_card(page, classifier, measured, place=board if lecture.is_on() else card)
        if classifier.checkpoint.config.imported and not lecture.is_on():
            _draw_worths(page, classifier)
        if measured is not None and not lecture.is_on():
            with st.expander("All heads on test texts, and how they were measured"):
                _draw_all_heads(page, measured)
        heads.link_where_heads_matter(classifier)
    layout.close_page(page)


def _draw_worths(page: layout.Page, classifier: Predictor) -> None:
    """Measure on demand what each head of an imported model is worth on the shipped sentences, and list the heads."""
    title = "What each head is worth on 64 sentences that ship with txcls"
    with st.expander(title, key="worths", on_change="rerun") as expander:
        means = Means.of(classifier)
        if not expander.open or means is None:
            return
        found = st.session_state.setdefault(f"worths_{page.source.state}", {})
        config = classifier.checkpoint.config.model
        n_heads = config.n_layers * config.n_heads
        if len(found) == n_heads:
            best = sorted(found, key=lambda head: -max(found[head]))[:N_WORTHS]
            columns = ("head", "averaged", "another sentence’s")
            cells = [(head_name(*head), *(f"{nats:.3f}" for nats in found[head])) for head in best]
            st.markdown(table(columns, cells, right=columns[1:]))
            st.caption(
                f"The {len(best)} heads worth most: the change of the output (KL divergence in nats, mean of 64 "
                "sentences of every kind, not texts of the model’s own) with the head’s output averaged over these "
                "sentences, or taken from another one. Without labels, no accuracy is known."
            )
            return
        rows = [classifier.encode(text).ids for text in sentences()]
        seconds = n_heads * len(rows) * seconds_per_text(page.source, max(map(len, rows)))
        if st.button(f"Measure {n_heads} heads ({duration(seconds)})", key="measure_worths"):
            bar = st.progress(0.0)
            measuring = worths(classifier_of(classifier.checkpoint), rows, means)
            for n in range(1, n_heads + 1):
                with my_turn():
                    layer, head, nats_lost = next(measuring)
                found[layer, head] = nats_lost
                bar.progress(n / n_heads, f"{n} of {n_heads} heads")
            st.rerun()


def _n_parts(classifier: Predictor) -> int:
    """The number of heads and feed-forward blocks."""
    config = classifier.checkpoint.config.model
    return config.n_layers * (config.n_heads + 1)


def _ambiguous_example(name: str) -> str:
    """A checkpoint's first example without a clear class, since single heads change a certain prediction little.

    The first example if all are clear.
    """
    examples = checkpoints.examples(name)
    return next((example for example in examples if not example.label), examples[0]).text


def _with_head(page: layout.Page, effects: PartEffects) -> layout.Page:
    """The page with the first switched head selected, or the one that matters most, if its address names none."""
    view = page.view
    if (view.layer, view.head) != (UNSET, UNSET):
        return page
    switched = (head for head in np.ndindex(effects.heads.shape) if _as_switch(head) in view.switched)
    layer, head = next(switched, _largest(effects))
    return replace(page, view=replace(view, layer=layer, head=head))


def _largest(effects: PartEffects) -> Cell:
    """The head with the largest effect on this text."""
    layer, head = divmod(int(np.abs(effects.heads).argmax()), effects.heads.shape[1])
    return layer, head


def _draw_board(page: layout.Page, classifier: Predictor, winner: str, effects: PartEffects, *, how: Any) -> list[Part]:
    """Draw the effect of each part on this text; return the switched parts."""
    board = st.container()
    heads.draw_replacement(classifier, page.view, key="switch_heads")
    parts = _switched_parts(page, classifier)
    badges = {(page.view.layer, page.view.head): "shown"}
    for part in parts:
        if isinstance(part, tuple):
            badges[part] = "off" if part[1] == FEED_FORWARD or how != "uniform" else "uniform"
    figure = head_effects_map(
        effects.heads,
        effects.feed_forward,
        title="change in probability, in points",
        quantity=f"The probability of {label(winner)}",
        badges=badges,
    )
    if lecture.is_on():  # the numbers are in the cells, and the map beside it has another scale
        figure.update_layout(coloraxis_showscale=False, margin_b=10)
        figure.update_xaxes(title_text="change in points; FF: feed-forward block")
    with board:
        chart(
            figure,
            key=_board_key(page.source),
            alt=f"Board of {effects.heads.size} heads and {len(effects.feed_forward)} feed-forward blocks, coloured by "
            f"the change in the probability of {winner[:40]} when that part alone is replaced",
            on_select=lambda: _switch_clicked(page.source, page.view),
        )
    return parts


def _say_largest(page: layout.Page, winner: str, effects: PartEffects, lead: DeltaGenerator) -> None:
    """Say which head has the largest effect on this text; a feed-forward block may have a larger one."""
    layer, head = _largest(effects)
    before, change = float(effects.original.max()), float(effects.heads[layer, head])
    was, now = percent(before), percent(max(before + change, 0.0))
    moves = f"stays at {now}" if was == now else f"{'falls' if change < 0 else 'rises'} from {was} to {now}"
    layout.lead(
        page,
        f"Of all heads, **layer {layer + 1}, head {head + 1}** matters most here: without it, "
        f"**{plain(class_title(winner))}** {moves}." + " **Select a cell** to switch it off." * lecture.is_on(),
        about="Each cell: one part is switched off alone, on this text. FF is a feed-forward block.",
        place=lead,
    )


def _part_name(part: Part, tokens: Sequence[Token]) -> str:
    """A part in words, as plain text: "head 2.1"."""
    if isinstance(part, int):
        return f"token {part + 1} “{visible(tokens[part].label)[:18]}”"
    if isinstance(part, str):
        return "position vectors"
    return f"feed-forward {part[0] + 1}" if part[1] == FEED_FORWARD else head_name(*part)


def _switched_parts(page: layout.Page, classifier: Predictor) -> list[Part]:
    """Draw the list of switched parts, which works without a mouse; return those that this model and text have."""
    config = classifier.checkpoint.config.model
    tokens = cached_results.patterns(page.source, page.view.text).tokens
    parts: list[Part] = [
        (layer, head) for layer in range(config.n_layers) for head in (*range(config.n_heads), FEED_FORWARD)
    ]
    parts += [POSITIONS] * config.adds_positions
    parts += range(len(tokens))
    switched = [part for part in parts if _as_switch(part) in page.view.switched]
    key = f"switch_parts_{hash((page.source, tuple(token.id for token in tokens)))}"
    st.session_state[key] = switched
    st.multiselect(
        "Switched off: select a cell above, or a part here", parts, key=key, placeholder="nothing",
        format_func=lambda part: _part_name(part, tokens),
        on_change=lambda: view_state.change_view(switched=tuple(map(_as_switch, st.session_state[key]))),
    )  # fmt: skip
    return switched


def _as_switch(part: Part) -> str:
    """The name in the URL of a part."""
    if isinstance(part, str):
        return part
    if isinstance(part, int):
        return f"t{part + 1}"
    layer, head = part
    return f"{layer + 1}." + ("ff" if head == FEED_FORWARD else str(head + 1))


def _as_change(part: Part, how: Any, off: Any) -> Change:
    if isinstance(part, str):
        return Change("positions", off)
    if isinstance(part, int):
        return Change("token", off, index=part)
    layer, head = part
    return Change("feed_forward", off, layer) if head == FEED_FORWARD else Change("head", how, layer, head)


def _draw_prediction(
    page: layout.Page, classifier: Predictor, parts: Sequence[Part], changes: tuple[Change, ...], winner: str,
    lead: DeltaGenerator,
) -> None:  # fmt: skip
    """Draw the changed prediction, as a sentence in the container `lead` and as bars."""
    result = cached_results.ablate(page.source, page.view.text, changes)
    after = result.changed[0]
    label_after = classifier.classes[int(after.argmax())]
    stays = label_after == winner
    was = "" if stays else f"**{plain(class_title(winner))}**, "
    tokens = cached_results.patterns(page.source, page.view.text).tokens
    what = f"{len(parts)} parts" if len(parts) > 1 else _part_name(parts[0], tokens)
    layout.lead(
        page,
        f"With {plain(what)} switched off, the answer {'stays' if stays else 'becomes'} "
        f"**{plain(class_title(label_after))}**, {percent(float(after.max()))} (before: {was}"
        f"{percent(float(result.original.max()))}).",
        place=lead,
    )
    if lecture.is_on():  # the board needs the height
        return
    chart(
        compared_bars(
            classifier.classes, result.original.tolist(), after.tolist(), original="as trained", names_above=True,
            n_rows=N_BARS,
        ),
        key="chart_moved",
        alt=f"Class probabilities as trained and with {what} replaced; {winner[:40]} goes from "
        f"{percentage(result.original.max())} to {percentage(after[result.predicted])}",
    )  # fmt: skip
    st.button("Switch everything back on", on_click=view_state.change_view, kwargs={"switched": ()}, key="switch_reset")


def _draw_card(
    page: layout.Page, classifier: Predictor, measured: HeadMeasurements | None, *, place: DeltaGenerator
) -> None:
    """Draw the chosen head: its map on this text and its table, and in `place` what it does on test texts."""
    view, patterns = page.view, cached_results.patterns(page.source, page.view.text)
    name = head_name(view.layer, view.head)
    config = classifier.checkpoint.config.model
    row = st.container(key="head_heading", horizontal=True, vertical_alignment="center", gap="small")
    if lecture.is_on():  # a heading would be the slide's title
        row.markdown(f"**{name.capitalize()}**", width="content")
    else:
        row.subheader(name.capitalize(), anchor=False, width="content")
    heads.choose_head(view, {"layer": config.n_layers, "head": config.n_heads}, row=row)
    record = None if measured is None else measured.head(view.layer, view.head)
    if record is not None:
        worth = worth_words(record, where=" on all test texts")
        place.html(f'<div class="txcls-head"><p>{html.escape(worth[0].upper() + worth[1:])}.</p></div>')
    pattern, tokens = patterns.attention[view.layer, view.head], patterns.tokens
    is_cut = len(tokens) > MAX_TOKENS
    figure = attention_map(
        pattern[:MAX_TOKENS, :MAX_TOKENS],
        tokens[:MAX_TOKENS],
        elsewhere=pattern[:MAX_TOKENS, MAX_TOKENS:].sum(axis=1) if is_cut else None,
    )
    figure.update_layout(
        **({} if lecture.is_on() else {"coloraxis_colorbar": SCALE_BELOW}),  # a slide has more room beside the map
        height=max(310, 160 + 16 * min(len(tokens), MAX_TOKENS)),
        yaxis_tickfont_size=13,
    )
    chart(
        figure,
        key=f"chart_head_{view.layer}_{view.head}",
        grows=True,
        alt=f"Heat map of the attention of {name} on this text, {len(tokens)} tokens",
    )
    if measured is None or record is None:
        say_not_measured(page, "heads")
        return
    place.html(_verdict_html(record))
    if not lecture.is_on():
        with st.expander(f"How {name} was tested"):
            _draw_table(record)


def _verdict_html(record: HeadRecord) -> str:
    """The sentence on what a head attends to, with its verdict."""
    mark = ""
    if record.best is not None:
        sign = f'<span aria-hidden="true">{VERDICT_MARKS[record.verdict]}</span> {VERDICT_NAMES[record.verdict]}'
        mark = f' <span class="txcls-story {record.verdict.replace(" ", "-")}">{sign}</span>'
    return f'<div class="txcls-head"><p>{html.escape(sentence(record))}{mark}</p></div>'


def _draw_table(record: HeadRecord) -> None:
    """Draw the table that replaces the head, or both single tables if none does, and the test."""
    kind = record.best or "both"
    st.markdown(
        "The table that replaces it, learned from training texts:"
        if record.best
        else "Its average attention by distance and by token, which does not replace it:"
    )
    distances = record.distances if kind != "word" else ()
    words = record.words if kind != "distance" else ()
    largest = [f"by distance from the query, up to {percentage(max(distances))}"] if distances else []
    largest += [f"by token, up to ×{max(weight for _, weight in words[:8]):.1f}"] if words else []
    chart(
        table_chart(distances, words),
        key="chart_table",
        alt=f"Bars of the weights of this head’s table: {'; '.join(largest)}",
    )
    st.markdown(
        f"{restored_sentence(record)} Effects on the output: {nats(record.mean.kl)} averaged, "
        f"{nats(record.resampled.kl)} with another text’s output, {nats(record.uniform.kl)} with uniform attention."
    )


def _draw_all_heads(page: layout.Page, measured: HeadMeasurements) -> None:
    """Draw a table of all heads and of each layer: rule, what it keeps, both worths, and how they were measured."""
    st.markdown(all_heads_sentence(measured))
    rows = []
    for name, record in measured.named().items():
        kept = share_words(record.tables[record.best]) if record.best else "–"
        rule = plain(record.rule[0].upper() + record.rule[1:]) if record.rule else ""
        verdict = f"{VERDICT_MARKS[record.verdict]} {VERDICT_NAMES[record.verdict]}"
        rows.append((f"**{name}**", rule, kept, verdict, *map(interval_words, (record.mean, record.resampled))))
    for layer, group in enumerate(measured.layers, start=1):
        kept = share_words(group.tables[group.best]) if group.best else "–"
        verdict = f"{VERDICT_MARKS[group.verdict]} {VERDICT_NAMES[group.verdict]}"
        rows.append((f"layer {layer}", "all its heads together", kept, verdict,
                     *map(interval_words, (group.mean, group.resampled))))  # fmt: skip
    columns = ("head", "attends to", "its table keeps", "verdict", "points, averaged", "points, another text’s")
    st.markdown(table(columns, rows))
    st.markdown(HOW_MEASURED.format(n=measured.n, n_training=measured.n_training, n_tests=3 * len(measured.heads)))
    st.markdown(_seed_sentence(page))


def _seed_sentence(page: layout.Page) -> str:
    """A sentence on how the seed of this checkpoint was chosen, if known; heads of other seeds may differ."""
    training = cached_results.metrics(page.source).get("training", {})
    reason = training.get("seed_choice")
    return plain(f"This checkpoint was trained with seed {training.get('seed')}, {reason}.") if reason else ""


def _board_key(source: Source) -> str:
    # A chart keeps its selection and does not report a second click on a cell, so each click creates a new chart.
    return f"chart_board_{source.name}_{st.session_state.get('switch_clicks', 0)}"


def _switch_clicked(source: Source, view: View) -> None:
    """Switch the clicked part; a clicked head is also the one whose card is shown."""
    point = clicked_point(_board_key(source))
    if point is None:
        return
    layer, head = int(point[0]), int(point[1])
    name = _as_switch((layer, head))
    others = tuple(switch for switch in view.switched if switch != name)
    chosen = {} if head == FEED_FORWARD else {"layer": layer, "head": head}
    view_state.change_view(switched=others if name in view.switched else (*others, name), **chosen)
    st.session_state["switch_clicks"] = st.session_state.get("switch_clicks", 0) + 1


if __name__ == "__main__":
    main()
