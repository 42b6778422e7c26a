"""The columns of a file that a checkpoint is measured on."""

from pathlib import Path

from tests.conftest import make_checkpoint
from txcls.evaluation.evaluate_file import rows_of_file


def test_the_column_that_holds_the_classes_has_the_labels(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "tiny")
    first, second = checkpoint.classes[:2]
    file = tmp_path / "other.csv"
    rows = [("web", f"some words number {n}", (first, second.upper(), "unheard of")[n % 3]) for n in range(30)]
    file.write_text("chnl,what they wrote,queue\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    labelled, notes, *_ = rows_of_file(checkpoint, file)
    assert len(labelled) == 20 and set(labelled.labels) == {0, 1}
    assert labelled.texts[0] == "some words number 0"
    assert any("10 rows have labels" in note for note in notes)
