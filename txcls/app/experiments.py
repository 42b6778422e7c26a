"""What the experiment pages compute, cached for all sessions like `loaders`; heavy work waits for one lock.

Everything is keyed by (checkpoint, text). Cached objects are shared: nothing may change them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from txcls.app import loaders
from txcls.app.loaders import Source

if TYPE_CHECKING:
    from txcls.inspection import (
        Ablation,
        Change,
        ClassLens,
        DeletionCurves,
        Explanation,
        ExplanationAverages,
        HeadStatistics,
        PartEffects,
        QueryKey,
    )
    from txcls.inspection.ablation import How, Off
    from txcls.inspection.attribution import Baseline, Target


@st.cache_data(max_entries=64, show_spinner=False)
def ablate_each(source: Source, text: str, *, heads: "How", off: "Off") -> "PartEffects":
    """By how much every head and feed-forward block alone moves the winner; TraceError where nothing is to read."""
    from txcls.inspection import Means, ablate_each

    classifier = loaders.classifier(source)
    with loaders.one_at_a_time:
        return ablate_each(classifier, text, heads=heads, off=off, means=Means.of(classifier))


@st.cache_data(max_entries=128, show_spinner=False)
def ablate(source: Source, text: str, changes: "tuple[Change, ...]") -> "Ablation":
    """The text's class probabilities with these changes made together, in the one row of `changed`."""
    from txcls.inspection import Means, ablate

    classifier = loaders.classifier(source)
    return ablate(classifier, text, [changes], means=Means.of(classifier))


@dataclass(frozen=True)
class Explained:
    """Scores of a text's words, how far they agree, and what happens when words go."""

    explanation: "Explanation"
    correlations: NDArray[np.float64]
    curves: "DeletionCurves"


@st.cache_data(max_entries=64, show_spinner=False)
def explain(source: Source, text: str, *, target: "Target", baseline: "Baseline") -> Explained:
    """Five ways to score the text's words, judged; TraceError where nothing is to read."""
    from txcls.inspection import deletion_curves, explain, rank_correlations

    classifier = loaders.classifier(source)
    with loaders.one_at_a_time:
        explanation = explain(classifier, text, target=target, baseline=baseline)
        curves = deletion_curves(classifier, text, explanation.scores)
    return Explained(explanation, rank_correlations(explanation.scores), curves)


@st.cache_data(max_entries=8, show_spinner=False)
def _averages(source: Source, n: int, _on_text: Callable[[int, int], None]) -> "ExplanationAverages":
    from txcls.inspection import average_explanations, draw_rows, explanation_figures

    classifier = loaders.classifier(source)
    texts = draw_rows(loaders.test_texts(source).rows.texts, n=n)
    figures = []
    for place, text in enumerate(texts, start=1):
        if classifier.encoder.encode(text).has_words:
            with loaders.one_at_a_time:  # text by text, so that other visitors get their turn in between
                figures.append(explanation_figures(classifier, text))
        _on_text(place, len(texts))
    return average_explanations(figures, split="test")


def averages(source: Source, *, n: int, on_text: Callable[[int, int], None]) -> "ExplanationAverages":
    """The five ways judged on n random test texts, the same as `txcls evaluate --explanations` takes."""
    return _averages(source, n, on_text)


@st.cache_data(max_entries=64, show_spinner=False)
def lens(source: Source, text: str) -> "ClassLens":
    """The class head read after every state; TraceError where nothing is to read."""
    from txcls.inspection import class_lens

    return class_lens(loaders.classifier(source), text)


@dataclass(frozen=True)
class Paths:
    """What follows from all patterns of a text: `rollout` (T, T), and two numbers for each head."""

    rollout: NDArray[np.floating]
    heads: "HeadStatistics"


@st.cache_data(max_entries=64, show_spinner=False)
def paths(source: Source, text: str) -> Paths:
    """Rollout through all layers, and entropy and distance of each head."""
    from txcls.inspection import attention_rollout, head_statistics

    attention = loaders.look(source, text).attention
    return Paths(attention_rollout(attention), head_statistics(attention))


@st.cache_data(max_entries=128, show_spinner=False)
def query_key(source: Source, text: str, *, layer: int, head: int, query: int, key: int) -> "QueryKey":
    """Why one token looks at another in one head, dimension by dimension."""
    from txcls.inspection import query_key, trace_text

    traced = trace_text(loaders.classifier(source), text)
    return query_key(traced, layer=layer, head=head, query=query, key=key)
