"""Files read a data frame at a time: the rows and columns that were asked for, in their order, or one line of error."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from bayes_gda.data.frames.reading import read_table
from bayes_gda.data.large.batches import open_batches
from bayes_gda.data.large.layout import RawType
from bayes_gda.data.large.reading import column_types, parquet_files, read_frames, read_groups, row_groups
from bayes_gda.errors import DataError

WRITERS = {
    "t.csv": lambda df, path: df.to_csv(path, index=False),
    "T.TSV": lambda df, path: df.to_csv(path, index=False, sep="\t"),
    "t.tsv.gz": lambda df, path: df.to_csv(path, index=False, sep="\t"),
    "t.parquet": lambda df, path: df.to_parquet(path, row_group_size=30),
    "t.feather": lambda df, path: df.to_feather(path, chunksize=40),
}
KINDS = pytest.mark.parametrize("name", WRITERS)


def birds(n=100):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "length": rng.normal(size=n),
            "count": rng.integers(0, 9, n),
            "island": rng.choice(["Torgersen", "Biscoe"], n),
            "ringed": rng.random(n) < 0.5,
            "species": np.array(["gentoo", "adelie"])[rng.integers(0, 2, n)],
        }
    )


@KINDS
@pytest.mark.parametrize("batch_rows", [7, 1000])
def test_frames_are_consecutive_rows_of_the_columns_asked_for(tmp_path, name, batch_rows):
    df = birds()
    WRITERS[name](df, tmp_path / name)
    columns = ["species", "length"]  # not their order in the file
    frames = list(read_frames(tmp_path / name, "species", columns, batch_rows))
    assert all(0 < len(frame) <= batch_rows for frame in frames)
    assert all(list(frame.columns) == columns for frame in frames)
    whole = pd.concat(frames, ignore_index=True)
    np.testing.assert_array_equal(whole["species"], df["species"])
    np.testing.assert_allclose(whole["length"], df["length"], rtol=1e-15)


@KINDS
def test_types_are_told_alike_by_every_kind_of_file(tmp_path, name):
    WRITERS[name](birds(), tmp_path / name)
    kinds = {column: raw.kind for column, raw in column_types(tmp_path / name, "species")}
    assert kinds == {
        "length": "numeric",
        "count": "numeric",
        "island": "text",
        "ringed": "boolean",
        "species": "text",
    }


def test_dates_and_lists_can_be_no_features(tmp_path):
    df = birds(4).assign(day=pd.Timestamp("2020-01-01"), tags=[[1], [2], [3], [4]])
    df.to_parquet(tmp_path / "t.parquet")
    types = dict(column_types(tmp_path / "t.parquet", "species"))
    assert (types["day"].kind, types["tags"].kind) == ("none", "none")
    assert types["length"] == RawType("numeric", "double")


@pytest.mark.parametrize("cell", ["", "NA", "N/A", "nan", "NULL", "None", "-", "missing", "0", "?"])
@pytest.mark.parametrize("beside", ["1.5", "word"])
def test_what_an_empty_cell_looks_like_is_as_pandas_has_it(tmp_path, cell, beside):
    text = f"x,y\n{beside},u\n{cell},v\n{beside},u\n"
    (tmp_path / "t.csv").write_text(text)
    (frame,) = read_frames(tmp_path / "t.csv", "y", ["x"], 10)
    np.testing.assert_array_equal(frame["x"].isna(), pd.read_csv(io.StringIO(text))["x"].isna())


# ── Row groups ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_row_groups_are_read_alone_and_make_up_the_file(tmp_path):
    df, path = birds(), tmp_path / "t.parquet"
    df.to_parquet(path, row_group_size=30)
    assert row_groups(path) == [30, 30, 30, 10]
    frames = list(read_groups(path, range(1, 3), ["length", "species"], 20))
    assert [len(frame) for frame in frames] == [20, 10, 20, 10]  # a frame does not reach into the next row group
    pd.testing.assert_frame_equal(
        pd.concat(frames, ignore_index=True), df.loc[30:89, ["length", "species"]].reset_index(drop=True)
    )
    assert list(read_groups(path, range(0), ["length"], 20)) == []


def test_files_of_a_folder_are_listed_in_the_order_in_which_they_are_read(tmp_path):
    df = birds(90)
    for i, name in enumerate(["b", "a", "c"]):
        df[30 * i : 30 * (i + 1)].to_parquet(tmp_path / f"{name}.parquet")
    files = parquet_files(tmp_path)
    assert [file.name for file in files] == ["a.parquet", "b.parquet", "c.parquet"]
    read = pd.concat(read_frames(tmp_path, "species", ["length"], 1000))
    listed = pd.concat([pd.read_parquet(file, columns=["length"]) for file in files])
    np.testing.assert_array_equal(read["length"], listed["length"])
    assert parquet_files(tmp_path / "b.parquet") == [tmp_path / "b.parquet"]


# ── What is wrong with a file ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"x,y\n\xff,u\n1,v\n", r"Column 'x' of '.*t\.csv' is not UTF-8 text\. Save the file as UTF-8\."),
        ("t.csv", b",x,y\n0,1,u\n", r"A column of '.*t\.csv' has no name; if it holds row names"),
        ("t.csv", b"", r"Cannot read '.*t\.csv'"),
        ("t.csv", b"x,y\n1,u\n1,2,v\n", r"Cannot read '.*t\.csv': .*Expected 2 columns, got 3"),
        ("t.csv.gz", b"not compressed", r"Cannot read '.*t\.csv\.gz'"),
        ("t.parquet", b"not a table at all", r"Cannot read '.*t\.parquet'"),
        ("t.feather", b"not a table at all", r"Cannot read '.*t\.feather'"),
        (
            "t.xlsx",
            b"",
            r"Cannot tell the type of '.*t\.xlsx'; name it as one of \.csv, .* or give a folder of \.parquet",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_said_in_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        column_types(tmp_path / name, "y")
    assert "\n" not in str(error.value)


def test_a_missing_file_names_its_neighbour(tmp_path):
    birds().to_parquet(tmp_path / "birds.parquet")
    with pytest.raises(DataError, match=r"No such file: '.*bird\.parquet'\. Did you mean 'birds\.parquet'\?"):
        column_types(tmp_path / "bird.parquet", "species")
    with pytest.raises(DataError, match=r"No such file: '.*t\.csv'\. Check the path\."):
        column_types(tmp_path / "nowhere" / "t.csv", "species")


def test_damage_behind_the_beginning_of_a_file_is_an_error_of_the_data(tmp_path):
    """The schema is whole, so that the damage shows only as the rows are read."""
    path = tmp_path / "t.parquet"
    birds(2000).to_parquet(path, row_group_size=500)
    content = bytearray(path.read_bytes())
    content[4:4000] = b"\xff" * 3996  # with the header of the first page
    path.write_bytes(content)
    assert len(column_types(path, "species")) == 5
    with pytest.raises(DataError, match=r"Cannot read '.*t\.parquet': .* Check that the file is whole"):
        list(read_frames(path, "species", ["length", "island"], 100))
    with pytest.raises(DataError, match=r"Cannot read '.*t\.parquet'"):
        list(read_groups(path, range(4), ["length", "island"], 100))
    path.write_bytes(content[:100])
    with pytest.raises(DataError, match=r"Cannot read '.*t\.parquet'"):
        row_groups(path)


@pytest.mark.parametrize("kind", ["parquet", "feather"])
@pytest.mark.parametrize(
    "notes", [b"\xbb", b"{x", b'{"columns": [{"name": "a"}], "index_columns": [{"kind": "sange"}]}']
)
def test_damaged_notes_of_pandas_are_an_error_of_the_file(tmp_path, kind, notes):
    """Found by flipped bits: KeyError, JSONDecodeError and UnicodeDecodeError came through, from both readers."""
    path = tmp_path / f"t.{kind}"
    table = pa.Table.from_pandas(birds()).replace_schema_metadata({b"pandas": notes})
    (pq.write_table if kind == "parquet" else feather.write_feather)(table, path)
    for read in (lambda: read_table(path, target="species"), lambda: open_batches(path, target="species")):
        with pytest.raises(DataError, match=r"Cannot read .*\. Check that the file is whole") as caught:
            read()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [".csv", ".tsv"])
def test_column_names_that_are_no_text_are_named(tmp_path, kind):
    path = tmp_path / f"t{kind}"
    path.write_bytes(b"\x80\r")
    with pytest.raises(DataError, match=r"A column name of .* is not UTF-8 text\. Save the file as UTF-8\."):
        open_batches(path, target="y")


def test_texts_that_point_beyond_the_end_of_a_feather_file_are_an_error(tmp_path):
    """Pandas crashed with them, and took Python along."""
    path = tmp_path / "t.feather"
    labels = ["u", "vv"] * 20
    feather.write_feather(pa.table({"a": np.arange(40.0), "y": labels}), path, compression="uncompressed")
    offsets = np.concatenate([[0], np.cumsum([len(label) for label in labels])]).astype("<i4").tobytes()
    whole = bytearray(path.read_bytes())
    at = whole.index(offsets)
    whole[at + 80 : at + 84] = (2**30).to_bytes(4, "little")
    path.write_bytes(bytes(whole))
    with pytest.raises(DataError, match=r"Cannot read .*: .*offset.*\. Check that the file is whole"):
        open_batches(path, target="y")
