"""Files of every type give the same table, and one line says what is wrong with a file."""

import gzip

import numpy as np
import pandas as pd
import pytest
from raw_tables import islands

from bayes_gda.data.frames.reading import read_table
from bayes_gda.data.frames.text import Dialect
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError

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
    with pytest.raises(DataError, match=r"Cannot tell the type of '.*t\.ods'; name it as one of \.csv, .*\.feather"):
        read_table(tmp_path / "t.ods", target="y")


@pytest.mark.parametrize(
    ("name", "text", "cause"),
    [
        ("t.csv", b"", "No columns to parse"),
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
        (",a,y\n0,1,u\n0,2,v\n", "Column 1 of '.*' has no name; if it holds row names, write the file without them"),
        ("a,,y\n0,1,u\n", "Column 2 of '.*' has no name; if it holds row names, write the file without them"),
        ("a,y\n", "The table is empty: 2 columns, but no rows"),
        ("y\nu\nv\n", "no feature columns besides the target 'y'"),
        ("a,Y \n1,u\n", "no target column 'y'. Did you mean 'Y '"),
        ("a,y\n1e400,u\n2,v\n3,v\n", r"numbers too large for float64, in 'a' \(1\)"),
        (f"a,y\n{10**400},u\n2,v\n3,v\n", r"numbers too large for float64, in 'a' \(1\)"),
        ("a,y\n1,0.5\n2,0.25\n3,0.5\n", "Target 'y' looks continuous: 0.25 is not a whole number"),
    ],
)
def test_bad_csv(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_table(write(tmp_path, text), target="y")


# ── Files as people have them ───────────────────────────────────────────────────────────────────────────────────────

BIRDS = pd.DataFrame(
    {"species": ["Adélie", "Gentoo"] * 3, "island": list("abbaab"), "bill": [39.5, 46.1, 38.25, 47.0, 40.0, 45.5]}
)


@pytest.mark.parametrize(
    "how",
    [
        {"sep": ";"},
        {"sep": ";", "decimal": ","},
        {"sep": "\t", "decimal": ","},
        {"sep": "|"},
        {"sep": ";", "encoding": "utf-8-sig"},
        {"sep": ";", "encoding": "utf-16"},
        {"sep": ",", "quoting": 1},
    ],
    ids=str,
)
def test_dialects_are_recognised(tmp_path, how):
    """The issue's failure: no target column 'species'. The columns are 'species;island;…'."""
    BIRDS.to_csv(tmp_path / "birds.csv", index=False, **how)
    assert read_table(tmp_path / "birds.csv", target="species") == Dataset.from_frame(BIRDS, target="species")


def test_other_encodings_are_named(tmp_path):
    BIRDS.to_csv(tmp_path / "birds.csv", index=False, encoding="latin-1")
    with pytest.raises(DataError, match=r"is not text in UTF-8: byte .* is 0xe9. Name its encoding"):
        read_table(tmp_path / "birds.csv", target="species")
    found = read_table(tmp_path / "birds.csv", target="species", dialect=Dialect(encoding="latin-1"))
    assert found == Dataset.from_frame(BIRDS, target="species")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sep": ";;"}, "`sep` must be one character"),
        ({"decimal": "'"}, "`decimal` must be"),
        ({"encoding": "klingon"}, "`encoding` must be one that Python knows"),
        ({"sep": ",", "decimal": ","}, "must differ"),
    ],
)
def test_impossible_dialects(options, message):
    with pytest.raises(DataError, match=message):
        Dialect(**options)


def test_excel_and_json_lines(tmp_path):
    BIRDS.to_excel(tmp_path / "birds.xlsx", index=False)
    BIRDS.to_json(tmp_path / "birds.jsonl", orient="records", lines=True)
    for name in ("birds.xlsx", "birds.jsonl"):
        assert read_table(tmp_path / name, target="species") == Dataset.from_frame(BIRDS, target="species")


def test_columns_to_leave_out_and_constant_ones(tmp_path):
    wide = BIRDS.assign(id=range(6), site="here", year=2007)
    wide.to_csv(tmp_path / "birds.csv", index=False)
    with pytest.raises(DataError, match=r"2 columns are constant: 'site' \('here'\), 'year' \(2007\)\. Drop them all"):
        read_table(tmp_path / "birds.csv", target="species", drop=["id"])
    found = read_table(tmp_path / "birds.csv", target="species", drop=["id"], constant="drop")
    assert found == Dataset.from_frame(BIRDS, target="species")
    with pytest.raises(DataError, match="`drop` names no column: 'idd'"):
        read_table(tmp_path / "birds.csv", target="species", drop=["idd"])
