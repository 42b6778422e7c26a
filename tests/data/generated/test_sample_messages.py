import csv
import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

import txcls.data

CLASSES = ("cooking", "health", "money", "sport", "technology", "travel")


FOLDER = Path(txcls.data.__path__[0]) / "generated" / "sample"


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with (FOLDER / "messages.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def test_each_class_has_at_least_sixty_four_messages_and_a_fifth_of_them_are_for_testing(rows):
    assert set(rows[0]) == {"text", "label", "split"}
    counts = Counter((row["label"], row["split"]) for row in rows)
    assert {label for label, _ in counts} == set(CLASSES)
    assert {split for _, split in counts} == {"train", "test"}
    for label in CLASSES:
        assert counts[label, "test"] + counts[label, "train"] >= 64
        assert counts[label, "test"] * 4 == counts[label, "train"]


def test_no_message_is_a_near_duplicate_of_another(rows):
    texts = [row["text"] for row in rows]
    assert len(set(texts)) == len(texts)
    bags = [set(words(text)) for text in texts]
    for (first, a), (second, b) in combinations(zip(texts, bags, strict=True), 2):
        assert len(a & b) / len(a | b) < 0.6, (first, second)
