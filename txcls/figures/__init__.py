"""Plotly figures from plain arrays and tokens, independent of models and of Streamlit."""

# ruff: noqa: I001
from txcls.figures.arcs import Arcs, attention_arcs, choose_arcs, rows_diagram
from txcls.figures.bars import (
    MAX_BARS, class_counts, compared_bars, compared_effects, contribution_bars, group_bars, length_histogram,
    most_probable, number_bars, pooling_bars, probability_bars, query_key_bars, shuffle_bars, surprisal_bars,
    table_chart, token_bars,
)  # fmt: skip
from txcls.figures.lines import (
    comparison_intervals, deletion_lines, group_lines, lens_lines, live_curves, position_curves, reliability_diagram,
    text_scatter, token_scatter, training_curves,
)  # fmt: skip
from txcls.figures.maps import (
    FEED_FORWARD, attention_grid, attention_map, confusion_map, head_effects_map, head_values_map, mask_map,
    overlap_map, patch_map, position_heatmap, token_rows,
)  # fmt: skip
from txcls.figures.operands import number_map, operands_map
from txcls.figures.style import (
    EFFECTS, MAX_NAMED, class_colours, darken, label, minus, on_dark, percent, visible, visible_lines,
)  # fmt: skip

__all__ = [
    "EFFECTS", "FEED_FORWARD", "MAX_BARS", "MAX_NAMED", "Arcs", "attention_arcs", "attention_grid", "attention_map",
    "choose_arcs", "class_colours", "class_counts", "compared_bars", "compared_effects", "comparison_intervals",
    "confusion_map", "contribution_bars", "darken", "deletion_lines", "group_bars", "group_lines", "head_effects_map",
    "head_values_map", "label", "length_histogram", "lens_lines", "live_curves", "mask_map", "minus", "most_probable",
    "number_bars", "number_map", "on_dark", "operands_map", "overlap_map", "patch_map", "percent", "pooling_bars",
    "position_curves", "position_heatmap", "probability_bars", "query_key_bars", "reliability_diagram", "rows_diagram",
    "shuffle_bars", "surprisal_bars", "table_chart", "text_scatter", "token_bars", "token_rows", "token_scatter",
    "training_curves", "visible", "visible_lines",
]  # fmt: skip
