"""Data frames of pandas, polars, Arrow and others as one kind, read by narwhals without copies through Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_gda.errors import DataError

if TYPE_CHECKING:
    import narwhals as nw
    import pandas as pd


def as_frame(X: Any) -> pd.DataFrame | None:
    """Return a data frame of any library as pandas'; None if X is none, such as an array.

    A categorical column keeps its levels: in the order that an enumeration or pandas declares, or else sorted.

    Parameters
    ----------
    X
        Anything; a DataFrame of pandas, polars, PyArrow (a Table) or another library that narwhals reads.
    """
    if type(X) is np.ndarray:
        return None
    import narwhals as nw
    import pandas as pd

    if isinstance(X, pd.DataFrame):
        return X
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        # Dask's is one too, and has a door of its own.
        raise DataError(f"The rows of a lazy frame ({type(X).__module__.split('.')[0]}) are not there yet: collect it.")
    if not isinstance(frame, nw.DataFrame):
        return None
    # Not frame.to_pandas(), for which polars needs pyarrow.
    return pd.DataFrame({name: _series(frame[name]) for name in frame.columns})


def as_values(y: Any) -> Any:
    """Return a column of any library as an array of NumPy's own types, text as objects; anything else as it is."""
    if type(y) is np.ndarray:
        return y
    import narwhals as nw
    import pandas as pd

    if type(y).__module__.startswith("pyarrow") and hasattr(y, "to_pylist") and not hasattr(y, "chunks"):
        import pyarrow as pa

        y = pa.chunked_array([y])  # narwhals takes an Arrow column for one, but no plain array
    if isinstance(y, pd.Series):
        series = y
    elif isinstance(frame := nw.from_native(y, pass_through=True, allow_series=True), nw.Series):
        series = _series(frame)
    else:
        return y
    if isinstance(series.dtype, np.dtype):
        return series.to_numpy()
    if series.isna().any():
        raise DataError(f"`y` is missing in {int(series.isna().sum())} of {len(series)} rows. Drop these rows.")
    values = series.to_numpy(dtype=object)
    kinds = {type(value) for value in values.tolist()}
    return values if kinds - {bool, int, float} else np.array(values.tolist())


def _series(column: nw.Series[Any]) -> pd.Series[Any]:
    """Return a column as one of pandas whose type says as much."""
    import narwhals as nw
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, (nw.Categorical, nw.Enum)):
        cells = column.to_list()
        # The levels of a plain categorical stand in the order in which some table had them.
        levels = dtype.categories if isinstance(dtype, nw.Enum) else sorted({c for c in cells if c is not None})
        return pd.Series(pd.Categorical(cells, categories=list(levels)))
    if isinstance(dtype, nw.Decimal):
        column, dtype = column.cast(nw.Float64()), nw.Float64()
    if dtype.is_numeric():
        return pd.Series(np.asarray(column.to_numpy()))
    if isinstance(dtype, nw.Boolean):
        cells = column.to_list()
        return pd.Series(cells, dtype="boolean" if None in cells else "bool")
    return pd.Series(column.to_list(), dtype=object)
