from collections.abc import Mapping

import numpy as np
import pytest

from tests.data.spellings import OWN_CLASSES, SPELLINGS, Proposals
from txcls.data.labelled import notes_before_training
from txcls.data.labels import (
    label_notes,
    label_separator,
    label_variants,
    merged_names,
    placeholders,
)
from txcls.data.types import labelled_texts
from txcls.errors import Note
from txcls.training.plan import share_not_english


def test_variants_and_placeholders_are_found() -> None:
    counts = {"TRUE": 3, "true": 5, "A b": 1, "a  B": 2, "c": 4, "-": 1, "N/A": 2}
    assert placeholders(counts) == ["-", "N/A"] and placeholders({"+": 1, "-": 1, "0": 2}) == []
    assert merged_names(counts) == {"TRUE": "true", "A b": "a  B", "-": "", "N/A": ""}
    note = next(label_notes(counts))
    assert "'TRUE' (3) and 'true' (5)" in note and note.options == {"merge_labels": True}
    assert not list(label_notes({"x": 2, "y": 2}))
    merged, _ = label_notes({"Sport": 9, "sport": 4, "SPORT": 3, "Sports": 1, "-": 1}, merged=True)
    assert merged == "Labels merged: 'sport' (4), 'SPORT' (3), 'Sports' (1) as 'Sport' (9)."
    assert isinstance(merged, Note) and merged.brief == "Labels merged: 3 (8 rows), such as 'sport' as 'Sport'."


@pytest.mark.parametrize("counts, expected", [*SPELLINGS, *((counts, []) for counts in OWN_CLASSES)])
def test_the_spellings_of_a_class_are_those_that_the_playground_proposes(
    counts: Mapping[str, int], expected: Proposals
) -> None:
    assert label_variants(counts) == {name: to for names, to in expected for name in names}


@pytest.mark.parametrize(
    "counts, separator",
    [
        ({"a;b": 8, "a": 8, "b": 8}, ";"),
        ({"red, blue": 3, "blue, green": 3, "green, red": 3}, ","),
        ({"a; b": 24}, ";"),
        ({"x|y": 1, "x": 50, "y": 50}, ""),
        ({"News, sport": 9, "Arts, music": 9}, ""),
        ({"a": 9, "b": 9}, ""),
    ],
)
def test_cells_with_several_labels_are_recognised(counts: dict[str, int], separator: str) -> None:
    assert label_separator(counts) == separator
    assert any("several labels" in note for note in label_notes(counts)) == bool(separator)


def test_texts_that_begin_with_their_label_are_noted() -> None:
    names = ["Surgery", "Urology"] * 20
    texts = [f"{name.lower()}, a note about patient {n}" for n, name in enumerate(names)]
    for written in (texts, [f"first words {n}\n{text}" for n, text in enumerate(texts)]):
        [note] = notes_before_training(labelled_texts(written, names))
        assert note.startswith("Remove the label from the texts unless new ones have it too: 100"), "advice first"
    assert not list(notes_before_training(labelled_texts([*texts[:10], *(f"a {text}" for text in texts[10:])], names)))


def test_the_share_of_texts_that_are_not_english_is_measured_by_text() -> None:
    english = ["this is the first of the letters that we have had from you"] * 70
    german = ["die Rechnung ist falsch und ich bitte um eine neue Rechnung"] * 30
    notes = ["bunionectomy, left foot, biopro implant, screw fixation, second metatarsal head, exostectomy"] * 30

    def share(texts: list[str], token_bytes: float) -> float:
        return share_not_english(texts, np.full(len(texts), token_bytes))

    assert share([*english, *german], 2.4) == 0.3 and share(english, 2.4) == share(english, 4.0) == 0
    assert share([*english, *notes], 2.4) == 0.3 and share([*english, *notes], 3.9) == 0
    assert share(["Rechnung falsch"] * 120, 2.4) == 1 and share(["Rechnung falsch"] * 120, 4.0) == 0
    assert share(["Rechnung falsch"] * 9, 2.4) == 0
