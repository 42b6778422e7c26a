"""A head's tested story in words."""

from math import isnan

from txcls.checkpoint.card import CLEAR, MIN_CLEAR_RATIO, points_number, points_range
from txcls.inspection.stories.all_heads import AllHeads
from txcls.inspection.stories.atlas import HeadAtlas, HeadRecord
from txcls.inspection.stories.kinds import AGREEING, ANY, ATTRACTOR, NAMED, NOT_NAMED
from txcls.inspection.stories.lists import Lists
from txcls.inspection.stories.measure_story import CONTROL_DRAWS, MeasuredStory
from txcls.inspection.stories.story import Clause
from txcls.inspection.stories.verdicts import CONFIRMED, IDLE, MAX_BY_CONTROL
from txcls.wording import percentage

VERDICT_MARKS = {"confirmed": "✓", "partly confirmed": "◐", "refuted": "✗", "undecided": "?", "idle": "○"}
"""A symbol for each verdict, since colour alone is not accessible."""
MIN_RATIO = 1.5
"""Minimum ratio for a pattern to be described; if it is lower for some clause, the pattern is faint."""
NO_STORY = "best story refuted"
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
    "first team": "the match’s first team",
    "second team": "the match’s second team",
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
    """The story as a sentence: "The class token attends to the verb"; for a refuted story, that it is refuted.

    If a pattern is neither clear nor shown to matter, it is called weak, with its share of the weight.
    """
    if measured.verdict == "refuted":
        return "The best candidate story is refuted on test texts"
    if measured.story.has_leak:
        return "Not described: the queries of its story depend on the prediction"
    if is_faint(measured):
        return "No clear pattern was found"
    if measured.story.lists is not None:
        return _lists_in_words(measured, measured.story.lists)
    clauses = "; ".join(map(_clause_in_words, measured.story.clauses))
    if measured.verdict == "idle" or (measured.verdict == "undecided" and not looks_clear(measured)):
        weights = "; ".join(
            f"{percentage(weight, 0)} of the weight, {percentage(chance, 0 if chance >= 0.01 else 1)} if uniform"
            for weight, chance in zip(measured.attention, measured.chance, strict=True)
        )
        pattern = f"{'Clear' if looks_clear(measured) else 'Weak'} pattern"
        return f"{pattern}{', not tested' * (measured.verdict == 'idle')}: {clauses} ({weights})"
    return clauses[0].upper() + clauses[1:]


def _lists_in_words(measured: MeasuredStory, lists: Lists) -> str:
    """The sentence for a story with lists: replaceable by them if it is confirmed."""
    given = (("word", lists.words), ("distance", lists.distances))
    fixed = f"for each {' and '.join(name for name, weights in given if weights is not None)}, whatever the query"
    notes = []
    if lists.words is not None and lists.distances is not None and not measured.is_minimal:
        notes.append("not tested which of the two matters")
    [weight], [chance] = measured.attention, measured.chance
    overlap = f"{percentage(weight, 0)}, {percentage(chance, 0)} if uniform"
    if measured.verdict not in ("confirmed", "partly confirmed"):
        not_tested = "; not tested" if measured.verdict == "idle" else ""
        return f"Overlaps with fixed weights {fixed} ({overlap}{not_tested})"
    note = f" ({'; '.join([*notes, f'overlap {overlap}'])})"
    in_part = " in part" * (measured.verdict != "confirmed")
    return f"Its weights can{in_part} be replaced by fixed ones {fixed}{note}"


def shows_clauses(measured: MeasuredStory) -> bool:
    """Whether the story's sentence says which tokens attend to which."""
    story = measured.story
    return not (measured.verdict == "refuted" or story.has_leak or story.lists is not None or is_faint(measured))


def shows_words(measured: MeasuredStory) -> bool:
    """Whether the story's list of words, if any, was shown to matter."""
    lists = measured.story.lists
    needs_words = lists is not None and (lists.distances is None or measured.is_minimal)
    return needs_words and measured.verdict in ("confirmed", "partly confirmed")


def is_faint(measured: MeasuredStory) -> bool:
    """Whether the head's weight on the keys of some clause is barely above that of uniform attention.

    Lists that are at least partly confirmed are never faint, since uniform attention overlaps with them considerably.
    """
    if measured.story.lists is not None and measured.verdict in ("confirmed", "partly confirmed"):
        return False
    return any(weight < MIN_RATIO * chance for weight, chance in zip(measured.attention, measured.chance, strict=True))


def looks_clear(measured: MeasuredStory) -> bool:
    """Whether the head's weight on the keys of every clause is high, and well above that of uniform attention."""
    return not measured.story.has_leak and all(
        weight >= CLEAR and weight >= MIN_CLEAR_RATIO * chance
        for weight, chance in zip(measured.attention, measured.chance, strict=True)
    )


def verdict_words(record: HeadRecord) -> str:
    """The verdict and its test: "confirmed: … with weight only on the verb, 90 % of the lost accuracy comes back"."""
    return ": ".join(filter(None, verdict_and_test(record)))


def verdict_and_test(record: HeadRecord) -> tuple[str, str]:
    """The verdict, and what was replaced by what and how much accuracy came back; "" if the story was not tested.

    If a story restores enough accuracy but is not confirmed, the words name the condition that it fails.
    """
    measured = record.story
    has_lists = measured.story.lists is not None
    if measured.verdict == "idle":
        return f"pattern looks clear, {_without(record)}" if looks_clear(measured) else _without(record), ""
    if measured.verdict == "undecided" and measured.story.has_leak:
        return "not tested", "its queries depend on the prediction"
    if has_lists:
        weights = "these fixed weights"
    elif measured.story.key_is_answer:
        weights = "weight only on the answer"
    elif len(measured.story.clauses) == 1:
        weights = f"weight only on {_key_in_words(measured.story.clauses[0])}"
    else:
        weights = "weight only there"
    low, high = measured.interval
    share = _range(low, high) if measured.verdict == "undecided" else restored_words(measured)
    test = (
        f"with the same weight on every token, accuracy falls; with {weights}, {share} of the lost accuracy comes back"
    )
    control = f"{test}, with the control {percentage(measured.control_share, 0)}"
    if measured.verdict == "undecided":
        if measured.control_share > high:
            return "undecided", control
        return "tested on too few texts to say", "" if isnan(low) else test
    if measured.verdict == "partly confirmed" and measured.share >= CONFIRMED:
        if measured.control_share > MAX_BY_CONTROL:
            return measured.verdict, control
        if not low > MAX_BY_CONTROL:
            return measured.verdict, f"{test}, on too few texts to be sure"
        own = percentage(min(measured.attention), 0)
        why = f"overlap with them only {own}" if has_lists else f"the head has only {own} of its weight there"
        return measured.verdict, f"{test}, but {why}"
    return measured.verdict, test


def restored_words(measured: MeasuredStory | AllHeads) -> str:
    """The share that the story, or the lists of all heads, restores, with its 95 % interval: "65 % (60 to 68 %)".

    The interval is omitted if both of its ends round to the share.
    """
    share = percentage(measured.share, 0).replace("-", "−")
    low, high = measured.interval
    return share if isnan(low) or percentage(low, 0) == percentage(high, 0) else f"{share} ({_range(low, high)})"


def worth_words(record: HeadRecord, *, two_decimals: bool = False) -> str:
    """The head's worth in percentage points, with its 95 % interval: "15 points of accuracy (14 to 16)"."""
    worth, changed = f"{_points(record.worth)} of accuracy", record.changed
    return (
        worth if changed is None else f"{worth} ({points_range(changed.low, changed.high, two_decimals=two_decimals)})"
    )


def chip(record: HeadRecord, *, two_decimals: bool = False) -> str:
    """A head in one line: "class token → verb · confirmed: … · worth 15 points of accuracy (14 to 16)".

    The story of a head is omitted if it was not tested, and the verdict if it is refuted.
    """
    story, verdict = _short(record.story), verdict_words(record)
    words = {"idle": [verdict], "refuted": [story]}.get(record.story.verdict, [story, verdict])
    return " · ".join([*words, f"worth {worth_words(record, two_decimals=two_decimals)}"])


def head_chips(atlas: HeadAtlas) -> dict[str, dict[str, str]]:
    """For each head, keyed by "layer.head" (from 1): its "story", a line of plain "text", and its "verdict"."""
    return {
        head.head_name: {
            "story": _caption(head), "text": plain_words(head), "verdict": head.story.verdict,
        }
        for head in atlas.heads
    }  # fmt: skip


def plain_words(record: HeadRecord) -> str:
    """A head in one line without words that need a definition: what it attends to, and what removing it costs."""
    measured, what = record.story, _short(record.story)
    if measured.verdict == "idle":
        words = _without(record)
        what = f"what it attends to was {words}" if words.startswith("not tested") else words
    elif measured.verdict != "refuted":
        note = ", but its key is the answer" if measured.verdict == "confirmed" and measured.story.key_is_answer else ""
        what += f" ({measured.verdict}{note})"
    return f"{what} · removing it costs {worth_words(record)}"


def all_heads_sentence(atlas: HeadAtlas) -> str:
    """The accuracies with the weights of all heads replaced together; empty if this was not measured."""
    together = atlas.all_heads
    if together is None:
        return ""
    original, uniform = percentage(together.accuracy), percentage(together.uniform)
    if together.accuracy - together.uniform < IDLE:
        return (
            f"With uniform attention in all heads, accuracy is {uniform} instead of {original} ({together.n:,} test "
            "texts)."
        )
    draws = "one draw" if together.control_range is None else f"mean of {CONTROL_DRAWS} draws"
    return (
        "With weights that do not depend on the query’s word (for each head its own list of words and distances, "
        f"fitted to its attention on training texts), accuracy is {percentage(together.lists)} instead of {original} "
        f"({uniform} with uniform attention; {percentage(together.control)} with these lists shuffled, {draws}; "
        f"{together.n:,} test texts). The lists restore {restored_words(together)} of what uniform attention loses, "
        f"the shuffled lists {percentage(together.control_share, 0).replace('-', '−')}."
    )


def spare_sentence(atlas: HeadAtlas) -> str:
    """How many heads are spare, and the accuracy lost if all are ablated together; empty if none, or not measured."""
    n = sum(head.is_spare for head in atlas.heads)
    if atlas.spare_lost is None or not n:
        return ""
    bound = f"{_points(IDLE)} of accuracy (95 % interval)"
    if n == 1:
        return f"One head can be mean-ablated at a cost of under {bound}."
    spare = f"Each of the {n} heads" if n == len(atlas.heads) else f"Each of {n} of the {len(atlas.heads)} heads"
    return (
        f"{spare} can be mean-ablated alone at a cost of under {bound}; mean-ablating them "
        f"together costs {_points(atlas.spare_lost)} (no interval was measured; the heads were selected on the same "
        "texts). What several heads are worth together depends on the replacement."
    )


def _points(lost: float) -> str:
    return f"{points_number(lost)} points"


def _without(record: HeadRecord) -> str:
    """A short text for an idle head."""
    if record.lost["uniform"] >= IDLE:
        return "not tested for these queries" if looks_clear(record.story) else "no story found"
    if record.changed is None or not record.is_spare:
        return "not tested"
    return "hardly needed by itself" if record.changed.low > 0 else "not needed by itself"


def _caption(record: HeadRecord) -> str:
    """The caption below a head's map: its story, unless the head is idle."""
    if record.story.verdict == "idle":
        return _without(record)
    return _short(record.story)


def _short(measured: MeasuredStory) -> str:
    if measured.verdict == "refuted":
        return NO_STORY
    if measured.story.has_leak:
        return "not described"
    return "no clear pattern" if is_faint(measured) else str(measured.story)


def _range(low: float, high: float) -> str:
    return f"{percentage(low, 0)} to {percentage(high, 0)}".replace("\u00a0% to", " to").replace("-", "−")


def _clause_in_words(clause: Clause) -> str:
    is_singular = clause.query in _SINGULAR_QUERIES
    key = _key_in_words(clause)
    if clause.query == clause.key and not is_singular:
        key = f"{key}, themselves included"
    return f"{_IN_SENTENCES.get(clause.query, clause.query)} {'attends' if is_singular else 'attend'} to {key}"


def _key_in_words(clause: Clause) -> str:
    if clause.key == "itself":
        return "itself" if clause.query in _SINGULAR_QUERIES else "themselves"
    return _IN_SENTENCES.get(clause.key, clause.key)
