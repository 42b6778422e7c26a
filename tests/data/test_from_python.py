import enum
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from txcls.config import DataConfig
from txcls.data.labelled import read_labelled, rows_from_python
from txcls.errors import DataError


class Mood(enum.Enum):
    GOOD = 1


@pytest.mark.parametrize(
    "labels, classes",
    [
        (["b", "a", "b"], ("a", "b")),
        ([10.0, 9.5, 9.0], ("9", "10", "9.5")),
        (np.array([True, False, True]), ("false", "true")),
        ([np.bool_(True), np.int64(3), np.float32(2.0)], ("2", "3", "true")),
        (["TRUE", True, "False"], ("false", "true")),
        (np.array(["2020-01-31", "2021-01-31", "2020-01-31"], dtype="datetime64[ns]"), ("2020-01-31", "2021-01-31")),
        (
            [np.datetime64("2020-01-31T12:30", "ns"), pd.Timestamp("2020-01-31"), "2020-01-31 00:00:00"],
            ("2020-01-31", "2020-01-31 12:30:00"),
        ),
        (pd.Series([2, 1, 2], index=list("xyz")), ("1", "2")),
        (pd.Series(["b", " a", "a "], dtype="category"), ("a", "b")),
        ([Mood.GOOD, ("x", 1), "b"], ("('x', 1)", "Mood.GOOD", "b")),
    ],
    ids=str,
)
def test_class_names_do_not_depend_on_the_type_of_the_labels(labels: object, classes: tuple[str, ...]) -> None:
    rows = rows_from_python(["one", "two", "three"], labels)  # type: ignore[arg-type]
    assert rows.classes == classes and len(rows) == 3


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet", "jsonl"])
def test_class_names_of_yes_and_no_and_of_dates_do_not_depend_on_the_format(tmp_path: Path, suffix: str) -> None:
    texts = [f"some words number {n}" for n in range(6)]
    for labels in ([True, False, True] * 2, [pd.Timestamp(2020 + n % 2, 1, 31) for n in range(6)]):
        frame, file = pd.DataFrame({"text": texts, "label": labels}), tmp_path / f"rows.{suffix}"
        if suffix == "csv":
            frame.astype({"label": str}).replace({"True": "TRUE", "False": "FALSE"}).to_csv(file, index=False)
        elif suffix == "jsonl":
            frame.to_json(file, orient="records", lines=True, date_format="iso")
        else:
            (frame.to_excel if suffix == "xlsx" else frame.to_parquet)(file, index=False)
        rows, _ = read_labelled(file, DataConfig(dataset="table", text_column="text", label_column="label"))
        expected = rows_from_python(frame["text"], frame["label"])
        assert rows.labelled == expected == rows_from_python(texts, frame["label"].to_numpy())
        assert expected.classes in (("false", "true"), ("2020-01-31", "2021-01-31"))


@pytest.mark.parametrize(
    "texts, labels, error, message",
    [
        (["a", "b"], ["x"], ValueError, r"got 2 texts and 1 labels"),
        (["a", None], ["x", "y"], TypeError, r"texts: row 1 is None"),
        (["a", " \n"], ["x", "y"], DataError, r"texts: row 1 is empty"),
        (["a", "b"], ["x", None], DataError, r"labels: row 1: no label"),
        (["a", "b"], pd.Series([1.0, np.nan], index=["p", "q"]), DataError, r"labels: row 1 \(index 'q'\): no label"),
        (["a", "b"], ["x", ["y"]], TypeError, r"labels: row 1 is a list"),
        (["a", "b"], "xy", TypeError, r"labels: got xy \(str\)"),
        (pd.DataFrame({"t": ["a"]}), ["x"], TypeError, r"texts: got .* \(DataFrame\)"),
        ([], [], DataError, r"got no texts"),
    ],
    ids=str,
)
def test_wrong_rows_are_refused_with_their_number(texts: object, labels: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        rows_from_python(texts, labels)  # type: ignore[arg-type]
