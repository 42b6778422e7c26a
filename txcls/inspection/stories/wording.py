"""A head's tested story in words."""

from txcls.inspection.stories.atlas import HeadAtlas, HeadRecord
from txcls.inspection.stories.kinds import AGREEING, ANY, ATTRACTOR, NAMED, NOT_NAMED
from txcls.inspection.stories.story import Clause, MeasuredStory
from txcls.inspection.stories.verdicts import CONFIRMED, IDLE, MAX_BY_CONTROL
from txcls.wording import percentage

VERDICT_MARKS = {"confirmed": "✓", "part of it": "◐", "refuted": "✗", "idle": "○"}
"""A symbol for each verdict, since colour alone is not accessible."""
CLEAR = 0.4
"""Minimum weight on the keys of every clause, averaged over its queries, for a pattern to look clear."""
MIN_CLEAR_RATIO = 3.0
"""Minimum ratio of this weight to that of uniform attention, for a pattern to look clear."""
MIN_RATIO = 1.5
"""Minimum ratio for a pattern to be described; if it is lower for some clause, the pattern is faint."""
HALF = 0.5
"""Minimum fraction of the lost accuracy that lists restore where attention is partly a weighted bag of words."""
NO_STORY = "no story fits"
"""Shown in place of a refuted story."""

_IN_SENTENCES = {
    ANY: "all tokens",
    "class token": "the class token",
    "first token": "the first token",
    "punctuation": "punctuation marks",
    "negation": "negations",
    "typical word": "words typical of a class",
    "rare word": "rare words",
    "verb": "the verb",
    NAMED: "the team that is predicted",
    NOT_NAMED: "the team that is not predicted",
    AGREEING: "the last noun of the predicted number",
    ATTRACTOR: "later nouns of the other number",
    "preposition": "prepositions",
    "first team": "the first team",
    "second team": "the second team",
    "marker": "markers",
    "other team": "teams of another match",
    "other verb": "verbs of another match",
    "previous token": "the previous token",
    "next token": "the next token",
    "same token elsewhere": "the same token elsewhere",
}
"""Wording of kinds in sentences; the roles of `who_won` refer to the reported match."""
_SINGULAR_QUERIES = {AGREEING, "class token", "first token", "verb", NAMED, NOT_NAMED, "first team", "second team"}


def sentence(measured: MeasuredStory) -> str:
    """The story as a sentence: "The class token attends to the verb"; for a refuted story, that no story fits.

    An idle head's pattern is not tested; if it is not clear either, it is called weak, with its share of the weight.
    """
    if measured.verdict == "refuted":
        return "No story fits: the best candidate is refuted on test texts"
    if measured.story.lists is not None and not is_faint(measured):
        has_words, has_distances = measured.story.lists.words is not None, measured.story.lists.distances is not None
        subject = (
            "each word" if not has_distances else "each distance" if not has_words else "each word and each distance"
        )
        return f"A fixed weight for {subject}, whatever the query"
    clauses = "; ".join(map(_clause_in_words, measured.story.clauses))
    if is_faint(measured):
        return "No clear pattern"
    if measured.verdict == "idle" and not looks_clear(measured):
        shares = zip(measured.attention, measured.chance, strict=True)
        weights = "; ".join(
            f"{percentage(weight, 0)} of the weight, {percentage(chance, 0)} if uniform" for weight, chance in shares
        )
        return f"Weak pattern: {clauses} ({weights})"
    return clauses[0].upper() + clauses[1:]


def is_faint(measured: MeasuredStory) -> bool:
    """Whether the head's weight on the keys of some clause is barely above that of uniform attention.

    Lists are faint only if they are also untested, since even uniform attention overlaps with them considerably.
    """
    if measured.story.lists is not None and measured.verdict != "idle":
        return False
    return any(weight < MIN_RATIO * chance for weight, chance in zip(measured.attention, measured.chance, strict=True))


def looks_clear(measured: MeasuredStory) -> bool:
    """Whether the head's weight on the keys of every clause is high, and well above that of uniform attention."""
    return all(
        weight >= CLEAR and weight >= MIN_CLEAR_RATIO * chance
        for weight, chance in zip(measured.attention, measured.chance, strict=True)
    )


def verdict_words(record: HeadRecord) -> str:
    """The verdict with its evidence: "confirmed, restores 100 %", "looks clear, not needed by itself".

    If a story restores enough accuracy but is not confirmed, the words name the condition that it fails.
    """
    measured = record.story
    if measured.verdict == "idle":
        return f"looks clear, {_without(record)}" if looks_clear(measured) else _without(record)
    if measured.verdict == "refuted":
        return "refuted"
    words = f"{measured.verdict}, restores {percentage(measured.share, 0)}"
    if measured.verdict == "confirmed" or measured.share < CONFIRMED:
        return words
    if measured.control_share > MAX_BY_CONTROL:
        return f"{words}, the control {percentage(measured.control_share, 0)}"
    if not measured.interval[0] > MAX_BY_CONTROL:
        return f"{words}, on too few texts to be sure"
    name = "overlap" if measured.story.lists is not None else "weight there"
    return f"{words}, but {name} only {percentage(min(measured.attention), 0)}"


def worth_words(record: HeadRecord) -> str:
    """The head's worth in percentage points of accuracy, with its 95 % interval: "15 points (14 to 16)"."""
    if (changed := record.changed) is None:
        return _points(record.worth)
    return f"{_points(record.worth)} ({_number(changed.low)} to {_number(changed.high)})"


def chip(record: HeadRecord) -> str:
    """A head in one line: "class token → verb · confirmed, restores 100 % · worth 15 points (14 to 16)"."""
    words = [_short(record.story), verdict_words(record), f"worth {worth_words(record)}"]
    return " · ".join(words[:1] + words[2:] if record.story.verdict == "refuted" else words)


def head_chips(atlas: HeadAtlas) -> dict[str, dict[str, str]]:
    """For each head, keyed by "layer.head" (from 1): its "story", its chip as "text", and its "verdict"."""
    return {
        f"{head.story.story.layer + 1}.{head.story.story.head + 1}": {
            "story": _caption(head), "text": chip(head), "verdict": head.story.verdict,
        }
        for head in atlas.heads
    }  # fmt: skip


def all_heads_sentence(atlas: HeadAtlas) -> str:
    """What the test of all heads together shows about the model; empty if it was not measured."""
    together = atlas.all_heads
    if together is None:
        return ""
    original, uniform = percentage(together.accuracy), percentage(together.uniform)
    if together.accuracy - together.uniform < IDLE:
        return (
            "In this model it hardly matters where the heads attend: with uniform attention in all heads, the accuracy "
            f"is {uniform} instead of {original}."
        )
    draws = " once" if together.control_range is None else ", on average"
    evidence = (
        "with a fixed weight for each word and each distance in all heads, whatever the query, the accuracy is "
        f"{percentage(together.lists)} instead of {original} ({uniform} with uniform attention in all heads, "
        f"{percentage(together.control)} with these weights shuffled{draws}; {together.n:,} test texts)."
    )
    if together.share >= CONFIRMED and together.control_share <= MAX_BY_CONTROL < together.interval[0]:
        return f"In this model attention can be replaced by a weighted bag of words and distances: {evidence}"
    if together.share >= HALF and together.share > together.control_share:
        return f"In this model attention can be replaced in part by a weighted bag of words and distances: {evidence}"
    return f"In this model a weighted bag of words and distances cannot replace attention: {evidence}"


def spare_sentence(atlas: HeadAtlas) -> str:
    """How many heads are spare, and the accuracy lost if all are ablated together; empty if none, or not measured."""
    n = sum(head.is_spare for head in atlas.heads)
    if atlas.spare_lost is None or not n:
        return ""
    bound = f"{_points(IDLE)} of accuracy"
    if all(head.changed is not None for head in atlas.heads):
        bound += " (95 % interval)"
    if n == 1:
        return f"One head can be mean-ablated at a cost of under {bound}."
    spare = f"Each of the {n} heads" if n == len(atlas.heads) else f"Each of {n} of the {len(atlas.heads)} heads"
    return (
        f"{spare} can be mean-ablated alone at a cost of under {bound}; mean-ablating them "
        f"together costs {_points(atlas.spare_lost)}. What several heads are worth together depends on the replacement."
    )


def _points(lost: float) -> str:
    return f"{_number(lost)} points"


def _number(lost: float) -> str:
    points = round(100 * lost, 1) + 0.0  # turns -0.0 into 0.0
    rounded = f"{100 * lost:.0f}" if abs(points) >= 9.95 else f"{points:.1f}"
    return rounded.replace("-", "−")


def _without(record: HeadRecord) -> str:
    """A short text for an idle head."""
    return "not needed by itself" if record.is_spare else "uniform weights do as well for these queries"


def _caption(record: HeadRecord) -> str:
    """The caption below a head's map: its story, unless the head is idle."""
    return _without(record) if record.story.verdict == "idle" else _short(record.story)


def _short(measured: MeasuredStory) -> str:
    if measured.verdict == "refuted":
        return NO_STORY
    return "no clear pattern" if is_faint(measured) else str(measured.story)


def _clause_in_words(clause: Clause) -> str:
    is_singular = clause.query in _SINGULAR_QUERIES
    query, key = (_IN_SENTENCES.get(kind, kind) for kind in (clause.query, clause.key))
    if clause.key == "itself":
        key = "itself" if is_singular else "themselves"
    return f"{query} {'attends' if is_singular else 'attend'} to {key}"
