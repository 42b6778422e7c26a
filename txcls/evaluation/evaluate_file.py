"""Read the rows of a table file on which to evaluate a checkpoint: `evaluate CHECKPOINT --data other.csv`."""

from pathlib import Path
from typing import NamedTuple

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.comparison import Comparison, Measured, with_interval
from txcls.data.columns import is_number
from txcls.data.hashes import MIN_KNOWN, KnownShare, sketch
from txcls.data.html import are_html, html_note
from txcls.data.labelled import read_labelled
from txcls.data.splits import Splits, split_rows
from txcls.data.table import has_table_suffix
from txcls.data.types import LabelledTexts, rows_in_classes
from txcls.errors import DataError, Note, list_names, quote, sanitize
from txcls.evaluation.linear import is_refitted, sketch_of_training
from txcls.evaluation.metrics import wilson
from txcls.text.formatting import percentage

FAR_BELOW = 0.1
"""The accuracy on a file is far below that on held-out rows if it is lower by at least this."""


class FileRows(NamedTuple):
    """Rows of a file on which a checkpoint is evaluated.

    Attributes:
        notes, remarks: sentences on how the file was read, and on how far to trust results on these rows.
        about: a description of the rows.
        is_held_out: whether these are only the rows of the file that training held out.
        n_unknown: number of rows left out because the checkpoint does not know their class.
        share_trained_on: estimated share of the rows that the checkpoint was trained on.
        numbers: the number of each row in the file, (N,).
    """

    labelled: LabelledTexts
    notes: list[str]
    remarks: list[str]
    about: str
    is_held_out: bool
    n_unknown: int
    share_trained_on: float
    numbers: list[int]

    def metrics(self, accuracy: float) -> dict[str, float]:
        """Further metrics: held out, or the share trained on; the accuracy if unknown classes count as errors."""
        metrics: dict[str, float] = (
            {"held_out": True} if self.is_held_out else {"learned": round(self.share_trained_on, 4)}
        )
        if self.n_unknown:
            share = accuracy * len(self.labelled) / (len(self.labelled) + self.n_unknown)
            metrics |= {"accuracy_with_unknown": round(share, 6)}
        return metrics


def rows_of_file(
    checkpoint: Checkpoint,
    path: Path,
    *,
    sheet: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    is_linear: bool = False,
) -> FileRows:
    """All rows of a table file with labels that are classes of the checkpoint.

    If `train FILE` trained the checkpoint on these rows, only the rows held out for testing are returned, unless the
    Transformer (with `is_linear`: the linear model) was then trained again on all rows. The file is read like the one
    that the checkpoint was trained on, with the same sheet and columns unless others are given.

    Raises:
        DataError: the file cannot be read, or no row has a label that is one of the classes.
    """
    name, config = checkpoint.name, checkpoint.config.data
    columns = {"sheet": sheet, "text_column": text_column, "label_column": label_column}
    rows, guess = read_labelled(path, config, classes=checkpoint.classes, **columns)
    labelled = rows.labelled
    remarks: list[str] = [note for note in rows.notes if isinstance(note, Note) and note.code in ("left-out", "merged")]
    notes = [note for note in rows.notes if note not in remarks]
    notes += guess.sentences if guess.is_guessed else guess.hints
    refitted = is_refitted(checkpoint, is_linear=is_linear)
    if not refitted and (splits := _splits_in_training(checkpoint, labelled)) is not None:
        assert splits.test_rows is not None  # since the rows were held out
        numbers = [rows.numbers[row] for row in splits.test_rows]
        about = f"the {len(splits.test):,} rows of {path.name} that were held out from training"
        return FileRows(splits.test, notes, remarks, about, True, 0, 0.0, numbers)
    known, which = rows_in_classes(labelled, checkpoint.classes, match_normalised=True)
    n_unknown, usual = len(labelled) - len(known), config.label_column
    # Numbers prove little: a column of counts has many of them too.
    matched = {checkpoint.classes[label] for label in known.labels}
    is_doubtful = label_column is None and guess.label_column != usual and all(map(is_number, matched))
    if not len(known) or (n_unknown and is_doubtful):
        problem = f"none of its labels is a class of {name}" + f", which learned column {quote(usual)}" * bool(usual)
        if len(known):
            problem = f"no column {quote(usual or 'label')} with the labels"
        raise DataError(
            f"{path.name}: {problem}; if another column has the labels, choose it: column {quote(guess.label_column)} "
            f"has {list_names(labelled.classes, limit=5)}, and the classes are {list_names(checkpoint.classes)}",
            label_column="COLUMN",
        )
    if n_unknown:
        known_ids = {labelled.labels[row] for row in which}
        unknown = list_names(label for number, label in enumerate(labelled.classes) if number not in known_ids)
        remarks.append(f"{n_unknown:,} rows have labels that {name} does not know ({unknown}); they are left out.")
    if not config.strip_html and are_html(known.texts):
        remarks.append(html_note(config, checkpoint.tokenizer.config.cleaning))
    trained_on = KnownShare(sketch_of_training(checkpoint, is_linear=is_linear), known.texts)
    if trained_on.share >= MIN_KNOWN:
        remarks.append(f"{name} was trained on {trained_on}, so these results may be better than on new texts.")
    if refitted and round(trained_on.share, 3) and (stated := _stated(checkpoint, is_linear=is_linear)) is not None:
        remarks.append(
            f"Measured before it was trained on all rows: accuracy {with_interval(stated)} on held-out rows."
        )
    numbers = [rows.numbers[row] for row in which]
    about = f"{len(known):,} rows of {path.name}"
    return FileRows(known, notes, remarks, about, False, n_unknown, trained_on.share, numbers)


def far_below(checkpoint: Checkpoint, right: int, n: int, *, is_linear: bool = False) -> str:
    """A warning if the accuracy on a file (`right` of `n` rows) is far below that on the held-out rows; otherwise "".

    Far below: the accuracies differ by FAR_BELOW or more, and their 95 % intervals do not overlap.
    """
    stated = _stated(checkpoint, is_linear=is_linear)
    if stated is None or stated.value - right / n < FAR_BELOW or wilson(right, n).high >= stated.low:
        return ""
    return (
        f"Far below the {percentage(stated.value)} on held-out rows: this file's labels or texts are of another kind, "
        "and confidence thresholds chosen on those rows do not apply to it."
    )


def _stated(checkpoint: Checkpoint, *, is_linear: bool) -> Measured | None:
    """The accuracy on held-out rows; None if none is stored."""
    metrics = checkpoint.metrics
    if "comparison" in metrics:
        comparison = Comparison.from_dict(metrics["comparison"])
        return (comparison.linear if is_linear else comparison.transformer).accuracy
    measured = metrics.get("test") or metrics.get("validation")
    return wilson(measured["accuracy"] * measured["n"], measured["n"]) if measured else None


def _splits_in_training(checkpoint: Checkpoint, rows: LabelledTexts) -> Splits | None:
    """How `train FILE` split these rows; None if the checkpoint was trained on other rows, or none was held out."""
    data, config = checkpoint.metrics.get("data", {}), checkpoint.config
    is_split = "sketch" in data and "comparison" in checkpoint.metrics and not config.data.test_file
    if not is_split or rows.classes != checkpoint.classes:
        return None
    try:
        splits = split_rows(rows, None, seed=config.train.seed)
    except DataError:
        return None
    texts = [*splits.training.texts, *splits.validation.texts]
    if is_refitted(checkpoint, is_linear=False):  # then only the linear model has not seen the test rows
        texts += splits.test.texts
    return splits if sketch(texts) == data["sketch"] else None


def missing_file_error(checkpoint: Checkpoint) -> DataError:
    """The error if a checkpoint that was imported or trained on the user's own file is evaluated without a file."""
    if checkpoint.config.imported:
        return DataError(
            f"{checkpoint.name} was imported without texts; give --data, a file of labelled texts", data="FILE"
        )
    title = sanitize(checkpoint.metrics.get("data", {}).get("title", "your own file"), limit=80)
    name = sanitize(checkpoint.config.data.test_file or title, limit=80)
    tested = f" and tested on {name}" if checkpoint.config.data.test_file else ""
    is_here = has_table_suffix(name) and Path(name).is_file()
    return DataError(
        f"{checkpoint.name} was trained on {title}{tested}; --data reads its held-out rows or another file",
        data=name if is_here else "FILE",
    )
