"""What is said of a head: what was measured, and nothing that the interval leaves open."""

from dataclasses import replace

import pytest

from tests.app.reports import effect, head, measurements, restored
from txcls.inspection.heads import (
    KINDS,
    MAX_DISTANCE,
    Effect,
    HeadRecord,
    all_heads_sentence,
    chip,
    restored_sentence,
    sentence,
)
from txcls.inspection.heads.records import distance_in_words, rule_in_words, short_rule
from txcls.inspection.heads.tables import TableKind

LOST = (0.05, 0.05)
NOT_CERTAIN, NEGATIVE = (
    Effect(0.01, 0.005, 0.015, 0.007, 0.0005, 0.0135),
    Effect(0.01, 0.005, 0.015, -0.003, -0.01, 0.008),
)


def with_table(record: HeadRecord, kind: TableKind, **changes: float) -> HeadRecord:
    return replace(record, tables={**record.tables, kind: replace(record.tables[kind], **changes)})


def distances(**shares: float) -> list[float]:
    """Shares of weight by place, "minus1" or "plus2"; the rest is spread over all keys far after the query."""
    found = [0.001] * (2 * MAX_DISTANCE + 1)
    for place, share in shares.items():
        found[MAX_DISTANCE + int(place.replace("plus", "").replace("minus", "-"))] = share
    found[-1] = 1 - sum(found[:-1])
    return found


def test_a_rule_is_confirmed_only_if_its_table_costs_little_accuracy() -> None:
    record = head(LOST, shares=(0.95, 0.1, 0.1))
    assert record.verdict == "confirmed"
    costly = with_table(record, "distance", lost=0.012)
    assert costly.verdict == "in part"
    assert sentence(costly).startswith("Attends mostly to the previous token.")
    assert "not clearly better" not in sentence(costly), "averaging costs 4.6 points or more"
    useless = with_table(record, "distance", lost=0.047)
    assert "averaged over texts (4.7 and 5.0 points lost)" in sentence(useless)
    averaged = replace(record, mean=Effect(0.0001, 0.0001, 0.0001, *[0.0] * 3))
    assert "no better than averaged output" in chip(averaged)


def test_without_a_rule_an_interval_that_reaches_the_bound_leaves_it_undecided() -> None:
    assert head(LOST, shares=(0.1, 0.1, 0.44)).verdict == "no rule", "at most 49 %, corrected for all tests"
    near = head(LOST, shares=(0.1, 0.1, 0.46))
    assert near.verdict == "undecided"
    assert "keeps 46\u00a0% of the effect of its attention, but the texts are too few" in sentence(near)
    assert "may keep half" in sentence(head(LOST, shares=(0.1, 0.1, 0.52)))
    assert "46\u00a0% of the effect (43 to 49\u00a0%; at most 51\u00a0%, corrected" in restored_sentence(near)
    matched = replace(
        near, tables=dict(zip(KINDS, [restored(0.1), restored(0.8, control=0.7), restored(0.1)], strict=True))
    )
    assert matched.verdict == "undecided"
    assert "not clearly more than a shuffled one" in sentence(matched)


def test_where_a_head_looks_hardly_matters_only_if_uniform_attention_costs_nothing_that_counts() -> None:
    record = head((0.001, 0.2), shares=(0.1, 0.1, 0.2), kl=0.001)
    assert sentence(record).startswith("The effect of where it looks is small")
    assert "20 points of accuracy are lost (20 to 20)" in sentence(record)
    uncorrected = replace(record, resampled=replace(record.resampled, lost=0.018, lost_low=0.002, lost_high=0.034))
    assert "another text" not in sentence(uncorrected), "of some 32 intervals, a few exceed zero by chance"
    assert "20\u00a0%, at least 15\u00a0%, corrected" in restored_sentence(record)
    assert replace(record, uniform=effect(0.006, 0.001)).verdict == "no rule"
    ruled = head((0.001, 0.0), shares=(0.95, 0.1, 0.1), kl=0.001)
    assert "the previous token" in sentence(ruled) and "small by itself (0.001 nats)" in sentence(ruled)


def test_a_loss_that_is_not_certain_is_called_so_and_no_number_is_negative() -> None:
    record = replace(head(LOST, shares=(0.95, 0.1, 0.1)), mean=NOT_CERTAIN, resampled=NEGATIVE, uniform=NEGATIVE)
    assert "0.7 (not certain)" in chip(record) and "none measured (at most 0.8)" in chip(record)
    assert "no loss of accuracy measured" in chip(replace(record, mean=NEGATIVE))
    said = restored_sentence(with_table(record, "distance", lost=-0.01, control=-0.7, high=1.04))
    assert "0.010 nats" in said and "95\u00a0% of the effect (92 to 100\u00a0%; at least 90\u00a0%" in said
    assert "accuracy is no higher" in said and "accuracy no lower" in said and "shuffled, it keeps none" in said


def test_all_heads_together_keep_a_share_of_the_effect_or_none() -> None:
    measured = measurements()
    assert "96\u00a0% (93 to 99\u00a0%)" in all_heads_sentence(measured)
    worse = replace(measured, all_heads=replace(measured.all_heads, tables=dict.fromkeys(KINDS, restored(-0.2))))
    assert "keep none" in all_heads_sentence(worse)


@pytest.mark.parametrize(
    "weights, said",
    [
        ({"minus1": 0.2, "minus2": 0.3, "minus3": 0.12}, "the few tokens before it"),
        ({"plus1": 0.2, "plus2": 0.3, "plus3": 0.08}, ""),
        ({"plus1": 0.3, "0": 0.2, "minus1": 0.3}, ""),
        ({"0": 0.6}, "itself"),
        ({"minus3": 0.6}, "the third token before it"),
    ],
)  # fmt: skip
def test_neighbours_are_named_only_if_one_side_has_most_of_the_weight(weights: dict[str, float], said: str) -> None:
    assert distance_in_words(distances(**weights)) == said
    causal = [0.0] * (2 * MAX_DISTANCE + 1)
    causal[MAX_DISTANCE - 3 : MAX_DISTANCE + 1] = [0.2, 0.2, 0.25, 0.35]
    assert distance_in_words(causal) == "", "uniform attention of a causal model would also be there"


def test_only_tokens_that_can_be_read_and_weigh_twice_the_average_are_quoted() -> None:
    near = distances(plus1=0.3, plus2=0.4)
    words = (("<cls>", 17.0), ('",', 5.0), ("which", 4.2), (")", 9.0), ("which", 3.0), ("space", 3.0), ("to", 1.9))
    assert rule_in_words("word", near, words) == "certain tokens, such as “which” and some punctuation"
    assert rule_in_words("word", near, [("th", 9.0), ("…erts", 8.0), ("of", 1.2)]) == "certain tokens"
    assert rule_in_words("both", near, words).startswith("the next few tokens, and more to certain ones, ")
    many = [("oil", 9.0), ("profit", 8.0), ("team", 7.0), ("game", 6.0)]
    assert short_rule("both", distances(), many) == "tokens by distance: oil, profit"
