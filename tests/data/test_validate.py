"""What is asked of a table, and what its messages count and name."""

import re

import numpy as np
import pandas as pd
import pytest
from raw_tables import table

from bayes_gda.data.table import Dataset
from bayes_gda.data.validate import (
    LARGEST,
    SMALLEST,
    check_missing,
    check_range,
    check_size,
    columns_hint,
    complete_rows,
    listed,
    near_misses,
)
from bayes_gda.errors import DataError

nan = np.nan


def test_missing_values_are_counted_by_column():
    df = table(bp=[1, nan, nan, 4], skin=[nan, "p", "p", "q"])
    with pytest.raises(
        DataError, match=r"Missing values in 'bp' \(2\), 'skin' \(1\); drop these rows with missing=\"drop\""
    ):
        Dataset.from_frame(df, target="y")
    with pytest.raises(DataError, match=r"'c5' \(1\) and 3 more columns; drop"):
        Dataset.from_frame(table(**{f"c{j}": [nan, 1, 2, 3] for j in range(9)}), target="y")


def test_drop_leaves_the_complete_rows():
    df = table(a=[1, nan, 3, 4]).assign(y=["u", "v", None, "v"])
    df = pd.concat([df, df.iloc[[0]].assign(a=8)])
    data = Dataset.from_frame(df, target="y", missing="drop")
    np.testing.assert_array_equal(data.X[:, 0], [1, 4, 8])
    np.testing.assert_array_equal(data.y, [0, 1, 0])


def test_drop_that_leaves_nothing():
    with pytest.raises(DataError, match=r"No row is complete; 'a' has most gaps \(4 of 4\)\. Drop that column\."):
        Dataset.from_frame(table(a=[nan] * 4), target="y", missing="drop")


def test_drop_without_any_label():
    for y in ([None] * 3, [nan] * 3):
        with pytest.raises(DataError, match=r"`y` is missing in 3 rows; fill in the labels\."):
            Dataset.from_arrays([[1], [2], [4]], y, missing="drop")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "Y"}, "The table has no target column 'Y'. Did you mean 'y'?"),
        ({"target": "class"}, "no target column 'class'. The columns are 'alpha', 'fine', 'y'."),
        (
            {"target": "y", "categorical": ["alpa"]},
            "`categorical` names 'alpa', which is no column. Did you mean 'alpha'?",
        ),
        (
            {"target": "y", "categorical": "alpha"},
            "`categorical` must be a list of columns; got 'alpha'. Use ['alpha'].",
        ),
        ({"target": "y", "categorical": ["y"]}, "`categorical` names the target 'y'"),
        ({"target": "y", "missing": "ignore"}, "`missing` must be one of 'error', 'drop', 'keep'; got 'ignore'."),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(DataError, match=re.escape(message)):
        Dataset.from_frame(table(alpha=[1, 2, 3, 5]), **options)


def test_bad_column_names():
    with pytest.raises(DataError, match=r"Column names must be text; got 0\. Use df\.rename\(columns=str\)\."):
        Dataset.from_frame(table().rename(columns={"fine": 0}), target="y")
    with pytest.raises(DataError, match="Column name 'fine' appears 2 times"):
        Dataset.from_frame(table(a=[1, 2, 3, 5]).rename(columns={"a": "fine"}), target="y")
    with pytest.raises(DataError, match="must be a data frame; got dict"):
        Dataset.from_frame({"a": [1]}, target="y")
    with pytest.raises(DataError, match=r"Feature name 'a\[q\]' appears 2 times"):
        Dataset.from_frame(table(**{"a": ["p", "q"] * 2, "a[q]": [1, 2, 3, 4]}), target="y")


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_within_the_limits_squares_are_doubles():
    """A row at one limit, seen in spreads at the other: its square, and that over 10⁹ rows and 10⁴ features."""
    far = 2 * LARGEST / SMALLEST
    assert np.isfinite(far**2 * 1e9 * 1e4)
    assert np.finfo(float).tiny < SMALLEST**2


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("row", [0, 7])
def test_the_feature_with_the_largest_value_is_named(sign, row):
    X = np.random.default_rng(0).normal(size=(8, 3))
    X[row, 1] = sign * LARGEST
    X[3, 2] = nan
    check_size(X, ["a", "b", "c"])
    check_range(X, ["a", "b", "c"])
    X[row, 1] *= 1.01
    for check in (check_size, check_range):
        with pytest.raises(
            DataError, match=r"Feature 'b' has a value of size 1\.01e\+65; values beyond 1e\+65 overflow"
        ):
            check(X, ["a", "b", "c"])
    with pytest.raises(DataError, match=r"values beyond 0\.001 overflow"):
        check_size(X, ["a", "b", "c"], 1e-3)


def test_a_feature_may_be_constant_or_missing_but_not_vary_by_next_to_nothing():
    X = np.array([[0.0, 5.0, nan], [1e-66, 5.0, nan], [nan, 5.0, nan]])
    with pytest.raises(DataError, match=r"Feature 'a' varies by 1e-66 only; .* Give it in a smaller unit\."):
        check_range(X, ["a", "b", "c"])
    check_size(X, ["a", "b", "c"])
    check_range(X[:, 1:], ["b", "c"])
    X[1, 0] = 2e-65
    check_range(X, ["a", "b", "c"])


def test_a_table_without_rows_has_no_value_that_is_too_large():
    check_size(np.empty((0, 2)), ["a", "b"])
    check_range(np.empty((0, 2)), ["a", "b"])


# -- rows to keep ------------------------------------------------------------------------------------------------------


def test_dropped_rows_are_those_with_a_gap_in_any_column_or_in_the_label():
    gaps = {"a": np.array([True, False, False, False]), "b": np.array([False, False, True, False])}
    unlabelled, labelled = np.array([False, True, False, False]), np.zeros(4, dtype=bool)
    np.testing.assert_array_equal(complete_rows(gaps, unlabelled, "`y`", "drop"), [False, False, False, True])
    assert complete_rows(gaps, labelled, "`y`", "keep") is None  # None is all rows
    assert complete_rows({}, labelled, "`y`", "drop") is None
    with pytest.raises(DataError, match=r"Missing values in 'a' \(1\), 'b' \(1\)"):
        complete_rows(gaps, labelled, "`y`", "error")
    for missing in ("keep", "error"):
        with pytest.raises(DataError, match=r"`y` is missing in 1 row; fill in the labels, or pass missing=\"drop\""):
            complete_rows({}, unlabelled, "`y`", missing)


def test_the_column_that_costs_most_rows_is_named_where_none_is_left():
    gaps = {"a": np.array([True, False, False]), "b": np.array([False, True, True])}
    with pytest.raises(DataError, match=r"No row is complete; 'b' has most gaps \(2 of 3\)"):
        complete_rows(gaps, np.zeros(3, dtype=bool), "`y`", "drop")


def test_columns_without_gaps_are_not_counted():
    check_missing({"a": np.zeros(3, dtype=bool)}, "remedy")
    with pytest.raises(DataError, match=r"^Missing values in 'b' \(2\); fill them in\.$"):
        check_missing({"a": np.zeros(3, dtype=bool), "b": np.array([True, True, False])}, "fill them in.")


# -- phrases -----------------------------------------------------------------------------------------------------------


def test_long_lists_are_cut_and_say_by_how_much():
    assert listed("abc") == "'a', 'b', 'c'"
    assert listed(range(12)).endswith(", 11")
    assert listed(range(15)).endswith(", 11 and 3 more")
    assert listed([]) == ""


@pytest.mark.parametrize(
    ("name", "near"),
    [("Mass", " Did you mean 'mass'?"), (" mass ", " Did you mean 'mass'?"), ("mas", " Did you mean 'mass'?")],
)
def test_a_slip_of_the_keyboard_is_recognised(name, near):
    known = ["mass", "island", "tagged"]
    assert near_misses(name, known) == columns_hint(name, known) == near


def test_where_no_name_is_near_all_columns_are_listed():
    assert near_misses("zzz", ["mass", "island"]) == ""
    assert columns_hint("zzz", ["mass", "island"]) == " The columns are 'mass', 'island'."
