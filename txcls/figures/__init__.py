"""Plotly figures from plain arrays and tokens; they know nothing of models, nor of Streamlit."""

from txcls.figures.attention import (
    Arcs,
    attention_arcs,
    attention_grid,
    attention_map,
    choose_arcs,
    mask_map,
    pooling_bars,
)
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
from txcls.figures.language import surprise_bars, token_bars
from txcls.figures.neighbourhood import text_scatter, token_scatter
from txcls.figures.positions import position_curves, position_heatmap, position_products_map
from txcls.figures.prediction import probability_bars, shuffle_bars
from txcls.figures.steps import number_map
from txcls.figures.style import label, minus, percent, visible
from txcls.figures.training import training_curves
from txcls.figures.whatif import compared_bars, compared_effects

__all__ = [
    "FEED_FORWARD",
    "Arcs",
    "attention_arcs",
    "attention_grid",
    "attention_map",
    "choose_arcs",
    "compared_bars",
    "compared_effects",
    "correlation_map",
    "deletion_lines",
    "effect_board",
    "head_board",
    "label",
    "lens_lines",
    "mask_map",
    "minus",
    "moved_bars",
    "number_map",
    "percent",
    "pooling_bars",
    "position_curves",
    "position_heatmap",
    "position_products_map",
    "probability_bars",
    "query_key_bars",
    "share_bars",
    "shuffle_bars",
    "surprise_bars",
    "text_scatter",
    "token_bars",
    "token_rows",
    "token_scatter",
    "training_curves",
    "visible",
]
