"""Labelled rows from Python, checked like the rows of a table file and opened as a data set."""

from collections.abc import Iterable

from txcls.data.classes import label_name, labelled_texts
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, SplitName
from txcls.errors import DataError
from txcls.text.checks import check_column, check_texts, is_missing, place
from txcls.wording import listed


def rows_from_python(
    texts: Iterable[str], labels: Iterable[object], *, classes: tuple[str, ...] | None = None, kind: str = ""
) -> LabelledTexts:
    """Labelled rows from any two iterables of the same length; labels are named by `label_name`.

    `classes` are the class names; None takes those among the labels. `kind` describes the rows in messages.

    Raises:
        TypeError: a text is not a string, or a label is a list or bytes; the message gives the row, counted from 0.
        ValueError: texts and labels differ in number.
        DataError: a row has no text or no label, a label is not among `classes`, or there are no rows.
    """
    of_texts, of_labels = f"{kind}texts", f"{kind}labels"
    rows = check_texts(texts, name=of_texts)
    values = check_column(labels, name=of_labels)
    if len(rows) != len(values):
        raise ValueError(
            f"got {len(rows):,} {of_texts} and {len(values):,} {of_labels}; expected one label for each text"
        )
    if not rows:
        raise DataError(f"got no {of_texts}; expected texts and their labels")
    for row, text in enumerate(rows):
        if not text.strip():
            raise DataError(f"{place(texts, row, name=of_texts)} is empty; fill it in or leave the row out")
    names = [_name(value, place(labels, row, name=of_labels)) for row, value in enumerate(values)]
    for row, name in enumerate(names):
        if classes is not None and name not in classes:
            raise DataError(f"{place(labels, row, name=of_labels)} is {name!r:.60}; the classes are {listed(classes)}")
    return labelled_texts(rows, names, classes)


def _name(value: object, where: str) -> str:
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()  # a NumPy number in a list
    if isinstance(value, bytes | list | dict | set):
        raise TypeError(f"{where} is a {type(value).__name__}; expected one label, such as a string or a number")
    if is_missing(value) or not (name := label_name(value)):
        raise DataError(f"{where}: no label; fill it in or leave the row out")
    return name


def dataset_from_rows(
    rows: LabelledTexts,
    validation: LabelledTexts | None = None,
    *,
    source: str = "texts of your own, given from Python",
) -> Dataset:
    """Rows in memory as a data set; without `validation`, training holds out some of `rows`.

    Raises:
        DataError: the rows have fewer than two classes.
    """
    if len(rows.classes) < 2:
        raise DataError(f"all {len(rows):,} rows have the label {rows.classes[0]!r:.60}; expected at least two classes")
    parts: dict[SplitName, LabelledTexts] = {"train": rows}
    if validation is not None:
        parts["validation"] = validation
    info = DatasetInfo(name="table", title=source)
    return Dataset(info, rows.classes, "the rows given", tuple(parts), read=parts.__getitem__)
