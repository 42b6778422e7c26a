"""Attribution methods applied to the same words, and how much the words that each ranks highest matter."""

import html
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import streamlit as st

from txcls.app import menu
from txcls.app.lessons import lesson
from txcls.app.shell import cached_results, layout, lecture
from txcls.app.shell.charts import chart
from txcls.app.shell.large import may_compute
from txcls.app.shell.prediction import classify_text, say_not_measured
from txcls.figures import deletion_lines, minus, visible
from txcls.inference.predictor import Predictor
from txcls.inspection.attribution import (
    MAX_LEFT_OUT,
    METHODS,
    SIGNED,
    DeletionCurves,
    Explanation,
    ExplanationAverages,
    best_other,
)
from txcls.text.formatting import percentage, with_sign

DESCRIPTIONS = {
    "rollout": "attention weights, multiplied through all layers",
    "gradient": "gradient of the logit, times the word’s vector",
    "integrated": "mean gradient from a blank text to this one, times the word’s vector",
    "leave_one_out": "how far the logit falls without the word",
}
STYLE = """
<style>
.txcls-ways {display: grid; gap: 0.9rem 2rem; align-items: center; grid-template-columns: minmax(11rem, 20%) 1fr;}
.txcls-ways.measured {grid-template-columns: minmax(11rem, 20%) 1fr minmax(13rem, 30%);}
.txcls-ways > section {display: contents;}
.txcls-ways h4 {margin: 0; padding: 0; font-size: 1.12rem; font-weight: 650;}
.txcls-ways small {display: block; font-size: 0.86rem; opacity: 0.8; line-height: 1.35;}
.txcls-ways header {align-self: end; line-height: 1.35;}
.txcls-words {font-size: 1.1rem; line-height: 1.7; overflow-wrap: anywhere; white-space: pre-wrap; max-height: 13rem;
  overflow-y: auto;}
.txcls-words span {border-radius: 4px; padding: 0.12em 0.1em;}
.txcls-words .unknown {border-bottom: 2px dotted currentColor;}
.txcls-ways i {font-style: normal;}
.txcls-key i {border-radius: 4px; padding: 0.1em 0.5em; margin-right: 0.5em; white-space: nowrap;}
.txcls-left {display: grid; grid-template-columns: 1fr 3.4rem; gap: 0.15rem 0.5rem; align-items: center;
  font-variant-numeric: tabular-nums; line-height: 1.2;}
.txcls-left b {font-size: 1.2rem;}
.txcls-left s {background: color-mix(in srgb, currentColor 9%, transparent);} /* up to 100 % */
.txcls-left i {display: block; height: 1.3rem; background: var(--txcls-bar);}
.random .txcls-left i {background: var(--txcls-other);}
@media (min-width: 1500px) {.txcls-ways {row-gap: 1.5rem;} .txcls-words {font-size: 1.3rem;}}
.txcls-table {overflow-x: auto;}
@media (max-width: 640px) {
  .txcls-table :is(td, th):is(td, th) {padding: 0.15rem 0.3rem; font-size: 0.85rem;}
  .txcls-ways.txcls-ways {grid-template-columns: 1fr; gap: 0.35rem;}
  .txcls-ways section > :last-child {margin-bottom: 0.6rem;}
  .txcls-ways > header:empty {display: none;}
  .txcls-words {font-size: 1rem; line-height: 1.5;}
  .txcls-ways.measured > header:nth-child(3) {display: none;}
  .txcls-left {grid-template-columns: 1fr 3rem 8rem;}
}
@media (min-width: 641px) {.txcls-left small {display: none;}}
[class*="st-key-slide_"] .txcls-table {display: none;} /* to leave more height */
[class*="st-key-slide_"] .txcls-ways.measured {grid-template-columns: 21% 1fr 25%; row-gap: 0.5rem;}
.txcls-table table {border-collapse: collapse; font-variant-numeric: tabular-nums;}
.txcls-table td, .txcls-table th {padding: 0.15rem 0.7rem; text-align: right; border-bottom: 1px solid #8885;}
.txcls-table td:first-child, .txcls-table th:first-child {text-align: left;}
</style>
"""
ABOUT = (
    "Attention rollout: [Abnar & Zuidema 2020](https://aclanthology.org/2020.acl-main.385); integrated gradients: "
    "[Sundararajan et al. 2017](https://arxiv.org/abs/1703.01365).\n\n"
    "A method is tested by deletion: words are deleted, highest score first, and the probability of the predicted "
    "class should fall sooner than with random words. By score, all methods but rollout delete words against the class "
    "last, which attention, without a sign, cannot; by magnitude, they delete words for and against it alike. Leaving "
    "out has an advantage, since it is a deletion too, and shortened texts are unusual for the model.\n\n"
    "[Jain & Wallace 2019](https://aclanthology.org/N19-1357) and "
    "[Wiegreffe & Pinter 2019](https://aclanthology.org/D19-1002) debated whether attention is an explanation, for "
    "recurrent networks with one attention layer. The results here are for one small Transformer."
)
INTEGRATED, N_ORDERS = 336, 14
"""Integrated gradients take about as long as so many predictions; words are deleted in so many orders."""
MAX_SHADE = 40
"""The share of its colour in a word's background, in percent; more would make the word hard to read."""


def main() -> None:
    """Draw the page."""
    page = layout.open_page(menu.EXPLANATION)
    st.html(STYLE)
    classified = classify_text(page, "its words are scored by several attribution methods.")
    if classified is not None:
        averages = ExplanationAverages.of(classified.classifier)
        if classified.has_label:
            n_tokens = len(classified.prediction.tokens)
            costs = {"rollout": 1, "integrated": INTEGRATED, "leave_one_out": min(n_tokens, MAX_LEFT_OUT)}
            methods = tuple(
                name
                for name in cached_results.FIRST
                if may_compute(
                    page, classified.classifier, n_texts=costs[name], what=METHODS[name].lower(), key=f"explain_{name}"
                )
            )
            explanation = cached_results.explain(page.source, page.view.text, methods=methods)
            with lecture.slide(lecture.WORDS, lecture.CLASSES):
                if averages is not None:
                    layout.lead(page, _verdict(averages), about=ABOUT)
                _draw_words(page.view.text, explanation, averages)
            with lecture.slide(lecture.WORDS, lecture.CLASSES):
                _draw_deletion(page, classified.classifier, explanation)
            if not lecture.is_on():
                _draw_scores(page, explanation)
        if averages is None:
            say_not_measured(page, "explanations")
        elif not lecture.is_on():
            _draw_averages(averages)
    layout.close_page(page)


def _verdict(averages: ExplanationAverages) -> str:
    """The answer to the page's question, and the mean probabilities from which it follows."""
    other = best_other(averages.areas)
    areas = (averages.areas["rollout"], averages.areas[other], averages.random_area)
    attention, best, random = (f"**{percentage(area, 0)}**" for area in areas)
    return (
        f"**{_answer(averages, other)}**: if words are deleted in the order of attention, the predicted class’s "
        f"probability is {attention} on average; in that of {METHODS[other].lower()}, {best}; at random, {random}."
    )


def _answer(averages: ExplanationAverages, other: str) -> str:
    """The answer in a word, from rollout's gain over random words as a share of that of the `other` method."""
    gain, of_other = (averages.random_area - averages.areas[method] for method in ("rollout", other))
    if gain <= 0:
        return "No"
    if of_other <= 0:
        return "Yes"
    share = gain / of_other
    highest = averages.intervals.get("by_score", (share, share))[1]
    if highest < 0.5 or share < 0.9:
        return "Only partly" if highest < 1 else "Unclear"
    return "Largely"


def _range(interval: tuple[float, float]) -> str:
    """An interval of shares in words."""
    return f"{100 * interval[0]:.0f} to {percentage(interval[1], 0)}"


def _draw_words(text: str, explanation: Explanation, averages: ExplanationAverages | None) -> None:
    """Draw the words coloured by the first methods, each beside its average; a key is above them."""
    key = (
        f'<span class="txcls-key"><i style="{_shade(1, "bar")}">high attention</i> <i style="{_shade(1)}">for '
        f'{html.escape(visible(explanation.label))}</i> <i style="{_shade(-1)}">against it</i></span>'
    )
    st.html(_methods_html(text, explanation, averages, key=key))


@contextmanager
def _on_demand(title: str, *, key: str, is_open: bool = False) -> Iterator[bool]:
    """A part of the page that visitors open; yields whether it is open. In lecture mode it is always open."""
    if lecture.is_on():
        st.subheader(title, anchor=False)
        yield True
        return
    with st.expander(title, key=key, expanded=is_open, on_change="rerun") as expander:
        yield bool(expander.open)


def _draw_deletion(page: layout.Page, classifier: Predictor, explanation: Explanation) -> None:
    """Draw how fast the probability of a class falls as words are deleted in each method's order, on demand."""
    with _on_demand(
        "Does it hold for this text?",
        key="explain_deletion",
        is_open=lesson.now() is not None,
    ) as is_open:
        if not is_open:
            return
        n_texts = INTEGRATED + N_ORDERS * len(explanation.words)
        if not may_compute(page, classifier, n_texts=n_texts, what="deletions in each order", key="deletion"):
            return
        curves = cached_results.deletion(page.source, page.view.text)
        names = [METHODS[name] for name in cached_results.FIRST]
        lines = [curves.curves[name] for name in cached_results.FIRST]
        st.markdown(_sentence_on_text(curves))
        chart(
            deletion_lines(names, curves.shares, lines, curves.random, class_name=explanation.label),
            key="chart_deletion",
            alt=f"Lines of the probability of {explanation.label[:40]} while words are deleted, ordered by "
            + ", ".join(names)
            + " and at random",
        )
        areas = ((METHODS[name], area, curves.areas_by_magnitude[name]) for name, area in curves.areas.items())
        st.html(_areas_html([*areas, (f"{len(curves.random)} random orders", *2 * (curves.random_area,))]))


def _draw_scores(page: layout.Page, explanation: Explanation) -> None:
    """Draw the words coloured by the remaining method, on demand."""
    with _on_demand("Also by Gradient × input", key="explain_scores") as is_open:
        if not is_open:
            return
        other = cached_results.explain(page.source, page.view.text, methods=cached_results.ON_DEMAND)
        st.html(_methods_html(page.view.text, other))
        if len(explanation.words) > MAX_LEFT_OUT:
            st.caption("In a text of this length, several neighbouring words are left out at a time.")


def _sentence_on_text(curves: DeletionCurves) -> str:
    """A sentence that compares rollout with the random orders and with the best method."""
    area, best = curves.areas["rollout"], min(cached_results.FIRST, key=curves.areas.__getitem__)
    random_areas = np.atleast_1d(np.trapezoid(curves.random, curves.shares, axis=1))
    soonest = "no method is sooner" if best == "rollout" else f"the soonest is **{METHODS[best].lower()}**"
    half = curves.shares <= 0.5
    late = np.trapezoid(curves.curves["rollout"][half] - curves.random[:, half].mean(axis=0), curves.shares[half]) >= 0
    return (
        "On this text, deleting what **attention rollout** picks lowers the probability sooner than "
        f"{int((random_areas > area).sum())} of {len(random_areas)} random orders on average over the curve"
        f"{', though not over its first half' * bool(late)}; {soonest}."
    )


def _methods_html(
    text: str, explanation: Explanation, averages: ExplanationAverages | None = None, *, key: str = ""
) -> str:
    """The typed text as HTML, once per method, with its scores as background colours, and bars of the averages."""
    rows = [_method_html(text, name, explanation, averages) for name in explanation.scores]
    if averages is None:
        return f'<div class="txcls-ways"><header></header><header>{key}</header>{"".join(rows)}</div>'
    about = f"Mean probability with words deleted, {averages.n:,} {averages.split} texts: <b>shorter is better</b>"
    bar = _bar_html(averages.random_area, averages)
    rows.append(f'<section class="random"><h4>Random</h4><div>words in random order</div>{bar}</section>')
    return (
        f'<div class="txcls-ways measured"><header></header><header>{key}</header><header>{about}</header>'
        f"{''.join(rows)}</div>"
    )


def _bar_html(value: float, averages: ExplanationAverages) -> str:
    """A bar of a mean probability; on a phone, where it is below the words of one text, with the number of texts."""
    note = f"<small>probability left, mean of {averages.n:,} texts</small>"
    bar = f'<s><i style="width: {100 * value:.1f}%"></i></s>'
    return f'<div class="txcls-left">{bar}<b>{percentage(value, 0)}</b>{note}</div>'


def _shade(strength: float, colour: str = "") -> str:
    """The style of a word with this evidence, from -1 to 1, by default in the colour of its sign.

    The exponent makes weak evidence visible on a dark page too.
    """
    colour = colour or ("more" if strength >= 0 else "less")
    return f"background: color-mix(in srgb, var(--txcls-{colour}) {MAX_SHADE * abs(strength) ** 0.7:.1f}%, transparent)"


def _method_html(text: str, name: str, explanation: Explanation, averages: ExplanationAverages | None) -> str:
    scores = explanation.scores[name]
    largest = float(np.abs(scores).max(initial=0.0)) or 1.0
    parts, end_of_previous = [], 0
    for word, score in zip(explanation.words, scores, strict=True):
        start, end = max(word.start, end_of_previous), max(word.end, end_of_previous)
        typed_word = text[start:end]
        strength = float(score) / largest
        parts.append(html.escape(visible(text[end_of_previous:start])))
        title = html.escape(f"{visible(word.label)}: {_score_text(name, float(score))}", quote=True)
        parts.append(
            f'<span{" class=unknown" * word.is_unknown} title="{title}" '
            f'style="{_shade(strength, "" if name in SIGNED else "bar")}">{html.escape(visible(typed_word))}</span>'
        )
        end_of_previous = end
    bar = "" if averages is None else _bar_html(averages.areas[name], averages)
    return (
        f"<section><div><h4>{METHODS[name]}</h4><small>{DESCRIPTIONS[name]}</small></div>"
        f'<div class="txcls-words" dir="auto">{"".join(parts)}</div>{bar}</section>'
    )


def _score_text(name: str, score: float) -> str:
    return with_sign(score, 4) if name in SIGNED else minus(f"{score:.4f}")


def _areas_html(areas: Sequence[tuple[str, float, float | None]]) -> str:
    """A table of areas under deletion curves, which are mean probabilities; the smaller, the sooner the fall."""
    rows = [(name, f"{by_score:.3f}", "–" if other is None else f"{other:.3f}") for name, by_score, other in areas]
    head = ("mean probability", "by score", "by magnitude")
    return f'<div class="txcls-table">{_table_html(head, rows)}</div>'


def _table_html(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def row_html(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(row_html(row, "td") for row in rows)
    return f"<table><thead>{row_html(head, 'th')}</thead><tbody>{body}</tbody></table>"


def _draw_averages(averages: ExplanationAverages) -> None:
    """Draw the table of average areas, from which the verdict follows, on demand."""
    with _on_demand("All averages", key="explain_averages") as is_open:
        if not is_open:
            return
        by_magnitude, random_area = averages.areas_by_magnitude, averages.random_area
        areas = [(METHODS[name], area, by_magnitude.get(name)) for name, area in averages.areas.items()]
        st.html(_areas_html([*areas, ("random order", random_area, random_area if by_magnitude else None)]))
        shares = [f"{_range(interval)} {order.replace('_', ' ')}" for order, interval in averages.intervals.items()]
        compared = f" Rollout has {', '.join(shares)} (95 % intervals) of the best other method's gain over random."
        st.caption(
            "Mean probability of the predicted class while words are deleted, highest score first (by magnitude: with "
            f"the sign ignored); {averages.n:,} random {averages.split} texts.{compared * bool(shares)}"
        )


if __name__ == "__main__":
    main()
