"""The wording of stories, and the text that matches a story best."""

from dataclasses import replace

import pytest

from tests.inspection.stories.planted import planted
from txcls.inspection.ablation import ChangedRows
from txcls.inspection.stories import (
    Clause,
    HeadRecord,
    MeasuredStory,
    Story,
    chip,
    clearest_texts,
    sentence,
)
from txcls.inspection.stories.kinds import NAMED, NOT_NAMED, roles_by_prediction
from txcls.inspection.stories.verdicts import verdict_of
from txcls.inspection.stories.wording import verdict_words

CONFIRMED = MeasuredStory(
    story=Story(1, 1, (Clause("class token", NAMED),)), n=40, coverage=1.0, accuracy=1.0, uniform=0.24, restored=1.0,
    control=0.17, share=1.0, interval=(1.0, 1.0), control_share=-0.09, attention=(0.99,), chance=(0.06,),
    verdict="confirmed",
)  # fmt: skip


def record(measured: MeasuredStory, worth: float, changed: ChangedRows | None = None) -> HeadRecord:
    return HeadRecord({"zero": 0.1, "mean": worth, "uniform": 0.2}, measured, changed)


def test_a_refuted_story_is_not_shown() -> None:
    wrong = replace(CONFIRMED, verdict="refuted", share=-0.2)
    assert chip(record(wrong, -0.004)) == "no story fits · worth −0.4 points"
    assert sentence(wrong).startswith("No story fits")


def test_the_interval_of_the_worth_decides_whether_a_head_is_needed_and_where_it_is_sorted() -> None:
    idle = replace(CONFIRMED, verdict="idle", attention=(0.1,))
    sure, unsure = (record(idle, worth, ChangedRows(30, 20, low, high))
                    for worth, low, high in ((0.002, 0.001, 0.003), (0.004, -0.002, 0.0101)))  # fmt: skip
    assert chip(sure).endswith("not needed by itself · worth 0.2 points (0.1 to 0.3)")
    assert chip(unsure).endswith("uniform weights do as well for these queries · worth 0.4 points (−0.2 to 1.0)")
    assert sure.rank < unsure.rank, "it is worth more for sure"
    assert chip(record(idle, 0.004)).endswith("not needed by itself · worth 0.4 points"), "a record without counts"


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"share": 0.5, "attention": (0.2,)}, "restores 50\u00a0%"),
        ({"control_share": 0.4}, "restores 93\u00a0%, the control 40\u00a0%"),
        ({"interval": (0.1, 1.8)}, "restores 93\u00a0%, on too few texts to be sure"),
        ({"attention": (0.9, 0.41)}, "restores 93\u00a0%, but weight there only 41\u00a0%"),
    ],
)
def test_a_story_that_is_not_confirmed_although_it_restores_much_has_its_reason(
    changes: dict[str, object], reason: str
) -> None:
    values = {"share": 0.93, "interval": (0.9, 0.95), "verdict": "part of it", **changes}
    measured = replace(CONFIRMED, **values)  # type: ignore[arg-type]
    verdict = verdict_of(
        0.7,
        share=measured.share,
        low=measured.interval[0],
        control_share=measured.control_share,
        attention=min(measured.attention),
    )
    assert (verdict, verdict_words(record(measured, 0.1))) == ("part of it", f"part of it, {reason}")


def test_clearest_texts_match_the_story_best() -> None:
    """The head puts all weight on position 3, whatever token is there."""
    classifier = planted({3: 1.0}, {3: 1.0})
    texts = ["start ; ; rise ; ;", "", "start rise ; fall ; ;", "start fall ; ; rise"]
    roles = [{"mark": [(12, 16)]}, {}, {"mark": [(6, 10)]}, {}]  # "rise": at position 3, and at position 1
    stories = [Story(0, 0, (Clause("any token", "mark"),)), Story(0, 1, (Clause("any token", "rare word"),))]
    assert clearest_texts(classifier, stories[:1], texts, roles=roles) == [0]
    assert clearest_texts(classifier, stories[:1], texts[::-1], roles=roles[::-1]) == [3]
    assert clearest_texts(classifier, [Story(0, 0, (Clause("any token", "punctuation"),))], texts) == [3]
    assert clearest_texts(classifier, stories[1:], texts)[0] != 1, "this text is empty"
    with pytest.raises(ValueError, match="got 1 texts without words"):
        clearest_texts(classifier, stories, [""])


def test_roles_depend_on_the_prediction_rather_than_on_the_label() -> None:
    classifier = planted({1: 1.0}, {2: 1.0})
    text = "start up down"
    roles = [{"winner": [(6, 8)], "loser": [(9, 13)], "verb": [(0, 5)]}]
    [of_text] = roles_by_prediction(classifier, [text], roles)
    named = classifier.predict([text])[0].label
    assert of_text["verb"] == [(0, 5)] and not {"winner", "loser"} & set(of_text)
    assert [text[start:end] for start, end in of_text[NAMED]] == [named]
    assert [text[start:end] for start, end in of_text[NOT_NAMED]] == [{"up": "down", "down": "up"}[str(named)]]
    [neither] = roles_by_prediction(classifier, [text], [{"winner": [(0, 5)], "loser": [(0, 5)]}])
    assert neither == {}
