import re
from dataclasses import replace

import pytest

from tests.app.reports import effect, head, measurements, restored
from txcls.inspection.heads import (
    KINDS,
    MAX_DISTANCE,
    Effect,
    HeadRecord,
    all_heads_sentence,
    head_summary,
    restored_sentence,
    sentence,
)
from txcls.inspection.heads.records import distance_in_words, rule_in_words, short_rule

LOST = (0.05, 0.05)
NOT_CERTAIN, NEGATIVE, NONE = (
    Effect(0.01, 0.005, 0.015, 0.007, 0.0005, 0.0135),
    Effect(0.01, 0.005, 0.015, -0.003, -0.01, 0.008),
    Effect(0.0001, 0.0001, 0.0001, *[0.0] * 3),
)
RULED, NEAR = head(LOST, shares=(0.95, 0.1, 0.1)), head(LOST, shares=(0.1, 0.1, 0.46))
MATCHED = replace(
    NEAR, tables=dict(zip(KINDS, [restored(0.1), restored(0.8, control=0.7), restored(0.1)], strict=True))
)
IDLE = head((0.001, 0.2), shares=(0.1, 0.1, 0.2), kl=0.001)


def with_table(record: HeadRecord, **changes: float) -> HeadRecord:
    return replace(record, tables={**record.tables, "distance": replace(record.tables["distance"], **changes)})


@pytest.mark.parametrize(
    "record, verdict",
    [
        (RULED, "confirmed"),
        (with_table(RULED, lost=0.012), "in part"),
        (with_table(RULED, lost=0.047), "in part"),
        (with_table(RULED, lost=-0.01, control=-0.7, high=1.04), "confirmed"),
        (replace(RULED, mean=NONE), "confirmed"),
        (replace(RULED, mean=NOT_CERTAIN, resampled=NEGATIVE, uniform=NEGATIVE), "confirmed"),
        (head(LOST, shares=(0.1, 0.1, 0.44)), "no rule"),  # at most 49 %, corrected for all tests
        (NEAR, "undecided"),
        (head(LOST, shares=(0.1, 0.1, 0.52)), "undecided"),
        (MATCHED, "undecided"),
        (IDLE, "hardly matters"),
        (replace(IDLE, uniform=effect(0.006, 0.001)), "no rule"),
    ],
)
def test_a_verdict_is_given_where_the_intervals_allow_it_and_no_number_is_negative(
    record: HeadRecord, verdict: str
) -> None:
    assert record.verdict == verdict
    for said in (sentence(record), head_summary(record), restored_sentence(record)):
        assert said and not re.search(r"(?<!\d)[-−]\d", said), said


def test_all_heads_together_keep_a_share_of_the_effect_or_none() -> None:
    measured = measurements()
    assert "96\u00a0% (93 to 99\u00a0%)" in all_heads_sentence(measured)
    worse = replace(measured, all_heads=replace(measured.all_heads, tables=dict.fromkeys(KINDS, restored(-0.2))))
    assert "keep none" in all_heads_sentence(worse)


def distances(**shares: float) -> list[float]:
    """Shares of weight by place, "minus1" or "plus2"; the rest is spread over all keys far after the query."""
    found = [0.001] * (2 * MAX_DISTANCE + 1)
    for place, share in shares.items():
        found[MAX_DISTANCE + int(place.replace("plus", "").replace("minus", "-"))] = share
    found[-1] = 1 - sum(found[:-1])
    return found


@pytest.mark.parametrize(
    "weights, said",
    [
        ({"minus1": 0.2, "minus2": 0.3, "minus3": 0.12}, "the few tokens before it"),
        ({"plus1": 0.2, "plus2": 0.3, "plus3": 0.08}, ""),
        ({"plus1": 0.3, "0": 0.2, "minus1": 0.3}, ""),
        ({"0": 0.6}, "itself"),
        ({"minus3": 0.6}, "the third token before it"),
    ],
)
def test_neighbours_are_named_only_if_one_side_has_most_of_the_weight(weights: dict[str, float], said: str) -> None:
    assert distance_in_words(distances(**weights)) == said


def test_only_tokens_that_can_be_read_and_weigh_twice_the_average_are_quoted() -> None:
    near = distances(plus1=0.3, plus2=0.4)
    words = (("<cls>", 17.0), ('",', 5.0), ("which", 4.2), (")", 9.0), ("which", 3.0), ("space", 3.0), ("to", 1.9))
    assert rule_in_words("word", near, words) == "certain tokens, such as “which” and some punctuation"
    assert rule_in_words("word", near, [("th", 9.0), ("…erts", 8.0), ("of", 1.2)]) == "certain tokens"
    many = [("oil", 9.0), ("profit", 8.0), ("team", 7.0), ("game", 6.0)]
    assert short_rule("both", distances(), many) == "tokens by distance: oil, profit"
