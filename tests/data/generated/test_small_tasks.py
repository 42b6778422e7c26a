from collections import Counter

import pytest

from txcls.config import DataConfig
from txcls.data.datasets import open_dataset
from txcls.data.generated.who_won import SMALL_MAINS, SMALL_TEAMS, reports_by_split
from txcls.data.types import SplitName

SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")


@pytest.mark.parametrize("name", ["who_won_small", "repeated_word"])
def test_no_text_is_in_two_splits_and_classes_are_about_equally_frequent(name: str) -> None:
    dataset = open_dataset(DataConfig(dataset=name))
    rows = {split: dataset.load(split) for split in SPLITS}
    texts = [text for labelled in rows.values() for text in labelled.texts]
    assert len(set(texts)) == len(texts)
    assert len(rows["train"]) > 5000 and min(map(len, rows.values())) > 700
    for labelled in rows.values():
        shares = [count / len(labelled) for count in Counter(labelled.labels).values()]
        assert max(shares) - min(shares) < 0.15 and len(shares) == len(dataset.classes)


def test_a_word_is_repeated_exactly_if_the_label_says_so() -> None:
    dataset = open_dataset(DataConfig(dataset="repeated_word"))
    for split in SPLITS:
        rows = dataset.load(split)
        for text, label in zip(rows.texts, rows.labels, strict=True):
            assert sorted(Counter(text.split()).values()) == ([1, 1, 1, 2] if label else [1] * 5), text


def test_small_reports_have_four_teams_three_constructions_and_a_swapped_twin_in_the_same_split() -> None:
    for split, reports in reports_by_split(small=True).items():
        assert {report.winner for report in reports} == set(SMALL_TEAMS), split
        assert {report.form.main for report in reports} == set(SMALL_MAINS)
        assert max(len(report.form.relatives) for report in reports) == 1
        for first, second in zip(reports[::2], reports[1::2], strict=True):
            assert (first.winner, first.loser) == (second.loser, second.winner) and first.form == second.form
