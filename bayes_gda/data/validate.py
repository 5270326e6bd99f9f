"""Checks of tables, each of which raises one line that says what to do, and the phrases that these lines share.

Row numbers in messages count the data rows from 1: in a CSV file without blank lines, row i is on line i + 1.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats, sum_of_squares
from bayes_gda.errors import DataError
from bayes_gda.missing import TRAINING

if TYPE_CHECKING:
    import pandas as pd

# The largest value of a feature, and its least spread. A new row may then lie 1e130 spreads away from all others; the
# square of that, and the counts and determinants that go with it, are still doubles, which end at 1.8e308.
LARGEST, SMALLEST = 1e65, 1e-65
# Rows, spread over all, that are to show whether a feature varies.
LOOKED_AT = 100
# The computed standard deviation of a constant column of value v is a few ulps of v.
CONSTANT = 1e-12

# -- columns -----------------------------------------------------------------------------------------------------------


def check_frame(df: pd.DataFrame) -> None:
    """Check that `df` is a data frame with distinct text names."""
    import pandas as pd

    if not isinstance(df, pd.DataFrame):
        raise DataError(f"The table must be a pandas DataFrame; got {type(df).__name__}.")
    names = list(df.columns)
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"Column names must be text; got {name!r}. Use df.rename(columns=str).")
    check_distinct(names, "Column name")


def check_target(df: pd.DataFrame, target: str) -> None:
    """Check that `df` is a data frame with distinct text names, one of them the target."""
    check_frame(df)
    if target not in df.columns:
        raise DataError(f"The table has no target column {target!r}.{columns_hint(target, df.columns)}")


def drop_columns(df: pd.DataFrame, drop: Iterable[str], target: str | None) -> pd.DataFrame:
    """Return the table without some columns, each of which it must have."""
    if isinstance(drop, str):
        raise DataError(f"`drop` must be a list of columns; got {drop!r}. Use [{drop!r}].")
    names = list(drop)
    for name in names:
        if name not in df.columns:
            raise DataError(f"`drop` names no column: {name!r}.{columns_hint(name, df.columns)}")
        if name == target:
            raise DataError(f"`drop` names the target {name!r}. Leave it out.")
    return df.drop(columns=names)


def check_filled(df: pd.DataFrame) -> None:
    """Check that `df` has rows."""
    if not len(df):
        raise DataError(f"The table is empty: {len(df.columns)} columns, but no rows. Add rows.")


def check_categorical(categorical: Iterable[str], features: list[str], target: str) -> set[str]:
    """Return the set of columns to take as categorical, all of them features."""
    if isinstance(categorical, str):
        raise DataError(f"`categorical` must be a list of columns; got {categorical!r}. Use [{categorical!r}].")
    categorical = set(categorical)
    for name in sorted(categorical - set(features), key=str):
        if name == target:
            raise DataError(f"`categorical` names the target {target!r}, whose classes need no coding; leave it out.")
        raise DataError(f"`categorical` names {name!r}, which is no column.{columns_hint(name, features)}")
    return categorical


def check_distinct(names: Sequence[Any], what: str) -> None:
    """Check that no name appears twice."""
    if len(set(names)) < len(names):
        name = next(name for name in names if list(names).count(name) > 1)
        raise DataError(f"{what} {name!r} appears {list(names).count(name)} times; rename or drop the copies.")


def constant_message(columns: Mapping[str, tuple[Sequence[Any], int]], n: int) -> str:
    """Return what to say of columns that do not vary in n rows.

    Parameters
    ----------
    columns
        For each the one value that it has, or none if all are missing, and the number of rows that have it.
    n
        Rows of the table; 0 if no other column is left.
    """
    if not n:
        return f"Every feature column is constant: {listed(columns)}. Add a column that varies."
    if len(columns) == 1:
        ((name, (values, present)),) = columns.items()
        if not len(values):
            return f"Column {name!r} has no values: all {n} rows are missing. Drop the column."
        return f"Column {name!r} is constant ({values[0]!r} in all {present} rows). Drop the column."
    said = [f"{name!r} ({repr(values[0]) if len(values) else 'no value'})" for name, (values, _) in columns.items()]
    rest = f" and {len(said) - 12} more" if len(said) > 12 else ""
    return f'{len(said)} columns are constant: {", ".join(said[:12])}{rest}. Drop them all: constant="drop".'


# -- values ------------------------------------------------------------------------------------------------------------


def check_infinite(columns: Mapping[str, Floats]) -> None:
    """Check that no column has infinite values."""
    counts = {name: int(np.isinf(cells).sum()) for name, cells in columns.items()}
    if any(counts.values()):
        raise DataError(
            f"Infinite values, or numbers too large for float64, in {_counted(counts)}; correct or drop these rows."
        )


def check_size(X: Floats, names: Sequence[str], largest: float = LARGEST) -> None:
    """Check that no value of X (n, d) is so large that squares overflow; NaN passes."""
    if not sum_of_squares(X) <= largest**2:  # else no value is larger, and there is nothing to name
        _check_size(*_range(X), names, largest)


def check_range(X: Floats, names: Sequence[str]) -> None:
    """Check the size of X (n, d), and that no feature varies by so little that the square is lost.

    A feature that does not vary at all passes, and so does NaN.
    """
    # The sum of squares bounds every value, and some rows show that a feature varies. The ranges of all rows, which
    # take twice as long as the moments, are looked at only where that is not enough.
    sample = X[:: max(1, len(X) // LOOKED_AT)]
    if len(X) and sum_of_squares(X) <= LARGEST**2 and (np.ptp(sample, axis=0) >= SMALLEST).all():
        return
    low, high = _range(X)
    _check_size(low, high, names, LARGEST)
    for j in np.flatnonzero((low < high) & (high - low < SMALLEST))[:1].tolist():
        raise DataError(
            f"Feature {names[j]!r} varies by {high[j] - low[j]:.3g} only; what is below {SMALLEST:g} is lost when it "
            "is squared. Give it in a smaller unit."
        )


def _check_size(low: Floats, high: Floats, names: Sequence[str], largest: float) -> None:
    size = np.fmax(-low, high)
    for j in np.flatnonzero(size > largest)[:1].tolist():
        raise DataError(
            f"Feature {names[j]!r} has a value of size {size[j]:.3g}; values beyond {largest:g} overflow when they are "
            "squared. Give it in a larger unit, or drop that row."
        )


def _range(X: Floats) -> tuple[Floats, Floats]:
    """Smallest and largest value of each feature (d,); NaN if there is none."""
    if not len(X):
        nothing = np.full(X.shape[1], np.nan)
        return nothing, nothing
    low, high = X.min(axis=0), X.max(axis=0)
    if np.isnan(low).any():  # these look past NaN, and take several times as long
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    return low, high


def check_missing(gaps: Mapping[str, NDArray[np.bool_]], remedy: str) -> None:
    """Check that there are no missing values, given where each column has them."""
    counts = {name: int(gap.sum()) for name, gap in gaps.items()}
    if any(counts.values()):
        raise DataError(f"Missing values in {_counted(counts)}; {remedy}")


def check_option(missing: str, options: tuple[str, ...] = TRAINING) -> None:
    """Check that `missing` is one of the ways to treat missing values that are offered."""
    if missing not in options:
        raise DataError(f"`missing` must be one of {listed(options)}; got {missing!r}.")


def check_labelled(unlabelled: NDArray[np.bool_], what: str, remedy: str) -> None:
    """Check that every row has a label."""
    if count := int(unlabelled.sum()):
        rows = "1 row" if count == 1 else f"{count} rows"
        raise DataError(f"{what} is missing in {rows}; {remedy}")


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """Where rows come from, if some of their table were left out.

    Parameters
    ----------
    rows
        (n,) their positions in the table that was read, from 0.
    total
        Rows of that table.
    missing
        Missing values by column, before incomplete rows were left out; columns without any are not there.
    unlabelled
        Rows without a label among them.
    """

    rows: NDArray[np.intp]
    total: int
    missing: Mapping[str, int]
    unlabelled: int

    @classmethod
    def of_complete(
        cls, keep: NDArray[np.bool_], gaps: Mapping[str, NDArray[np.bool_]], unlabelled: NDArray[np.bool_]
    ) -> Self:
        """Return the origin of the rows that `complete_rows` kept."""
        counts = {name: int(gap.sum()) for name, gap in gaps.items() if gap.any()}
        return cls(np.flatnonzero(keep), len(keep), counts, int(unlabelled.sum()))


def complete_rows(
    gaps: Mapping[str, NDArray[np.bool_]], unlabelled: NDArray[np.bool_], what: str, missing: str
) -> NDArray[np.bool_] | None:
    """Return which rows to keep, None for all of them; or raise, as `missing` says.

    Parameters
    ----------
    gaps
        Where each column has missing values; a column without them may be left out.
    unlabelled
        (n,) where the label is missing.
    what
        What holds the labels, to open a message.
    missing
        What a missing value does: raise ("error"), drop its row ("drop"), or stay ("keep").
    """
    if missing != "drop":
        check_labelled(unlabelled, what, 'fill in the labels, or pass missing="drop".')
        if missing == "error":
            check_missing(gaps, 'drop these rows with missing="drop" or keep the gaps with missing="keep".')
        return None
    if unlabelled.all():
        check_labelled(unlabelled, what, "fill in the labels.")
    keep = ~unlabelled
    for gap in gaps.values():
        keep &= ~gap
    if not keep.any():
        worst = max(gaps, key=lambda name: int(gaps[name].sum()))
        raise DataError(
            f"No row is complete; {worst!r} has most gaps ({gaps[worst].sum()} of {len(keep)}). Drop that column."
        )
    return None if keep.all() else keep


# -- phrases -----------------------------------------------------------------------------------------------------------


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
