"""Groups of columns by type: which columns of X are one column of the table, and what each row has in it.

A numeric or boolean column of a table is one column of X. A categorical one is a run of 0/1 columns, one for each level
but the first; what it holds is read from them as a code:

    0 … L−1   the level        L   a level that was not there when the encoding was learnt        NaN   missing

`UNSEEN` in all columns of the run marks a new level. Only models that have a place for it read such rows.
"""

from dataclasses import dataclass

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.classes import Label
from bayes_gda.data.columns import UNSEEN, Column, Encoding, Kind


@dataclass(frozen=True, slots=True)
class Group:
    """The columns of X that one column of a table became.

    Parameters
    ----------
    name, kind, levels
        Of the column of the table.
    start, stop
        Its columns in X are start … stop − 1.
    """

    name: str
    kind: Kind
    levels: tuple[Label, ...]
    start: int
    stop: int

    def read(self, X: Floats) -> Floats:
        """Return what each row of X (n, d) has in this column: its number, or the code of its level, (n,)."""
        return read_group(X[:, self.start : self.stop], len(self.levels)) if self.levels else X[:, self.start]

    def write(self, x: Floats) -> Floats:
        """Return the columns (n, stop − start) of X that stand for values or codes x (n,)."""
        return write_group(x, len(self.levels)) if self.levels else x[:, None]


def groups_of(encoding: Encoding) -> tuple[Group, ...]:
    """Return the groups of an encoding, in the order of the table's columns."""
    groups, start = [], 0
    for column in encoding.columns:
        stop = start + len(column.feature_names)
        groups.append(Group(column.name, column.kind, column.levels, start, stop))
        start = stop
    return tuple(groups)


def numeric_groups(names: tuple[str, ...]) -> tuple[Group, ...]:
    """Return the groups of features that came as an array: each is a number of its own."""
    return groups_of(Encoding(tuple(Column(name, "numeric") for name in names)))


def read_group(D: Floats, L: int) -> Floats:
    """Return the codes (n,) of L levels that 0/1 columns D (n, max(L − 1, 1)) stand for; see the module."""
    codes = np.where((D > 0.5).any(axis=1), D.argmax(axis=1) + 1.0, 0.0)
    codes[(D < 0).any(axis=1)] = L
    codes[np.isnan(D).any(axis=1)] = np.nan
    return codes


def write_group(codes: Floats, L: int) -> Floats:
    """Return the 0/1 columns (n, max(L − 1, 1)) of codes (n,): the inverse of `read_group`."""
    D = (codes[:, None] == np.arange(1, max(L, 2))).astype(np.float64)
    D[codes >= L] = UNSEEN
    D[np.isnan(codes)] = np.nan
    return D
