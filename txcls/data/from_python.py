"""Labelled rows passed from Python, checked like the rows of a table file, and as a data set."""

from collections.abc import Iterable

import numpy as np

from txcls.data.labels import label_name
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, SplitName, labelled_texts
from txcls.errors import DataError, list_names
from txcls.text.checks import check_column, check_texts, is_missing, row_name


def rows_from_python(
    texts: Iterable[str], labels: Iterable[object], *, classes: tuple[str, ...] | None = None, kind: str = ""
) -> LabelledTexts:
    """Labelled rows from two iterables of the same length; `label_name` gives the class name of each label.

    The default for `classes` is all class names among the labels. `kind` describes the rows in messages.

    Raises:
        TypeError: a text is not a string, or a label is a list or bytes; the message gives the row number, from 0.
        ValueError: texts and labels differ in number.
        DataError: a row has no text or no label, a label is not among `classes`, or there are no rows.
    """
    text_kind, label_kind = f"{kind}texts", f"{kind}labels"
    checked_texts = check_texts(texts, name=text_kind)
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "M":
        labels = list(labels)  # tolist() of nanoseconds would be numbers
    values = check_column(labels, name=label_kind)
    if len(checked_texts) != len(values):
        raise ValueError(
            f"got {len(checked_texts):,} {text_kind} and {len(values):,} {label_kind}; expected one label for each text"
        )
    if not checked_texts:
        raise DataError(f"got no {text_kind}; expected texts and their labels")
    for row, text in enumerate(checked_texts):
        if not text.strip():
            raise DataError(f"{row_name(texts, row, name=text_kind)} is empty; fill it in or leave the row out")
    names = [_class_name(value, row_name(labels, row, name=label_kind)) for row, value in enumerate(values)]
    for row, name in enumerate(names):
        if classes is not None and name not in classes:
            where = row_name(labels, row, name=label_kind)
            raise DataError(f"{where} is {name!r:.60}; the classes are {list_names(classes)}")
    return labelled_texts(checked_texts, names, classes)


def _class_name(value: object, where: str) -> str:
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")  # item() of nanoseconds would be a number
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()  # a NumPy scalar
    if isinstance(value, bytes | list | dict | set):
        raise TypeError(f"{where} is a {type(value).__name__}; expected one label, such as a string or a number")
    if is_missing(value) or not (name := label_name(value)):
        raise DataError(f"{where}: no label; fill it in or leave the row out")
    return name


def dataset_from_rows(
    rows: LabelledTexts,
    validation: LabelledTexts | None = None,
    *,
    source: str = "your own texts, passed from Python",
) -> Dataset:
    """A data set of rows in memory; without `validation`, training holds out some of `rows`.

    Raises:
        DataError: the rows have fewer than two classes.
    """
    if len(rows.classes) < 2:
        raise DataError(f"all {len(rows):,} rows have the label {rows.classes[0]!r:.60}; expected at least two classes")
    splits: dict[SplitName, LabelledTexts] = {"train": rows}
    if validation is not None:
        splits["validation"] = validation
    info = DatasetInfo(name="table", title=source)
    return Dataset(info, rows.classes, "rows passed from Python", tuple(splits), read=splits.__getitem__)
