"""Labels become classes: their kind, their order, what can be no class, and how rows are shared between parts."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_tables import islands, sixty_rows, table

from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError

nan = np.nan


@pytest.fixture
def rows():
    return sixty_rows()


# -- labels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "names"),
    [
        ([10, 9, 10], (9, 10)),
        (np.array([True, False, True]), (False, True)),
        (["b", "a", "b"], ("a", "b")),
        (np.array(["b", "a", "b"]), ("a", "b")),
        (np.array([2.0, 1.0, 2.0]), (1, 2)),
        (np.array([2, -1, 2], dtype=np.int8), (-1, 2)),
        (pd.Series(pd.Categorical(["lo", "hi", "lo"], categories=["lo", "mid", "hi"])), ("lo", "hi")),
        (pd.Categorical(["lo", "hi", "lo"], categories=["lo", "mid", "hi"]), ("lo", "hi")),
        (pd.array([3, 2, 3], dtype="Int64"), (2, 3)),
        (pd.array([True, False, True], dtype="boolean"), (False, True)),
        (pd.array(["b", "a", "b"], dtype="string"), ("a", "b")),
    ],
)
def test_labels_keep_their_kind_and_order(y, names):
    data = Dataset.from_arrays([[1], [2], [4]], y)
    assert data.class_names == names
    assert [type(name) for name in data.class_names] == [type(name) for name in names]
    assert [data.class_names[k] for k in data.y] == list(y)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8", "f4", "f8", object])
def test_integer_labels_of_any_range(dtype):
    y = np.array([100, 3, 100, 3, 7], dtype=dtype)
    far = np.array([-128, 127, -128, 127, 0] * 60, dtype="i1")  # whose range i1 cannot hold
    assert Dataset.from_arrays([[1], [2], [4], [5], [6]], y).class_names == (3, 7, 100)
    data = Dataset.from_arrays(np.arange(300.0)[:, None], far)
    assert data.class_names == (-128, 0, 127)
    assert [data.class_names[k] for k in data.y] == far.tolist()


def test_new_labels_may_be_of_another_dtype():
    df = islands().assign(species=[2, 1, 1, 2, 2, 1])
    data = Dataset.from_frame(df, target="species")
    for dtype in (float, object, "Int64", "category"):
        assert data.encode_labelled(df.astype({"species": dtype}), target="species") == data


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["u", "u", "u", "u"], "Target 'y' has only one class, 'u'; a classifier needs at least two."),
        (["u", "v", "w", "x"], "Target 'y' has as many classes as rows (4), like an identifier or a measurement."),
        ([0.5, 1.5, 0.5, 1.5], "Target 'y' looks continuous: 0.5 is not a whole number."),
        (["u", None, "v", None], "Target 'y' is missing in 2 rows; fill in the labels, or pass missing=\"drop\"."),
        ([1, nan, 2, 2], "Target 'y' is missing in 1 row;"),
        (pd.array([1, None, 2, 2], dtype="Int64"), "Target 'y' is missing in 1 row;"),
        (pd.array([True, None, False, True], dtype="boolean"), "Target 'y' is missing in 1 row;"),
        (pd.Categorical(["u", None, "v", "u"]), "Target 'y' is missing in 1 row;"),
        (pd.Series(["u", 1, "u", 1], dtype=object), "Target 'y' mixes text ('u') and numbers (1); convert all"),
        (pd.Series([True, 1, True, 1], dtype=object), "Target 'y' mixes booleans (True) and numbers (1)"),
        (pd.date_range("2024-01-01", periods=4), "Target 'y' holds dates or times (datetime64"),
        (pd.cut([1, 2, 3, 4], 2), "Target 'y' has a label of type Interval"),
    ],
)
@pytest.mark.parametrize("missing", ["error", "keep"])
def test_bad_target(labels, message, missing):
    with pytest.raises(DataError, match=re.escape(message)):
        Dataset.from_frame(table().assign(y=labels), target="y", missing=missing)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0], [1], [1]], "`y` must be 1-d; got shape (3, 1). Use np.ravel(y) for a single column."),
        (["a", 1, "a"], "`y` mixes text ('a') and numbers (1)"),
        (["a", None, "b"], "`y` is missing in 1 row;"),
        (["a", pd.NA, "b"], "`y` is missing in 1 row;"),
        (np.ma.masked_equal([0, 1, 2], 2), "`y` is missing in 1 row;"),
        ([0.0, nan, 1.0], "`y` is missing in 1 row;"),
        (np.array([0, nan, 1], dtype=np.float32), "`y` is missing in 1 row;"),
        ([0.1, 0.2, 0.2], "`y` looks continuous: 0.1 is not a whole number"),
        ([0, 0, 0], "`y` has only one class, 0;"),
        ([0, 1, 2], "`y` has as many classes as rows (3)"),
        (np.array(["2024", "2025", "2025"], dtype="datetime64[ns]"), "`y` holds dates or times (datetime64[ns])"),
        (np.array([b"a", b"b", b"b"]), "`y` has a label of type bytes"),
        ([0j, 1j, 1j], "`y` has a label of type complex"),
    ],
)
def test_bad_labels(y, message):
    with pytest.raises(DataError, match=re.escape(message)):
        Dataset.from_arrays([[1], [2], [3]], y)


# -- stratified splits -------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(2, 40), min_size=2, max_size=6), st.data())
def test_split_shares_are_within_one_row_of_the_quota(counts, draw):
    n, K = sum(counts), len(counts)
    n_test = draw.draw(st.integers(K, n - K))
    data = Dataset(np.arange(n)[:, None], np.repeat(np.arange(K), counts), ("a",), tuple(range(K)))
    train, test = data.split(n_test)
    assert test.n == n_test
    assert (train.class_counts + test.class_counts).tolist() == counts
    assert min(*train.class_counts, *test.class_counts) >= 1
    quota = n_test * np.array(counts) / n
    # Largest remainders stay within one row of the quota, unless the rare classes' own row must be found elsewhere.
    if (quota >= 1).all() and (np.array(counts) - quota >= 1).all():
        assert np.abs(test.class_counts - quota).max() < 1


@pytest.mark.parametrize("size", [0, 1.0, 1.5, -0.1, 60, True, "0.2", None, nan])
def test_bad_test_size(rows, size):
    message = f"`test_size` must be a share between 0 and 1 or a whole number in 1…59; got {size!r}."
    with pytest.raises(DataError, match=re.escape(message)):
        rows.split(size)


def test_too_small_to_split(rows):
    with pytest.raises(DataError, match="60 rows in 3 classes needs 3 to 57 test rows; `test_size` gives 1"):
        rows.split(0.02)
    with pytest.raises(DataError, match="needs 3 to 57 test rows; `test_size` gives 58"):
        rows.split(58)
    with pytest.raises(DataError, match="Class 'setosa' has 1 row; a stratified split needs at least 2"):
        Dataset.from_arrays([[1], [2], [4]], ["setosa", "virginica", "virginica"]).split(1)
