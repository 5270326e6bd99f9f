"""Cost files in every form mean the same matrix; what is ambiguous or broken is refused."""

import json

import numpy as np
import pytest

from bayes_gda.cli.inputs import TableOptions, encoding_of, labels_of, read_costs, read_data, read_new_rows
from bayes_gda.data.examples import load_example
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError

CLASSES = ("benign", "malignant")
MATRIX = [[0.0, 50.0], [10.0, 1.0]]
SAME = {
    "names.csv": "action,benign,malignant\nsend home,0,50\noperate,10,1\n",
    "turned.csv": "action,malignant,benign\nsend home,50,0\noperate,1,10\n",
    "windows.csv": "\ufeffaction,benign,malignant\r\nsend home,0,50\r\noperate,10,1\r\n\r\n",
    "pandas.csv": ",benign,malignant\nsend home,0,50\noperate,1e1, 1.0\n",
    "tabs.tsv": "action\tbenign\tmalignant\nsend home\t0\t50\noperate\t10\t1\n",
    "quotes.csv": '"action","benign","malignant"\n"send home","0","50"\n"operate","10","1"',
    "named.json": json.dumps({"send home": {"benign": 0, "malignant": 50}, "operate": {"malignant": 1, "benign": 10}}),
}
PLAIN = {
    "plain.csv": "0,50\n10,1\n",
    "header.csv": "benign,malignant\n0,50\n10,1\n",
    "list.json": " [[0, 50], [10, 1]]",
}


def costs_in(folder, name, text, classes=CLASSES):
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return read_costs(str(path), classes)


@pytest.mark.parametrize("name", SAME)
def test_every_form_with_names_is_the_same_matrix(tmp_path, name):
    costs = costs_in(tmp_path, name, SAME[name])
    np.testing.assert_array_equal(costs.matrix, MATRIX)
    assert costs.actions == ("send home", "operate")


@pytest.mark.parametrize("name", PLAIN)
def test_without_names_of_actions_they_are_the_classes(tmp_path, name):
    costs = costs_in(tmp_path, name, PLAIN[name])
    np.testing.assert_array_equal(costs.matrix, MATRIX)
    assert costs.actions == CLASSES


def test_columns_follow_the_classes_that_are_asked_for_and_plain_files_are_sorted(tmp_path):
    turned = costs_in(tmp_path, "a.csv", SAME["names.csv"], ("malignant", "benign"))
    np.testing.assert_array_equal(turned.matrix, np.array(MATRIX)[:, ::-1])
    plain = costs_in(tmp_path, "b.csv", PLAIN["plain.csv"], ("malignant", "benign"))  # a declared order
    np.testing.assert_array_equal(plain.matrix, np.array(MATRIX)[:, ::-1])
    assert plain.actions == CLASSES  # the first row is still that of the first in sorted order


@pytest.mark.parametrize("text", ["action,0,1\n0,0,50\n1,10,1\n", "0,1\n0,50\n10,1\n", "0,50\n10,1\n"])
def test_classes_that_are_numbers(tmp_path, text):
    costs = costs_in(tmp_path, "c.csv", text, (0, 1))
    np.testing.assert_array_equal(costs.matrix, MATRIX)
    assert costs.actions == ("0", "1")


def test_more_actions_than_classes(tmp_path):
    costs = costs_in(tmp_path, "c.csv", SAME["names.csv"] + "wait,2,2\n")
    assert costs.actions == ("send home", "operate", "wait")
    assert costs.matrix.shape == (3, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("0,1\n", "2 rows or more; got 1 × 2"),
        ("0,1\n1,0\n2,2\n", "must name its 3 actions"),
        ("0,1,2\n1,0,2\n", "add a header"),
        ("0,1\n1\n", "2 cells in every line"),
        ("action,benign,wrong\na,0,1\nb,1,0\n", "classes 'benign', 'malignant' as columns; got 'benign', 'wrong'"),
        ("action,benign,malignant\na,0,x\nb,1,0\n", "finite numbers; got 'x' for action 'a'"),
        ("action,benign,malignant\na,0,nan\nb,1,0\n", "finite numbers; got 'nan'"),
        ("action,benign,malignant\na,0,1\na,1,0\n", "a name of its own"),
        ("[[0, 1], [1, 0]", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('{"a": [0, 1]}', "list of lists"),
        ("[[0, true], [1, 0]]", "finite numbers; got True"),
        ("[[0, 1], [1, [0]]]", "finite numbers"),
        ('{"a": {"benign": 0, "malignant": 1}, "a": {"benign": 1, "malignant": 0}}', "twice"),
        ('{"a": {"benign": 0, "malignant": 1}, "b": {"benign": 1}}', "same classes for every action; 'b'"),
    ],
)
def test_broken_cost_files(tmp_path, text, message):
    with pytest.raises(DataError, match=r"^The cost file .*See: ") as caught:
        costs_in(tmp_path, "c.txt", text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_cost_files_that_cannot_be_read(tmp_path):
    (tmp_path / "latin").write_bytes(b"\xff\xfe\x00")
    for name, message in (("latin", "not text in UTF-8"), ("none", "No such file"), (".", "directory")):
        with pytest.raises(DataError, match=message):
            read_costs(str(tmp_path / name), CLASSES)


# ── Tables ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_examples_and_their_missing_values():
    assert read_data("example:iris", TableOptions(None)) == load_example("iris")
    assert read_data("example:iris", TableOptions("class")) == load_example("iris")
    whole = load_example("penguins")
    kept = read_data("example:penguins", TableOptions(None, missing="drop"))
    assert kept.n == int((~np.isnan(whole.X).any(axis=1)).sum()) < whole.n
    with pytest.raises(DataError, match="--missing drop"):
        read_data("example:penguins", TableOptions(None))
    with pytest.raises(DataError, match="always 'class'; got 'species'"):
        read_data("example:iris", TableOptions("species"))
    with pytest.raises(DataError, match=r"No example is named 'irish'\. Did you mean 'iris'"):
        read_data("example:irish", TableOptions(None))
    with pytest.raises(DataError, match="bayes-gda examples iris -o"):
        read_data("example:iris", TableOptions(None, drop=("a",)))


def test_files_columns_to_drop_and_remedies_of_the_command_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,x,y\na,1,u\nb,2,v\nc,,u\nd,4,v\n")
    data = read_data(str(path), TableOptions("y", drop=("id",), missing="drop"))
    assert data.feature_names == ("x",)
    assert data.n == 3
    for options, message in (
        (TableOptions("y", drop=("id",)), "--missing drop"),
        (TableOptions("y", missing="drop"), "--drop COL"),
        (TableOptions("y", drop=("idd",)), "Did you mean 'id'"),
        (TableOptions("y", drop=("y",)), "names the target"),
        (TableOptions(None), "--target COLUMN"),
    ):
        with pytest.raises(DataError, match=message):
            read_data(str(path), options)


def test_all_absent_columns_are_named(tmp_path):
    data = load_example("iris")
    path = tmp_path / "new.csv"
    path.write_text("petal length (cm),z\n1,2\n")
    with pytest.raises(
        DataError, match=r"'sepal length \(cm\)', 'sepal width \(cm\)', 'petal width \(cm\)' of the model"
    ):
        read_new_rows(str(path), encoding_of(data))
    path.write_text(",".join(data.feature_names) + "\n")
    with pytest.raises(DataError, match="has no rows"):
        read_new_rows(str(path), encoding_of(data))


@pytest.mark.parametrize("names", [("a\0", "a"), (1, 2), (False, True)])
def test_labels_keep_their_type_and_length(names):
    data = Dataset(np.eye(2), np.array([1, 0]), ("p", "q"), names)
    assert labels_of(data).tolist() == [names[1], names[0]]
