from collections import Counter
from pathlib import Path

import pytest

from txcls.data.generated.agreement import (
    BLANK,
    Nouns,
    Split,
    make_rows,
    minimal_pairs,
    open_agreement,
    read_rows,
    roles_of,
    row_of,
    write_agreement,
)
from txcls.errors import DataError

NOUNS = Nouns({"key": "keys", "cabinet": "cabinets", "city": "cities"})


@pytest.mark.parametrize(
    "sentence, text, label",
    [
        ("The keys to the cabinet are here.", "The keys to the cabinet", 1),
        ("The key to the cabinets was lost, and they were sad.", "The key to the cabinets", 0),
        ("The man who has arrived is tall.", "The man who", 0),
        ("Many of the old towns have walls.", "Many of the old towns", 1),
    ],
)
def test_the_words_before_the_first_verb_become_a_row(sentence: str, text: str, label: int) -> None:
    row = row_of(sentence)
    assert row is not None
    assert (row.text, row.label) == (text, label)


@pytest.mark.parametrize(
    "sentence",
    [
        "The keys are here.",  # too few words before the verb
        "In the evening they were tired.",  # a pronoun determines the verb
        "We all think that it is late.",
        "The old people might easily have left.",  # not a finite verb
        "He said he would not have come.",
        "The old people seem to really have left.",
        "A place in 2004 was built.",  # not a word
        "The keys to the cabinet lie there.",  # none of the verbs
        " ".join(["word"] * 60) + " is long.",
    ],
)
def test_sentences_whose_verb_agrees_with_no_noun_before_it_are_left_out(sentence: str) -> None:
    assert row_of(sentence) is None


def texts(n: int) -> list[tuple[Split, str]]:
    """Texts of one sentence each; every third is plural, every tenth for validation, every eleventh for testing."""
    splits_and_texts: list[tuple[Split, str]] = []
    for i in range(n):
        key, verb = ("key", "is") if i % 3 else ("keys", "are")
        split: Split = "test" if i % 11 == 0 else "validation" if i % 10 == 0 else "train"
        splits_and_texts.append((split, f"The old {key} of house {i} on hill {verb} lost."))
    return splits_and_texts


def test_rows_are_balanced_and_no_held_out_text_is_in_training() -> None:
    repeated: list[tuple[Split, str]] = [("train", text) for _, text in texts(40)]
    rows, _ = make_rows({"invented": texts(600), "again": repeated}, limit={"train": 300, "validation": 10, "test": 10})
    counts = {split: Counter(row.label for row in split_rows) for split, split_rows in rows.items()}
    assert all(part_counts[0] == part_counts[1] > 0 for part_counts in counts.values())
    assert len(rows["train"]) <= 300 and len(rows["test"]) <= 20
    held_out = {row.text for split in ("validation", "test") for row in rows[split]}
    train = [row.text.removesuffix(BLANK) for row in rows["train"]]
    assert len(set(train)) == len(train) and held_out.isdisjoint(train)
    assert 0 < sum(row.text.endswith(BLANK) for row in rows["train"]) < 0.15 * len(train)


def test_the_minimal_pairs_are_balanced_in_every_construction() -> None:
    pairs = minimal_pairs()
    assert len(pairs) == len({pair.text for pair in pairs}) == 200
    cells = Counter((pair.construction, pair.label, pair.is_attracted) for pair in pairs)
    for construction in ("prepositional phrase", "relative clause", "coordination"):
        assert len({cells[construction, label, attracted] for label in (0, 1) for attracted in (True, False)}) == 1
    key = next(pair for pair in pairs if pair.text == "The keys to the cabinet")
    assert key.label == 1 and key.is_attracted and key.roles == roles_of(key.text, NOUNS)
    son = next(pair for pair in pairs if pair.text == "The son and the daughter of the kings")
    assert son.label == 1 and not son.is_attracted
    assert [son.text[slice(*span)] for span in son.roles["singular noun"]] == ["son", "daughter"]


def test_rows_on_disk_are_read_back_and_opened_as_a_data_set(tmp_path: Path) -> None:
    rows, _ = make_rows({"invented": texts(300)}, limit={"train": 100, "validation": 10, "test": 10})
    write_agreement(tmp_path, rows, NOUNS)
    assert {split: read_rows(tmp_path, split) for split in rows} == rows
    dataset = open_agreement(tmp_path)
    assert dataset.splits == ("train", "validation", "test", "new")
    assert len(dataset.load("test")) == len(rows["test"]) and len(dataset.load("new")) == 200
    assert dataset.roles is not None
    assert len(dataset.roles("test")) == len(rows["test"]) and len(dataset.roles("new")) == 200
    with pytest.raises(DataError, match="txcls data agreement"):
        open_agreement(tmp_path / "nowhere")
    (tmp_path / "test.csv.gz").write_bytes(b"not gzip")
    with pytest.raises(DataError, match="not the rows of agreement"):
        dataset.load("test")
