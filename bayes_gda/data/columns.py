"""Understand the raw columns of a table: numbers, booleans, or labels of categories."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, time, timedelta
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.classes import Labels, check_labels, plain, series_labels
from bayes_gda.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

type Kind = Literal["numeric", "boolean", "categorical"]

# With half of its values numbers, a text column is a measurement with slips in it ('?', '1,5'), not categories.
NUMERIC_SHARE = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class RawColumn:
    """A column as it was understood.

    Parameters
    ----------
    name
        Name of the column.
    kind
        What it holds.
    cells
        (n,) numbers with NaN for a missing one; labels if the kind is "categorical".
    missing
        (n,) where a value is missing.
    """

    name: str
    kind: Kind
    cells: Floats | Labels
    missing: NDArray[np.bool_]

    def take(self, rows: NDArray[np.bool_]) -> RawColumn:
        """Keep the rows where `rows` is true."""
        cells = self.cells.take(rows) if isinstance(self.cells, Labels) else self.cells[rows]
        return RawColumn(self.name, self.kind, cells, self.missing[rows])

    def value(self, row: int) -> Any:
        """Return the plain value in a row."""
        cell = plain(self.cells[row])
        return bool(cell) if self.kind == "boolean" else cell


def parse_column(name: str, series: pd.Series[Any], categorical: bool) -> RawColumn:
    """Understand one column by its dtype and, where that is text or `object`, by its values.

    Parameters
    ----------
    name
        Name of the column.
    series
        (n,) raw values.
    categorical
        Whether to take the values as levels, whatever they are.
    """
    import pandas as pd
    from pandas.api import types

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        labels = series_labels(series)
        check_labels(labels.order, f"Column {name!r}")
        return RawColumn(name, "categorical", labels, labels.missing)
    if types.is_complex_dtype(dtype):
        raise DataError(f"Column {name!r} holds complex numbers; split it into real and imaginary parts.")
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        raise DataError(_date_message(name, str(dtype)))
    boolean = types.is_bool_dtype(dtype)
    if not categorical and (boolean or types.is_numeric_dtype(dtype)):
        # With `na_value`, pandas would copy a column that needs none.
        gap: dict[str, Any] = {} if isinstance(dtype, np.dtype) else {"na_value": np.nan}
        # A long double beyond float64 becomes inf here, and an error in check_infinite.
        with np.errstate(over="ignore"):
            cells = series.to_numpy(dtype=np.float64, **gap)
        return RawColumn(name, "boolean" if boolean else "numeric", cells, np.isnan(cells))
    labels = series_labels(series)
    return RawColumn(name, "categorical", labels, labels.missing) if categorical else _parse_text(name, labels)


def _parse_text(name: str, labels: Labels) -> RawColumn:
    """Understand a column of text or Python objects by its distinct values."""
    kinds: dict[type, int] = {}  # the first value of each type
    for code, value in enumerate(labels.values):
        kinds.setdefault(type(value), code)
    for kind, code in kinds.items():
        if issubclass(kind, date | time | timedelta):
            raise DataError(_date_message(name, kind.__name__))
        if kind not in (str, bool, int, float):
            row = int(np.argmax(labels.codes == code)) + 1
            raise DataError(
                f"Column {name!r} holds the type {kind.__name__} in row {row}; use numbers, text or booleans."
            )
    if bool in kinds:
        check_labels(labels.values, f"Column {name!r}")  # raises if something else is among them
    missing = labels.missing
    numbers = np.array([*map(_number, labels.values), np.nan])  # the last one for the code −1
    cells = numbers[labels.codes]
    is_number = ~np.isnan(cells)
    found, total = int(is_number.sum()), int((~missing).sum())
    if found == total:
        return RawColumn(name, "boolean" if bool in kinds else "numeric", cells, missing)
    if found < NUMERIC_SHARE * total:
        return RawColumn(name, "categorical", labels, missing)
    row = int(np.argmin(is_number | missing))
    raise DataError(
        f"Column {name!r} is numeric in {found} of {total} rows, but row {row + 1} holds {labels[row]!r}. Correct it, "
        f"leave the cell empty if the value is missing, or pass categorical=[{name!r}]."
    )


def _number(value: Any) -> float:
    """Read a number; NaN if it is none. Python would also read '1_000', which no table means."""
    try:
        return math.nan if isinstance(value, str) and "_" in value else float(value)
    except ValueError:
        return math.nan
    except OverflowError:  # an int beyond float64, an error in check_infinite
        return math.inf


def _date_message(name: str, kind: str) -> str:
    return (
        f"Column {name!r} holds dates or times ({kind}); turn it into a number, such as days since a start, or drop it."
    )
