"""Plotly figures from plain arrays and tokens; they know nothing of models or of Streamlit."""

from txcls.figures.ablation import moved_bars
from txcls.figures.attention import (
    Arcs,
    attention_arcs,
    attention_grid,
    attention_map,
    choose_arcs,
    mask_map,
    pooling_bars,
    query_key_bars,
)
from txcls.figures.attribution import deletion_lines, overlap_map
from txcls.figures.counterfactuals import compared_bars, compared_effects
from txcls.figures.language_model import surprisal_bars, token_bars
from txcls.figures.lens import contribution_bars, lens_lines, token_rows
from txcls.figures.matrix import MOST_BARS, number_bars, number_map
from txcls.figures.operands import operands_map
from txcls.figures.per_head import FEED_FORWARD, head_effects_map, head_values_map
from txcls.figures.positions import position_curves, position_heatmap, position_products_map
from txcls.figures.prediction import probability_bars, shuffle_bars
from txcls.figures.principal_components import text_scatter, token_scatter
from txcls.figures.report import confusion_map, group_bars, reliability_diagram
from txcls.figures.style import label, minus, percent, visible
from txcls.figures.survey import class_counts, comparison_intervals, length_histogram, live_curves
from txcls.figures.training import training_curves

__all__ = [
    "FEED_FORWARD",
    "MOST_BARS",
    "Arcs",
    "attention_arcs",
    "attention_grid",
    "attention_map",
    "choose_arcs",
    "class_counts",
    "compared_bars",
    "compared_effects",
    "comparison_intervals",
    "confusion_map",
    "contribution_bars",
    "deletion_lines",
    "group_bars",
    "head_effects_map",
    "head_values_map",
    "label",
    "length_histogram",
    "lens_lines",
    "live_curves",
    "mask_map",
    "minus",
    "moved_bars",
    "number_bars",
    "number_map",
    "operands_map",
    "overlap_map",
    "percent",
    "pooling_bars",
    "position_curves",
    "position_heatmap",
    "position_products_map",
    "probability_bars",
    "query_key_bars",
    "reliability_diagram",
    "shuffle_bars",
    "surprisal_bars",
    "text_scatter",
    "token_bars",
    "token_rows",
    "token_scatter",
    "training_curves",
    "visible",
]
