"""Texts given from Python: either the correct result, or a TypeError that names the row and its value."""

import math
from collections import deque
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from txcls.text.given import given_text, given_texts, is_missing

ANYTHING = st.one_of(
    st.text(max_size=20),
    st.none(),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.binary(max_size=5),
    st.lists(st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.sampled_from([np.str_("numpy"), np.float64("nan"), np.int64(3), pd.NA, pd.NaT, object(), str, ...]),
)


@pytest.mark.parametrize(
    "texts",
    [
        ["a", "b"],
        ("a", "b"),
        deque(["a", "b"]),
        (one for one in "ab"),
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
    plain = given_texts(texts)
    assert plain == ["a", "b"] and {type(text) for text in plain} == {str}


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
        given_texts(texts)


@settings(max_examples=300, deadline=None)
@given(values=st.lists(ANYTHING, max_size=6))
def test_the_row_of_the_first_wrong_value_is_named(values: list[object]) -> None:
    wrong = [row for row, value in enumerate(values) if not isinstance(value, str)]
    for texts in (values, iter(values), pd.Series(values, dtype=object)):
        if not wrong:
            assert given_texts(texts) == values
            continue
        with pytest.raises(TypeError, match=rf"^column 'x': row {wrong[0]}\b") as raised:
            given_texts(texts, name="column 'x'")
        assert len(str(raised.value)) < 200


@settings(max_examples=300, deadline=None)
@given(value=ANYTHING)
def test_arbitrary_values_are_accepted_or_raise_a_type_error(value: object) -> None:
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        assert given_texts(value) == value
    else:
        with pytest.raises(TypeError, match=r"^texts: "):
            given_texts(value)
    if isinstance(value, str):
        assert given_text(value) == value
    else:
        with pytest.raises(TypeError, match="expected one text"):
            given_text(value)


def test_missing_values_are_those_of_pandas() -> None:
    gaps = [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT]
    assert all(map(is_missing, gaps)) and all(map(pd.isna, gaps))
    assert not any(map(is_missing, ["", "nan", 0, False, math.inf, [], SimpleNamespace()]))
