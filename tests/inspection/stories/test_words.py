"""A head's story in words, and the text that shows it best."""

from dataclasses import replace
from math import nan

import numpy as np
import pytest

from tests.inspection.stories.planted import planted
from txcls.inspection.stories import (
    MARKS,
    Clause,
    HeadAtlas,
    HeadRecord,
    KindsTable,
    MeasuredStory,
    Story,
    chip,
    clearest_texts,
    head_chips,
    is_faint,
    looks_clear,
    sentence,
)

TOLD = MeasuredStory(
    story=Story(1, 1, (Clause("class token", "winner"),)), n=40, coverage=1.0, accuracy=1.0, even=0.24, restored=1.0,
    control=0.17, share=1.0, interval=(1.0, 1.0), control_share=-0.09, attention=(0.99,), chance=(0.06,),
    verdict="confirmed",
)  # fmt: skip
IDLE = replace(TOLD, even=1.0, share=nan, interval=(nan, nan), control_share=nan, verdict="idle")
VERBS = Story(0, 0, (Clause("verb", "first team"), Clause("loser", "itself"), Clause("any token", "itself")))


def record(found: MeasuredStory, worth: float) -> HeadRecord:
    return HeadRecord({"zero": 0.1, "mean": 0.2, "uniform": worth}, found)


def test_a_story_is_a_sentence() -> None:
    assert sentence(TOLD) == "The class token attends to the winner"
    assert sentence(replace(TOLD, story=VERBS, attention=(0.9,) * 3, chance=(0.1,) * 3)) == (
        "The verb attends to the first team; the loser attends to itself; all tokens attend to themselves"
    )
    assert sentence(replace(TOLD, story=Story(0, 0, (Clause("brackets", "dots"),)))) == "Brackets attend to dots"


def test_a_chip_tells_story_verdict_and_worth() -> None:
    assert chip(record(TOLD, 0.7607)) == "class token → winner · confirmed 1.00 · worth 76 points"
    wrong = replace(TOLD, verdict="wrong", share=-0.2)
    assert chip(record(wrong, -0.004)) == "class token → winner · wrong −0.20 · worth −0.4 points"
    assert chip(record(IDLE, -0.0002)) == "class token → winner · looks clear, can be spared · worth 0.0 points"


def test_a_pattern_looks_clear_if_every_clause_stands_out_against_even_weights() -> None:
    assert looks_clear(IDLE)
    for attention, chance in ((0.3, 0.06), (0.5, 0.3)):
        dull = replace(IDLE, attention=(attention,), chance=(chance,))
        assert not looks_clear(dull)
        assert chip(record(dull, 0.0)) == "class token → winner · idle · worth 0.0 points"
    assert not looks_clear(replace(IDLE, attention=(0.99, 0.1), chance=(0.06, 0.06)))


def test_a_pattern_hardly_above_chance_has_no_name() -> None:
    faint = replace(TOLD, story=Story(0, 0, (Clause("rare word", "punctuation"),)), attention=(0.125,), chance=(0.099,))
    assert sentence(faint) == "No clear pattern; nearest: rare words attend to punctuation marks"
    assert chip(record(replace(faint, verdict="idle"), 0.0)) == "no clear pattern · idle · worth 0.0 points"
    wrong = replace(faint, verdict="wrong", share=-1.4)
    assert chip(record(wrong, 0.021)) == "no clear pattern · no story fits · worth 2.1 points"
    assert not is_faint(replace(faint, attention=(0.15,)))


def test_chips_of_an_atlas_are_named_as_on_screen() -> None:
    ones = np.ones((1, 1))
    table = KindsTable(("any token",), ("itself",), ones, ones, np.ones((2, 1, 1, 1)), np.ones((2, 1)))
    first = record(replace(TOLD, story=VERBS, verdict="part of it", share=0.5), 0.1)
    found = head_chips(HeadAtlas("test", 9, 9, 9, table, (first, record(replace(TOLD, story=Story(1, 0, ())), 0.2))))
    assert list(found) == ["1.1", "2.1"]
    assert [one["verdict"] for one in found.values()] == ["part of it", "confirmed"]
    assert found["1.1"]["text"] == chip(first) and found["1.1"]["story"] == str(VERBS)
    faint = record(replace(TOLD, chance=(0.8,)), 0.1)
    table = KindsTable(("any token",), ("itself",), ones, ones, np.ones((1, 1, 1, 1)), np.ones((1, 1)))
    [unnamed] = head_chips(HeadAtlas("test", 9, 9, 9, table, (faint,))).values()
    assert unnamed["story"] == "no clear pattern"
    assert set(MARKS) >= {one["verdict"] for one in found.values()}


def test_the_clearest_text_is_the_one_in_which_a_head_follows_its_story() -> None:
    """The head puts all weight on position 3, whatever stands there."""
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
