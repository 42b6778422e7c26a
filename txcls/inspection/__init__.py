"""Looking inside a classifier: every step of the forward pass, attention, positions; plain arrays, no plots."""

from txcls.inspection.positions import (
    PositionEncoding,
    ShuffledPredictions,
    position_encoding,
    position_products,
    shuffle_words,
    sinusoids,
)
from txcls.inspection.tracing import Stage, TracedText, trace_text

__all__ = [
    "PositionEncoding",
    "ShuffledPredictions",
    "Stage",
    "TracedText",
    "position_encoding",
    "position_products",
    "shuffle_words",
    "sinusoids",
    "trace_text",
]
