"""Attribution methods applied to the same words: their scores, agreement and deletion curves."""

import html
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from txcls.app import menu
from txcls.app.shell import cached_results, layout, lecture
from txcls.app.shell.charts import chart
from txcls.app.shell.controls import choice
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import classify_text, say_not_measured
from txcls.checkpoint.card import METHODS
from txcls.figures import deletion_lines, minus, overlap_map, visible
from txcls.inference.predictor import Predictor
from txcls.inspection.attribution import (
    SIGNED,
    DeletionCurves,
    Explanation,
    ExplanationAverages,
    Target,
    best_methods,
    n_top,
    top_overlaps,
)
from txcls.text.tokens import Token
from txcls.wording import percentage, signed

METHOD_DESCRIPTIONS = {
    "attention": "The last layer's attention to the word: mean over heads, and over queries by their pooling weight.",
    "pooling": "The pooling weight of the word's state after the last layer.",
    "rollout": "Attention multiplied through all layers, mixed with the identity (Abnar & Zuidema 2020).",
    "gradient": "Gradient of the {target} of {label} with respect to the word's vector, times that vector.",
    "integrated": "The gradient averaged along a path from a baseline, times the change (Sundararajan et al. 2017).",
    "leave_one_out": "How much the {target} of {label} falls when the token is removed from the text.",
}
STYLE = """
<style>
.txcls-ways {display: grid; gap: 1rem 1.6rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, max(17.5rem, 26%)), 1fr));}
.txcls-ways h4 {margin: 0; padding: 0; font-size: 1.12rem; font-weight: 650;}
.txcls-ways small {display: block; font-size: 0.86rem; opacity: 0.8; line-height: 1.35; min-height: 2.7em;}
.txcls-words {font-size: 1.1rem; line-height: 1.9; overflow-wrap: anywhere; white-space: pre-wrap;}
.txcls-words {max-height: 24rem; overflow-y: auto;}
.txcls-words span {border-radius: 4px; padding: 0.12em 0.1em;}
.txcls-words .unknown {border-bottom: 2px dotted currentColor;}
.txcls-key {display: flex; flex-wrap: wrap; align-items: baseline; gap: 0.3rem 1.2rem;}
.txcls-key > span {display: flex; align-items: baseline; gap: 0.5em;}
.txcls-key i {border-radius: 4px; padding: 0.1em 0.5em; font-style: normal;}
.txcls-table {overflow-x: auto;}
.txcls-table.long {max-height: 30rem; overflow-y: auto;}
@media (max-width: 640px) {.txcls-table :is(td, th):is(td, th) {padding: 0.15rem 0.3rem; font-size: 0.85rem;}}
[class*="st-key-slide_"]:has(.st-key-chart_deletion) .txcls-table {display: none;} /* the chart needs the height */
.txcls-table table {border-collapse: collapse; font-variant-numeric: tabular-nums;}
.txcls-table td, .txcls-table th {padding: 0.15rem 0.7rem; text-align: right; border-bottom: 1px solid #8885;}
.txcls-table td:first-child, .txcls-table th:first-child {text-align: left;}
</style>
"""
ABOUT_MAGNITUDE = (
    "By score, the last three methods delete words against the class last, which attention cannot, since it has no "
    "sign. By magnitude, they too delete words for and against the class alike."
)
FOR_RGB, AGAINST_RGB = "213, 94, 0", "31, 131, 196"


def main() -> None:
    """Draw the page."""
    page = layout.open_page(menu.EXPLANATION)
    st.html(STYLE)
    conclusion = st.container()
    classified = classify_text(page, "its words are scored by several attribution methods.")
    if classified is not None:
        if (averages := ExplanationAverages.of(classified.classifier)) is not None:
            conclusion.markdown(_conclusion(averages))
        if classified.has_label:
            _draw_text(page, classified.classifier)
        with lecture.slide(lecture.ATTENTION):
            _draw_averages(page, classified.classifier)
        with lecture.slide(lecture.ATTENTION):
            _draw_literature()
    layout.close_page(page)


def _draw_text(page: layout.Page, classifier: Predictor) -> None:
    scores_container = st.container()
    controls = st.container(key="explanation_controls", horizontal=True, gap="medium")
    view, blank = page.view, _blank_name(classifier)
    baselines = {"blank": f"{blank}s", "zero": "zero vectors"}
    title = "Target: the predicted class's …"
    choice(controls, title, get_args(Target), view, "target", key="explain_target")
    title, names = "Integrated gradients start from …", baselines.__getitem__
    choice(controls, title, list(baselines), view, "baseline", key="explain_baseline", names=names)
    explanation = cached_results.explain(page.source, view.text, target=view.target, baseline=view.baseline)
    with scores_container, lecture.slide(lecture.WORDS, lecture.CLASSES):
        _draw_scores(view.text, explanation, blank)
    methods = [METHODS[name] for name in explanation.scores]
    agreement_column, deletion_column = st.columns(2, gap="large")
    with agreement_column, lecture.slide(lecture.WORDS):
        _draw_agreement(methods, top_overlaps(explanation.scores), len(explanation.words))
    with deletion_column, lecture.slide(lecture.WORDS, lecture.CLASSES):
        curves = cached_results.deletion(page.source, view.text, target=view.target, baseline=view.baseline)
        _draw_deletion(curves, label=explanation.label, blank=blank)


def _blank_name(classifier: Predictor) -> str:
    """Name of the token that the blank baseline consists of and that replaces an empty text."""
    return "unknown word" if classifier.tokenizer.byte_pairs is None else "mask token"


def _draw_scores(text: str, explanation: Explanation, blank: str) -> None:
    """Draw the words coloured by every method, and their scores."""
    label = plain(explanation.label)
    st.subheader("How do the methods score the words?", anchor=False)
    st.html(
        f'<p class="txcls-key"><span><i style="background: rgba({FOR_RGB}, 0.7)">orange</i>evidence for '
        f"{html.escape(visible(explanation.label))}, or high attention</span>"
        f'<span><i style="background: rgba({AGAINST_RGB}, 0.7)">blue</i>evidence against it</span>'
        "<span>scaled to each method's largest score</span></p>"
    )
    methods = "".join(_method_html(text, name, explanation, scores) for name, scores in explanation.scores.items())
    st.html(f'<div class="txcls-ways">{methods}</div>')
    integrated = explanation.integrated
    assert integrated is not None
    baseline = f"the same number of {blank}s" if explanation.baseline == "blank" else "zero vectors"
    low, high = (round(value, 4) for value in (integrated.baseline_value, integrated.value))
    baseline_value, value_of_text, difference = (minus(f"{value:.4f}") for value in (low, high, high - low))
    error = f"{integrated.completeness_error:.4f}"
    about = (
        f"Target of the last three methods: the {explanation.target} of {label}. Baseline of integrated gradients: "
        f"{baseline}. The target is {baseline_value} for the baseline and {value_of_text} for this text, so the scores "
        f"should sum to {difference}. With {integrated.steps} steps, they miss this sum by "
        f"**{'less than 0.0001' if error == '0.0000' else error}** (completeness error)."
        + _other_tokens_sentence(explanation.elsewhere)
    )
    with st.expander("All scores"):
        st.caption(about)
        st.html(f'<div class="txcls-table long">{_scores_html(explanation.words, explanation.scores)}</div>')


def _draw_agreement(names: Sequence[str], overlaps: NDArray[np.float64], n_words: int) -> None:
    st.subheader("Do they agree?", anchor=False)
    n = n_top(n_words)
    strongest = "token with the largest score" if n == 1 else f"{n} tokens with the largest scores"
    st.markdown(
        f"For this text and each pair of methods: the share of each method's **{strongest}** (evidence for or against) "
        f"that they have in common. Two random choices of {n} from its {n_words} tokens share "
        f"{percentage(n / n_words, 0)} on average."
    )
    if np.isnan(overlaps).all():
        st.info("With a single token, or equal scores for all tokens, there is nothing to rank.")
    chart(
        overlap_map(names, overlaps),
        key="chart_overlaps",
        alt=f"Share of the {n} strongest tokens that attribution methods have in common: "
        + "; ".join(f"{names[0]} and {names[i]} {overlaps[0, i]:.2f}" for i in range(1, len(names))),
    )
    st.caption(
        "“Feature agreement” of [Krishna et al. 2022](https://arxiv.org/abs/2202.01602). Tokens with scores near zero "
        "do not affect it, unlike rank correlation."
    )


def _draw_deletion(curves: DeletionCurves, *, label: str, blank: str) -> None:
    st.subheader("What happens when words are deleted?", anchor=False)
    st.markdown(
        "Tokens are deleted one by one (in long texts several at a time, in 24 steps), highest score first. If the "
        "scores identify the tokens that matter, the probability falls early and the area under the curve is small."
    )
    names = [METHODS[name] for name in curves.curves]
    st.markdown(_sentence_on_text(curves))
    chart(
        deletion_lines(names, curves.shares, list(curves.curves.values()), curves.random, class_name=label),
        key="chart_deletion",
        alt=f"Lines of the probability of {label[:40]} while words are deleted, ordered by "
        + ", ".join(names)
        + " and at random",
    )
    rows = [
        (METHODS[name], f"{area:.3f}", f"{curves.areas_by_magnitude[name]:.3f}") for name, area in curves.areas.items()
    ]
    rows.append((f"random, mean of {len(curves.random)} orders", *2 * (f"{curves.random_area:.3f}",)))
    st.html(f'<div class="txcls-table">{_table_html(("order", "area, by score", "area, by magnitude"), rows)}</div>')
    st.caption(
        f"The remaining tokens move together, and a single {blank} replaces the empty text. Such shortened texts are "
        f"unlike the training texts, which affects all methods. {ABOUT_MAGNITUDE} The grey band spans the random "
        "orders."
    )


def _sentence_on_text(curves: DeletionCurves) -> str:
    """A sentence that compares the best attention method with the random orders and with the other methods."""
    name, _ = best_methods(curves.areas)
    area, random_areas = curves.areas[name], np.atleast_1d(np.trapezoid(curves.random, curves.shares, axis=1))
    others = _by_order(
        {
            order: (best, areas[best])
            for order, areas in (("by score", curves.areas), ("by magnitude", curves.areas_by_magnitude))
            for _, best in [best_methods(areas)]
        }
    )
    return (
        f"On this text, the smallest area of an attention method ({METHODS[name].lower()}, {area:.3f}) is smaller than "
        f"that of {int((random_areas > area).sum())} of {len(random_areas)} random orders (mean "
        f"{curves.random_area:.3f}). Best of the other methods: {others}."
    )


def _by_order(best: Mapping[str, tuple[str, float]]) -> str:
    """The best method and its area for each order, each method named once: "rollout by score (0.3)"."""
    methods = dict.fromkeys(name for name, _ in best.values())
    return "; ".join(
        f"{METHODS[method].lower()} "
        + ", ".join(f"{order} ({area:.3f})" for order, (name, area) in best.items() if name == method)
        for method in methods
    )


def _conclusion(averages: ExplanationAverages) -> str:
    """The answer to the page's question: how much the best attention method achieves, and how far methods agree."""
    areas, overlaps = averages.areas, averages.overlaps[0, 1:]
    name, other = best_methods(areas)
    gain, of_other = (averages.random_area - areas[method] for method in (name, other))
    answer = "**No**: the words that attention ranks highest matter no more than random words."
    result = f"{'a' if gain > 0 else 'no'} gain over a random order"
    if gain > 0:
        answer = "**Yes**: only the words that attention ranks highest matter more than random words."
    if gain > 0 and of_other > 0:
        share, method = gain / of_other, METHODS[other].lower()
        result = f"{percentage(share, 0)} of the gain of {method} over a random order"
        lead, compared = _compared_in_words(share, averages.intervals.get("by_score", (share, share))[1])
        answer = f"**{lead}**: the words that attention ranks highest matter {compared} those of {method}."
    agreement = ""
    if not np.isnan(overlaps).all():
        agreement = (
            f" Last-layer attention shares {100 * np.nanmin(overlaps):.0f} to {percentage(np.nanmax(overlaps), 0)} of "
            f"its strongest tokens with other methods (by chance, {percentage(averages.chance, 0)})."
        )
    return (
        f"{answer} Averaged over {averages.n:,} {averages.split} texts, **{METHODS[name].lower()}** is the most "
        f"faithful attention method in the deletion test, with {result}.{agreement}"
    )


def _compared_in_words(share: float, highest: float) -> tuple[str, str]:
    """The answer to the page's question, and how much attention's words matter, from its gain's share of another's.

    `highest` is the upper end of the share's interval.
    """
    if highest < 0.5:
        return "Only partly", "less than half as much as"
    if share < 0.9:
        return ("Only partly", "less than") if highest < 1 else ("Unclear", "perhaps less than")
    return "Largely", "almost as much as" if share < 1 else "at least as much as"


def _sentences_on_average(averages: ExplanationAverages) -> str:
    """Sentences that compare the best attention method with a random order and with the best other methods."""
    name, _ = best_methods(averages.areas)
    n_methods = sum(method not in SIGNED for method in averages.areas)
    gain = averages.random_area - averages.areas[name]
    start = f"On average over {averages.n:,} texts, {METHODS[name].lower()}, the best of {n_methods} attention methods,"
    if gain <= 0:
        return f"{start} does not improve on a random order."

    def compared(areas: Mapping[str, float], interval: tuple[float, float] | None) -> str:
        _, other = best_methods(areas)
        share = percentage(gain / (averages.random_area - areas[other]), 0)
        ends = "" if interval is None else f" ({100 * interval[0]:.0f} to {percentage(interval[1], 0)})"
        return f"{share}{ends} of what {METHODS[other].lower()} achieves"

    by_magnitude = ""
    if averages.areas_by_magnitude:
        by_magnitude = (
            f"; by magnitude, the only order that attention has, "
            f"{compared(averages.areas_by_magnitude, averages.intervals.get('by_magnitude'))}"
        )
    about = "95 % intervals over texts" if averages.intervals else "no interval was measured"
    by_score = compared(averages.areas, averages.intervals.get("by_score"))
    return f"{start} achieves, as improvement over a random order, {by_score}{by_magnitude} ({about})."


def _other_tokens_sentence(elsewhere: Mapping[Any, float]) -> str:
    shares = {name: share for name, share in elsewhere.items() if name not in SIGNED}
    if all(abs(share) < 0.0005 for share in shares.values()):
        return ""
    attention_shares = [f"{METHODS[name].lower()} {percentage(share, 0)}" for name, share in shares.items()]
    return f" Tokens that the model adds are not shown; they have {', '.join(attention_shares)} of the attention."


def _method_html(text: str, name: str, explanation: Explanation, scores: NDArray[np.floating]) -> str:
    """The typed text as HTML, with the scores of one method as background colours."""
    largest = float(np.abs(scores).max(initial=0.0)) or 1.0
    parts, end_of_previous = [], 0
    for word, score in zip(explanation.words, scores, strict=True):
        start, end = max(word.start, end_of_previous), max(word.end, end_of_previous)
        typed_word = text[start:end]
        strength = float(score) / largest
        colour = FOR_RGB if strength >= 0 else AGAINST_RGB
        parts.append(html.escape(visible(text[end_of_previous:start])))
        title = html.escape(f"{visible(word.label)}: {_score_text(name, float(score))}", quote=True)
        parts.append(
            f'<span{" class=unknown" * word.is_unknown} title="{title}" '
            f'style="background: rgba({colour}, {0.75 * abs(strength):.3f})">{html.escape(visible(typed_word))}</span>'
        )
        end_of_previous = end
    label = html.escape(visible(explanation.label))
    about = METHOD_DESCRIPTIONS[name].format(target=explanation.target, label=label)
    return (
        f"<section><h4>{METHODS[name]}</h4><small>{about}</small>"
        f'<div class="txcls-words">{"".join(parts)}</div></section>'
    )


def _score_text(name: str, score: float) -> str:
    return signed(score, 4) if name in SIGNED else minus(f"{score:.4f}")


def _scores_html(words: Sequence[Token], scores: Any) -> str:
    rows = [
        (f"{n + 1} · {visible(word.label)}", *(_score_text(name, float(scores[name][n])) for name in scores))
        for n, word in enumerate(words)
    ]
    return _table_html(("token", *(METHODS[name] for name in scores)), rows)


def _table_html(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def row_html(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(row_html(row, "td") for row in rows)
    return f"<table><thead>{row_html(head, 'th')}</thead><tbody>{body}</tbody></table>"


def _draw_averages(page: layout.Page, classifier: Predictor) -> None:
    st.subheader("And on average?", anchor=False)
    if (averages := ExplanationAverages.of(classifier)) is not None:
        _draw_average_table(averages, _blank_name(classifier))
    else:
        say_not_measured(page, "explanations")


def _draw_average_table(averages: ExplanationAverages, blank: str) -> None:
    overlaps = ["–", *("–" if np.isnan(overlap) else percentage(overlap, 0) for overlap in averages.overlaps[0, 1:])]
    areas = [averages.areas]
    head = ["method", "area, by score", "strongest tokens shared with last-layer attention"]
    if averages.areas_by_magnitude:
        areas.append(averages.areas_by_magnitude)
        head.insert(2, "area, by magnitude")
    rows = [
        (METHODS[name], *(f"{of_order[name]:.3f}" for of_order in areas), share)
        for name, share in zip(averages.areas, overlaps, strict=True)
    ]
    random_cells = [f"{averages.random_area:.3f}"] * len(areas)
    rows.append(("random order", *random_cells, percentage(averages.chance, 0)))
    st.markdown(_sentences_on_average(averages))
    st.html(f'<div class="txcls-table">{_table_html(head, rows)}</div>')
    best = {
        order: min(of_order.items(), key=lambda item: item[1])
        for of_order, order in zip(areas, ("by score", "by magnitude"), strict=False)
    }
    st.caption(
        f"Means over {averages.n:,} random {averages.split} texts, measured by `txcls measure NAME explanations` and "
        f"saved with the checkpoint. Target: logit; baseline: {blank}s; mean completeness error "
        f"{averages.completeness_error:.4f}. {ABOUT_MAGNITUDE} Smallest mean area: "
        f"{_by_order(best)}. Leave-one-out has an advantage, since deletion curves delete words too. If the last "
        "layer attends almost uniformly (see its "
        "entropy on the page Attention), its attention cannot rank words; pooling weights still may."
    )


def _draw_literature() -> None:
    with st.expander("What the literature says, and what it does not say", expanded=True):
        st.markdown(
            "- **[Jain & Wallace 2019](https://aclanthology.org/N19-1357)**, *Attention is not Explanation*: in "
            "recurrent networks (BiLSTMs) with one attention layer on top, attention weights correlated only weakly "
            "with gradients and with leave-one-out, and very different weights often gave the same prediction. They "
            "did not study self-attention as in this model, nor show that attention is never informative.\n"
            "- **[Wiegreffe & Pinter 2019](https://aclanthology.org/D19-1002)**, *Attention is not not Explanation*: "
            "also on recurrent networks. Alternative weights, searched for each text separately, are not another "
            "model, and learned weights helped in several tasks, while in some uniform weights did as well. They "
            "proposed tests for when attention can be an explanation; they did not show that it explains predictions "
            "faithfully.\n"
            "- **[Abnar & Zuidema 2020](https://aclanthology.org/2020.acl-main.385)** proposed rollout to follow "
            "attention through the layers of a Transformer. It ignores value vectors, feed-forward blocks and norms of "
            "vectors.\n"
            "\n"
            "The results above do not replicate these papers: they are for one small Transformer, on one text or a few "
            "hundred."
        )


if __name__ == "__main__":
    main()
