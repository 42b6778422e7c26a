"""What does each head attend to, and does that determine the prediction? Stories of heads, tested by intervention.

A story is a hypothesis about a head: either queries of one kind attend to keys of another kind, or every key has a
weight that depends on its word or its distance, but not on the query token. `find_stories` proposes a story for each
head on validation texts. `measure_story` replaces the head's weights with the story's on other texts, and measures how
much of the accuracy lost with uniform weights they restore. `measure_atlas` does both for a checkpoint.
"""

from txcls.inspection.stories.all_heads import AllHeads, measure_all_heads
from txcls.inspection.stories.atlas import HeadAtlas, HeadRecord
from txcls.inspection.stories.examples import clearest_pair, clearest_texts
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
from txcls.inspection.stories.lists import FittedLists, Lists, fit_lists
from txcls.inspection.stories.measure_atlas import measure_atlas
from txcls.inspection.stories.measure_story import MeasuredStory, measure_story, necessary_part
from txcls.inspection.stories.search import find_stories
from txcls.inspection.stories.story import Clause, Story
from txcls.inspection.stories.verdicts import Verdict
from txcls.inspection.stories.wording import (
    VERDICT_MARKS,
    all_heads_sentence,
    chip,
    head_chips,
    is_faint,
    looks_clear,
    sentence,
    shows_clauses,
    shows_words,
    spare_sentence,
    verdict_and_test,
    worth_words,
)

__all__ = [
    "ANY",
    "RELATIONS",
    "VERDICT_MARKS",
    "AllHeads",
    "Clause",
    "FittedLists",
    "HeadAtlas",
    "HeadRecord",
    "KindsTable",
    "Lists",
    "MeasuredStory",
    "Story",
    "TextKinds",
    "TokenStatistics",
    "Verdict",
    "all_heads_sentence",
    "chip",
    "clearest_pair",
    "clearest_texts",
    "find_stories",
    "fit_lists",
    "head_chips",
    "is_faint",
    "keys_of",
    "kinds_of_text",
    "looks_clear",
    "measure_all_heads",
    "measure_atlas",
    "measure_kinds",
    "measure_story",
    "necessary_part",
    "queries_of",
    "sentence",
    "shows_clauses",
    "shows_words",
    "spare_sentence",
    "verdict_and_test",
    "worth_words",
]
