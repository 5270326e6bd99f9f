"""The columns of a table: understood as numbers, booleans or labels, and encoded in a way that can be repeated.

A numeric column stays as it is, a boolean one becomes 0/1, and a categorical one is treatment coded: one 0/1 column for
each level but the first, the reference. A missing value becomes NaN in each of them. A level that was not there when
the encoding was learnt is an error, or is pooled: each of the 0/1 columns takes its mean over the rows that were learnt
from, so that a linear predictor is that of the average level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.arrays import extremes, read_only
from bayes_gda.data.classes import Label, Labels, check_labels, plain, series_labels
from bayes_gda.data.validate import check_frame, check_infinite, check_missing, columns_hint, constant_message
from bayes_gda.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

type Kind = Literal["numeric", "boolean", "categorical"]
# What a level does that is new: raise, count as the average one, or keep a mark for models that have a place for it.
Unseen = Literal["error", "pool", "keep"]
# That mark, in all of the 0/1 columns of the category.
UNSEEN = -1.0
# What a column does that has one value only: raise, be left out, or stay if it is a number.
Constant = Literal["error", "drop", "keep"]

# With half of its values numbers, a text column is a measurement with slips in it ('?', '1,5'), not categories.
NUMERIC_SHARE = 0.5
# Rows written at a time, so that they stay in the cache while one column after the other is filled in.
_BLOCK = 4096


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


# How to take a column of numbers and text for categories: where a table is read, and where an estimator gets a frame.
BY_ARGUMENT = "pass categorical=[{name!r}]"
BY_DTYPE = "make it categories: df[{name!r}].astype(str).astype('category')"


def parse_column(name: str, series: pd.Series[Any], categorical: bool, remedy: str = BY_ARGUMENT) -> RawColumn:
    """Understand one column by its dtype and, where that is text or `object`, by its values.

    Parameters
    ----------
    name
        Name of the column.
    series
        (n,) raw values.
    categorical
        Whether to take the values as levels, whatever they are.
    remedy
        How to have a column of numbers and text taken for levels, for an error: `BY_ARGUMENT` or `BY_DTYPE`.
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
    return RawColumn(name, "categorical", labels, labels.missing) if categorical else _parse_text(name, labels, remedy)


def _parse_text(name: str, labels: Labels, remedy: str) -> RawColumn:
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
    numeric, total = int(is_number.sum()), int((~missing).sum())
    if numeric == total:
        return RawColumn(name, "boolean" if bool in kinds else "numeric", cells, missing)
    if numeric < NUMERIC_SHARE * total:
        return RawColumn(name, "categorical", labels, missing)
    row = int(np.argmin(is_number | missing))
    raise DataError(
        f"Column {name!r} is numeric in {numeric} of {total} rows, but row {row + 1} holds {labels[row]!r:.60}. "
        f"Correct it, leave the cell empty if the value is missing, or {remedy.format(name=name)}."
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


# ── Encoding ────────────────────────────────────────────────────────────────────────────────────────────────────────


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
    shares
        Share of each level among the rows that the encoding was learnt from; empty if they were not counted.
    """

    name: str
    kind: Kind
    levels: tuple[Label, ...] = ()
    shares: tuple[float, ...] = field(default=(), compare=False)  # two columns are coded alike whatever these are

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

    @property
    def plain(self) -> bool:
        """Whether all columns are numbers, which stay as they are."""
        return all(column.kind == "numeric" for column in self.columns)

    def encode(
        self, df: pd.DataFrame, *, missing: Literal["error", "keep"] = "error", unseen: Unseen = "error"
    ) -> Floats:
        """Encode new rows in the same way; the order of the columns is free, and further columns are ignored.

        Parameters
        ----------
        df
            Rows that have every raw column.
        missing
            What a missing value does: raise ("error"), or become NaN ("keep"). Rows are never dropped here.
        unseen
            What a new level of a categorical column does: raise ("error"), count as the average level ("pool"), or
            become UNSEEN ("keep").

        Returns
        -------
        (n, d) features, read-only.
        """
        return self._fill(parse_known(df, self.columns, missing), unseen)

    def _fill(self, raw: Sequence[RawColumn], unseen: Unseen = "error") -> Floats:
        """Write the parsed columns into X, side by side."""
        X = np.empty((len(raw[0].missing), len(self.feature_names)))
        numbers: dict[int, Floats] = {}
        start = 0
        for column, parsed in zip(self.columns, raw, strict=True):
            stop = start + len(column.feature_names)
            if column.kind == "categorical" and isinstance(parsed.cells, Labels):
                codes = code_levels(column, parsed.cells, unseen)
                X[:, start:stop] = codes[:, None] == np.arange(1, len(column.levels))
                if unseen == "pool":
                    X[(codes < 0) & ~parsed.missing, start:stop] = column.shares[1:]
                elif unseen == "keep":
                    X[(codes < 0) & ~parsed.missing, start:stop] = UNSEEN
                X[parsed.missing, start:stop] = np.nan
            else:
                numbers[start] = same_kind(column, parsed)
            start = stop
        for first in range(0, len(X), _BLOCK):
            rows = slice(first, first + _BLOCK)
            for j, cells in numbers.items():
                X[rows, j] = cells[rows]
        return read_only(X)


def parse_columns(
    df: pd.DataFrame, names: Sequence[str], categorical: set[str], remedy: str = BY_ARGUMENT
) -> list[RawColumn]:
    """Understand the columns `names`; those in `categorical` hold levels, whatever they look like."""
    raw = [parse_column(name, df[name], name in categorical, remedy) for name in names]
    check_infinite({r.name: r.cells for r in raw if not isinstance(r.cells, Labels)})
    return raw


def parse_known(df: pd.DataFrame, columns: Sequence[Column], missing: str) -> list[RawColumn]:
    """Understand the columns of new rows, which must have all of them; parameters as in `Encoding.encode`."""
    if missing not in ("error", "keep"):
        raise DataError(f'`missing` must be "error" or "keep" for new rows; got {missing!r}.')
    check_frame(df)
    for column in columns:
        if column.name not in df.columns:
            raise DataError(f"The new rows have no column {column.name!r}.{columns_hint(column.name, df.columns)}")
    raw = parse_columns(df, [c.name for c in columns], {c.name for c in columns if c.kind == "categorical"})
    if missing == "error":
        check_missing({r.name: r.missing for r in raw}, remedy='fill them in, or pass missing="keep".')
    return raw


def code_levels(column: Column, cells: Labels, unseen: Unseen) -> NDArray[np.intp]:
    """Return positions (n,) in the levels of a column; −1 where missing, and for a new level if these are pooled."""
    if unseen not in get_args(Unseen):
        raise DataError(f"`unseen` must be 'error', 'pool' or 'keep'; got {unseen!r}.")
    if unseen == "error":
        return cells.code_known(column.levels, f"column {column.name!r}", "level")
    codes = cells.code(column.levels)
    if unseen == "pool" and not column.shares and ((codes < 0) & ~cells.missing).any():
        raise DataError(
            f"Column {column.name!r} has a new level, but the shares of the known ones were not counted, as in a table "
            "read in batches. Use unseen='error', or fit to rows in memory."
        )
    return codes


def fit_encoding(raw: Sequence[RawColumn], constant: Constant = "error") -> tuple[Encoding, Floats]:
    """Learn the encoding of parsed columns, and encode them.

    Parameters
    ----------
    raw
        The columns.
    constant
        What those do that have one value only: raise, all named at once ("error"), stay out ("drop"), or stay if they
        are numbers ("keep").
    """
    used = [r for r in raw if isinstance(r.cells, Labels) or constant != "keep"]
    without = constant_columns(used)
    if without and constant != "drop":
        raise DataError(constant_message(without, len(raw[0].missing)))
    raw = [r for r in raw if r.name not in without]
    if not raw:
        raise DataError(constant_message(without, 0))
    encoding = Encoding(tuple(fit_column(r) for r in raw))
    return encoding, encoding._fill(raw)


def constant_columns(raw: Sequence[RawColumn]) -> dict[str, tuple[list[Any], int]]:
    """Return the columns that do not vary: the one value that each has, or none, and the rows that have it."""
    constant: dict[str, tuple[list[Any], int]] = {}
    for r in raw:
        values = list(r.cells.levels(f"Column {r.name!r}")) if isinstance(r.cells, Labels) else extremes(r.cells)
        if len(values) < 2:
            constant[r.name] = values, len(r.missing) - int(r.missing.sum())
    return constant


def fit_column(raw: RawColumn) -> Column:
    """Learn how one parsed column is encoded."""
    if not isinstance(raw.cells, Labels):
        return Column(raw.name, raw.kind)
    present = len(raw.cells) - int(raw.missing.sum())
    levels = raw.cells.levels(f"Column {raw.name!r}")
    if len(levels) == present:
        raise DataError(
            f"Column {raw.name!r} has as many levels as rows ({len(levels)}), like an identifier. Drop the column."
        )
    count = np.bincount(raw.cells.code(levels) + 1, minlength=len(levels) + 1)[1:]
    return Column(raw.name, raw.kind, levels, tuple((count / present).tolist()))


def same_kind(column: Column, raw: RawColumn) -> Floats:
    """Return the values of a column that must be of the kind it was when the encoding was learnt."""
    if raw.missing.all():
        return np.full(len(raw.cells), np.nan)
    fits = raw.missing | (raw.kind == column.kind)
    if column.kind == "boolean" and raw.kind == "numeric":  # 0/1, as the encoding itself writes them
        fits |= (raw.cells == 0) | (raw.cells == 1)
    if isinstance(raw.cells, Labels) or not fits.all():
        i = int(np.argmin(fits))
        raise DataError(
            f"Column {column.name!r} is {column.kind}; got {raw.value(i)!r} in row {i + 1}. Correct the new rows."
        )
    return raw.cells
