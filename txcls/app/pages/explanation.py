"""Attribution methods applied to the same words, and how much the words that each ranks highest matter."""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from txcls.app import menu
from txcls.app.shell import cached_results, layout, lecture
from txcls.app.shell.markdown import escape
from txcls.app.shell.prediction import classify_text, may_compute, say_not_measured
from txcls.figures import minus, visible
from txcls.inspection.attribution import (
    MAX_LEFT_OUT,
    METHODS,
    SIGNED,
    Deletion,
    Explanation,
    ExplanationAverages,
    best_other,
)
from txcls.text.formatting import class_title, percentage, with_sign

DESCRIPTIONS = {
    "rollout": "attention weights, multiplied through all layers",
    "gradient": "gradient of the logit, times the token’s vector",
    "integrated": "mean gradient from a blank text to this one, times the token’s vector",
    "leave_one_out": "how far the logit falls without the token",
}
ABOUT = (
    "Tokens are deleted, highest score first, until the answer changes; the control is deleting them in random orders. "
    "Leaving out has an advantage, since it is a deletion too, and shortened texts are unusual for the model.\n\n"
    "Attention rollout: [Abnar & Zuidema 2020](https://aclanthology.org/2020.acl-main.385); integrated gradients: "
    "[Sundararajan et al. 2017](https://arxiv.org/abs/1703.01365). "
    "[Jain & Wallace 2019](https://aclanthology.org/N19-1357) and "
    "[Wiegreffe & Pinter 2019](https://aclanthology.org/D19-1002) debated whether attention is an explanation, for "
    "recurrent networks with one attention layer."
)
OTHER_TEXTS = "Does attention explain other texts?"
INTEGRATED = 336
"""Integrated gradients take about as long as this many predictions."""
MAX_SHADE = 40
"""The maximum share of colour in a word's background, in percent; more would make the word hard to read."""
MAX_NAMED = 3
"""Maximum number of deleted words that the answer names."""
HARDLY_BELOW = 0.2
"""Attention is said to hardly explain if its gain is below this share of the best method’s."""
N_STEPS, N_ORDERS = 24, 13
"""Maximum number of steps in which words are deleted, and the number of orders."""


def main() -> None:
    """Draw the page."""
    page = layout.open_page(menu.EXPLANATION)
    classified = classify_text(page, "its words are scored by several attribution methods.")
    if classified is not None and classified.has_label:
        n_tokens = len(classified.prediction.tokens)
        n_texts = INTEGRATED + min(n_tokens, MAX_LEFT_OUT) + N_ORDERS * min(n_tokens, N_STEPS)
        is_quick = may_compute(page, "the other methods", n_texts=n_texts)
        methods = cached_results.FIRST if is_quick else cached_results.FIRST[:1]
        explanation = cached_results.explain(page.source, page.view.text, methods=methods)
        deletion = None
        if is_quick:
            deletion = cached_results.delete_until_changed(page.source, page.view.text, explanation)
        averages = ExplanationAverages.of(classified.classifier)
        with lecture.slide(lecture.WORDS, lecture.CLASSES):
            if deletion is not None:
                layout.draw_answer(page, _answer(explanation, deletion), about=ABOUT)
            st.html(_methods_html(page.view.text, explanation, deletion))
        if averages is None:
            say_not_measured(page, "explanations")
        else:
            with lecture.slide(lecture.WORDS, lecture.CLASSES):
                if lecture.is_on():
                    st.subheader(OTHER_TEXTS, anchor=False)
                    _draw_averages(averages)
                else:
                    verdict = _judge_averages(averages).lower()
                    with st.expander(f"{OTHER_TEXTS} Over {averages.n:,} {averages.split} texts: **{verdict}**"):
                        _draw_averages(averages)
        if not lecture.is_on():
            with st.expander("Also by Gradient × input", key="explain_scores", on_change="rerun") as expander:
                if expander.open:
                    other = cached_results.explain(page.source, page.view.text, methods=cached_results.ON_DEMAND)
                    st.html(_methods_html(page.view.text, other))
    layout.close_page(page)


def _judge(measured: Mapping[str, float], random: float, interval: Sequence[float] = ()) -> str:
    """Whether attention is an explanation, from a quantity that is small for methods that find what matters.

    The verdict depends on rollout's gain over `random` orders as a share of the best other method's gain; `interval` is
    the interval of this share.
    """
    others = [measured[method] for method in measured if method in SIGNED]
    gain, best_gain = random - measured["rollout"], random - min(others, default=0.0)
    if gain <= 0:
        return "No"
    if not others:
        return "Unclear"
    if best_gain <= 0:
        return "Yes"
    share = gain / best_gain
    highest = interval[1] if interval else share
    if highest < HARDLY_BELOW:
        return "Hardly"
    if highest < 0.5 or share < 0.9:
        return "Only partly" if highest < 1 else "Unclear"
    return "Largely"


def _answer(explanation: Explanation, deletion: Deletion) -> str:
    """A sentence on whether attention finds the tokens that matter, from how many deletions change the answer."""
    name, n_words, counts = escape(class_title(explanation.label)), deletion.n_words, deletion.counts
    best = min(counts, key=counts.__getitem__)
    if (n := counts[best]) > n_words:
        return f"**Not shown here**: whatever tokens are deleted, the answer stays **{name}**."
    order = np.argsort(-explanation.scores[best], kind="stable")[:n]
    words = [f"**{escape(visible(explanation.words[index].label))}**" for index in order[:MAX_NAMED]]
    named = f"{', '.join(words)}{' …' * (n > len(words))}"
    others = {"by attention": counts["rollout"]} if best != "rollout" else {}
    takes = [
        f"{order}, {f'after **{count}**' if count <= n_words else 'it never changes'}"
        for order, count in {**others, "in random order": deletion.random}.items()
    ]
    return (
        f"**On this text, {_judge(counts, deletion.random).lower()}**: the answer changes after deleting the "
        f"{f'**{n}** tokens' if n > 1 else 'token'} ranked highest by {METHODS[best].lower()} ({named}); "
        f"{'; '.join(takes)}."
    )


def _methods_html(text: str, explanation: Explanation, deletion: Deletion | None = None) -> str:
    """The typed text as HTML, once per method: coloured by its scores, with how many deletions change the answer."""
    name = html.escape(visible(class_title(explanation.label)))
    key = (
        f'<header></header><header class="txcls-key"><i style="{_shade(1, "bar")}">attention</i> '
        f'<i style="{_shade(1)}">for {name}</i> <i style="{_shade(-1)}">against it</i>'
    )
    order = list(explanation.scores)
    if deletion is not None:
        order.sort(key=deletion.counts.__getitem__)
    rows = [_method_html(text, method, explanation, deletion) for method in order]
    if deletion is None:
        return f'<div class="txcls-ways">{key}</header>{"".join(rows)}</div>'
    key += (
        f' <i class="deleted">deleted</i></header><header>Tokens deleted until the answer changes, of '
        f"{deletion.n_words}: <b>fewer is better</b></header>"
    )
    bar = _count_html(deletion.random, deletion.n_words)
    rows.append(f'<section class="random"><h4>Control</h4><div>random order, median of ten</div>{bar}</section>')
    return f'<div class="txcls-ways measured">{key}{"".join(rows)}</div>'


def _count_html(n: float, n_words: int) -> str:
    return _bar_html(min(n / n_words, 1.0), f"{n:g}" if n <= n_words else "never")


def _bar_html(share: float, number: str) -> str:
    return f'<div class="txcls-left"><s><i style="width: {100 * share:.1f}%"></i></s><b>{number}</b></div>'


def _shade(strength: float, colour: str = "") -> str:
    """The style of a word with this evidence, from -1 to 1, by default in the colour of its sign.

    The exponent makes weak evidence visible on a dark page too.
    """
    colour = colour or ("more" if strength >= 0 else "less")
    return f"background: color-mix(in srgb, var(--txcls-{colour}) {MAX_SHADE * abs(strength) ** 0.7:.1f}%, transparent)"


def _method_html(text: str, name: str, explanation: Explanation, deletion: Deletion | None) -> str:
    scores = explanation.scores[name]
    largest = float(np.abs(scores).max(initial=0.0)) or 1.0
    n_deleted = 0 if deletion is None else deletion.counts[name]
    top = set(np.argsort(-scores, kind="stable")[:n_deleted].tolist())
    parts, end_of_previous = [], 0
    for index, (word, score) in enumerate(zip(explanation.words, scores, strict=True)):
        start, end = max(word.start, end_of_previous), max(word.end, end_of_previous)
        parts.append(html.escape(visible(text[end_of_previous:start])))
        written = with_sign(score, 4) if name in SIGNED else minus(f"{score:.4f}")
        title = html.escape(f"{visible(word.label)}: {written}", quote=True)
        classes = " ".join(["unknown"] * word.is_unknown + ["deleted"] * (index in top))
        shade = _shade(float(score) / largest, "" if name in SIGNED else "bar")
        parts.append(
            f'<span class="{classes}" title="{title}" style="{shade}">{html.escape(visible(text[start:end]))}</span>'
        )
        end_of_previous = end
    bar = "" if deletion is None else _count_html(deletion.counts[name], deletion.n_words)
    marked = "attention" * (name == "rollout")
    return (
        f'<section class="{marked}"><div><h4>{METHODS[name]}</h4><small>{DESCRIPTIONS[name]}</small></div>'
        f'<div class="txcls-words" dir="auto">{"".join(parts)}</div>{bar}</section>'
    )


def _judge_averages(averages: ExplanationAverages) -> str:
    """The answer over many texts, by the rule for one text."""
    areas = {name: averages.areas[name] for name in ("rollout", best_other(averages.areas))}
    return _judge(areas, averages.random_area, averages.intervals.get("by_score", ()))


def _draw_averages(averages: ExplanationAverages) -> None:
    """Draw the verdict over many texts, and the averages as bars."""
    areas, random = averages.areas, averages.random_area
    other = best_other(areas)
    gain, best_gain = random - areas["rollout"], random - areas[other]
    share = max(gain / best_gain, 0.0) if best_gain > 0 else 0.0
    worse = [METHODS[name].lower() for name in areas if areas[name] > areas["rollout"]]
    intervals = [
        f"{100 * low:.0f} to {percentage(high, 0)} {order.replace('_', ' ')}"
        for order, (low, high) in averages.intervals.items()
    ]
    exact = f"95 % intervals: {', '.join(intervals)}, where by magnitude ignores the signs of scores."
    st.markdown(
        f"**Over {averages.n:,} {averages.split} texts, {_judge_averages(averages).lower()}**: attention goes "
        f"**{percentage(share, 0)}** of the way from random order to {METHODS[other].lower()}"
        + (f"; {' and '.join(worse)} does worse." if worse else "."),
        help=exact if intervals else None,
    )
    rows = [(METHODS[name], areas[name]) for name in sorted(areas, key=areas.__getitem__)]
    rows.append(("Random order", random))
    kinds = {METHODS["rollout"]: "attention", "Random order": "random"}
    bars = "".join(
        f'<section class="{kinds.get(name, "")}"><h4>{name}</h4>{_bar_html(area, percentage(area, 0))}</section>'
        for name, area in rows
    )
    about = "Mean probability of the predicted class while all tokens are deleted one after another: shorter is better"
    st.html(f'<div class="txcls-ways averages"><header></header><header>{about}</header>{bars}</div>')


if __name__ == "__main__":
    main()
