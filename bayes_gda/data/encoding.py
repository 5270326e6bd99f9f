"""From raw columns to numbers, in a way that can be repeated for new rows.

A numeric column stays as it is, a boolean one becomes 0/1, and a categorical one is treatment coded: one 0/1 column for
each level but the first, the reference. A missing value becomes NaN in each of them. Class labels become codes.

Row numbers in messages count the data rows from 1: in a CSV file without blank lines, row i is on line i + 1.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

type Label = str | int | float | bool
type Kind = Literal["numeric", "boolean", "categorical"]
type Missing = Literal["error", "drop", "keep"]

# With half of its values numbers, a text column is a measurement with slips in it ('?', '1,5'), not categories.
NUMERIC_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Column:
    """How one raw column becomes columns of X.

    Parameters
    ----------
    name
        Name of the raw column.
    kind
        What it holds.
    levels
        Levels of a categorical column, the reference first; empty otherwise.
    """

    name: str
    kind: Kind
    levels: tuple[Label, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of X that it becomes, such as `island[Dream]`."""
        return tuple(f"{self.name}[{level}]" for level in self.levels[1:]) or (self.name,)


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a table's raw columns become X; of plain values only, so that it can be stored as JSON.

    Parameters
    ----------
    columns
        One entry for each raw column, in the order of X.
    """

    columns: tuple[Column, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        return tuple(name for column in self.columns for name in column.feature_names)

    def encode(self, df: pd.DataFrame, *, missing: Literal["error", "keep"] = "error") -> Floats:
        """Encode new rows in the same way; the order of the columns is free, and further columns are ignored.

        Parameters
        ----------
        df
            Rows that have every raw column.
        missing
            What a missing value does: raise ("error"), or become NaN ("keep"). Rows are never dropped here.

        Returns
        -------
        (n, d) features, read-only.
        """
        if missing not in ("error", "keep"):
            raise DataError(f'`missing` must be "error" or "keep" for new rows; got {missing!r}.')
        check_columns(df)
        for column in self.columns:
            if column.name not in df.columns:
                raise DataError(f"The new rows have no column {column.name!r}.{columns_hint(column.name, df.columns)}")
        forced = [column.name for column in self.columns if column.kind == "categorical"]
        raw = [parse_column(column.name, df[column.name], column.name in forced) for column in self.columns]
        check_infinite({r.name: int(np.isinf(r.cells).sum()) for r in raw if r.kind != "categorical"})
        if missing == "error":
            check_missing({r.name: int(r.missing.sum()) for r in raw}, remedy='fill them in, or pass missing="keep".')
        return self._fill(raw)

    def _fill(self, raw: Sequence[RawColumn]) -> Floats:
        """Write the parsed columns into X, side by side."""
        X = np.empty((len(raw[0].missing), len(self.feature_names)))
        start = 0
        for column, parsed in zip(self.columns, raw, strict=True):
            stop = start + len(column.feature_names)
            if column.kind == "categorical":
                codes = _level_codes(column, parsed)
                X[:, start:stop] = codes[:, None] == np.arange(1, len(column.levels))
                X[parsed.missing, start:stop] = np.nan
            else:
                X[:, start] = _same_kind(column, parsed)
            start = stop
        X.setflags(write=False)
        return X


@dataclass(frozen=True, slots=True, eq=False)
class RawColumn:
    """A column as it was understood: `cells` are floats with NaN, or labels; `order` are declared levels, if any."""

    name: str
    kind: Kind
    cells: NDArray[Any]
    missing: NDArray[np.bool_]
    order: tuple[Label, ...] = ()

    def take(self, rows: NDArray[np.bool_]) -> RawColumn:
        """Keep the rows where `rows` is true."""
        return RawColumn(self.name, self.kind, self.cells[rows], self.missing[rows], self.order)


def fit_encoding(raw: Sequence[RawColumn]) -> tuple[Encoding, Floats]:
    """Learn the encoding of parsed columns, and encode them; a column that tells nothing is an error."""
    encoding = Encoding(tuple(_fit_column(r) for r in raw))
    return encoding, encoding._fill(raw)


def _fit_column(raw: RawColumn) -> Column:
    present = raw.cells[~raw.missing]
    if not len(present):
        raise DataError(f"Column {raw.name!r} has no values: all {len(raw.cells)} rows are missing. Drop the column.")
    if raw.kind != "categorical":
        check_constant(raw.name, present)
        return Column(raw.name, raw.kind)
    used = set(present.tolist())
    levels = tuple(level for level in raw.order if level in used) or natural_order(present, f"Column {raw.name!r}")
    if len(levels) == 1:
        check_constant(raw.name, present)
    if len(levels) == len(present):
        raise DataError(
            f"Column {raw.name!r} has as many levels as rows ({len(levels)}), like an identifier. Drop the column."
        )
    return Column(raw.name, raw.kind, levels)


def _level_codes(column: Column, raw: RawColumn) -> NDArray[np.intp]:
    """Code labels as positions in the known levels; a missing one is −1."""
    position = {level: i for i, level in enumerate(column.levels)}
    codes = np.fromiter((position.get(level, -1) for level in raw.cells), dtype=np.intp, count=len(raw.cells))
    unknown = (codes < 0) & ~raw.missing
    if unknown.any():
        i = int(np.argmax(unknown))
        raise DataError(
            f"Level {raw.cells[i]!r} of column {column.name!r} (row {i + 1}) is unknown; "
            f"the known levels are {listed(column.levels)}. Correct it, or fit again with this level."
        )
    return codes


def _same_kind(column: Column, raw: RawColumn) -> Floats:
    """Return the values of a column that must be of the kind it was when the encoding was learnt."""
    if raw.missing.all():
        return np.full(len(raw.cells), np.nan)
    if column.kind == "boolean" and raw.kind == "numeric":  # 0/1, as the encoding itself writes them
        fits = raw.missing | np.isin(raw.cells, (0, 1))
    else:
        fits = raw.missing | (raw.kind == column.kind)
    if not fits.all():
        i = int(np.argmin(fits))
        value = bool(raw.cells[i]) if raw.kind == "boolean" else plain(raw.cells[i])
        raise DataError(f"Column {column.name!r} is {column.kind}; got {value!r} in row {i + 1}. Correct the new rows.")
    return raw.cells


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
    missing = series.isna().to_numpy(dtype=bool)
    if isinstance(dtype, pd.CategoricalDtype):
        order = tuple(plain(level) for level in dtype.categories)
        check_labels(order, f"Column {name!r}")
        return RawColumn(name, "categorical", _labels(series), missing, order)
    if types.is_complex_dtype(dtype):
        raise DataError(f"Column {name!r} holds complex numbers; split it into real and imaginary parts.")
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        raise DataError(_date_message(name, str(dtype)))
    if categorical:
        return RawColumn(name, "categorical", _labels(series), missing)
    if types.is_bool_dtype(dtype):
        return RawColumn(name, "boolean", series.to_numpy(dtype=np.float64, na_value=np.nan), missing)
    if types.is_numeric_dtype(dtype):
        # A long double beyond float64 becomes inf here, and an error in check_infinite.
        with np.errstate(over="ignore"):
            return RawColumn(name, "numeric", series.to_numpy(dtype=np.float64, na_value=np.nan), missing)
    return _parse_text(name, _labels(series), missing)


def _parse_text(name: str, labels: NDArray[Any], missing: NDArray[np.bool_]) -> RawColumn:
    """Understand a column of text or Python objects, value by value."""
    kinds: dict[type, int] = {}  # the first row of each type
    for i, value in enumerate(labels):
        if not missing[i]:
            kinds.setdefault(type(value), i + 1)
    for kind, row in kinds.items():
        if issubclass(kind, date | time | timedelta):
            raise DataError(_date_message(name, kind.__name__))
        if kind not in (str, bool, int, float):
            raise DataError(
                f"Column {name!r} holds the type {kind.__name__} in row {row}; use numbers, text or booleans."
            )
    if set(kinds) == {bool}:
        values = np.array([np.nan if gone else value for value, gone in zip(labels, missing, strict=True)], dtype=float)
        return RawColumn(name, "boolean", values, missing)
    if bool in kinds:
        natural_order(labels[~missing], f"Column {name!r}")  # raises: booleans mixed with something else
    numbers = np.array([np.nan if gone else _number(v) for v, gone in zip(labels, missing, strict=True)], dtype=float)
    is_number = ~np.isnan(numbers)
    found, total = int(is_number.sum()), int((~missing).sum())
    if found == total:
        return RawColumn(name, "numeric", numbers, missing)
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


# -- labels ------------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return a label as a plain Python value: no NumPy scalars, and whole floats as ints."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal):
        value = int(value) if value.is_finite() and value == int(value) else float(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def check_labels(values: Iterable[Any], what: str) -> None:
    """Check that labels are all text, all numbers or all booleans."""
    first: dict[str, Any] = {}
    groups = {str: "text", bool: "booleans", int: "numbers", float: "numbers"}
    for value in values:
        if type(value) not in groups:
            raise DataError(f"{what} has a label of type {type(value).__name__}; use text, whole numbers or booleans.")
        first.setdefault(groups[type(value)], value)
    if len(first) > 1:
        (one, a), (two, b) = list(first.items())[:2]
        raise DataError(f"{what} mixes {one} ({a!r}) and {two} ({b!r}); convert all its values to text.")


def natural_order(values: Iterable[Any], what: str) -> tuple[Label, ...]:
    """Return the distinct labels in their natural order: numbers by size, False before True, text alphabetically."""
    check_labels(values, what)
    return tuple(sorted(set(values)))


def as_labels(y: Any, what: str) -> tuple[NDArray[Any], tuple[Label, ...]]:
    """Return labels as plain Python values, None where missing, and the order that a pandas Categorical declares."""
    dtype = getattr(y, "dtype", None)
    order = tuple(plain(level) for level in getattr(dtype, "categories", ()))
    if getattr(dtype, "kind", "") in "mM" and dtype is not None:  # NumPy would turn nanoseconds into plain ints
        raise DataError(f"{what} holds dates or times ({dtype}); use text, whole numbers or booleans as labels.")
    if hasattr(y, "isna") and y.ndim == 1:
        import pandas as pd

        return _labels(pd.Series(y)), order
    if isinstance(y, np.ma.MaskedArray):
        mask, y = np.ma.getmaskarray(y), np.ma.getdata(y).astype(object)
        y[mask] = None
    # Not np.asarray(y) for a list: it would turn ['a', 1] into text.
    array = y if isinstance(y, np.ndarray) else np.asarray(y, dtype=object)
    if array.ndim != 1:
        raise DataError(f"{what} must be 1-d; got shape {array.shape}. Use np.ravel(y) for a single column.")
    if array.dtype.kind in "biuU":
        distinct, codes = np.unique(array, return_inverse=True)
        return _objects(plain(value) for value in distinct)[codes], order
    return _objects(_cell(value) for value in array), order


def _labels(series: pd.Series[Any]) -> NDArray[Any]:
    """Return the values of a column as plain Python ones, None where missing."""
    import pandas as pd

    if series.dtype == object:  # not by factorize, which takes True and 1 for the same
        return _objects(_cell(value) for value in series)
    codes, distinct = pd.factorize(series)  # a missing value has code −1
    return _objects([*(plain(value) for value in distinct), None])[codes]


def _objects(values: Iterable[Any]) -> NDArray[Any]:
    values = list(values)
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _cell(value: Any) -> Any:
    """Return a plain value, or None for a missing one."""
    value = plain(value)
    # pd.NA and pd.NaT are known by name, so that arrays do not need pandas.
    missing = type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and math.isnan(value))
    return None if missing else value


def code_labels(
    labels: NDArray[Any], order: tuple[Label, ...], what: str
) -> tuple[NDArray[np.intp], tuple[Label, ...]]:
    """Code labels as 0…K−1; without a declared order, in the natural one."""
    used = set(labels.tolist()) if order else set()
    check_labels(order, what)
    classes = tuple(label for label in order if label in used) or natural_order(labels, what)
    broken = [label for label in classes if isinstance(label, float)]
    if broken and not order:
        raise DataError(
            f"{what} looks continuous: {broken[0]!r} is not a whole number. Cut it into classes, or convert it to text."
        )
    if len(classes) < 2:
        raise DataError(f"{what} has only one class, {classes[0]!r}; a classifier needs at least two.")
    if len(classes) == len(labels):
        raise DataError(
            f"{what} has as many classes as rows ({len(labels)}), like an identifier or a measurement. Choose another."
        )
    position = {label: k for k, label in enumerate(classes)}
    return np.fromiter((position[label] for label in labels), dtype=np.intp, count=len(labels)), classes


# -- checks and messages -----------------------------------------------------------------------------------------------


def check_columns(df: pd.DataFrame) -> None:
    """Check that `df` is a data frame with distinct text names."""
    import pandas as pd

    if not isinstance(df, pd.DataFrame):
        raise DataError(f"The table must be a pandas DataFrame; got {type(df).__name__}.")
    names = list(df.columns)
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"Column names must be text; got {name!r}. Use df.rename(columns=str).")
    check_distinct(names, "Column name")


def check_distinct(names: Sequence[Any], what: str) -> None:
    """Check that no name appears twice."""
    if len(set(names)) < len(names):
        name = next(name for name in names if list(names).count(name) > 1)
        raise DataError(f"{what} {name!r} appears {list(names).count(name)} times; rename or drop the copies.")


def check_constant(name: str, present: NDArray[Any]) -> None:
    """Check that a column's non-missing values are not all the same."""
    if (present == present[0]).all():
        raise DataError(
            f"Column {name!r} is constant ({plain(present[0])!r} in all {len(present)} rows). Drop the column."
        )


def check_infinite(counts: dict[str, int]) -> None:
    """Check that there are no infinite values, given their number in each column."""
    if any(counts.values()):
        raise DataError(
            f"Infinite values, or numbers too large for float64, in {_counted(counts)}; correct or drop these rows."
        )


def check_missing(counts: dict[str, int], remedy: str) -> None:
    """Check that there are no missing values, given their number in each column."""
    if any(counts.values()):
        raise DataError(f"Missing values in {_counted(counts)}; {remedy}")


def complete_rows(
    gaps: dict[str, NDArray[np.bool_]], labels: NDArray[Any], what: str, missing: Missing
) -> NDArray[np.bool_]:
    """Return which rows to keep, given where each column has gaps, and the labels; or raise, as `missing` says."""
    labelled = np.array([label is not None for label in labels], dtype=bool)
    if missing == "drop":
        keep = labelled.copy()
        for gap in gaps.values():
            keep &= ~gap
        if not keep.any():
            worst = max(gaps, key=lambda name: int(gaps[name].sum()))
            raise DataError(
                f"No row is complete; {worst!r} has most gaps ({gaps[worst].sum()} of {len(keep)}). Drop that column."
            )
        return keep
    if not labelled.all():
        count = int((~labelled).sum())
        rows = "1 row" if count == 1 else f"{count} rows"
        raise DataError(f'{what} is missing in {rows}; fill in the labels, or pass missing="drop".')
    if missing == "error":
        remedy = 'drop these rows with missing="drop" or keep the gaps with missing="keep".'
        check_missing({name: int(gap.sum()) for name, gap in gaps.items()}, remedy)
    return labelled


def _counted(counts: dict[str, int], limit: int = 6) -> str:
    bad = [f"{name!r} ({count})" for name, count in counts.items() if count]
    return ", ".join(bad[:limit]) + (f" and {len(bad) - limit} more columns" if len(bad) > limit else "")


def listed(values: Iterable[Any], limit: int = 12) -> str:
    """Return a comma-separated list for a message, cut after `limit` entries."""
    values = list(values)
    rest = f" and {len(values) - limit} more" if len(values) > limit else ""
    return ", ".join(repr(value) for value in values[:limit]) + rest


def near_misses(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean …?" for an unknown name, or nothing if no known one is near."""
    by_lower = {k.lower().strip(): k for k in known}
    near = [by_lower[k] for k in difflib.get_close_matches(str(name).lower().strip(), by_lower)]
    return f" Did you mean {listed(near)}?" if near else ""


def columns_hint(name: str, columns: Iterable[str]) -> str:
    """Return the end of a message on an unknown column: those that are near, or else all."""
    columns = list(columns)
    return near_misses(name, columns) or f" The columns are {listed(columns)}."
