"""Files that are not what their name says: the readers and the store answer with a table, a model, or one line."""

import gzip
import io

import numpy as np
import pandas as pd
import pytest
from hostile.judge import Refused, lawful
from hostile.profiles import examples
from hypothesis import given
from hypothesis import strategies as st

from bayes_gda import load, load_example, read_table
from bayes_gda.data.large.batches import open_batches
from bayes_gda.errors import DataError, StoreError
from bayes_gda.estimators import BayesianLDA
from bayes_gda.store import load_encoding

KINDS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".feather")
CELLS = st.one_of(
    st.sampled_from(
        [
            "1",
            "2.5",
            "-3",
            "1e400",
            "-1e400",
            "1e-400",
            "0x1F",
            "1_000",
            "1,5",
            "1;2",
            "NaN",
            "NA",
            "",
            " ",
            "inf",
            "-inf",
        ]
    ),
    st.sampled_from(
        ["a", "b", '"', '""', '"a', "'", "a\nb", "a\rb", "\0", "\ufeff", "é", "日本", "🙂", "True", "false"]
    ),
    st.sampled_from(["2020-01-01", "12:30", "None", "null", "#N/A", "1+2j", "٣", "９", "1" * 400, "x" * 70_000]),
    st.text(max_size=4),
)


def rows_of(batches):
    return sum(len(y) for _, y in batches)


def read_both(path):
    """Read a file by both readers; each answers with rows, or refuses."""
    for read in (
        lambda: read_table(path, target="y"),
        lambda: read_table(path, target="y", missing="drop"),
        lambda: rows_of(open_batches(path, target="y")),
        lambda: rows_of(open_batches(path, target="y", missing="drop", batch_rows=2)),
    ):
        try:
            with lawful():
                read()
        except Refused:
            pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.mark.parametrize("kind", KINDS)
@examples(4, 150)
@given(content=st.binary(max_size=200))
def test_random_bytes(folder, kind, content):
    path = folder / f"random{kind}"
    path.write_bytes(content)
    read_both(path)


@examples(20, 600)
@given(
    header=st.lists(st.one_of(st.sampled_from(["a", "b", "c", "", "y"]), CELLS), min_size=0, max_size=3),
    rows=st.lists(st.lists(CELLS, min_size=0, max_size=5), max_size=6),
    encoding=st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"]),
    ending=st.sampled_from(["\n", "\r\n", "\r"]),
    quoted=st.booleans(),
)
def test_tables_of_odd_cells(folder, header, rows, encoding, ending, quoted):
    def written(cells):
        return ",".join('"' + cell.replace('"', '""') + '"' if quoted else cell for cell in cells)

    text = ending.join([written(["y", *header]), *(written(["pq"[i % 2], *row]) for i, row in enumerate(rows))])
    path = folder / "odd.csv"
    path.write_bytes(text.encode(encoding, "replace"))
    read_both(path)


def _good_frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.standard_normal(40), "b": rng.integers(3, size=40), "y": ["p", "q"] * 20})


def _good_bytes(kind):
    frame, buffer = _good_frame(), io.BytesIO()
    if kind == ".parquet":
        frame.to_parquet(buffer)
    elif kind == ".feather":
        frame.to_feather(buffer)
    else:
        text = frame.to_csv(index=False, sep="\t" if "tsv" in kind else ",").encode()
        return gzip.compress(text, mtime=0) if kind.endswith(".gz") else text
    return buffer.getvalue()


@pytest.mark.parametrize("kind", KINDS)
@examples(5, 300)
@given(data=st.data())
def test_good_files_cut_short_or_with_flipped_bits(folder, kind, data):
    content = bytearray(_good_bytes(kind))
    if data.draw(st.booleans(), "cut"):
        content = content[: data.draw(st.integers(0, len(content) - 1), "length")]
    else:
        for _ in range(data.draw(st.integers(1, 3), "flips")):
            content[data.draw(st.integers(0, len(content) - 1), "byte")] ^= 1 << data.draw(st.integers(0, 7), "bit")
    path = folder / f"damaged{kind}"
    path.write_bytes(bytes(content))
    read_both(path)


COLUMNS = {
    "text": ["a", "b", None, "a"],
    "mixed": [1, "a", None, 2.5],
    "complex": [1j, 2, 3, 4],
    "bytes": [b"a", b"\xff", b"", None],
    "dates": pd.to_datetime(["2020-01-01", None, "1700-01-01", "2020-01-01"]),
    "durations": pd.to_timedelta([1, 2, None, 4], unit="s"),
    "intervals": pd.interval_range(0, 4),
    "periods": pd.period_range("2020", periods=4, freq="D"),
    "lists": [[1], [], None, [2, 3]],
    "dicts": [{"a": 1}, {}, {"a": 2}, {"a": 3}],
    "huge": [10**400, 1, 2, 3],
    "infinite": [np.inf, 1, 2, 3],
    "too large": [1e300, 1, 2, 3],
    "too small": [1e-300, 2e-300, 0, 3e-300],
    "missing": [None, None, None, None],
    "booleans": pd.array([True, False, None, True], dtype="boolean"),
    "integers": pd.array([1, None, 3, 2**62], dtype="Int64"),
    "categories": pd.Categorical(["a", "b", "a", None], categories=["b", "a", "unused"]),
}


@pytest.mark.parametrize("as_target", [False, True])
@pytest.mark.parametrize("column", COLUMNS)
def test_columns_of_every_type(folder, column, as_target):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.5, 4.0], "x": pd.Series(COLUMNS[column]), "y": ["p", "q", "p", "q"]})
    if as_target:
        frame = frame.rename(columns={"x": "y", "y": "x"})
    from bayes_gda import Dataset

    try:
        with lawful():
            Dataset.from_frame(frame, target="y", missing="drop")
    except Refused:
        pass
    for kind, write in ((".parquet", frame.to_parquet), (".feather", frame.to_feather)):
        path = folder / f"column{kind}"
        try:
            write(path)
        except Exception:  # what Arrow cannot write, nobody will read
            continue
        read_both(path)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "[Ee]mpty|No columns"),
        (b"y,a\n", "no rows|empty"),
        (b"y,a,a\np,1,2\nq,3,4\n", "'a' appears 2 times"),
        (b"y,,a\np,1,2\nq,3,4\n", "no name"),
        (b"y,a\np,1,2\nq,3,4,5\n", "more fields|Expected [23]"),
        (b"y,a\np,1e400\nq,2\n", "Infinite values, or numbers too large"),
        (b"y,a\np,0x1F\nq,2\np,3\nq,4\n", "0x1F"),
        ("y,a\np,é\nq,ü\n".encode("latin-1"), "utf-8|UTF-8"),
    ],
)
def test_both_readers_say_what_is_wrong(tmp_path, content, match):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=match):
        read_table(path, target="y")
    with pytest.raises(DataError, match=match):
        rows_of(open_batches(path, target="y"))


# ── The store ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.nc"
    iris = load_example("iris")
    BayesianLDA(draws=2, chains=1).fit(iris.X, iris.y).save(path)
    return path.read_bytes()


@examples(12, 500)
@given(content=st.one_of(st.binary(max_size=300), st.binary(max_size=50).map(lambda b: b"\x89HDF\r\n\x1a\n" + b)))
def test_no_random_bytes_are_a_model(folder, content):
    path = folder / "random.nc"
    path.write_bytes(content)
    for read in (load, load_encoding):
        with pytest.raises(StoreError) as caught:
            read(path)
        assert "\n" not in str(caught.value)


@examples(12, 500)
@given(data=st.data())
def test_no_splice_of_a_model_is_a_model(folder, model, data):
    """Parts left out, doubled, put elsewhere or filled with zeros; bits and ends are in tests/store/test_damage.py."""
    n = len(model)
    start, stop = sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n)), "part"))
    way = data.draw(st.sampled_from(["leave out", "double", "zeros", "to the end", "append"]), "way")
    part = model[start:stop]
    spliced = {
        "leave out": model[:start] + model[stop:],
        "double": model[:stop] + model[start:],
        "zeros": model[:start] + bytes(len(part)) + model[stop:],
        "to the end": model[:start] + model[stop:] + part,
        "append": model + part,
    }[way]
    path = folder / "spliced.nc"
    path.write_bytes(spliced)
    if spliced == model:
        load(path)
        return
    with pytest.raises(StoreError):
        load(path)
