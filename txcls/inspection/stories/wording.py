"""A head's tested story in words, for whoever shows the head."""

import math

from txcls.inspection.stories.atlas import HeadAtlas, HeadRecord
from txcls.inspection.stories.kinds import ANY
from txcls.inspection.stories.story import Clause, MeasuredStory

MARKS = {"confirmed": "✓", "part of it": "◐", "wrong": "✗", "idle": "○"}
"""A sign for each verdict, so that none relies on colour alone."""
CLEAR = 0.4
"""Least weight on the keys of every clause, mean over its queries, of a pattern that looks clear;
it must also be CLEAR_TIMES what even weights would put there."""
CLEAR_TIMES = 3.0
FAINT_TIMES = 1.5
"""Less than this many times what even weights would put on the keys of a clause is no pattern worth a name."""

_PLURALS = {
    ANY: "all tokens",
    "class token": "the class token",
    "first token": "the first token",
    "punctuation": "punctuation marks",
    "negation": "negations",
    "typical word": "words typical of a class",
    "rare word": "rare words",
    "verb": "the verb",
    "winner": "the winner",
    "loser": "the loser",
    "first team": "the first team",
    "second team": "the second team",
    "marker": "markers",
    "other team": "teams of another match",
    "other verb": "verbs of another match",
    "previous token": "the previous token",
    "next token": "the next token",
    "same token elsewhere": "the same token elsewhere",
}
"""A kind of token in a sentence; the one of a role of `txcls.data.generated.who_won` is the reported match's."""
_SINGULAR_QUERIES = {"class token", "first token", "verb", "winner", "loser", "first team", "second team"}


def sentence(measured: MeasuredStory) -> str:
    """The story as a sentence: "The class token attends to the winner"; a faint one is called the nearest."""
    clauses = "; ".join(map(_clause, measured.story.clauses))
    return f"No clear pattern; nearest: {clauses}" if is_faint(measured) else clauses[0].upper() + clauses[1:]


def is_faint(measured: MeasuredStory) -> bool:
    """Whether the head's own attention follows a clause of its story hardly more than even weights would."""
    return any(weight < FAINT_TIMES * even for weight, even in zip(measured.attention, measured.chance, strict=True))


def looks_clear(measured: MeasuredStory) -> bool:
    """Whether the head's own attention follows every clause of its story well above chance."""
    return all(
        weight >= CLEAR and weight >= CLEAR_TIMES * even
        for weight, even in zip(measured.attention, measured.chance, strict=True)
    )


def verdict_words(measured: MeasuredStory) -> str:
    """The verdict with the share that it rests on: "confirmed 1.00", "looks clear, can be spared"."""
    if measured.verdict == "idle":
        return "looks clear, can be spared" if looks_clear(measured) else "idle"
    if measured.verdict == "wrong" and is_faint(measured):
        return "no story fits"
    return (
        measured.verdict if math.isnan(measured.share) else f"{measured.verdict} {measured.share:.2f}".replace("-", "−")
    )


def worth_words(record: HeadRecord) -> str:
    """What the head's weights are worth, in percentage points of accuracy: "worth 76 points"."""
    points = round(100 * record.worth["uniform"], 1) + 0.0  # 0.0 for -0.0
    rounded = f"{points:.0f}" if abs(points) >= 9.95 else f"{points:.1f}"
    return f"worth {rounded.replace('-', '−')} points"


def chip(record: HeadRecord) -> str:
    """A head in one line: "class token → winner · confirmed 1.00 · worth 76 points"."""
    return f"{_short(record.story)} · {verdict_words(record.story)} · {worth_words(record)}"


def head_chips(atlas: HeadAtlas) -> dict[str, dict[str, str]]:
    """For each head, named "layer.head" with both from 1: its "story", its chip as "text", and its "verdict"."""
    return {
        f"{head.story.story.layer + 1}.{head.story.story.head + 1}": {
            "story": _short(head.story), "text": chip(head), "verdict": head.story.verdict,
        }
        for head in atlas.heads
    }  # fmt: skip


def _short(measured: MeasuredStory) -> str:
    return "no clear pattern" if is_faint(measured) else str(measured.story)


def _clause(clause: Clause) -> str:
    alone = clause.query in _SINGULAR_QUERIES
    key = ("itself" if alone else "themselves") if clause.key == "itself" else _named(clause.key)
    return f"{_named(clause.query)} {'attends' if alone else 'attend'} to {key}"


def _named(kind: str) -> str:
    return _PLURALS.get(kind, kind)
