"""Which kinds of tokens does a head attend to, and is that what decides? Stories of heads, tested by intervention.

A story is a hypothesis: queries of one kind attend to keys of another. `find_stories` proposes one for each head from
validation texts; `measure_story` replaces, on other texts, the weights that it is about, and says how much of the
accuracy that even weights lose it brings back. `measure_atlas` does both for a checkpoint and its data set.
"""

from txcls.inspection.stories.atlas import HeadAtlas, HeadRecord, measure_atlas, with_atlas
from txcls.inspection.stories.kinds import (
    ANY,
    RELATIONS,
    KindsTable,
    TextKinds,
    TokenStatistics,
    keys_of,
    kinds_of_text,
    measure_kinds,
    queries_of,
)
from txcls.inspection.stories.story import (
    Clause,
    MeasuredStory,
    Story,
    Verdict,
    clearest_texts,
    find_stories,
    measure_story,
)
from txcls.inspection.stories.wording import (
    MARKS,
    chip,
    head_chips,
    is_faint,
    looks_clear,
    sentence,
    verdict_words,
    worth_words,
)

__all__ = [
    "ANY",
    "MARKS",
    "RELATIONS",
    "Clause",
    "HeadAtlas",
    "HeadRecord",
    "KindsTable",
    "MeasuredStory",
    "Story",
    "TextKinds",
    "TokenStatistics",
    "Verdict",
    "chip",
    "clearest_texts",
    "find_stories",
    "head_chips",
    "is_faint",
    "keys_of",
    "kinds_of_text",
    "looks_clear",
    "measure_atlas",
    "measure_kinds",
    "measure_story",
    "queries_of",
    "sentence",
    "verdict_words",
    "with_atlas",
    "worth_words",
]
