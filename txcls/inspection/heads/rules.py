"""A table in words: the previous token, the next few tokens, certain tokens."""

from collections.abc import Sequence

from txcls.inspection.heads.tables import MAX_DISTANCE, TableKind
from txcls.text.vocabulary import SPECIAL_TOKENS

ON_ONE, ON_NEIGHBOURS = 0.5, 0.6
"""Minimum share of a table's weight on one distance, or on the `NEAR` tokens of one side, for it to be named so.

Uniform attention puts at most 0.375 on one side (in a text of four tokens)."""
NEAR = 3
"""How many tokens away a neighbour is at most."""
TELLING = 2.0
"""Minimum weight of a quoted token, relative to the average token."""
QUOTED = 3
"""Number of tokens quoted."""
PUNCTUATION = "some punctuation"
"""Stands for tokens without a letter or digit, which cannot be read aloud."""
NOT_QUOTED = frozenset({*SPECIAL_TOKENS, "space"})
"""Tokens that are no part of a text, and the name of a space."""
QUOTATION_MARKS = frozenset("\"'`“”‘’")
"""Tokens with letters and these are not quoted."""
PIECE = "…"
"""Begins the name of a piece of a word."""
SOUNDING = frozenset("aeiouy0123456789")
"""A token without any of these, such as “th”, is a piece of a word."""
ORDINALS = ("", "", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def rule_in_words(kind: TableKind, distances: Sequence[float], words: Sequence[tuple[str, float]]) -> str:
    """What a table of this kind attends to: "the previous token", "certain tokens, such as “card” and “limit”"."""
    near = distance_in_words(distances)
    if kind == "distance":
        return near or "tokens by their distance"
    quoted = [name if name == PUNCTUATION else f"“{name}”" for name in _telling(words)]
    examples = ", such as " * bool(quoted) + " and ".join([", ".join(quoted[:-1]), *quoted[-1:]][not quoted[:-1] :])
    if kind == "word":
        return f"certain tokens{examples}"
    if not near:
        return f"certain tokens{examples}{',' * bool(examples)} and more so at some distances"
    return f"{near}, and more to certain {'tokens' if near == 'itself' else 'ones'}{examples}"


def short_rule(kind: TableKind, distances: Sequence[float], words: Sequence[tuple[str, float]]) -> str:
    """The same in a few words, for a caption: "previous token", "tokens: card, limit"."""
    near = distance_in_words(distances).removeprefix("the ")
    if kind == "distance":
        return near or "distance"
    if kind == "both" and near:
        return f"{near}, certain ones more"
    name = "tokens" if kind == "word" else "tokens by distance"
    return ": ".join([name, *filter(None, [", ".join(_telling(words)[:2])])])


def distance_in_words(distances: Sequence[float]) -> str:
    """Where most of a table's weight is, counted from the query; "" if it is spread wider."""
    peak = max(range(len(distances)), key=distances.__getitem__)
    if distances[peak] >= ON_ONE and 0 < peak < len(distances) - 1:
        return _one_distance(peak - MAX_DISTANCE)
    before = sum(distances[MAX_DISTANCE - NEAR : MAX_DISTANCE])
    after = sum(distances[MAX_DISTANCE + 1 : MAX_DISTANCE + 1 + NEAR])
    if after >= ON_NEIGHBOURS:
        return "the next few tokens"
    # Without any weight after the query, the model is causal, and uniform attention would be as near.
    return "the few tokens before it" if before >= ON_NEIGHBOURS and after > 0 else ""


def _one_distance(distance: int) -> str:
    if distance == 0:
        return "itself"
    if abs(distance) == 1:
        return "the previous token" if distance < 0 else "the next token"
    return f"the {ORDINALS[abs(distance)]} token {'before' if distance < 0 else 'after'} it"


def _telling(words: Sequence[tuple[str, float]]) -> list[str]:
    """Up to `QUOTED` of these tokens to name, each once, with all punctuation as one, named last."""
    named = [
        name if any(map(str.isalnum, name)) else PUNCTUATION
        for name, weight in words
        if weight >= TELLING and name not in NOT_QUOTED and not name.startswith(PIECE)
    ]
    readable = [name for name in dict.fromkeys(named) if not set(name) & QUOTATION_MARKS and set(name) & SOUNDING]
    readable = readable[:QUOTED]
    return sorted(readable, key=PUNCTUATION.__eq__)
