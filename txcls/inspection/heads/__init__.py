"""What does a head do, and what is it worth? A head is described by what can replace it.

Three tables, learned from training texts, stand in for a head's attention on test texts: by distance, by word, and by
both. The share of the head's effect (the KL divergence of the output distribution) that a table restores, compared
with a shuffled control, says whether the head follows a simple rule. Its worth is measured in two ways: its output is
averaged over many texts, which removes information, or replaced by another text's output, which contradicts it.
"""

from txcls.inspection.heads.measure import measure_heads, random_texts
from txcls.inspection.heads.records import (
    Effect,
    HeadMeasurements,
    HeadRecord,
    HeadsRecord,
    Restored,
    Worth,
    tokens_to_quote,
)
from txcls.inspection.heads.tables import KINDS, MAX_DISTANCE
from txcls.inspection.heads.wording import (
    VERDICT_MARKS,
    VERDICT_NAMES,
    all_heads_sentence,
    cost_averaged,
    head_summaries,
    head_summary,
    interval_in_words,
    nats,
    restored_sentence,
    sentence,
    share_in_words,
)

__all__ = [
    "KINDS", "MAX_DISTANCE", "VERDICT_MARKS", "VERDICT_NAMES", "Effect", "HeadMeasurements", "HeadRecord",
    "HeadsRecord", "Restored", "Worth", "all_heads_sentence", "cost_averaged", "head_summaries", "head_summary",
    "interval_in_words", "measure_heads", "nats", "random_texts", "restored_sentence", "sentence", "share_in_words",
    "tokens_to_quote",
]  # fmt: skip
