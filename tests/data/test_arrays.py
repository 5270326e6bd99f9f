"""Features and codes given as arrays: what is taken, what is copied, and what is refused."""

import re

import numpy as np
import pytest

from bayes_gda.data.arrays import as_codes, as_features, check_columns_vary, extremes, find_gaps, own_features
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError

nan = np.nan


def test_read_only_view_of_a_writeable_array_is_copied():
    X = np.array([[1.0], [2.0], [3.0]])
    view = X.view()
    view.setflags(write=False)
    data = Dataset(view, np.array([0, 1, 1]), ("a",), ("u", "v"))
    X[0] = 9
    assert data.X[0, 0] == 1


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.arange(100.0), "`X` must be 2-d; got shape (100,). Use X[:, None] for one feature."),
        (np.zeros((2, 2, 2)), "`X` must be 2-d; got shape (2, 2, 2)."),
        ([[1], [1, 2], [3]], "`X` must be 2-d; got rows of different lengths."),
        (np.zeros((0, 2)), "`X` is empty: its shape is (0, 2). Give at least one row"),
        (np.zeros((3, 0)), "`X` is empty: its shape is (3, 0). Give at least one row and one feature."),
        (np.array([[1, "a"], [2, "b"], [3, "c"]], dtype=object), "`X` must be numeric; got dtype object."),
        (
            np.array([["a"], ["b"], ["c"]]),
            "`X` must be numeric; got dtype <U1. Use X.astype(float), or Dataset.from_frame",
        ),
        (np.array([[1j], [2], [3]]), "`X` must be real; got complex128."),
        ([[10**400], [2], [3]], "`X` has a number too large for float64"),
        (np.array([[np.longdouble("1e400")], [2], [3]]), "numbers too large for float64, in 'x1' (1)"),
        ([[1, np.inf], [2, 3], [3, -np.inf]], "Infinite values, or numbers too large for float64, in 'x2' (2)"),
        ([[1, nan], [nan, 3], [3, nan]], "Missing values in 'x1' (1), 'x2' (2); drop these rows with missing=\"drop\""),
        (np.ma.masked_equal([[1.0], [2], [3]], 2), "Missing values in 'x1' (1)"),
        ([[1, 5], [2, 5], [3, 5]], "Column 'x2' is constant (5 in all 3 rows). Drop the column."),
        ([[1, 2], [2, 5]], "`X` and `y` must have as many rows; got 2 and 3."),
    ],
)
def test_bad_features(X, message):
    with pytest.raises(DataError, match=re.escape(message)):
        Dataset.from_arrays(X, [0, 1, 1])


def test_sparse_features():
    from scipy import sparse

    with pytest.raises(DataError, match=r"`X` is a sparse matrix; use X\.toarray\(\)"):
        Dataset.from_arrays(sparse.eye_array(3), [0, 1, 1])


def test_gaps_in_arrays():
    X = np.array([[1, nan], [2, 5], [3, 6], [4, 6]])
    assert Dataset.from_arrays(X, [0, 1, 1, 0], missing="keep").has_missing
    assert Dataset.from_arrays(X, [0, 1, 1, 0], missing="drop").n == 3
    assert Dataset.from_arrays(np.ma.masked_invalid(X), [0, 1, 1, 0], missing="keep").has_missing
    with pytest.raises(DataError, match=r"Column 'x2' is constant \(6 in all 2 rows\)"):
        Dataset.from_arrays(X[[0, 2, 3]], [0, 1, 1], missing="keep")
    with pytest.raises(DataError, match="Column 'x1' has no values: all 3 rows are missing"):
        Dataset.from_arrays([[nan], [nan], [nan]], [0, 1, 1], missing="keep")
    with pytest.raises(DataError, match=r"too large for float64, in 'x2' \(1\)"):
        Dataset.from_arrays([[nan, np.inf], [1, 2], [2, 3], [3, 4]], [0, 1, 1, 0], missing="drop")


def test_values_whose_sum_overflows_are_finite():
    X = np.array([[1.7e308, 1], [1.7e308, 2], [1, 2]])
    assert not Dataset.from_arrays(X, [0, 1, 1]).has_missing
    with pytest.raises(DataError, match=r"Missing values in 'x2' \(1\)"):
        Dataset.from_arrays(np.where(X == 1, nan, X)[:2], [0, 1])


def test_a_column_may_vary_in_its_last_row_alone():
    X = np.arange(3000.0)[:, None] * [1, 0]
    y = np.arange(3000) % 2
    with pytest.raises(DataError, match=r"Column 'x2' is constant \(0 in all 3000 rows\)"):
        Dataset.from_arrays(X, y)
    X[-1, 1] = 1
    assert Dataset.from_arrays(X, y).d == 2
    X[:-1, 1] = nan
    with pytest.raises(DataError, match=r"Column 'x2' is constant \(1 in all 1 rows\)"):
        Dataset.from_arrays(X, y, missing="keep")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_names": ["a", 2]}, "`feature_names` must be text; got 2."),
        ({"feature_names": ["a", "a"]}, "Feature name 'a' appears 2 times"),
        ({"feature_names": ["a"]}, "`feature_names` must name 2 features; got 1 names."),
        ({"y": ["u", "v", "v"], "class_names": ["u", "v"]}, "`y` must hold integer codes; got 'u'."),
        ({"y": [True, False, True], "class_names": ["u", "v"]}, "`y` must hold integer codes; got True."),
        ({"y": [0, 10**20, 0], "class_names": ["u", "v"]}, f"`y` must hold integer codes; got {10**20}."),
    ],
)
def test_bad_feature_names_and_codes(options, message):
    with pytest.raises(DataError, match=re.escape(message)):
        Dataset.from_arrays(**{"X": [[1, 2], [2, 4], [4, 3]], "y": [0, 1, 1], **options})


# -- copies and gaps ---------------------------------------------------------------------------------------------------


def test_only_an_array_that_nobody_can_change_is_not_copied():
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert not np.shares_memory(as_features(X), X)
    writeable = own_features(X)
    assert not np.shares_memory(writeable, X)
    assert not writeable.flags.writeable
    X.setflags(write=False)
    assert own_features(X) is X
    # Columns one behind the other, and single precision, are brought into the one form.
    for other in (np.asfortranarray(X), X.astype(np.float32)):
        other.setflags(write=False)
        found = own_features(other)
        assert found.flags.c_contiguous
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, X)


def test_a_masked_value_is_a_gap_whatever_lies_below_the_mask():
    X = np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(as_features(X), [[1, nan], [3, 4]])
    infinite = np.ma.array([[1.0, np.inf], [3.0, 4.0]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(as_features(infinite), [[1, nan], [3, 4]])


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64, object])
def test_codes_are_read_only_integers_of_their_own(dtype):
    y = np.array([0, 2, 1], dtype=dtype)
    codes = as_codes(y)
    y[0] = 1
    np.testing.assert_array_equal(codes, [0, 2, 1])
    assert codes.dtype == np.intp
    assert not codes.flags.writeable


def test_gaps_are_told_for_the_columns_that_have_them():
    X = np.array([[1.0, nan, 2.0], [nan, nan, 3.0]])
    gaps = find_gaps(X, ["a", "b", "c"])
    assert list(gaps) == ["a", "b"]
    np.testing.assert_array_equal(gaps["a"], [False, True])
    np.testing.assert_array_equal(gaps["b"], [True, True])
    assert find_gaps(X[:, 2:], ["c"]) == {}


@pytest.mark.parametrize("where", [0, 1023, 1024, 2999])
def test_a_single_value_that_differs_is_seen_wherever_it_stands(where):
    """Also where it stands behind the first rows, to which a column that varies in them is read."""
    X = np.full((3000, 1), 4.0)
    with pytest.raises(DataError, match=r"Column 'a' is constant \(4 in all 3000 rows\)"):
        check_columns_vary(X, ["a"])
    X[where] = np.nextafter(4.0, 5.0)
    check_columns_vary(X, ["a"])
    X[where] = nan
    with pytest.raises(DataError, match=r"Column 'a' is constant \(4 in all 2999 rows\)"):
        check_columns_vary(X, ["a"])


@pytest.mark.parametrize(
    ("cells", "ends"),
    [([3.0, nan, -1.5], [-1.5, 3]), ([2.0, 2.0, nan], [2]), ([0.0, -0.0], [0]), ([nan, nan], [])],
)
def test_extremes_look_past_gaps(cells, ends):
    assert extremes(np.array(cells)) == ends
