"""Tables read in batches against the same tables read whole; memory that does not grow with n."""

import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from bayes_gda.data.frames.reading import read_table
from bayes_gda.data.large.batches import Batches, fit_moments, open_batches
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError

WRITERS = {
    "t.csv": lambda df, path: df.to_csv(path, index=False),
    "t.csv.gz": lambda df, path: df.to_csv(path, index=False),
    "t.tsv": lambda df, path: df.to_csv(path, index=False, sep="\t"),
    "t.parquet": lambda df, path: df.to_parquet(path, row_group_size=100),
    "t.feather": lambda df, path: df.to_feather(path),
}


def table(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "length": rng.normal(size=n) + y,
            "count": rng.integers(0, 9, n),
            "island": rng.choice(["Torgersen", "Biscoe", "Dream"], n),
            "species": np.array(["gentoo", "adelie", "chinstrap"])[y],
            "ringed": rng.random(n) < 0.5,
        }
    )


@pytest.mark.parametrize("name", WRITERS)
def test_every_type_of_file_gives_what_the_whole_table_does(tmp_path, name):
    df = table()
    WRITERS[name](df, tmp_path / name)
    whole = Dataset.from_frame(df, target="species")
    batches = open_batches(tmp_path / name, target="species", batch_rows=128)
    assert batches.class_names == whole.class_names
    assert batches.feature_names == whole.feature_names
    assert batches.rows == 1000
    for _ in range(2):  # as often as one likes
        parts = list(batches)
        assert max(len(X) for X, _ in parts) <= 128
        np.testing.assert_allclose(np.concatenate([X for X, _ in parts]), whole.X, rtol=1e-15)
        np.testing.assert_array_equal(np.concatenate([y for _, y in parts]), whole.y)


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_row_names_of_pandas_are_no_feature(tmp_path, kind):
    """As in a table that is read whole, where they become the index; Dask writes them unasked."""
    df, path = table(50), tmp_path / f"t.{kind}"
    named = pa.Table.from_pandas(df.set_index(pd.Index([f"r{i}" for i in range(50)], name="row")))
    (pq.write_table if kind == "parquet" else pa.feather.write_feather)(named, path)
    batches = open_batches(path, target="species")
    assert batches.feature_names == read_table(path, target="species").feature_names
    np.testing.assert_array_equal(next(iter(batches))[0], Dataset.from_frame(df, target="species").X)


def test_moments_of_a_folder_are_those_of_all_rows(tmp_path):
    df = table(900)
    for i in range(3):
        df[300 * i : 300 * (i + 1)].to_parquet(tmp_path / f"part{i}.parquet")
    calls = []
    moments, batches = fit_moments(tmp_path, target="species", progress=calls.append)
    whole = Dataset.from_frame(df, target="species")
    truth = Moments.from_arrays(whole.X, whole.y, 3)
    for name in ("count", "mean", "scatter"):
        np.testing.assert_allclose(getattr(moments, name), getattr(truth, name), rtol=1e-10, atol=1e-10)
    assert isinstance(batches, Batches)
    assert calls == [300, 600, 900] * 2  # the pass that learns the classes, and the sums


def test_a_sample_is_fair_and_the_same_for_all_batch_sizes(tmp_path):
    table(5000).to_parquet(tmp_path / "t.parquet")
    one, other = (open_batches(tmp_path / "t.parquet", target="species", batch_rows=size) for size in (5000, 333))
    some, same = one.sample(1000, random_seed=3), other.sample(1000, random_seed=3)
    assert abs(len(some.X) - 1000) < 5 * np.sqrt(1000)
    for name in ("X", "y", "count"):
        np.testing.assert_array_equal(getattr(some, name), getattr(same, name))
    whole = one.sample(10**6)
    assert len(whole.X) == 5000
    np.testing.assert_array_equal(some.count, np.bincount(whole.y))


def test_missing_values_raise_or_drop_their_rows(tmp_path):
    df = table(300)
    df.loc[[5, 250], "length"] = np.nan
    df.loc[[6], "island"] = None
    df.loc[[7], "species"] = None
    df.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match=r"Rows 1 to 300: Target 'species' is missing in 1 row; pass missing=\"drop\""):
        list(open_batches(tmp_path / "t.csv", target="species"))
    df.assign(species=df["species"].fillna("adelie")).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"Rows 1 to 300: Missing values in 'length' \(2\), .*; pass missing=\"drop\""):
        list(open_batches(tmp_path / "t.parquet", target="species"))
    kept = open_batches(tmp_path / "t.csv", target="species", missing="drop", batch_rows=50)
    truth = Dataset.from_frame(df, target="species", missing="drop")
    np.testing.assert_allclose(np.concatenate([X for X, _ in kept]), truth.X, rtol=1e-15)


def test_numbers_that_change_their_form_after_the_first_megabyte(tmp_path):
    """Arrow guesses whole numbers from the beginning; the decimals that follow must not be an error."""
    n = 300_000
    df = pd.DataFrame({"x": [*["1"] * (n - 1), "2.5"], "y": np.arange(n) % 2})
    df.to_csv(tmp_path / "t.csv", index=False)
    moments, _ = fit_moments(tmp_path / "t.csv", target="y")
    assert moments.mean[1, 0] == pytest.approx(1 + 1.5 / (n / 2))
    df.loc[n - 1, "x"] = "?"
    df.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match=r"Cannot read .*'\?'.*columns of one type"):
        fit_moments(tmp_path / "t.csv", target="y")


def test_categories_can_be_asked_for(tmp_path):
    table().to_parquet(tmp_path / "t.parquet")
    batches = open_batches(tmp_path / "t.parquet", target="species", categorical=["count"])
    whole = Dataset.from_frame(table(), target="species", categorical=["count"])
    assert batches.feature_names == whole.feature_names
    np.testing.assert_array_equal(next(iter(batches))[0], whole.X)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"target": "speces"}, "no target column 'speces'. Did you mean 'species'?"),
        ({}, {"target": "species", "missing": "keep"}, '`missing` must be "error" or "drop"'),
        ({}, {"target": "species", "batch_rows": 0}, "`batch_rows` must be a whole number of at least 1; got 0."),
        ({"species": "a"}, {"target": "species"}, "Target 'species' has 1 classes; a classifier needs at least two."),
        ({"island": "a"}, {"target": "species"}, "Column 'island' has 1 levels; drop the column."),
        ({"day": pd.Timestamp("2020-01-01")}, {"target": "species"}, "A column of type timestamp"),
        ({"id": [f"r{i}" for i in range(1500)]}, {"target": "species"}, "more than 1000 different values"),
    ],
)
def test_errors_name_the_column_and_the_remedy(tmp_path, change, options, message):
    table(1500).assign(**change).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError) as error:
        open_batches(tmp_path / "t.parquet", **options)
    assert message in str(error.value)


def test_files_that_are_not_there_or_not_what_they_say(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        open_batches(tmp_path / "t.csv", target="y")
    (tmp_path / "t.parquet").write_text("no")
    with pytest.raises(DataError, match="Cannot read"):
        open_batches(tmp_path / "t.parquet", target="y")
    (tmp_path / "t.xls").write_text("no")
    with pytest.raises(DataError, match="Cannot tell the type"):
        open_batches(tmp_path / "t.xls", target="y")
    (tmp_path / "t.csv").write_text("x,y\n")
    with pytest.raises(DataError, match="The table is empty"):
        open_batches(tmp_path / "t.csv", target="y")


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv"])
def test_memory_does_not_grow_with_the_rows(tmp_path, kind, monkeypatch):
    """Eight times the rows take no more than a tenth of the table more, of Python's memory and Arrow's together."""
    monkeypatch.setattr("bayes_gda.data.large.reading.TEXT_BLOCK", 2**16)  # of which 32 are read ahead
    rng = np.random.default_rng(0)
    columns, block, peaks = 6 if kind == "csv" else 10, 25_000, {}
    names = [*(f"x{j}" for j in range(columns)), "y"]
    schema = pa.schema([(name, pa.int64() if name == "y" else pa.float64()) for name in names])
    make = {"parquet": pq.ParquetWriter, "feather": pa.ipc.new_file, "csv": pa.csv.CSVWriter}[kind]
    low, high = (50_000, 400_000) if kind == "csv" else (100_000, 800_000)
    for n in (low, high):
        path = tmp_path / f"{n}.{kind}"
        with make(str(path), schema) as writer:
            for _ in range(n // block):
                cells = [*rng.normal(size=(columns, block)).round(3), rng.integers(0, 2, block)]
                writer.write_table(pa.table(dict(zip(names, cells, strict=True)), schema=schema))
        before, most = pa.total_allocated_bytes(), [0]
        batches = open_batches(
            path, target="y", progress=lambda _, b=before, m=most: m.append(pa.total_allocated_bytes() - b)
        )
        tracemalloc.start()
        assert batches.moments().n == n
        peaks[n] = tracemalloc.get_traced_memory()[1] + max(most)
        tracemalloc.stop()
    table_bytes = high * columns * 8
    assert peaks[high] < peaks[low] + 0.1 * table_bytes
    assert peaks[high] < 0.5 * table_bytes
