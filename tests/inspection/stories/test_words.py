"""A head's story in words, and the text that shows it best."""

from dataclasses import replace
from math import nan

import numpy as np
import pytest

from tests.inspection.stories.planted import planted
from txcls.inspection.stories import (
    VERDICT_MARKS,
    AllHeads,
    Clause,
    HeadAtlas,
    HeadRecord,
    KindsTable,
    Lists,
    MeasuredStory,
    Story,
    all_heads_sentence,
    chip,
    clearest_texts,
    head_chips,
    is_faint,
    looks_clear,
    sentence,
    spare_sentence,
)
from txcls.inspection.stories.kinds import NAMED, NOT_NAMED, roles_by_answer

CONFIRMED = MeasuredStory(
    story=Story(1, 1, (Clause("class token", NAMED),)), n=40, coverage=1.0, accuracy=1.0, even=0.24, restored=1.0,
    control=0.17, share=1.0, interval=(1.0, 1.0), control_share=-0.09, attention=(0.99,), chance=(0.06,),
    verdict="confirmed",
)  # fmt: skip
IDLE = replace(CONFIRMED, even=1.0, share=nan, interval=(nan, nan), control_share=nan, verdict="idle")
VERBS = Story(0, 0, (Clause("verb", "first team"), Clause(NOT_NAMED, "itself"), Clause("any token", "itself")))


def record(measured: MeasuredStory, worth: float) -> HeadRecord:
    return HeadRecord({"zero": 0.1, "mean": worth, "uniform": 0.2}, measured)


def test_a_story_is_a_sentence() -> None:
    assert sentence(CONFIRMED) == "The class token attends to the team that it then names"
    assert sentence(replace(CONFIRMED, story=VERBS, attention=(0.9,) * 3, chance=(0.1,) * 3)) == (
        "The verb attends to the first team; the team that it does not name attends to itself; "
        "all tokens attend to themselves"
    )
    assert sentence(replace(CONFIRMED, story=Story(0, 0, (Clause("brackets", "dots"),)))) == "Brackets attend to dots"
    ones = np.ones(5)
    for lists, words in (
        (Lists(ones, None), "Each word has"),
        (Lists(None, ones), "Each distance has"),
        (Lists(ones, ones), "Each word and each distance has"),
    ):
        measured = replace(CONFIRMED, story=Story(0, 0, lists=lists))
        assert sentence(measured) == f"{words} a fixed weight, whichever token asks"


def test_a_chip_says_story_verdict_and_worth() -> None:
    assert chip(record(CONFIRMED, 0.1507)) == "class token → team it names · confirmed 1.00 · worth 15 points"
    assert (
        chip(record(IDLE, -0.0002))
        == "class token → team it names · looks clear, not needed by itself · worth 0.0 points"
    )
    needed = chip(record(IDLE, 0.03))
    assert needed == "class token → team it names · looks clear, uniform does as well · worth 3.0 points"


def test_a_refuted_story_is_never_shown_as_what_a_head_does() -> None:
    wrong = replace(CONFIRMED, verdict="wrong", share=-0.2)
    assert chip(record(wrong, -0.004)) == "no story fits · worth −0.4 points"
    assert sentence(wrong).startswith("No story fits")


def test_a_pattern_looks_clear_if_every_clause_stands_out_against_uniform_weights() -> None:
    assert looks_clear(IDLE)
    for attention, chance in ((0.3, 0.06), (0.5, 0.3)):
        dull = replace(IDLE, attention=(attention,), chance=(chance,))
        assert not looks_clear(dull)
        weight = f"{100 * attention:.0f} % of the weight, {100 * chance:.0f} % if uniform"
        assert sentence(dull) == f"Weak pattern: the class token attends to the team that it then names ({weight})"
        assert chip(record(dull, 0.0)) == "class token → team it names · not needed by itself · worth 0.0 points"
    assert not looks_clear(replace(IDLE, attention=(0.99, 0.1), chance=(0.06, 0.06)))


def test_a_pattern_hardly_above_chance_has_no_name() -> None:
    faint = replace(
        CONFIRMED, story=Story(0, 0, (Clause("rare word", "punctuation"),)), attention=(0.125,), chance=(0.099,)
    )
    assert sentence(faint) == "No clear pattern"
    assert (
        chip(record(replace(faint, verdict="idle"), 0.0))
        == "no clear pattern · not needed by itself · worth 0.0 points"
    )
    assert not is_faint(replace(faint, attention=(0.15,)))


def atlas(*heads: HeadRecord, all_heads: AllHeads | None = None, spare_lost: float | None = None) -> HeadAtlas:
    ones = np.ones((1, 1))
    table = KindsTable(("any token",), ("itself",), ones, ones, np.ones((2, 1, 1, 1)), np.ones((2, 1)))
    return HeadAtlas("test", 9, 9, 9, table, heads, spare_lost, all_heads)


def test_chips_of_an_atlas_are_named_as_on_screen() -> None:
    part = record(replace(CONFIRMED, story=VERBS, verdict="part of it", share=0.5), 0.1)
    idle = record(replace(IDLE, story=Story(1, 0, (Clause("verb", "verb"),))), 0.0)
    chips = head_chips(atlas(part, idle))
    assert list(chips) == ["1.1", "2.1"]
    assert [head["verdict"] for head in chips.values()] == ["part of it", "idle"]
    assert chips["1.1"]["text"] == chip(part) and chips["1.1"]["story"] == str(VERBS)
    assert chips["2.1"]["story"] == "not needed by itself"
    [unnamed] = head_chips(atlas(record(replace(CONFIRMED, chance=(0.8,)), 0.1))).values()
    assert unnamed["story"] == "no clear pattern"
    assert set(VERDICT_MARKS) >= {head["verdict"] for head in chips.values()}


def test_all_heads_are_summarised_in_one_sentence() -> None:
    bag = AllHeads(4000, 0.94, 0.85, 0.932, 0.862, 0.9, share=0.91, interval=(0.8, 1.0), control_share=0.13)
    for together, begins in (
        (bag, "In this model attention is a weighted bag of words with positions: "),
        (replace(bag, share=0.6), "In this model attention is in part a weighted bag"),
        (replace(bag, interval=(0.2, 1.0)), "In this model attention is in part a weighted bag"),
        (replace(bag, share=0.1), "In this model it matters which token asks"),
        (replace(bag, share=0.4, control_share=0.5), "In this model it matters which token asks"),
        (replace(bag, uniform=0.937), "In this model it hardly matters where the heads attend"),
    ):
        said = all_heads_sentence(atlas(all_heads=together))
        assert said.startswith(begins)
        assert "94.0" in said and ("93.2" in said) == (together.uniform < 0.93)
    spare = record(IDLE, 0.001)
    assert spare_sentence(atlas(spare, spare, record(CONFIRMED, 0.2), spare_lost=0.018)) == (
        "2 of 3 heads can each be removed at almost no cost; without all of these, 1.8 points of accuracy are lost."
    )
    assert spare_sentence(atlas(record(CONFIRMED, 0.2), spare_lost=0.0)) == ""


def test_the_clearest_text_is_the_one_in_which_a_head_follows_its_story() -> None:
    """The head puts all weight on position 3, whatever token is there."""
    classifier = planted({3: 1.0}, {3: 1.0})
    texts = ["start ; ; rise ; ;", "", "start rise ; fall ; ;", "start fall ; ; rise"]
    roles = [{"mark": [(12, 16)]}, {}, {"mark": [(6, 10)]}, {}]  # "rise": at position 3, and at position 1
    stories = [Story(0, 0, (Clause("any token", "mark"),)), Story(0, 1, (Clause("any token", "rare word"),))]
    assert clearest_texts(classifier, stories[:1], texts, roles=roles) == [0]
    assert clearest_texts(classifier, stories[:1], texts[::-1], roles=roles[::-1]) == [3]
    assert clearest_texts(classifier, [Story(0, 0, (Clause("any token", "punctuation"),))], texts) == [3]
    assert clearest_texts(classifier, stories[1:], texts)[0] != 1, "it holds no token"
    with pytest.raises(ValueError, match="none of 1 texts has a token"):
        clearest_texts(classifier, stories, [""])


def test_roles_go_by_the_answer_of_the_model_rather_than_by_the_label() -> None:
    classifier = planted({1: 1.0}, {2: 1.0})
    text = "start up down"
    roles = [{"winner": [(6, 8)], "loser": [(9, 13)], "verb": [(0, 5)]}]
    [by_answer] = roles_by_answer(classifier, [text], roles)
    named = classifier.predict([text])[0].label
    assert by_answer["verb"] == [(0, 5)] and not {"winner", "loser"} & set(by_answer)
    assert [text[start:end] for start, end in by_answer[NAMED]] == [named]
    assert [text[start:end] for start, end in by_answer[NOT_NAMED]] == [{"up": "down", "down": "up"}[str(named)]]
    [neither] = roles_by_answer(classifier, [text], [{"winner": [(0, 5)], "loser": [(0, 5)]}])
    assert neither == {}
