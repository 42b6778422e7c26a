"""What the Report page computes: of test rows cached for all sessions, of a visitor's own rows for that one alone."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from txcls.app import compute
from txcls.app.compute import Source, shared
from txcls.app.limits import limits
from txcls.errors import DataError

if TYPE_CHECKING:
    from txcls.data.types import LabelledTexts
    from txcls.report import Answers, PeerAnswers, Report, SuspectRow

MOST_ROWS = 1_000
"""Rows that the page answers at most, a random choice where there are more."""
MOST_TRAINING_ROWS = 20_000
"""Training rows that the linear peer learns from at most."""
OnRows = Callable[[int, int], object]


def _size_of_report(found: "Report") -> int:
    answers = found.answers
    texts = 0 if answers is None else sum(4 * len(text) + 80 for text in answers.rows.texts)
    return texts + (0 if answers is None else answers.probabilities.nbytes) + 200_000


def stored(source: Source) -> "Report":
    """What the checkpoint's own files hold."""
    compute.import_what_computes()
    from txcls.report import stored_report

    return stored_report(compute.classifier(source).checkpoint)


def on_test_rows(source: Source, *, on_rows: OnRows) -> "Report":
    """Answers to the test rows on this machine, at most `MOST_ROWS` of them; DataError if there are none."""

    @shared(heavy=True, size=_size_of_report)
    def report_on_test_rows(source: Source, most: int) -> "Report":
        from txcls.report import report_on, some_rows

        rows = compute.test_texts(source).rows
        few = some_rows(rows, most=most)
        what = f"{len(few):,} test rows"
        if len(few) < len(rows):
            what = f"{len(few):,} of the {len(rows):,} test rows, drawn at random"
        return report_on(compute.classifier(source), few, rows_are=what, without_order=False, on_rows=on_rows)

    return report_on_test_rows(source, MOST_ROWS)


def on_own_table(source: Source, name: str, data: bytes, *, on_rows: OnRows) -> "tuple[Report, tuple[str, ...]]":
    """Answers to the rows of an uploaded table, and sentences on how it was read; kept nowhere.

    Raises:
        DataError: it cannot be read, has too many rows, or none whose label the classifier knows.
    """
    with compute.my_turn():
        from txcls.evaluation_file import rows_of_file
        from txcls.report import report_on, some_rows

        ready = compute.classifier(source)
        ending = (
            "".join(Path(name.lower()).suffixes[-2:]) if name.lower().endswith(".gz") else Path(name.lower()).suffix
        )
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"table{ending}"
            file.write_bytes(data)
            found = rows_of_file(ready.checkpoint, file)
        if len(found.rows) > limits().rows:
            raise DataError(f"{len(found.rows):,} rows; at most {limits().rows:,} are taken here: send a part of them")
        few = some_rows(found.rows, most=MOST_ROWS)
        what = f"{len(few):,} rows of {name[-60:]}"
        if len(few) < len(found.rows):
            what = f"{len(few):,} of the {len(found.rows):,} rows of {name[-60:]}, drawn at random"
        return report_on(ready, few, rows_are=what, on_rows=on_rows), found.notes


def why_no_rows(source: Source) -> str:
    """Why there are no test rows here, and what is therefore not shown; "" if there are."""
    from txcls.data.datasets import dataset_names, is_available

    dataset = compute.summary(source.name).dataset
    if compute.has_kept_rows(source) or (dataset in dataset_names() and is_available(dataset)):
        return ""
    how = "" if dataset not in dataset_names() else f" (`python -m txcls data fetch {dataset}`)"
    return (
        "The test texts of this classifier are not on this machine, and checkpoints do not contain them. Shown is "
        "what was measured on them and saved. Mistakes, doubtful labels and the linear peer need the "
        f"texts{how}, or a table of your own above."
    )


def training_rows(source: Source) -> "LabelledTexts":
    """The training rows of the checkpoint's data set, validation rows left out; DataError if they are not here."""
    from txcls.data.datasets import open_dataset
    from txcls.data.splits import training_and_validation

    config = compute.classifier(source).checkpoint.config.data
    return training_and_validation(open_dataset(config), config)[0]


@shared(heavy=True, size=lambda found: 8 * len(found.predicted) + 10_000)
def peer(source: Source) -> "PeerAnswers":
    """The linear peer on the rows of `on_test_rows`; DataError if the training rows are not on this machine."""
    from txcls.report import ask_peer

    answers = on_test_rows(source, on_rows=lambda done, total: None).answers
    assert answers is not None
    return ask_peer(answers, training_rows(source), most=MOST_TRAINING_ROWS)


def suspects(answers: "Answers", *, has_learned: bool, on_fold: OnRows) -> "list[SuspectRow]":
    """The rows whose label looks wrong; the classifier is not asked if it has learned from these rows.

    Raises:
        DataError: there are too few rows, or only one class.
    """
    with compute.my_turn():
        from txcls.report import held_out_probabilities, suspect_rows

        own = None if has_learned else answers.probabilities
        return suspect_rows(answers.rows, held_out_probabilities(answers.rows, own, on_fold=on_fold))
