"""From raw columns to numbers, in a way that can be repeated for new rows.

A numeric column stays as it is, a boolean one becomes 0/1, and a categorical one is treatment coded: one 0/1 column for
each level but the first, the reference. A missing value becomes NaN in each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.arrays import extremes, read_only
from bayes_gda.data.classes import Label, Labels
from bayes_gda.data.columns import Kind, RawColumn, parse_column
from bayes_gda.data.validate import check_frame, check_infinite, check_missing, check_varies, columns_hint
from bayes_gda.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

# Rows written at a time, so that they stay in the cache while one column after the other is filled in.
_BLOCK = 4096


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
        check_frame(df)
        for column in self.columns:
            if column.name not in df.columns:
                raise DataError(f"The new rows have no column {column.name!r}.{columns_hint(column.name, df.columns)}")
        raw = parse_columns(
            df, [c.name for c in self.columns], {c.name for c in self.columns if c.kind == "categorical"}
        )
        if missing == "error":
            check_missing({r.name: r.missing for r in raw}, remedy='fill them in, or pass missing="keep".')
        return self._fill(raw)

    def _fill(self, raw: Sequence[RawColumn]) -> Floats:
        """Write the parsed columns into X, side by side."""
        X = np.empty((len(raw[0].missing), len(self.feature_names)))
        numbers: dict[int, Floats] = {}
        start = 0
        for column, parsed in zip(self.columns, raw, strict=True):
            stop = start + len(column.feature_names)
            if column.kind == "categorical" and isinstance(parsed.cells, Labels):
                codes = parsed.cells.code_known(column.levels, f"column {column.name!r}", "level")
                X[:, start:stop] = codes[:, None] == np.arange(1, len(column.levels))
                X[parsed.missing, start:stop] = np.nan
            else:
                numbers[start] = _same_kind(column, parsed)
            start = stop
        for first in range(0, len(X), _BLOCK):
            rows = slice(first, first + _BLOCK)
            for j, cells in numbers.items():
                X[rows, j] = cells[rows]
        return read_only(X)


def parse_columns(df: pd.DataFrame, names: Sequence[str], categorical: set[str]) -> list[RawColumn]:
    """Understand the columns `names`; those in `categorical` hold levels, whatever they look like."""
    raw = [parse_column(name, df[name], name in categorical) for name in names]
    check_infinite({r.name: r.cells for r in raw if not isinstance(r.cells, Labels)})
    return raw


def fit_encoding(raw: Sequence[RawColumn]) -> tuple[Encoding, Floats]:
    """Learn the encoding of parsed columns, and encode them; a column that tells nothing is an error."""
    encoding = Encoding(tuple(_fit_column(r) for r in raw))
    return encoding, encoding._fill(raw)


def _fit_column(raw: RawColumn) -> Column:
    n = len(raw.cells)
    present = n - int(raw.missing.sum())
    if not isinstance(raw.cells, Labels):
        check_varies(raw.name, extremes(raw.cells), present, n)
        return Column(raw.name, raw.kind)
    levels = raw.cells.levels(f"Column {raw.name!r}")
    check_varies(raw.name, levels, present, n)
    if len(levels) == present:
        raise DataError(
            f"Column {raw.name!r} has as many levels as rows ({len(levels)}), like an identifier. Drop the column."
        )
    return Column(raw.name, raw.kind, levels)


def _same_kind(column: Column, raw: RawColumn) -> Floats:
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
