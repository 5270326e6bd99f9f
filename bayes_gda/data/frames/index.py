"""Columns that number or name the rows, as R and pandas write them: noticed, so that no model learns from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_gda.errors import DataWarning, warn_user

if TYPE_CHECKING:
    import pandas as pd

# What programs call such a column, in small letters.
NAMES = frozenset({"rownames", "rowname", "row_names", "row.names", "row_name", "index", "unnamed: 0", "row"})
# In fewer rows 1, 2, 3 … may well be a measurement.
FEWEST_ROWS = 20


def warn_of_index(df: pd.DataFrame, target: str | None) -> None:
    """Give a `DataWarning` if a feature is an index: 0, 1, 2 … or 1, 2, 3 …, or named so with all values different."""
    suspects = [str(name) for name in df.columns if name != target and _is_index(str(name), df[name])]
    if suspects:
        columns, they = ("Columns", "number") if len(suspects) > 1 else ("Column", "numbers")
        warn_user(
            f"{columns} {', '.join(map(repr, suspects))} {they} the rows, which says "
            f"nothing of new ones. Leave out what is an index: drop={suspects!r}.",
            DataWarning,
        )


def without_nameless_index(df: pd.DataFrame, name: str, source: str) -> pd.DataFrame | None:
    """Return a table without its first column, which has no name, if that is an index; None if it is not.

    Parameters
    ----------
    df
        The table.
    name
        What its first column is called for want of a name.
    source
        Where it comes from, for the warning.
    """
    if not _all_different(df[name]):
        return None
    warn_user(f"The first column of {source} has no name and a different value in every row: left out.", DataWarning)
    return df.drop(columns=name)


def _is_index(name: str, column: pd.Series[Any]) -> bool:
    if column.dtype.kind not in "iuf":  # text with as many levels as rows is refused by the encoding
        return False
    if name.strip().lower() in NAMES and _all_different(column):
        return True
    n = len(column)
    if n < FEWEST_ROWS:
        return False
    first = column.iloc[0]
    return first in (0, 1) and bool((column.to_numpy() == np.arange(n) + first).all())


def _all_different(column: pd.Series[Any]) -> bool:
    return len(column) > 1 and bool(column.notna().all() and column.is_unique)
