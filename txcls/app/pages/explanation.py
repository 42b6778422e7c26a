"""The same words scored in five ways, how far these agree, and what happens when the words go."""

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from txcls.app import compute, layout, pages
from txcls.errors import TxclsError
from txcls.figures import correlation_map, deletion_lines, minus, visible
from txcls.inspection import METHODS, SIGNED, ExplanationAverages
from txcls.text.encoder import Token

if TYPE_CHECKING:
    from txcls.predict import Classifier

LINKS = (pages.ATTENTION, pages.SWITCHBOARD, pages.LENS, pages.WHAT_IF)
N_TEXTS = 200
TARGETS = {"logit": "logit", "probability": "probability"}
BASELINES = {"unknown": "unknown words", "zero": "zero vectors"}
HOW = {
    "attention": "How much of the last layer's attention falls on the word: mean of the heads.",
    "rollout": "Attention multiplied through all layers, half of each token staying put (Abnar & Zuidema 2020).",
    "gradient": "How steeply the target rises with the word's vector, times that vector.",
    "integrated": "The same, averaged on the way from an empty baseline to this text (Sundararajan et al. 2017).",
    "leave_one_out": "By how much the target falls when the word is not in the text.",
}
STYLE = """
<style>
.txcls-ways {display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 17.5rem), 1fr)); gap: 1rem 1.6rem;}
.txcls-ways h4 {margin: 0; padding: 0; font-size: 1.12rem; font-weight: 650;}
.txcls-ways small {display: block; font-size: 0.86rem; opacity: 0.8; line-height: 1.35; min-height: 2.7em;}
.txcls-words {font-size: 1.1rem; line-height: 1.9; overflow-wrap: anywhere; white-space: pre-wrap;}
.txcls-words {max-height: 24rem; overflow-y: auto;}
.txcls-words span {border-radius: 4px; padding: 0.12em 0.1em;}
.txcls-words .unknown {border-bottom: 2px dotted currentColor;}
.txcls-key span {border-radius: 4px; padding: 0.1em 0.5em; margin-right: 0.5em;}
.txcls-table {overflow-x: auto; max-height: 30rem; overflow-y: auto;}
.txcls-table table {border-collapse: collapse; font-variant-numeric: tabular-nums;}
.txcls-table td, .txcls-table th {padding: 0.15rem 0.7rem; text-align: right; border-bottom: 1px solid #8885;}
.txcls-table td:first-child, .txcls-table th:first-child {text-align: left;}
</style>
"""
FOR, AGAINST = "213, 94, 0", "31, 131, 196"


def main() -> None:
    """Draw the page."""
    opened = layout.open_page(pages.EXPLANATION)
    st.html(STYLE)
    read = layout.read_text(opened, "its words are scored in five ways, side by side.")
    if read is not None:
        if read.is_answered:
            _one_text(opened, phrases_vote=read.classifier.checkpoint.config.model.phrases > 0)
        _many_texts(opened, read.classifier)
        _literature()
    layout.close_page(opened, LINKS)


def _one_text(opened: layout.Page, *, phrases_vote: bool) -> None:
    controls = st.container(horizontal=True, gap="medium")
    target: Any = controls.segmented_control(
        "Target: the winning class's …", list(TARGETS), format_func=TARGETS.__getitem__, default="logit",
        required=True, key="explain_target", persist_state="session",
    )  # fmt: skip
    baseline: Any = controls.segmented_control(
        "Integrated gradients start from …", list(BASELINES), format_func=BASELINES.__getitem__, default="unknown",
        required=True, key="explain_baseline", persist_state="session",
    )  # fmt: skip
    found = compute.explain(opened.source, opened.view.text, target=target, baseline=baseline)
    explained = found.explanation
    label = layout.plain(explained.label)
    st.subheader(f"Which words made it {label}?", anchor=False)
    st.html(
        f'<p class="txcls-key"><span style="background: rgba({FOR}, 0.7)">orange</span>speaks for '
        f"{html.escape(visible(explained.label))}, or gets much attention &nbsp; "
        f'<span style="background: rgba({AGAINST}, 0.7)">blue</span>speaks against it. '
        "The strongest word of each way has full colour; hover for numbers.</p>"
    )
    ways = "".join(_way(opened.view.text, name, explained.words, explained.scores[name]) for name in METHODS)
    st.html(f'<div class="txcls-ways">{ways}</div>')
    integrated = explained.integrated
    there, here, apart = (
        minus(f"{value:.4f}")
        for value in (integrated.baseline_value, integrated.value, integrated.value - integrated.baseline_value)
    )
    st.caption(
        f"Target of the last three: the {TARGETS[target]} of {label}. Baseline of integrated gradients: "
        f"{'as many unknown words' if baseline == 'unknown' else 'a zero for every number'}. From "
        f"{there} there to {here} here, the scores should add up to the difference, {apart}; with 32 steps they miss "
        f"it by **{integrated.completeness_error:.4f}** (completeness error)." + _elsewhere(explained.elsewhere)
    )
    if phrases_vote:
        st.caption(
            "In this model phrases vote beside the Transformer. Gradients count a phrase's votes too, shared by its "
            "words in equal parts; attention and rollout know nothing of them."
        )
    with st.expander("All numbers"):
        st.html(f'<div class="txcls-table">{_numbers(explained.words, explained.scores)}</div>')
    agree, gone = st.columns(2, gap="large")
    names = list(METHODS.values())
    with agree:
        st.subheader("Do they agree?", anchor=False)
        st.markdown(
            "Spearman's rank correlation over the words: 1 for the same order, 0 for none in common. What is ranked is "
            "how strongly a word is scored, for or against."
        )
        if np.isnan(found.correlations).all():
            st.info("With one word, or words that are all scored alike, there is nothing to rank.")
        layout.chart(
            correlation_map(names, found.correlations),
            key="chart_correlations",
            alt="Rank correlations of five ways to score words: "
            + "; ".join(
                f"attention and {names[place]} {found.correlations[0, place]:.2f}" for place in range(1, len(names))
            ),
            file_name=f"{opened.view.checkpoint}-correlations",
        )
    with gone:
        st.subheader("Take the words out", anchor=False)
        st.markdown(
            "Words go one after the other, the highest score first. Where that finds the words that matter, the "
            "probability falls early and the area under the curve is small."
        )
        layout.chart(
            deletion_lines(
                names,
                found.curves.shares,
                [found.curves.curves[name] for name in METHODS],
                found.curves.random,
                winner=explained.label,
            ),
            key="chart_deletion",
            alt=f"Lines of the probability of {explained.label[:40]} while words are deleted, ordered by "
            + ", ".join(name.lower() for name in names)
            + " and at random",
            file_name=f"{opened.view.checkpoint}-deletion",
        )
    rows = [(METHODS[name], f"{found.curves.areas[name]:.3f}") for name in METHODS]
    rows.append((f"random, mean of {len(found.curves.random)} orders", f"{found.curves.random_area:.3f}"))
    with gone:
        st.html(f'<div class="txcls-table">{_table(("order", "area under the curve"), rows)}</div>')
        st.caption(
            "The neighbours of a word that goes move together, and where none is left an unknown word stands for the "
            "empty text. Such cut-up texts are unlike any that the model was trained on. The grey band spans the "
            "random orders."
        )


def _elsewhere(elsewhere: dict[str, float] | Any) -> str:
    held = [f"{METHODS[name].lower()} {elsewhere[name]:.0%}" for name in ("attention", "rollout")]
    if abs(elsewhere["attention"]) < 0.0005 and abs(elsewhere["rollout"]) < 0.0005:
        return ""
    return f" Tokens that the model adds are not shown; they hold of {held[0]}, of {held[1]}."


def _way(text: str, name: str, words: Sequence[Token], scores: NDArray[np.floating]) -> str:
    """One way's scores as colours behind the typed text."""
    strongest = float(np.abs(scores).max(initial=0.0)) or 1.0
    parts, place = [], 0
    for word, score in zip(words, scores, strict=True):
        start, end = max(word.start, place), max(word.end, place)
        typed = text[start:end]
        strength = float(score) / strongest
        colour = FOR if strength >= 0 else AGAINST
        parts.append(html.escape(visible(text[place:start])))
        title = html.escape(f"{visible(word.text)}: {_number(name, float(score))}", quote=True)
        parts.append(
            f'<span{" class=unknown" * word.is_unknown} title="{title}" '
            f'style="background: rgba({colour}, {0.75 * abs(strength):.3f})">{html.escape(visible(typed))}</span>'
        )
        place = end
    return (
        f"<section><h4>{METHODS[name]}</h4><small>{HOW[name]}</small>"
        f'<div class="txcls-words">{"".join(parts)}</div></section>'
    )


def _number(name: str, score: float) -> str:
    return minus(f"{score:+.4f}" if name in SIGNED else f"{score:.4f}")


def _numbers(words: Sequence[Token], scores: Any) -> str:
    rows = [
        (f"{place + 1} · {visible(word.text)}", *(_number(name, float(scores[name][place])) for name in METHODS))
        for place, word in enumerate(words)
    ]
    return _table(("word", *METHODS.values()), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table>"


def _many_texts(opened: layout.Page, classifier: "Classifier") -> None:
    st.subheader("And on average?", anchor=False)
    key = f"averages_{opened.source.name}"
    computed: ExplanationAverages | None = st.session_state.get(key)
    found = computed or ExplanationAverages.of(classifier)
    if found is None:
        st.info(
            "Not measured for this checkpoint. Where its data are on the machine, the button does so, and "
            f"`python -m txcls evaluate {classifier.name} --explanations {N_TEXTS} --write` keeps the result."
        )
    else:
        _averages(found, computed is not None)
    from txcls.data.datasets import dataset_names, is_available

    dataset = classifier.checkpoint.config.data.dataset
    if dataset in dataset_names() and is_available(dataset):
        st.button(
            f"Run on {N_TEXTS} test texts", key="run_averages", on_click=_ask_to_run, help="Takes about half a minute."
        )
        if st.session_state.pop("run_averages_now", False):
            _run(opened, key)
    else:
        st.caption("The data of this checkpoint are not on this machine: these figures cannot be computed anew.")


def _ask_to_run() -> None:
    st.session_state["run_averages_now"] = True


def _run(opened: layout.Page, key: str) -> None:
    bar = st.progress(0.0, "scoring words …")

    def show(done: int, total: int) -> None:
        bar.progress(done / total, f"{done} of {total} texts; any click stops")

    try:
        st.session_state[key] = compute.averages(
            opened.source,
            n=N_TEXTS,
            on_text=show,
        )
    except (TxclsError, ValueError) as error:
        bar.empty()
        st.warning(layout.plain(str(error)))
        return
    st.rerun()


def _averages(found: ExplanationAverages, computed_now: bool) -> None:
    rows = []
    for place, (name, title) in enumerate(METHODS.items()):
        correlation = found.correlations[0, place]
        shown = "–" if not place or np.isnan(correlation) else minus(f"{correlation:.2f}")
        rows.append((title, f"{found.areas[name]:.3f}", shown))
    rows.append(("random order", f"{found.random_area:.3f}", "–"))
    head = ("way to score words", "area under the deletion curve", "rank correlation with attention")
    st.html(f'<div class="txcls-table">{_table(head, rows)}</div>')
    best = min(found.areas, key=found.areas.__getitem__)
    st.caption(
        f"Means over {found.n:,} random {found.split} texts, "
        + (
            "computed just now"
            if computed_now
            else "measured by `txcls evaluate --explanations` and kept with the checkpoint"
        )
        + f"; always the same texts, target: logit, baseline: unknown words, mean completeness error "
        f"{found.completeness_error:.4f}. A small area means that the words were well chosen: here **{METHODS[best]}** "
        "is best. Leave one out and the deletion curve ask the model the same kind of question, so that it has a head "
        "start."
    )


def _literature() -> None:
    with st.expander("What the literature says, and does not say", expanded=True):
        st.markdown(
            "- **[Jain & Wallace 2019](https://aclanthology.org/N19-1357)**, *Attention is not Explanation*: in "
            "recurrent networks (BiLSTMs) with one attention layer on top, attention weights agreed only weakly with "
            "gradients and with leave-one-out, and very different weights often gave the same answer. They did not "
            "study self-attention as in this model, nor show that attention never says anything.\n"
            "- **[Wiegreffe & Pinter 2019](https://aclanthology.org/D19-1002)**, *Attention is not not Explanation*: "
            "on recurrent networks too. Other weights found text by text are not another model, and trained weights "
            "were of use in several tasks, while in some even weights did as well. They gave tests for when attention "
            "may be of use; they did not show that it explains an answer faithfully.\n"
            "- **[Abnar & Zuidema 2020](https://aclanthology.org/2020.acl-main.385)** made rollout for Transformers, "
            "to follow attention through layers. It leaves out values, feed-forward blocks and vectors' lengths.\n\n"
            "What you see above is neither paper's experiment: one small Transformer, one text, or a few hundred."
        )


if __name__ == "__main__":
    main()
