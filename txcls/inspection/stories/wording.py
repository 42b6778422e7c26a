"""A head's tested story in words, shared by everything that displays heads."""

from txcls.inspection.stories.atlas import HeadAtlas, HeadRecord
from txcls.inspection.stories.kinds import AGREEING, ANY, ATTRACTOR, NAMED, NOT_NAMED
from txcls.inspection.stories.story import CONFIRMED, IDLE, MAX_BY_CONTROL, Clause, MeasuredStory
from txcls.wording import percentage

VERDICT_MARKS = {"confirmed": "✓", "part of it": "◐", "wrong": "✗", "idle": "○"}
"""A symbol for each verdict, since colour is not enough by itself."""
CLEAR = 0.4
"""Minimum weight on the keys of every clause, averaged over its queries, for a pattern to look clear; it must also be
at least CLEAR_TIMES what uniform weights would put there."""
CLEAR_TIMES = 3.0
FAINT_TIMES = 1.5
"""A clause whose keys get less than this many times the uniform weight is too faint to be named as a pattern."""
HALF = 0.5
"""Fraction of the lost accuracy that lists must restore for attention to be called a weighted bag of words in part."""
NO_STORY = "no story fits"
"""Shown in place of a refuted story, which is never presented as what a head does."""

_PLURALS = {
    ANY: "all tokens",
    "class token": "the class token",
    "first token": "the first token",
    "punctuation": "punctuation marks",
    "negation": "negations",
    "typical word": "words typical of a class",
    "rare word": "rare words",
    "verb": "the verb",
    NAMED: "the team that it then names",
    NOT_NAMED: "the team that it does not name",
    AGREEING: "the last noun of the number that it then names",
    ATTRACTOR: "nouns of the other number after that one",
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
"""How a kind is written in a sentence; roles of `who_won` refer to the reported match."""
_SINGULAR_QUERIES = {AGREEING, "class token", "first token", "verb", NAMED, NOT_NAMED, "first team", "second team"}


def sentence(measured: MeasuredStory) -> str:
    """The story as a sentence: "The class token attends to the verb"; for a refuted story, that no story fits.

    A pattern that is neither clear nor tested, since the head is not needed, is called weak, with its share of the
    weight.
    """
    if measured.verdict == "wrong":
        return "No story fits: the best one found is refuted on test texts"
    if measured.story.lists is not None:
        words, distances = measured.story.lists.words is not None, measured.story.lists.distances is not None
        each = "each word" if not distances else "each distance" if not words else "each word and each distance"
        return f"A fixed weight for {each}, whichever token asks"
    clauses = "; ".join(map(_clause, measured.story.clauses))
    if is_faint(measured):
        return "No clear pattern"
    if measured.verdict == "idle" and not looks_clear(measured):
        shares = zip(measured.attention, measured.chance, strict=True)
        weights = "; ".join(
            f"{percentage(own, 0)} of the weight, {percentage(even, 0)} if uniform" for own, even in shares
        )
        return f"Weak pattern: {clauses} ({weights})"
    return clauses[0].upper() + clauses[1:]


def is_faint(measured: MeasuredStory) -> bool:
    """Whether the head's own attention follows some clause of its story hardly more than uniform weights would."""
    return measured.story.lists is None and any(
        weight < FAINT_TIMES * even for weight, even in zip(measured.attention, measured.chance, strict=True)
    )


def looks_clear(measured: MeasuredStory) -> bool:
    """Whether the head's own attention follows every clause of its story well above chance."""
    return all(
        weight >= CLEAR and weight >= CLEAR_TIMES * even
        for weight, even in zip(measured.attention, measured.chance, strict=True)
    )


def verdict_words(record: HeadRecord) -> str:
    """The verdict with the share it is based on: "confirmed, restores 100 %", "looks clear, not needed by itself"."""
    measured = record.story
    if measured.verdict == "idle":
        return f"looks clear, {_without(record)}" if looks_clear(measured) else _without(record)
    if measured.verdict == "wrong":
        return "refuted"
    return f"{measured.verdict}, restores {percentage(measured.share, 0)}"


def worth_words(record: HeadRecord) -> str:
    """The head's worth in percentage points of accuracy: "worth 15 points"."""
    return f"worth {_points(record.worth)}"


def chip(record: HeadRecord) -> str:
    """A head in one line: "class token → verb · confirmed, restores 100 % · worth 15 points"."""
    words = [_short(record.story), verdict_words(record), worth_words(record)]
    return " · ".join(words[:1] + words[2:] if record.story.verdict == "wrong" else words)


def head_chips(atlas: HeadAtlas) -> dict[str, dict[str, str]]:
    """For each head, named "layer.head" (both from 1): its "story", its chip as "text", and its "verdict"."""
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
    own = f"of {percentage(together.accuracy)}"
    even = f"with uniform attention in all heads {percentage(together.uniform)}"
    if together.accuracy - together.uniform < IDLE:
        return f"In this model it hardly matters where the heads attend: {even} {own} remain."
    kept = (
        "with a fixed weight for each word and each distance, whichever token asks, "
        f"{percentage(together.lists)} {own} remain ({even}, with these weights shuffled "
        f"{percentage(together.control)}; {together.n:,} test texts)."
    )
    if together.share >= CONFIRMED and together.control_share <= MAX_BY_CONTROL < together.interval[0]:
        return f"In this model attention is a weighted bag of words with positions: {kept}"
    if together.share >= HALF and together.share > together.control_share:
        return f"In this model attention is in part a weighted bag of words with positions: {kept}"
    return f"In this model it matters which token asks: {kept}"


def spare_sentence(atlas: HeadAtlas) -> str:
    """How many heads can each be spared, and the accuracy lost without all of them; empty if not measured or none."""
    n = sum(head.is_spare for head in atlas.heads)
    if atlas.spare_lost is None or not n:
        return ""
    if n == 1:
        return f"One head can be replaced by its mean at a cost of under {_points(IDLE)}."
    heads = f"{n} of {len(atlas.heads)} heads can each be replaced by its mean at a cost of under {_points(IDLE)}"
    return f"{heads}; with all of these replaced, {_points(atlas.spare_lost)} of accuracy are lost."


def _points(lost: float) -> str:
    points = round(100 * lost, 1) + 0.0  # turns -0.0 into 0.0
    rounded = f"{100 * lost:.0f}" if abs(points) >= 9.95 else f"{points:.1f}"
    return f"{rounded.replace('-', '−')} points"


def _without(record: HeadRecord) -> str:
    """A short text for a head whose weights make no difference for the queries of its story."""
    return "not needed by itself" if record.is_spare else "uniform does as well for these queries"


def _caption(record: HeadRecord) -> str:
    """The caption below a head's map: its story, unless the head's weights make no difference."""
    return _without(record) if record.story.verdict == "idle" else _short(record.story)


def _short(measured: MeasuredStory) -> str:
    if measured.verdict == "wrong":
        return NO_STORY
    return "no clear pattern" if is_faint(measured) else str(measured.story)


def _clause(clause: Clause) -> str:
    alone = clause.query in _SINGULAR_QUERIES
    key = ("itself" if alone else "themselves") if clause.key == "itself" else _named(clause.key)
    return f"{_named(clause.query)} {'attends' if alone else 'attend'} to {key}"


def _named(kind: str) -> str:
    return _PLURALS.get(kind, kind)
