"""Partitions of a table: each row is in one of them, in its order, whatever kind of table it is."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_gda.data.large import partitions
from bayes_gda.data.large.partitions import Arrays, FilePart, Files, Frames, frames_of, is_frame, look_at
from bayes_gda.errors import DataError

dask = pytest.importorskip("dask")


def compute(parts):
    """Return the partitions, computed in this process."""
    return dask.compute(*parts, scheduler="synchronous")


def birds(n=100):
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    return df.assign(island=rng.choice(["Dream", "Biscoe"], n), kind=np.array(["u", "v"])[rng.integers(0, 2, n)])


# ── Parquet files ───────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=8), min_size=1, max_size=5), st.integers(1, 60))
def test_every_row_group_is_in_one_partition_that_is_no_larger_than_need_be(groups, most):
    files = [Path(f"{i}.parquet") for i in range(len(groups))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "PART_ROWS", most)
        table = Files.of("y", [], files, groups)
    covered = [(piece.file, i) for piece in table.pieces for i in range(piece.start, piece.stop)]
    assert covered == [(file, i) for file, sizes in zip(files, groups, strict=True) for i in range(len(sizes))]
    size = dict(zip(files, groups, strict=True))
    for piece, rows in zip(table.pieces, table.part_rows, strict=True):
        assert rows == sum(size[piece.file][piece.start : piece.stop])
        assert rows <= most or piece.stop - piece.start == 1
    # The next row group of the same file would not have had room.
    for piece, rows in zip(table.pieces, table.part_rows, strict=True):
        if piece.stop < len(size[piece.file]):
            assert rows + size[piece.file][piece.stop] > most


def test_parts_of_files_are_read_as_their_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(partitions, "PART_ROWS", 50)
    df = birds()
    df[:70].to_parquet(tmp_path / "0.parquet", row_group_size=20)
    df[70:].to_parquet(tmp_path / "1.parquet")
    columns, files = look_at(tmp_path, "kind")
    assert [name for name, _ in columns] == list(df.columns)
    table = Files.of("kind", columns, files, [[20, 20, 20, 10], [30]])
    assert table.part_rows == (40, 30, 30)
    frames = [frame for part in table.parts(["kind", "b"]) for frame in frames_of(part, 15)]
    assert max(len(frame) for frame in frames) <= 15
    pd.testing.assert_frame_equal(pd.concat(frames, ignore_index=True), df[["kind", "b"]], check_dtype=False)


def test_a_cluster_reads_parquet_alone(tmp_path):
    birds().to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match=r"A cluster reads \.parquet files or a folder of them; got '.*t\.csv'"):
        look_at(tmp_path / "t.csv", "kind")


def test_a_frame_in_memory_is_handed_out_in_batches():
    df = birds(25)
    frames = list(frames_of(df, 10))
    assert [len(frame) for frame in frames] == [10, 10, 5]
    pd.testing.assert_frame_equal(pd.concat(frames), df)
    assert list(frames_of(df[:0], 10)) == []


# ── Dask data frames ────────────────────────────────────────────────────────────────────────────────────────────────


def test_partitions_of_a_data_frame_hold_the_columns_asked_for():
    dd = pytest.importorskip("dask.dataframe")
    df = birds().assign(day=pd.Timestamp("2020-01-01"), ringed=True)
    table = Frames(dd.from_pandas(df, npartitions=3), "kind")
    kinds = {name: raw.kind for name, raw in table.columns}
    text = dict.fromkeys(("island", "kind"), "text")
    assert kinds == {**dict.fromkeys("abc", "numeric"), **text, "day": "none", "ringed": "boolean"}
    found = pd.concat(compute(table.parts(["kind", "c"])))
    assert list(found.columns) == ["kind", "c"]
    np.testing.assert_array_equal(found["c"], df["c"])


def test_a_data_frame_is_told_from_a_series_and_an_array():
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(birds(), npartitions=2)
    assert is_frame(frame)
    assert not is_frame(frame["a"])
    assert not is_frame(da.zeros((3, 2)))


# ── Dask arrays ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("chunks", [(100, 3), (30, 3), (40, 2), ((10, 60, 30), 1)])
@pytest.mark.parametrize("label_chunks", [100, 7])
def test_blocks_of_features_and_labels_are_brought_in_line(chunks, label_chunks):
    da = pytest.importorskip("dask.array")
    df = birds()
    X, y = df[["a", "b", "c"]].to_numpy(), df["kind"].to_numpy(dtype=object)
    table = Arrays.of(da.from_array(X, chunks=chunks), da.from_array(y, chunks=label_chunks))
    assert [(name, raw.kind) for name, raw in table.columns] == [
        *((f"x{j}", "numeric") for j in (1, 2, 3)),
        ("y", "text"),
    ]
    parts = compute(table.parts(["y", "x1", "x2", "x3"]))
    whole = pd.concat(parts)
    np.testing.assert_array_equal(whole[["x1", "x2", "x3"]], X)
    np.testing.assert_array_equal(whole["y"], y)
    # The labels alone come in the same partitions: what `steady` says.
    labels = compute(table.parts(["y"]))
    assert [list(part.columns) for part in labels] == [["y"]] * len(parts)
    for part, alone in zip(parts, labels, strict=True):
        np.testing.assert_array_equal(part["y"], alone["y"])


@pytest.mark.parametrize("column", [False, True])
def test_labels_may_be_a_column_or_a_series(column):
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    df = birds(20)
    X = da.from_array(df[["a", "b"]].to_numpy(), chunks=(10, 2))
    if column:
        y = da.from_array(df["kind"].to_numpy(dtype=object)[:, None], chunks=(4, 1))
    else:
        y = dd.from_pandas(df[["kind"]], npartitions=2)
    np.testing.assert_array_equal(pd.concat(compute(Arrays.of(X, y).parts(["y"])))["y"], df["kind"])


def test_arrays_that_do_not_fit_are_refused():
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    X, y, frame = da.zeros((10, 2), chunks=5), da.arange(10, chunks=5), dd.from_pandas(birds(10), npartitions=1)
    for features, labels, message in [
        (X, np.arange(10), r"`y` must be a Dask array or Series like `X`; got ndarray\. Use dask\.array\.from_array"),
        (X, da.arange(9, chunks=5), "`X` has 10 rows and `y` 9; they must be as many"),
        (X, frame["a"], "`X` has 2 blocks of rows and `y` 1; they must have the same"),
        (X[:, 0], y, r"`X` must be 2-d with a known number of columns; got shape \(10,\)"),
        (X.astype(str), y, "`X` must hold numbers; got <U"),
        (X, X, r"`y` must be 1-d; got shape \(10, 2\)"),
        (X, frame, "`y` must have one column; got 5"),
    ]:
        with pytest.raises(DataError, match=message):
            Arrays.of(features, labels)


def test_blocks_of_unknown_length_are_compared_when_they_are_computed():
    """Rows chosen by a condition have a length that Dask does not know before."""
    da = pytest.importorskip("dask.array")
    values = np.arange(20.0).reshape(10, 2)
    X, y = da.from_array(values, chunks=(5, 2)), da.arange(10, chunks=5)
    fits = Arrays.of(X[X[:, 0] > 4], y[X[:, 0] > 4])
    whole = pd.concat(compute(fits.parts(["y", "x1", "x2"])))
    np.testing.assert_array_equal(whole[["x1", "x2"]], values[values[:, 0] > 4])
    apart = Arrays.of(X[X[:, 0] > 4], y[X[:, 0] > 6])
    with pytest.raises(DataError, match=r"A block of `X` has 2 rows and that of `y` 1; they must be as many"):
        compute(apart.parts(["y", "x1", "x2"]))


def test_a_part_of_a_file_travels_by_its_name_and_not_with_its_rows():
    import pickle

    part = FilePart(Path("/data/t.parquet"), 0, 10**6, ("a", "kind"))
    assert pickle.loads(pickle.dumps(part)) == part
    assert len(pickle.dumps(part)) < 1000
