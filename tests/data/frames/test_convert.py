"""Frames of other libraries: as pandas has them, with levels, gaps and types."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bayes_gda import Dataset
from bayes_gda.data.frames.convert import as_frame, as_values
from bayes_gda.errors import DataError

COLUMNS = {
    "whole": [1, None, 3, 4],
    "real": [0.5, 1.5, None, 2.5],
    "text": ["a", None, "b", "a"],
    "flag": [True, None, False, True],
}


def arrow():
    return pa.table(COLUMNS).append_column("level", pa.array(["v", "u", None, "u"]).dictionary_encode())


def polars():
    return pl.DataFrame(COLUMNS).with_columns(level=pl.Series(["v", "u", None, "u"], dtype=pl.Categorical))


@pytest.mark.parametrize("make", [arrow, polars])
def test_a_frame_of_another_library_says_the_same(make):
    frame = as_frame(make())
    np.testing.assert_array_equal(frame["whole"], [1, np.nan, 3, 4])
    np.testing.assert_array_equal(frame["real"], [0.5, 1.5, np.nan, 2.5])
    assert frame["text"].tolist() == ["a", None, "b", "a"]
    assert str(frame["flag"].dtype) == "boolean"
    assert list(frame["level"].cat.categories) == ["u", "v"]  # sorted, whichever came first


def test_an_enumeration_keeps_its_order():
    size = pl.Series(["high", "low", "low", "high"], dtype=pl.Enum(["low", "middle", "high"]))
    frame = pl.DataFrame({"size": size, "y": ["a", "b", "a", "b"]})
    assert Dataset.from_frame(frame, target="y").feature_names == ("size[high]",)  # of low, the reference, and high


@pytest.mark.parametrize("library", [pl.DataFrame, pa.table, pd.DataFrame])
def test_dates_are_refused_with_the_remedy(library):
    table = library({"day": [dt.date(2020, 1, i) for i in (1, 2, 3, 4)], "y": list("abab")})
    with pytest.raises(DataError, match=r"'day' holds dates or times.*days since a start, or drop it"):
        Dataset.from_frame(table, target="y")


@pytest.mark.parametrize("library", [pl.DataFrame, pa.table])
def test_data_sets_are_the_same_whichever_library_holds_the_table(library):
    columns = {"a": [1, 2, 3, 4], "b": ["p", "q", "p", "r"], "c": [True, False, True, True], "y": list("uvuv")}
    assert Dataset.from_frame(library(columns), target="y") == Dataset.from_frame(pd.DataFrame(columns), target="y")


def test_decimals_are_numbers():
    table = pa.table({"price": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2))})
    np.testing.assert_array_equal(as_frame(table)["price"], [1.5, np.nan])


def test_what_is_no_frame_is_none_and_a_lazy_one_must_be_collected():
    assert as_frame(np.zeros((2, 2))) is None
    assert as_frame([[1.0, 2.0]]) is None
    with pytest.raises(DataError, match=r"lazy frame.*collect it"):
        as_frame(polars().lazy())


@pytest.mark.parametrize(
    "y",
    [
        pl.Series(["a", "b"]),
        pa.array(["a", "b"]),
        pa.chunked_array([["a"], ["b"]]),
        pd.Series(["a", "b"], dtype="string"),
        pd.Series(["a", "b"], dtype="category"),
    ],
)
def test_columns_become_plain_arrays(y):
    assert type(as_values(y)) is np.ndarray
    assert as_values(y).tolist() == ["a", "b"]


def test_numbers_and_booleans_stay_so():
    assert as_values(pd.Series([1, 2], dtype="Int64")).dtype.kind == "i"
    assert as_values(pl.Series([True, False])).dtype.kind == "b"
    with pytest.raises(DataError, match="`y` is missing in 1 of 2 rows"):
        as_values(pd.Series([1, None], dtype="Int64"))
