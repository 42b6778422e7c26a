"""Looking inside: every step of the forward pass, attention, positions, vocabulary, what language models expect, where
the parameters are; plain arrays, no plots."""

from txcls.inspection.draws import DrawnText, draw_texts
from txcls.inspection.language import (
    NextTokens,
    RankedTokens,
    Sight,
    Surprise,
    continue_ids,
    fill_blank,
    next_tokens,
    sight,
    surprise,
    token_names,
)
from txcls.inspection.parameters import PartSize, build_on_paper, part_sizes
from txcls.inspection.positions import (
    PositionEncoding,
    ShuffledPredictions,
    position_encoding,
    position_products,
    shuffle_words,
    sinusoids,
)
from txcls.inspection.source import Source, source_of
from txcls.inspection.tracing import Stage, TracedText, trace_text
from txcls.inspection.vocabulary import (
    Tokenizers,
    VocabularySearch,
    compare_tokenizers,
    nearest_tokens,
    search_vocabulary,
    spellings,
)

__all__ = [
    "DrawnText",
    "NextTokens",
    "PartSize",
    "PositionEncoding",
    "RankedTokens",
    "ShuffledPredictions",
    "Sight",
    "Source",
    "Stage",
    "Surprise",
    "Tokenizers",
    "TracedText",
    "VocabularySearch",
    "build_on_paper",
    "compare_tokenizers",
    "continue_ids",
    "draw_texts",
    "fill_blank",
    "nearest_tokens",
    "next_tokens",
    "part_sizes",
    "position_encoding",
    "position_products",
    "search_vocabulary",
    "shuffle_words",
    "sight",
    "sinusoids",
    "source_of",
    "spellings",
    "surprise",
    "token_names",
    "trace_text",
]
