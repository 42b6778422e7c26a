"""Heads: replace parts of the model on this text, and see what is known about each head from test texts."""

import html
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import streamlit as st

from txcls.app import menu
from txcls.app.shell import cached_results, checkpoints, heads, layout, lecture, view_state
from txcls.app.shell.cache import is_cached
from txcls.app.shell.charts import chart, has_long_names
from txcls.app.shell.controls import clicked_point
from txcls.app.shell.markdown import escape, table
from txcls.app.shell.prediction import classify_text, may_compute, say_not_measured
from txcls.data.datasets import sentences
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
from txcls.inspection.ablation import Ablation, AblationResult, PartEffects
from txcls.inspection.heads import (
    VERDICT_MARKS,
    VERDICT_NAMES,
    HeadMeasurements,
    HeadRecord,
    all_heads_sentence,
    cost_averaged,
    interval_in_words,
    nats,
    restored_sentence,
    sentence,
    share_in_words,
    tokens_to_quote,
)
from txcls.lessons.page_address import UNSET
from txcls.text.formatting import class_title, head_name, percentage
from txcls.text.tokens import Token

POSITIONS = "positions"
"""Name of the position vectors as a part that can be switched off."""
BOARD_CLICKS = "board_clicks"
"""Session key of the number of clicks on the board."""
N_BARS = 2
"""Number of classes drawn as bars."""
N_WORTHS = 24
"""Number of heads listed for an imported model."""
MAX_TOKENS = 24
"""Maximum number of tokens on the map of the chosen head."""
HOW_MEASURED = (
    "**Points**: test accuracy lost with the head’s output *averaged* over many texts, which removes what it says "
    "about this one, and with *another text’s* output, which may contradict it. A head that costs little averaged may "
    "be one of several that do the same thing. A loss is *not certain* if its 95 % interval begins below 0.1 points, "
    "*hardly any* if it ends below half a point.\n\n"
    "The **rule**: a fixed table learned from the head’s attention on {n_training:,} training texts (a weight for "
    "each distance, for each token, or both, whatever the query) replaces its attention on {n:,} test texts. The "
    "*effect* of attention is the change of the output distribution (KL divergence) with uniform attention in its "
    "place; *kept* is the share of it that the table undoes, with a 95 % interval over texts. The control is the same "
    "table with its weights shuffled among tokens of similar frequency and among distances. A rule is **confirmed** "
    "if the lower end of the interval, corrected for all {n_tests} tables tested, is at least 75 % and the table "
    "costs under 1 point, **confirmed in part** from 50 %, whatever it costs; both if the share is also at least 25 "
    "points above the control. The sentence names the largest weights; what was tested is the whole table. The effect "
    "of where the head looks is **small by itself** if it is under 0.005 nats (upper end) and half a point. If it is "
    "not and there is no rule, the head is **undecided** if a corrected interval reaches 50 %; else, **no rule** was "
    "**found**."
)
Cell = tuple[int, int]
Part = Cell | int | str
"""A head or feed-forward block, the index of a token, or the position vectors."""


def main() -> None:
    """Draw the page."""
    preferred = heads.CHECKPOINT_WHERE_HEADS_MATTER
    prefers = (preferred,) if preferred in checkpoints.names() else ()
    page = layout.open_page(menu.HEADS, first_text=_choose_example, prefers=prefers)
    classified = classify_text(page, "then switch parts of the model off and see how the prediction changes.")
    if classified is not None and classified.has_label:
        classifier = classified.classifier
        model = classifier.checkpoint.config.model
        if may_compute(page, "the effect of each part on this text", n_texts=model.n_layers * (model.n_heads + 1)):
            _draw_experiment(page, classifier)
        if classifier.checkpoint.config.imported and not lecture.is_on():
            _draw_worths(page, classifier)
        measured = HeadMeasurements.of(classifier)
        if measured is not None and not lecture.is_on():
            with st.expander("All heads on test texts, and how they were measured"):
                _draw_all_heads(page, measured)
    layout.close_page(page)


def _draw_experiment(page: layout.Page, classifier: Predictor) -> None:
    """Draw what happens without each part, and in detail without those that are switched off: at first, one head."""
    how = heads.replacement(classifier, page.view)
    off = how if how != "uniform" else heads.output_replacement(classifier)  # for all parts other than heads
    effects = cached_results.ablate_each(page.source, page.view.text, heads=how, feed_forward=off)
    largest = divmod(int(np.abs(effects.heads).argmax()), effects.heads.shape[1])
    if (page.view.layer, page.view.head) == (UNSET, UNSET):
        page = replace(page, view=replace(page.view, layer=largest[0], head=largest[1]))
    page = heads.open_on_head(page, classifier)
    tokens = cached_results.patterns(page.source, page.view.text).tokens
    offered = _list_parts(classifier, len(tokens))
    parts = [part for part in offered if _as_switch(part) in page.view.switched]
    parts = parts or [(page.view.layer, page.view.head)]
    changes = tuple(_as_change(part, how, off) for part in parts)
    result = cached_results.ablate(page.source, page.view.text, changes)
    names = [_part_name(part, tokens) for part in parts]
    with lecture.slide(lecture.ATTENTION, lecture.FEED_FORWARD):
        layout.draw_answer(
            page,
            _outcome(result, list(map(escape, names)), is_largest=parts == [largest]),
            about="Each cell: this part alone is switched off, on this text. The other cells are the control."
            + " Tokens in angle brackets are added by the model." * any(token.is_special for token in tokens),
        )
        with st.container(key="switch_columns"):
            board, card = st.columns([1, 1] if lecture.is_on() else [2, 3], gap="large")
    with board:
        _draw_board(page, effects, result.classes[result.predicted], parts)
        _choose_parts(page, offered, parts, tokens, replaced_by=heads.REPLACEMENT_NAMES[how])
        with card if lecture.is_on() else st.container():
            _draw_bars(result, names)
        if not lecture.is_on():
            heads.draw_replacement(classifier, page.view, key="switch_heads")
    heads_off = [part for part in parts if isinstance(part, tuple) and part[1] != FEED_FORWARD]
    if heads_off:
        chosen = (page.view.layer, page.view.head)
        head = chosen if chosen in heads_off else heads_off[0]
        with lecture.slide(f"{lecture.ATTENTION}.{head[0]}") if lecture.is_on() else card:
            _draw_card(page, classifier, head)


def _draw_worths(page: layout.Page, classifier: Predictor) -> None:
    """Measure on demand what each head of an imported model is worth on the shipped sentences, and list the heads."""
    config, n = classifier.checkpoint.config.model, len(sentences())
    with st.expander(f"What each head is worth on {n} sentences", key="worths", on_change="rerun") as expander:
        n_texts = config.n_layers * config.n_heads * n
        is_known = is_cached(cached_results.head_worths, page.source, config.n_layers - 1)
        if not expander.open or not (is_known or may_compute(page, "what each head is worth", n_texts=n_texts)):
            return
        bar, of_layers = st.progress(0.0), []
        for layer in range(config.n_layers):
            of_layers.append(cached_results.head_worths(page.source, layer))  # H 2
            bar.progress((layer + 1) / config.n_layers, f"{layer + 1} of {config.n_layers} layers")
        bar.empty()
        worths = np.stack(of_layers)  # L H 2
        best = sorted(np.ndindex(worths.shape[:2]), key=lambda head: -worths[head].max())[:N_WORTHS]
        cells = [(head_name(*head), *(f"{nats:.3f}" for nats in worths[head])) for head in best]
        columns = ("head", "averaged", "another sentence’s")
        st.markdown(table(columns, cells, right=columns[1:]))
        st.caption(
            f"The {len(best)} heads worth most: the change of the output (KL divergence in nats, mean of {n} sentences "
            "of every kind that ship with txcls, not texts of the model’s own) with the head’s output averaged over "
            "these sentences, or taken from another one. Without labels, no accuracy is known."
        )


def _choose_example(name: str) -> str:
    """A checkpoint's first example without a clear class, since single heads change a certain prediction little.

    The first example if all are clear.
    """
    examples = checkpoints.examples(name)
    return next((example for example in examples if not example.label), examples[0]).text


def _outcome(result: AblationResult, names: Sequence[str], *, is_largest: bool) -> str:
    """What happens to the prediction without the named parts; `is_largest` if they are the head with most effect."""
    before, after, old = result.original, result.changed[0], result.predicted
    new = int(after.argmax())
    was, now, is_now = (percent(float(value)) for value in (before[old], after[old], after[new]))
    moves = "falls" if after[old] < before[old] else "rises"
    moves = f" stays at {now}" if was == now else f" {moves} from {was} to {now}"
    if new != old:
        moves = f" ({was}) becomes **{escape(class_title(result.classes[new]))}** ({is_now})"
    without = f"Without **{' and '.join(names)}**"
    if is_largest:
        without = f"Of all heads, **{names[0]}** (framed) matters most on this text: without it"
    return f"{without}, **{escape(class_title(result.classes[old]))}**{moves}."


def _draw_board(page: layout.Page, effects: PartEffects, winner: str, parts: Sequence[Part]) -> None:
    """Draw the effect of each part on this text; a click on a cell switches this part off, and no other."""
    quantity = f"probability of {label(class_title(winner))}"
    figure = head_effects_map(
        effects.heads,
        effects.feed_forward,
        title=f"<b>Select a part to switch it off</b><br>Change in the {quantity} (points)",
        quantity=f"The {quantity}",
        framed=[part for part in parts if isinstance(part, tuple)],
    )
    # The browser keeps a chart's selection: it does not report a second click on a cell, and sends the old selection
    # again if a chart with the same key returns. So each click creates a chart with a key of its own.
    key = f"chart_board_{page.source.name}_{st.session_state.get(BOARD_CLICKS, 0)}"
    chart(
        figure,
        key=key,
        alt=f"Board of {effects.heads.size} heads and {len(effects.feed_forward)} feed-forward blocks, coloured by "
        f"the change in the probability of {winner[:40]} when that part alone is replaced",
        on_select=partial(_switch_clicked, key),
    )


def _switch_clicked(key: str) -> None:
    """Switch the clicked part off, and all others on."""
    if (point := clicked_point(key)) is not None:
        layer, head = int(point[0]), int(point[1])
        chosen = {} if head == FEED_FORWARD else {"layer": layer, "head": head}
        st.session_state[BOARD_CLICKS] = st.session_state.get(BOARD_CLICKS, 0) + 1
        view_state.change_view(switched=(_as_switch((layer, head)),), **chosen)


def _list_parts(classifier: Predictor, n_tokens: int) -> list[Part]:
    """The parts that can be switched off."""
    config = classifier.checkpoint.config.model
    parts: list[Part] = list(product(range(config.n_layers), (*range(config.n_heads), FEED_FORWARD)))
    return [*parts, *[POSITIONS] * config.adds_positions, *range(n_tokens)]


def _choose_parts(
    page: layout.Page, offered: Sequence[Part], parts: Sequence[Part], tokens: Sequence[Token], *, replaced_by: str
) -> None:
    """Draw the list of the parts that are switched off, which works without a mouse and for several parts at once."""
    # After a click on the board, the browser may send the previous parts with the next click: a new list ignores them.
    n_clicks = st.session_state.get(BOARD_CLICKS, 0)
    key = f"switch_parts_{hash((page.source, tuple(token.id for token in tokens)))}_{n_clicks}"
    st.session_state[key] = list(parts)
    st.multiselect(
        f"Switched off (framed), replaced by {replaced_by}", offered, key=key,
        format_func=lambda part: _part_name(part, tokens),
        on_change=_switch_chosen, args=(key, tuple(parts)),
    )  # fmt: skip


def _switch_chosen(key: str, shown: tuple[Part, ...]) -> None:
    """Switch the chosen parts off, unless the browser only sent what was `shown`."""
    if (chosen := tuple(st.session_state[key])) != shown:
        view_state.change_view(switched=tuple(map(_as_switch, chosen)))


def _part_name(part: Part, tokens: Sequence[Token]) -> str:
    """A part in words, as plain text: "head 2.1"."""
    if isinstance(part, int):
        return f"token {part + 1} “{visible(tokens[part].label)[:18]}”"
    if isinstance(part, str):
        return "position vectors"
    layer, head = part
    return f"feed-forward {layer + 1}" if head == FEED_FORWARD else head_name(layer, head)


def _as_switch(part: Part) -> str:
    """The name of a part in the URL."""
    if isinstance(part, str):
        return part
    if isinstance(part, int):
        return f"t{part + 1}"
    layer, head = part
    return f"{layer + 1}." + ("ff" if head == FEED_FORWARD else str(head + 1))


def _as_change(part: Part, how: Any, off: Any) -> Ablation:
    if isinstance(part, str):
        return Ablation("positions", off)
    if isinstance(part, int):
        return Ablation("token", off, index=part)
    layer, head = part
    return Ablation("feed_forward", off, layer) if head == FEED_FORWARD else Ablation("head", how, layer, head)


def _draw_bars(result: AblationResult, names: Sequence[str]) -> None:
    """Draw the class probabilities with all parts, and without those that are switched off."""
    before, after, winner = result.original, result.changed[0], result.predicted
    figure = compared_bars(
        result.classes, before.tolist(), after.tolist(), original="as trained",
        changed="without it" if len(names) == 1 else "without them",
        names_above=has_long_names(result.classes), n_rows=N_BARS,
    )  # fmt: skip
    # No axis labels: each bar shows its number, and the legend says “probability”.
    figure.update_xaxes(showticklabels=False, title=None)
    figure.update_layout(
        height=figure.layout.height - 45,
        margin={"b": 5},
        legend_title={"text": "probability: ", "side": "left", "font": {"size": 15}},
    )
    chart(
        figure,
        key="chart_moved",
        alt=f"Class probabilities as trained and without {' and '.join(names)}; {result.classes[winner][:40]} goes "
        f"from {percentage(before[winner])} to {percentage(after[winner])}",
    )


def _draw_card(page: layout.Page, classifier: Predictor, head: Cell) -> None:
    """Draw what a head does on test texts, and its map on this text."""
    patterns, measured = cached_results.patterns(page.source, page.view.text), HeadMeasurements.of(classifier)
    name, record = head_name(*head), None if measured is None else measured.head(*head)
    with st.container(key="head_heading", horizontal=True, vertical_alignment="center", gap="small"):
        title = f"What does {name} do?" if lecture.is_on() else name.capitalize()
        st.subheader(title, anchor=False, width="content")
        if record is not None and measured is not None and not lecture.is_on():
            st.markdown(f"{cost_averaged(record, measured)}.", width="content")
    named: set[str] = set()  # tokens in the sentence
    if record is None:
        say_not_measured(page, "heads")
    else:
        in_text = {token.label.casefold() for token in patterns.tokens}
        quoted = tuple(word for word in record.words if word[0].casefold() in in_text)
        if record.best in ("word", "both"):
            named = {name.casefold() for name in tokens_to_quote(quoted)}
        st.html(_verdict_html(replace(record, words=quoted)))
        if measured is not None and lecture.is_on():
            st.markdown(f"{cost_averaged(record, measured)}.")
    pattern, tokens = patterns.attention[head], patterns.tokens
    is_cut = len(tokens) > MAX_TOKENS
    figure = attention_map(
        pattern[:MAX_TOKENS, :MAX_TOKENS],
        tokens[:MAX_TOKENS],
        elsewhere=pattern[:MAX_TOKENS, MAX_TOKENS:].sum(axis=1) if is_cut else None,
        framed=[n for n, token in enumerate(tokens[:MAX_TOKENS]) if token.label.casefold() in named],
    )
    figure.update_layout(
        coloraxis_colorbar=SCALE_BELOW,
        height=max(310, 160 + 16 * min(len(tokens), MAX_TOKENS)),
        yaxis={"tickvals": figure.data[0].y, "ticktext": figure.data[0].y},  # all names on slides
        yaxis_tickfont_size=15 if len(tokens) <= 12 else 13,
    )
    chart(
        figure,
        key=f"chart_head_{head[0]}_{head[1]}",
        grows=True,
        alt=f"Heat map of the attention of {name} on this text, {len(tokens)} tokens",
    )
    if record is not None and not lecture.is_on():
        with st.expander(f"How {name} was tested"):
            _draw_table(record)


def _verdict_html(record: HeadRecord) -> str:
    """The sentence on what a head attends to, with its verdict."""
    mark = ""
    if record.best is not None and record.verdict != "in part":  # the sentence says that
        sign = f'<span aria-hidden="true">{VERDICT_MARKS[record.verdict]}</span> {VERDICT_NAMES[record.verdict]}'
        mark = f' <span class="txcls-story {record.verdict.replace(" ", "-")}">{sign}</span>'
    return f'<div class="txcls-head"><p>{html.escape(sentence(record))}{mark}</p></div>'


def _draw_table(record: HeadRecord) -> None:
    """Draw the table that replaces the head, or both single tables if none does, and the test result."""
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
    """Draw a table of all heads and all layers (rule, what it keeps, both worths), and how they were measured."""
    st.markdown(all_heads_sentence(measured))
    rows = []
    for name, record in measured.by_name().items():
        kept = share_in_words(record.tables[record.best]) if record.best else "–"
        rule = escape(record.rule[0].upper() + record.rule[1:]) if record.rule else ""
        verdict = f"{VERDICT_MARKS[record.verdict]} {VERDICT_NAMES[record.verdict]}"
        rows.append((f"**{name}**", rule, kept, verdict, *map(interval_in_words, (record.mean, record.resampled))))
    for layer, group in enumerate(measured.layers, start=1):
        kept = share_in_words(group.tables[group.best]) if group.best else "–"
        verdict = f"{VERDICT_MARKS[group.verdict]} {VERDICT_NAMES[group.verdict]}"
        rows.append((f"layer {layer}", "all its heads together", kept, verdict,
                     *map(interval_in_words, (group.mean, group.resampled))))  # fmt: skip
    columns = ("head", "attends to", "its table keeps", "verdict", "points, averaged", "points, another text’s")
    st.markdown(table(columns, rows))
    st.markdown(HOW_MEASURED.format(n=measured.n, n_training=measured.n_training, n_tests=3 * len(measured.heads)))
    training = checkpoints.classifier(page.source).checkpoint.metrics.get("training", {})
    if reason := training.get("seed_choice"):
        st.markdown(escape(f"This checkpoint was trained with seed {training.get('seed')}, {reason}."))


if __name__ == "__main__":
    main()
