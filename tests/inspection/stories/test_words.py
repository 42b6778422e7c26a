"""The wording of stories, and the text that matches a story best."""

from dataclasses import replace

import numpy as np
import pytest

from tests.inspection.stories.planted import planted
from txcls.inspection.ablation_on_rows import ChangedRows
from txcls.inspection.stories import (
    Clause,
    HeadRecord,
    Lists,
    MeasuredStory,
    Story,
    chip,
    clearest_pair,
    clearest_texts,
    sentence,
    shows_words,
)
from txcls.inspection.stories.kinds import NAMED, NOT_NAMED, roles_by_prediction
from txcls.inspection.stories.lists import MAX_DISTANCE
from txcls.inspection.stories.wording import plain_words, verdict_and_test, verdict_words

CONFIRMED = MeasuredStory(
    story=Story(1, 1, (Clause("class token", NAMED),)), n=40, coverage=1.0, accuracy=1.0, uniform=0.24, restored=1.0,
    control=0.17, share=1.0, interval=(1.0, 1.0), control_share=-0.09, attention=(0.99,), chance=(0.06,),
)  # fmt: skip


def record(measured: MeasuredStory, worth: float, changed: ChangedRows | None = None) -> HeadRecord:
    return HeadRecord({"zero": 0.1, "mean": worth, "uniform": worth / 2}, measured, changed)


def test_a_refuted_story_is_not_shown() -> None:
    wrong = replace(CONFIRMED, share=-0.2, interval=(-0.4, 0.1))
    assert chip(record(wrong, -0.004)) == "best story refuted · worth −0.4 points of accuracy"
    assert sentence(wrong).startswith("The best candidate story is refuted")


def test_the_interval_of_the_worth_decides_whether_a_head_is_needed_and_where_it_is_sorted() -> None:
    idle = replace(CONFIRMED, uniform=0.999, attention=(0.1,))
    sure, unsure = (record(idle, worth, ChangedRows(30, 20, low, high))
                    for worth, low, high in ((0.002, 0.001, 0.003), (0.004, -0.002, 0.0101)))  # fmt: skip
    assert chip(sure).endswith("hardly needed by itself · worth 0.2 points of accuracy (0.1 to 0.3)")
    assert chip(sure, two_decimals=True).endswith("(0.10 to 0.30)"), "the same digits as on another chip"
    assert chip(record(idle, 0.15, ChangedRows(9, 0, 0.14, 0.16)), two_decimals=True).endswith("(14 to 16)")
    assert chip(unsure).endswith("not tested · worth 0.4 points of accuracy (−0.2 to 1.0)")
    around_zero = record(idle, 0.001, ChangedRows(30, 25, -0.001, 0.003))
    assert chip(around_zero) == "not needed by itself · worth 0.1 points of accuracy (−0.1 to 0.3)"
    assert sure.rank < unsure.rank, "it is worth more for sure"
    close = record(idle, 0.003, ChangedRows(30, 20, 0.000115, 0.004824))
    assert chip(close) == "hardly needed by itself · worth 0.3 points of accuracy (0.01 to 0.48)", "not 0.0 to 0.5"
    closer = replace(close, changed=ChangedRows(30, 20, -0.000098, 0.005418))
    assert chip(closer) == "not tested · worth 0.3 points of accuracy (−0.01 to 0.54)"
    assert chip(record(idle, 0.004)).endswith("not tested · worth 0.4 points of accuracy"), (
        "a record without an interval"
    )


def test_the_picture_describes_a_head_in_words_that_need_no_definition() -> None:
    idle = record(replace(CONFIRMED, uniform=0.999), 0.004)
    assert plain_words(idle) == "what it attends to was not tested · removing it costs 0.4 points of accuracy"
    spare = replace(idle, changed=ChangedRows(30, 25, -0.001, 0.003))
    assert plain_words(spare).startswith(
        "not needed by itself · removing it costs 0.4 points of accuracy (−0.1 to 0.3)"
    )
    partly = record(replace(CONFIRMED, share=0.5, interval=(0.4, 0.6)), 0.1)
    assert "(partly confirmed) · removing it costs 10 points" in plain_words(partly)
    assert plain_words(record(CONFIRMED, 0.1)).startswith(
        "class token → team it names (confirmed, but its key is the answer)"
    )
    assert plain_words(record(replace(CONFIRMED, share=-0.2, interval=(-0.4, 0.1)), 0.0)).startswith(
        "best story refuted · "
    )


def test_a_head_whose_uniform_weights_cost_accuracy_has_no_story_rather_than_nothing_to_test() -> None:
    idle = replace(CONFIRMED, uniform=1.001, attention=(0.1,))
    head = HeadRecord({"zero": 0.0, "mean": 0.0, "uniform": 0.0134}, idle, ChangedRows(1, 1, -0.001, 0.001))
    assert verdict_words(head) == "no story found"
    assert plain_words(head).startswith("no story found · "), "the same words as on its card"
    clear = replace(head, story=replace(idle, attention=(0.9,)))
    assert verdict_words(clear) == "pattern looks clear, not tested for these queries"


def test_a_confirmed_story_says_whether_its_key_is_the_answer() -> None:
    words = verdict_words(record(CONFIRMED, 0.1))
    falls = "with the same weight on every token, accuracy falls"
    assert words == f"confirmed: {falls}; with weight only on the answer, 100\u00a0% of the lost accuracy comes back"
    exact = replace(CONFIRMED, share=1.0, interval=(0.999, 1.001))
    assert ", 100\u00a0% of the lost" in verdict_words(record(exact, 0.1)), "not 100 % (100 to 100 %)"
    other = replace(CONFIRMED, story=Story(1, 1, (Clause("class token", "verb"),)), share=1.06, interval=(0.66, 2.12))
    assert verdict_words(record(other, 0.1)) == (
        f"confirmed: {falls}; with weight only on the verb, "
        "106\u00a0% (66 to 212\u00a0%) of the lost accuracy comes back"
    )


def test_an_undecided_story_shows_its_interval() -> None:
    few = replace(CONFIRMED, share=0.42, interval=(-0.57, 1.06), control_share=0.21)
    test = "with the same weight on every token, accuracy falls; with weight only on the answer"
    assert verdict_words(record(few, 0.1)) == (
        f"tested on too few texts to say: {test}, −57 to 106\u00a0% of the lost accuracy comes back"
    )
    worse = replace(CONFIRMED, share=0.9, interval=(0.88, 0.92), control_share=0.95)
    assert verdict_words(record(worse, 0.1)) == (
        f"undecided: {test}, 88 to 92\u00a0% of the lost accuracy comes back, with the control 95\u00a0%"
    )


def test_a_story_with_a_query_that_depends_on_the_prediction_is_not_shown() -> None:
    old = replace(CONFIRMED, story=Story(0, 0, (Clause(NAMED, "marker"),)))
    assert NAMED not in chip(record(old, 0.1)) and "predicted" not in sentence(old)
    assert chip(record(old, 0.1)).startswith("not described · not tested: its queries depend on the prediction")


def test_words_are_named_only_if_they_were_shown_to_matter() -> None:
    words, distances = np.zeros(5), np.zeros(2 * MAX_DISTANCE + 1)
    both = replace(CONFIRMED, story=Story(0, 3, lists=Lists(words, distances)))
    assert sentence(both) == (
        "Its weights can be replaced by fixed ones for each word and distance, whatever the query "
        "(not tested which of the two matters; overlap 99\u00a0%, 6\u00a0% if uniform)"
    )
    assert not shows_words(both) and shows_words(replace(both, is_minimal=True))
    assert shows_words(replace(both, story=Story(0, 3, lists=Lists(words, None))))
    part = replace(both, is_minimal=True, share=0.65, interval=(0.6, 0.68), attention=(0.48,), chance=(0.4,))
    assert sentence(part) == (
        "Its weights can in part be replaced by fixed ones for each word and distance, whatever the query "
        "(overlap 48\u00a0%, 40\u00a0% if uniform)"
    )
    not_tested = replace(part, uniform=0.999, attention=(0.58,), chance=(0.3,))
    assert sentence(not_tested) == (
        "Overlaps with fixed weights for each word and distance, whatever the query (58\u00a0%, 30\u00a0% if uniform; "
        "not tested)"
    )
    few = replace(part, interval=(-0.57, 1.06))
    assert sentence(few) == "No clear pattern was found" and not shows_words(few)


@pytest.mark.parametrize(
    "changes, share, reason",
    [
        ({"share": 0.5, "interval": (0.4, 0.6)}, "50\u00a0% (40 to 60\u00a0%)", ""),
        ({"control_share": 0.4}, "93\u00a0% (90 to 95\u00a0%)", ", with the control 40\u00a0%"),
        ({"interval": (0.1, 1.8)}, "93\u00a0% (10 to 180\u00a0%)", ", on too few texts to be sure"),
        (
            {"attention": (0.9, 0.41)},
            "93\u00a0% (90 to 95\u00a0%)",
            ", but the head has only 41\u00a0% of its weight there",
        ),
        (
            {"attention": (0.41,), "story": Story(0, 3, lists=Lists(None, np.zeros(2 * MAX_DISTANCE + 1)))},
            "93\u00a0% (90 to 95\u00a0%)",
            ", but overlap with them only 41\u00a0%",
        ),
    ],
)
def test_a_partly_confirmed_story_says_how_much_comes_back_and_why_it_is_not_confirmed(
    changes: dict[str, object], share: str, reason: str
) -> None:
    values = {"share": 0.93, "interval": (0.9, 0.95), **changes}
    measured = replace(CONFIRMED, **values)  # type: ignore[arg-type]
    what = "these fixed weights" if "story" in changes else "weight only on the answer"
    assert verdict_and_test(record(measured, 0.1)) == (
        "partly confirmed",
        f"with the same weight on every token, accuracy falls; with {what}, {share} of the lost accuracy comes back"
        f"{reason}",
    )


def test_clearest_texts_match_the_story_best() -> None:
    """The head puts all weight on position 3, whatever token is there."""
    classifier = planted({3: 1.0}, {3: 1.0})
    texts = ["start ; ; rise ; ;", "", "start rise ; fall ; ;", "start fall ; ; rise"]
    roles = [{"mark": [(12, 16)]}, {}, {"mark": [(6, 10)]}, {}]  # "rise": at position 3, and at position 1
    stories = [Story(0, 0, (Clause("any token", "mark"),)), Story(0, 1, (Clause("any token", "rare word"),))]
    assert clearest_texts(classifier, stories[:1], texts, roles=roles) == [0]
    assert clearest_texts(classifier, stories[:1], texts[::-1], roles=roles[::-1]) == [3]
    assert clearest_texts(classifier, [Story(0, 0, (Clause("any token", "punctuation"),))], texts) == [3]
    assert clearest_pair(classifier, Story(0, 0, (Clause("mark", "next token"),)), texts[2], roles=roles[2]) == (1, 2)
    assert clearest_pair(classifier, stories[1], texts[0]) is None
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


def test_the_place_of_the_weight_is_named_unless_a_story_has_several() -> None:
    def words(*clauses: Clause) -> str:
        return verdict_words(record(replace(CONFIRMED, story=Story(0, 1, clauses), attention=(0.99,) * 2), 0.1))

    earlier, itself = Clause("second team", "previous token"), Clause("punctuation", "itself")
    assert "with weight only on the previous token, " in words(earlier)
    assert "with weight only on themselves, " in words(itself)
    assert "with weight only there, " in words(earlier, itself)
