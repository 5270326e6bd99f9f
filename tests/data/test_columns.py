"""Columns become features: numbers, booleans and treatment codes, for the table and for new rows alike."""

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_tables import islands, table

from bayes_gda.data.columns import Column, Encoding
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError

nan = np.nan


# -- what a column holds -----------------------------------------------------------------------------------------------


def test_from_frame_codes_treatments_with_the_first_level_as_reference():
    data = Dataset.from_frame(islands(), target="species")
    assert data.feature_names == ("mass", "island[Dream]", "island[Torgersen]", "tagged", "count")
    np.testing.assert_array_equal(data.X[:, 1], [1, 0, 0, 1, 0, 0])
    np.testing.assert_array_equal(data.X[:, 2], [0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(data.X[:, 3], [1, 0, 1, 1, 0, 0])
    np.testing.assert_array_equal(data.X[:, 4], [1, 2, 3, 4, 5, 60])
    assert data.class_names == ("Adelie", "Gentoo")
    assert data.encoding == Encoding(
        (
            Column("mass", "numeric"),
            Column("island", "categorical", ("Biscoe", "Dream", "Torgersen")),
            Column("tagged", "boolean"),
            Column("count", "numeric"),
        )
    )


def test_a_declared_order_of_levels_is_kept_and_unused_levels_dropped():
    size = pd.Categorical(["small", "large", "small", "large"], categories=["small", "medium", "large"])
    data = Dataset.from_frame(table(size=size), target="y")
    assert data.encoding.columns[0].levels == ("small", "large")
    assert data.feature_names[0] == "size[large]"


def test_categorical_takes_numbers_as_levels():
    data = Dataset.from_frame(table(zone=[10, 9, nan, 9]), target="y", categorical=["zone"], missing="keep")
    assert data.feature_names[0] == "zone[10]"
    np.testing.assert_array_equal(data.X[:, 0], [1, 0, nan, 0])


def test_nullable_columns_keep_their_gaps():
    df = table(
        a=pd.array([1, None, 3, 4], dtype="Int64"),
        b=pd.array([True, None, False, True], dtype="boolean"),
        c=pd.array(["p", None, "q", "p"], dtype="string"),
        d=pd.Series([True, None, False, True], dtype=object),
        e=[Decimal("1.5"), None, Decimal(2), Decimal(3)],
        f=pd.array([1.5, None, 3, 4], dtype="double[pyarrow]"),
    )
    data = Dataset.from_frame(df, target="y", missing="keep")
    assert data.feature_names == ("a", "b", "c[q]", "d", "e", "f", "fine")
    assert data.has_missing
    np.testing.assert_array_equal(data.X[0], [1, 1, 0, 1, 1.5, 1.5, 1])
    np.testing.assert_array_equal(data.X[1], [nan] * 6 + [2])
    np.testing.assert_array_equal(data.X[2], [3, 0, 1, 0, 2, 3, 3])


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        (["1", "2.5", " 3 ", "1e3"], ("a",)),  # every one is a number
        (["p", "q", "p", "q"], ("a[q]",)),  # none is
        (["1", "q", "p", "q"], ("a[p]", "a[q]")),  # fewer than half are
        (["1_0", "2_0", "1_0", "1_0"], ("a[2_0]",)),  # Python's numbers, but no table's
    ],
)
def test_text_columns_are_read_by_their_values(cells, names):
    assert Dataset.from_frame(table(a=cells), target="y").feature_names == (*names, "fine")


@pytest.mark.parametrize("dtype", [float, "Float64", "double[pyarrow]"])
def test_both_zeros_are_one_level(dtype):
    df = table(a=pd.Series([0.0, -0.0, 1.0, 1.0], dtype=dtype))
    assert Dataset.from_frame(df, target="y", categorical=["a"]).feature_names[0] == "a[1]"


def test_huge_numbers_are_numbers():
    assert Dataset.from_frame(table(a=[1e300, -1e300, 1, 2]), target="y").X[0, 0] == 1e300
    with pytest.raises(DataError, match="Column 'a' is constant"):
        Dataset.from_frame(table(a=[1e300] * 4), target="y")


@pytest.mark.parametrize("dtype", ["Float64", "double[pyarrow]"])
def test_nan_in_a_nullable_column_is_missing(dtype):
    cells = pd.Series([1.0, 0.0, 0.0, 2.0], dtype=dtype)
    cells = cells / cells.where(cells != 0, 0.0)  # 0/0 is NaN, which pandas does not count as missing here
    with pytest.raises(DataError, match=r"Missing values in 'a' \(2\)"):
        Dataset.from_frame(table(a=cells), target="y")


def test_lists_are_no_levels():
    with pytest.raises(DataError, match="Column 'a' has a label of type list"):
        Dataset.from_frame(table(a=[[1], [2], [1], [2]]), target="y", categorical=["a"])
    data = Dataset.from_frame(table(a=["p", "q", "p", "q"]), target="y")
    with pytest.raises(DataError, match=r"Level \[1\] of column 'a' \(row 2\) is unknown"):
        data.encode(table(a=["p", [1], "p", "q"]))


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([7, 7, 7, 7], "Column 'a' is constant (7 in all 4 rows). Drop the column."),
        (["p", "p", None, "p"], "Column 'a' is constant ('p' in all 3 rows)."),
        ([True, True, True, None], "Column 'a' is constant (1 in all 3 rows)."),
        ([None, None, None, None], "Column 'a' has no values: all 4 rows are missing."),
        (["p", "q", "r", "s"], "Column 'a' has as many levels as rows (4), like an identifier. Drop the column."),
        (["1", "x", "3", "x"], "Column 'a' is numeric in 2 of 4 rows, but row 2 holds 'x'."),
        (
            [1, 2, "x", 4],
            "row 3 holds 'x'. Correct it, leave the cell empty if the value is missing, or pass categorical=['a']",
        ),
        ([1, np.inf, 3, -np.inf], "Infinite values, or numbers too large for float64, in 'a' (2); correct or drop"),
        ([1, 2, 3, 10**400], "too large for float64, in 'a' (1)"),
        (np.array([1, 2, 3, np.longdouble("1e400")]), "too large for float64, in 'a' (1)"),
        ([1j, 2, 3, 4], "Column 'a' holds complex numbers"),
        ([1j, "p", 3, 4], "Column 'a' holds the type complex in row 1"),
        ([[1], [2], [3], [4]], "Column 'a' holds the type list in row 1"),
        ([True, "p", True, "p"], "Column 'a' mixes booleans (True) and text ('p')"),
        (pd.date_range("2024-01-01", periods=4), "Column 'a' holds dates or times (datetime64"),
        (pd.date_range("2024-01-01", periods=4, tz="UTC"), "Column 'a' holds dates or times (datetime64"),
        (list(pd.date_range("2024-01-01", periods=4).date), "Column 'a' holds dates or times (date)"),
        (pd.to_timedelta([1, 2, 3, 4], unit="D"), "Column 'a' holds dates or times (timedelta64"),
        (pd.period_range("2024-01", periods=4, freq="M"), "Column 'a' holds dates or times (period[M])"),
        (pd.cut([1, 2, 3, 4], 2), "Column 'a' has a label of type Interval"),
    ],
)
def test_bad_column(cells, message):
    with pytest.raises(DataError, match=re.escape(message)) as e:
        Dataset.from_frame(table(a=cells), target="y", missing="keep")
    assert "\n" not in str(e.value)


# -- new rows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [object, "str", "string", "category"])
def test_new_rows_are_encoded_alike_whatever_their_order_and_dtype(dtype):
    df = islands()
    data = Dataset.from_frame(df, target="species")
    new = df.astype({"island": dtype})[["count", "tagged", "island", "mass"]].assign(extra="ignored")
    np.testing.assert_array_equal(data.encode(new), data.X)
    np.testing.assert_array_equal(data.encode(new.iloc[[2]]), data.X[[2]])
    assert data.encode(new.iloc[:0]).shape == (0, 5)


def test_new_rows_may_lack_values_if_asked():
    data = Dataset.from_frame(islands(), target="species")
    new = pd.DataFrame({"mass": [None], "island": [None], "tagged": [None], "count": [3]})
    np.testing.assert_array_equal(data.encode(new, missing="keep"), [[nan, nan, nan, nan, 3]])
    with pytest.raises(
        DataError, match=r"Missing values in 'mass' \(1\), 'island' \(1\), 'tagged' \(1\); fill them in"
    ):
        data.encode(new)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"island": "Dreem"},
            "Level 'Dreem' of column 'island' (row 1) is unknown; the known levels are 'Biscoe', 'Dream'",
        ),
        ({"mass": "heavy"}, "Column 'mass' is numeric; got 'heavy' in row 1. Correct the new rows."),
        ({"mass": True}, "Column 'mass' is numeric; got True in row 1."),
        ({"tagged": 2}, "Column 'tagged' is boolean; got 2 in row 1."),
        ({"mass": np.inf}, "Infinite values, or numbers too large for float64, in 'mass' (6)"),
    ],
)
def test_new_rows_of_another_kind(change, message):
    data = Dataset.from_frame(islands(), target="species")
    with pytest.raises(DataError, match=re.escape(message)):
        data.encode(islands().assign(**change))


def test_new_rows_without_a_column():
    data = Dataset.from_frame(islands(), target="species")
    with pytest.raises(DataError, match=r"no column 'island'\. Did you mean 'Island'\?"):
        data.encode(islands().rename(columns={"island": "Island"}))
    with pytest.raises(DataError, match=r"no column 'mass'\. The columns are 'island', 'tagged', 'count', 'species'"):
        data.encode(islands().drop(columns="mass"))


def test_new_rows_are_never_dropped():
    data = Dataset.from_frame(islands(), target="species")
    with pytest.raises(DataError, match='`missing` must be "error" or "keep" for new rows; got \'drop\''):
        data.encode(islands(), missing="drop")


def test_booleans_may_return_as_zero_and_one():
    data = Dataset.from_frame(islands(), target="species")
    np.testing.assert_array_equal(data.encode(islands().astype({"tagged": int})), data.X)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(-1e6, 1e6) | st.none(), st.sampled_from(["p", "q", "r"]) | st.none(), st.booleans()),
        min_size=1,
        max_size=20,
    )
)
def test_encoding_its_own_rows_gives_the_same_features(cells):
    anchors = [(0.0, "p", True), (1.0, "q", False), (2.0, "p", True)]  # so that no column is constant
    df = pd.DataFrame([*anchors, *cells], columns=["a", "b", "c"])
    df["y"] = [i % 2 for i in range(len(df))]
    data = Dataset.from_frame(df, target="y", missing="keep")
    np.testing.assert_array_equal(data.encode(df.iloc[:, ::-1], missing="keep"), data.X)
    np.testing.assert_array_equal(Dataset.from_frame(df, target="y", missing="drop").X[:, 0], df.dropna()["a"])
