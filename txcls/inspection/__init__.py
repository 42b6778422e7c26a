"""Looking inside a classifier: every step of the forward pass, attention, positions, vocabulary; plain arrays, no
plots."""

from txcls.inspection.draws import DrawnText, draw_texts
from txcls.inspection.neighbourhood import (
    Plane,
    PooledTexts,
    TextPlane,
    TokenPlane,
    pool_texts,
    principal_plane,
    text_plane,
    token_plane,
    vocabulary_plane,
)
from txcls.inspection.positions import (
    FittedShift,
    PositionEncoding,
    ShuffledPredictions,
    fit_shift,
    move_word,
    position_encoding,
    position_products,
    reorder_words,
    shift_map,
    shuffle_words,
    sinusoids,
)
from txcls.inspection.source import Source, source_of
from txcls.inspection.steps import Question, Step
from txcls.inspection.tracing import Stage, TracedText, trace_text
from txcls.inspection.vocabulary import (
    Tokenizers,
    VocabularySearch,
    compare_tokenizers,
    nearest_tokens,
    search_vocabulary,
    spellings,
)
from txcls.inspection.walk import Walk, walk_through
from txcls.inspection.whatif import Comparison, Flip, FlipSearch, Pair, align_tokens, compare_texts, search_flips

__all__ = [
    "Comparison",
    "DrawnText",
    "FittedShift",
    "Flip",
    "FlipSearch",
    "Pair",
    "Plane",
    "PooledTexts",
    "PositionEncoding",
    "Question",
    "ShuffledPredictions",
    "Source",
    "Stage",
    "Step",
    "TextPlane",
    "TokenPlane",
    "Tokenizers",
    "TracedText",
    "VocabularySearch",
    "Walk",
    "align_tokens",
    "compare_texts",
    "compare_tokenizers",
    "draw_texts",
    "fit_shift",
    "move_word",
    "nearest_tokens",
    "pool_texts",
    "position_encoding",
    "position_products",
    "principal_plane",
    "reorder_words",
    "search_flips",
    "search_vocabulary",
    "shift_map",
    "shuffle_words",
    "sinusoids",
    "source_of",
    "spellings",
    "text_plane",
    "token_plane",
    "trace_text",
    "vocabulary_plane",
    "walk_through",
]
