from collections import deque

import numpy as np
import pandas as pd
import pytest

from txcls.text.checks import check_texts


@pytest.mark.parametrize(
    "texts",
    [
        ["a", "b"],
        ("a", "b"),
        deque(["a", "b"]),
        (text for text in "ab"),
        {"a": 1, "b": 2}.keys(),
        np.array(["a", "b"]),
        np.array(["a", "b"], dtype=object),
        np.array(["a", "b"], dtype=np.dtypes.StringDType()),
        pd.Series(["a", "b"], index=["x", "y"]),
        pd.Series(["a", "b"], dtype="category"),
        pd.Index(["a", "b"]),
        [np.str_("a"), np.str_("b")],
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_any_iterable_of_strings_is_accepted(texts: object) -> None:
    checked = check_texts(texts)
    assert checked == ["a", "b"] and {type(text) for text in checked} == {str}


@pytest.mark.parametrize(
    "texts, message",
    [
        ("one text", r"got one text \(str\); expected one value for each row, as a list or df"),
        (pd.DataFrame({"text": ["a"], "label": [1]}), r"\(DataFrame\); expected one value for each row"),
        ([None], r"texts: row 0 is None; expected a str"),
        (["a", 3], r"texts: row 1 is 3 \(int\)"),
        (pd.Series(["a", float("nan")], index=["x", "y"]), r"row 1 \(index 'y'\) is nan \(float\).*fill it in"),
        (pd.Series(["a", pd.NA], dtype="string"), r"row 1 \(index 1\) is <NA> \(NAType\).*fill it in"),
        ({"a": 1}, r"got \{'a': 1\} \(dict\)"),
        ({"a"}, r"got \{'a'\} \(set\)"),
        (b"abc", r"got b'abc' \(bytes\)"),
        (3, r"got 3 \(int\)"),
        (None, r"got None; expected one value for each row"),
        (np.array("a"), r"got a \(ndarray\)"),
        (np.array([["a"]]), r"\(ndarray\); expected one value for each row"),
        ([["a"]], r"row 0 is \['a'\] \(list\)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_are_not_texts_are_refused(texts: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        check_texts(texts)
