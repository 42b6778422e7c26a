"""A table in words: the previous token, the next few tokens, certain words."""

from collections.abc import Sequence

from txcls.inspection.heads.tables import MAX_DISTANCE, TableKind

ON_ONE, ON_NEIGHBOURS = 0.5, 0.6
"""Minimum share of a table's weight on one distance, or on the distances up to `NEAR`, for it to be named so."""
NEAR = 3
"""How many tokens away a neighbour is at most."""
ONE_SIDED = 2.0
"""How many times as much weight one side has, to be named alone."""
QUOTED = 3
"""Number of words quoted."""
QUOTATION_MARKS = frozenset("\"'`“”‘’")
"""Words with these are not quoted in sentences."""
ORDINALS = ("", "", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def rule_in_words(kind: TableKind, distances: Sequence[float], words: Sequence[tuple[str, float]]) -> str:
    """What a table of this kind attends to: "the previous token", "certain words: “card”, “limit”"."""
    readable = [word for word, _ in words if not set(word) & QUOTATION_MARKS]
    quoted = ", ".join(f"“{word}”" for word in readable[:QUOTED])
    if kind == "word":
        return f"certain words, such as {quoted}" if quoted else "certain words"
    by_distance = distance_in_words(distances)
    if kind == "distance":
        return by_distance or "tokens by their distance"
    if not by_distance:
        return f"certain words, weighed by their distance, such as {quoted}" if quoted else "tokens by their distance"
    if by_distance == "itself":
        return f"itself and to certain words, such as {quoted}" if quoted else by_distance
    return f"{by_distance}, and there to certain words, such as {quoted}" if quoted else by_distance


def short_rule(kind: TableKind, distances: Sequence[float], words: Sequence[tuple[str, float]]) -> str:
    """The same in a few words, for a caption: "previous token", "words: card, limit"."""
    by_distance = distance_in_words(distances).removeprefix("the ").removeprefix("its ") or "distance"
    if kind == "distance":
        return by_distance
    return f"words: {', '.join(word for word, _ in words[:2])}" if kind == "word" else f"{by_distance} + words"


def distance_in_words(distances: Sequence[float]) -> str:
    """Where most of a table's weight is, counted from the query; "" if it is spread wider."""
    peak = max(range(len(distances)), key=distances.__getitem__)
    if distances[peak] >= ON_ONE and 0 < peak < len(distances) - 1:
        return _one_distance(peak - MAX_DISTANCE)
    before = sum(distances[MAX_DISTANCE - NEAR : MAX_DISTANCE])
    after = sum(distances[MAX_DISTANCE + 1 : MAX_DISTANCE + 1 + NEAR])
    if before + distances[MAX_DISTANCE] + after < ON_NEIGHBOURS:
        return ""
    if after >= ONE_SIDED * before:
        return "the next few tokens"
    return "the last few tokens" if before >= ONE_SIDED * after else "its neighbours"


def _one_distance(distance: int) -> str:
    if distance == 0:
        return "itself"
    if abs(distance) == 1:
        return "the previous token" if distance < 0 else "the next token"
    return f"the {ORDINALS[abs(distance)]} token {'before' if distance < 0 else 'after'} it"
