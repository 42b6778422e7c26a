"""Plotly figures from plain arrays and tokens; they know nothing of models, nor of Streamlit."""

from txcls.figures.attention import Arcs, attention_arcs, attention_grid, attention_map, choose_arcs, pooling_bars
from txcls.figures.boards import FEED_FORWARD, effect_board, head_board
from txcls.figures.experiments import (
    correlation_map,
    deletion_lines,
    lens_lines,
    moved_bars,
    query_key_bars,
    share_bars,
    token_rows,
)
from txcls.figures.positions import position_curves, position_heatmap, position_products_map
from txcls.figures.prediction import probability_bars, shuffle_bars
from txcls.figures.style import label, percent, visible
from txcls.figures.training import training_curves

__all__ = [
    "FEED_FORWARD",
    "Arcs",
    "attention_arcs",
    "attention_grid",
    "attention_map",
    "choose_arcs",
    "correlation_map",
    "deletion_lines",
    "effect_board",
    "head_board",
    "label",
    "lens_lines",
    "moved_bars",
    "percent",
    "pooling_bars",
    "position_curves",
    "position_heatmap",
    "position_products_map",
    "probability_bars",
    "query_key_bars",
    "share_bars",
    "shuffle_bars",
    "token_rows",
    "training_curves",
    "visible",
]
