"""Plotly figures from plain arrays and tokens, independent of models and of Streamlit."""

# ruff: noqa: I001
from txcls.figures.bars import (
    MAX_BARS, compared_bars, compared_effects, group_bars,
    most_probable, number_bars, pooling_bars, probability_bars, query_key_bars, surprisal_bars,
    table_chart, token_bars,
)  # fmt: skip
from txcls.figures.lines import (
    Arcs, attention_arcs, choose_arcs, reliability_diagram,
    training_curves,
)  # fmt: skip
from txcls.figures.maps import (
    FEED_FORWARD, attention_grid, attention_map, confusion_map, head_effects_map, patch_map,
    position_heatmap,
)  # fmt: skip
from txcls.figures.operands import number_map, operands_map
from txcls.figures.style import (
    MAX_NAMED, class_colours, darken, label, minus, on_dark, percent, visible, visible_lines,
)  # fmt: skip

__all__ = [
    "FEED_FORWARD", "MAX_BARS", "MAX_NAMED", "Arcs", "attention_arcs", "attention_grid", "attention_map",
    "choose_arcs", "class_colours", "compared_bars", "compared_effects", "confusion_map", "darken",
    "group_bars", "head_effects_map", "label", "minus",
    "most_probable", "number_bars", "number_map", "on_dark", "operands_map", "patch_map", "percent", "pooling_bars",
    "position_heatmap", "probability_bars", "query_key_bars", "reliability_diagram",
    "surprisal_bars", "table_chart", "token_bars", "training_curves", "visible",
    "visible_lines",
]  # fmt: skip
