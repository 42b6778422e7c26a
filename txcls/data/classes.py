"""Labelled rows in the class order of a model."""

from txcls.data.types import LabelledTexts
from txcls.errors import DataError


def in_classes_of(rows: LabelledTexts, classes: tuple[str, ...], *, name: str) -> LabelledTexts:
    """The same rows with their labels as indices into these classes.

    Args:
        rows: labelled in the data set's own order of classes.
        classes: those of a model.
        name: of the model, for the error.

    Raises:
        DataError: the rows have classes that the model has not.
    """
    if rows.classes == classes:
        return rows
    if unknown := sorted(set(rows.classes) - set(classes)):
        raise DataError(
            f"the data have classes that {name} does not know: {', '.join(unknown[:5])}; it knows {', '.join(classes)}"
        )
    place = {label: index for index, label in enumerate(classes)}
    return LabelledTexts(rows.texts, [place[rows.classes[label]] for label in rows.labels], classes)
