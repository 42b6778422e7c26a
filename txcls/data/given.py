"""Labelled rows given from Python: checked as the rows of a table file are, and opened as a data set."""

from collections.abc import Iterable
from functools import partial

from txcls.data.classes import label_name, labelled
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, SplitName
from txcls.errors import DataError, listed
from txcls.text.given import given_texts, given_values, is_missing, place


def given_rows(
    texts: Iterable[str], labels: Iterable[object], *, classes: tuple[str, ...] | None = None, kind: str = ""
) -> LabelledTexts:
    """Labelled rows of any two iterables of the same length.

    A label is named as in a table: text without the whitespace around it, a whole number without a decimal point (3.0
    is "3"), True and False as "true" and "false", anything else as `str` writes it.

    Args:
        texts: strings; a list, tuple, array, pandas Series or other iterable.
        labels: of each text; any hashable value.
        classes: the class names; None for those among the labels, numbers by value and before other names.
        kind: of the rows, for messages: "validation " for example.

    Raises:
        TypeError: a text is no string, or a label is not hashable; the message has the row, counted from 0.
        ValueError: there are not as many labels as texts.
        DataError: a row has no text or no label, a label is not among `classes`, or there are no rows.
    """
    of_texts, of_labels = f"{kind}texts", f"{kind}labels"
    rows = given_texts(texts, name=of_texts)
    values = given_values(labels, name=of_labels)
    if len(rows) != len(values):
        raise ValueError(
            f"got {len(rows):,} {of_texts} and {len(values):,} {of_labels}; wanted one label for each text"
        )
    if not rows:
        raise DataError(f"got no {of_texts}; wanted texts and their labels")
    for row, text in enumerate(rows):
        if not text.strip():
            raise DataError(f"{place(texts, row, name=of_texts)} is empty; fill it in or leave the row out")
    names = [_name(value, place(labels, row, name=of_labels)) for row, value in enumerate(values)]
    for row, name in enumerate(names):
        if classes is not None and name not in classes:
            raise DataError(f"{place(labels, row, name=of_labels)} is {name!r:.60}; the classes are {listed(classes)}")
    return labelled(rows, names, classes)


def _name(value: object, where: str) -> str:
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()  # a NumPy number in a list
    if is_missing(value):
        raise DataError(f"{where}: no label; fill it in or leave the row out")
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"{where} is a {type(value).__name__}; wanted one label, such as a string or a number"
        ) from None
    if isinstance(value, bytes):
        raise TypeError(f"{where} is of bytes; wanted a string: decode it")
    if not (name := label_name(value)):
        raise DataError(f"{where}: no label; fill it in or leave the row out")
    return name


def given_dataset(
    rows: LabelledTexts,
    validation: LabelledTexts | None = None,
    *,
    source: str = "texts of your own, given from Python",
) -> Dataset:
    """Rows in memory as a data set, which `txcls.training.train` reads as it does a table of one's own.

    Args:
        rows: to train on.
        validation: to validate on; None holds some of `rows` out.
        source: what they are, in a few words.

    Raises:
        DataError: they are of fewer than two classes.
    """
    if len(rows.classes) < 2:
        raise DataError(f"all {len(rows):,} rows have the label {rows.classes[0]!r:.60}; wanted at least two classes")
    parts: dict[SplitName, LabelledTexts] = {"train": rows}
    if validation is not None:
        parts["validation"] = validation
    return Dataset(
        info=DatasetInfo(name="table", title=source),
        classes=rows.classes,
        source="the rows given",
        splits=tuple(parts),
        readers={split: partial(_same, part) for split, part in parts.items()},
    )


def _same(rows: LabelledTexts) -> LabelledTexts:
    return rows
