"""Labels of classes and levels: plain values, their natural order, and their codes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayes_gda.data.validate import listed
from bayes_gda.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

type Label = str | int | float | bool

_GROUPS: dict[type, str] = {str: "text", bool: "booleans", int: "numbers", float: "numbers"}


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """A column of labels: row i holds `values[codes[i]]`, or is missing if its code is −1.

    Parameters
    ----------
    values
        Distinct plain values; those of Python objects in the order in which they appear. A value that can be no label
        stands for all of its type.
    codes
        (n,) positions in `values`, −1 where missing.
    order
        Order that a pandas Categorical declares, if any.
    """

    values: tuple[Any, ...]
    codes: NDArray[np.intp]
    order: tuple[Label, ...] = ()

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> Any:
        return self.values[self.codes[row]]

    @property
    def missing(self) -> NDArray[np.bool_]:
        """(n,) where the label is missing."""
        return self.codes < 0

    @property
    def counts(self) -> NDArray[np.intp]:
        """Number of rows that hold each value."""
        return np.bincount(self.codes + 1, minlength=len(self.values) + 1)[1:]

    def take(self, rows: NDArray[np.bool_]) -> Labels:
        """Keep the rows where `rows` is true."""
        return Labels(self.values, self.codes[rows], self.order)

    def rows(self) -> NDArray[Any]:
        """Return the labels row by row, if none is missing: integers where all values are, or else objects."""
        whole = all(type(value) is int and abs(value) < 2**63 for value in self.values)
        return np.fromiter(self.values, dtype=np.intp if whole else object, count=len(self.values))[self.codes]

    def levels(self, what: str) -> tuple[Label, ...]:
        """Return the values that have rows, in the declared order or else the natural one.

        The natural order has numbers by size, False before True, and text alphabetically.
        """
        used = [value for value, count in zip(self.values, self.counts, strict=True) if count]
        check_labels(self.order or used, what)
        if not self.order:
            return tuple(sorted(used))
        known = set(used)
        return tuple(label for label in self.order if label in known)

    def code(self, known: Sequence[Label]) -> NDArray[np.intp]:
        """Return positions in the `known` labels, −1 for another or a missing one; 1 is True, and 0 is False."""
        position = {label: k for k, label in enumerate(known)}
        # What can be no label may not be hashable.
        codes = [position.get(value, -1) if type(value) in _GROUPS else -1 for value in self.values]
        return np.array([*codes, -1], dtype=np.intp)[self.codes]

    def code_known(self, known: Sequence[Label], what: str, noun: str) -> NDArray[np.intp]:
        """Return positions in the `known` labels; −1 for a missing one, and another is an error.

        Parameters
        ----------
        known
            Labels to find.
        what
            What holds the labels, such as "column 'island'", for the message.
        noun
            What a label is, such as "level".
        """
        codes = self.code(known)
        unknown = (codes < 0) & ~self.missing
        if unknown.any():
            row = int(np.argmax(unknown))
            plural = "classes" if noun == "class" else f"{noun}s"
            raise DataError(
                f"{noun.capitalize()} {self[row]!r} of {what} (row {row + 1}) is unknown; "
                f"the known {plural} are {listed(known)}. Correct it, or fit again with this {noun}."
            )
        return codes


# -- reading labels ----------------------------------------------------------------------------------------------------


def as_labels(y: Any, what: str) -> Labels:
    """Return labels of any kind as plain values and codes; `what` holds them, to open a message."""
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "kind", "") in "mM" and dtype is not None:  # NumPy would turn nanoseconds into plain ints
        raise DataError(f"{what} holds dates or times ({dtype}); use text, whole numbers or booleans as labels.")
    if hasattr(y, "isna") and y.ndim == 1:
        import pandas as pd

        return series_labels(pd.Series(y))
    if isinstance(y, np.ma.MaskedArray):
        mask, y = np.ma.getmaskarray(y), np.ma.getdata(y).astype(object)
        y[mask] = None
    # Not np.asarray(y) for a list: it would turn ['a', 1] into text.
    array = y if isinstance(y, np.ndarray) else np.asarray(y, dtype=object)
    if array.ndim != 1:
        raise DataError(f"{what} must be 1-d; got shape {array.shape}. Use np.ravel(y) for a single column.")
    numeric = array.dtype.kind in "biuf"
    return _factorized(*unique_codes(array)) if numeric else _distinct_objects(array.tolist())


def series_labels(series: pd.Series[Any]) -> Labels:
    """Return a pandas column as plain values and codes."""
    import pandas as pd

    if series.dtype == object:  # not by factorize, which takes True and 1 for the same
        return _distinct_objects(series.tolist())
    codes, distinct = pd.factorize(series)
    order = tuple(plain(level) for level in getattr(series.dtype, "categories", ()))
    return _factorized(distinct, codes, order)


def _distinct_objects(cells: list[Any]) -> Labels:
    first: dict[Any, Any] = {}  # the first cell with each key
    if set(map(type, cells)) in ({str}, {int}):
        keys, first = cells, {cell: cell for cell in dict.fromkeys(cells)}
    else:
        cells = [_cell(cell) for cell in cells]
        keys = [(type(cell), cell if type(cell) in _GROUPS else None) for cell in cells]  # True is not 1
        for key, cell in zip(keys, cells, strict=True):
            if cell is not None:
                first.setdefault(key, cell)
    position = {key: k for k, key in enumerate(first)}
    codes = np.fromiter(map(position.get, keys, repeat(-1)), dtype=np.intp, count=len(keys))
    return Labels(tuple(first.values()), codes)


def unique_codes(array: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct values of an array (n,) in order, and the place (n,) of each entry among them.

    As `np.unique` does, but whole numbers are counted rather than sorted, in an eighth of the time.
    """
    if array.size and array.dtype.kind in "biu" and np.can_cast(array.dtype, np.intp):
        low, high = int(array.min()), int(array.max())
        if high - low < array.size:
            offset = array.astype(np.intp)
            offset -= low
            used = np.bincount(offset) > 0
            codes = offset if used.all() else (np.cumsum(used) - 1)[offset]
            return (np.flatnonzero(used) + low).astype(array.dtype), codes
    values, codes = np.unique(array, return_inverse=True)
    return values, codes.astype(np.intp, copy=False)


def _factorized(distinct: Iterable[Any], codes: NDArray[np.intp], order: tuple[Label, ...] = ()) -> Labels:
    """Return labels given as codes of raw values, which may be missing, or equal once they are plain (−0 and 0)."""
    labels = _distinct_objects(list(distinct))
    return Labels(labels.values, np.append(labels.codes, -1)[codes], order)


def plain(value: Any) -> Any:
    """Return a label as a plain Python value: no NumPy scalars, and whole floats as ints."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal):
        value = int(value) if value.is_finite() and value == int(value) else float(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _cell(value: Any) -> Any:
    """Return a plain value, or None for a missing one."""
    value = plain(value)
    # pd.NA and pd.NaT are known by name, so that arrays do not need pandas.
    missing = type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and math.isnan(value))
    return None if missing else value


# -- classes -----------------------------------------------------------------------------------------------------------


def check_labels(values: Iterable[Any], what: str) -> None:
    """Check that labels are all text, all numbers or all booleans."""
    first: dict[str, Any] = {}
    for value in values:
        if type(value) not in _GROUPS:
            raise DataError(f"{what} has a label of type {type(value).__name__}; use text, whole numbers or booleans.")
        first.setdefault(_GROUPS[type(value)], value)
    if len(first) > 1:
        (first_type, a), (second_type, b) = list(first.items())[:2]
        raise DataError(f"{what} mixes {first_type} ({a!r}) and {second_type} ({b!r}); convert all its values to text.")


def code_classes(labels: Labels, what: str) -> tuple[NDArray[np.intp], tuple[Label, ...]]:
    """Code labels as 0…K−1, in their declared order or else the natural one, if they can be classes."""
    classes = labels.levels(what)
    broken = [label for label in classes if isinstance(label, float)]
    if broken and not labels.order:
        raise DataError(
            f"{what} looks continuous: {broken[0]!r} is not a whole number. Cut it into classes, or convert it to text."
        )
    if len(classes) < 2:
        raise DataError(f"{what} has only one class, {classes[0]!r}; a classifier needs at least two.")
    if len(classes) == len(labels):
        raise DataError(
            f"{what} has as many classes as rows ({len(labels)}), like an identifier or a measurement. Choose another."
        )
    return labels.code(classes), classes


# ── Stratified splits ───────────────────────────────────────────────────────────────────────────────────────────────


def number_of_rows(test_size: float, n: int) -> int:
    """Return a share of n rows, or a number of them, as a number."""
    if isinstance(test_size, int | np.integer) and not isinstance(test_size, bool) and 0 < test_size < n:
        return int(test_size)
    if isinstance(test_size, float | np.floating) and 0 < test_size < 1:
        return round(float(test_size) * n)
    raise DataError(f"`test_size` must be a share between 0 and 1 or a whole number in 1…{n - 1}; got {test_size!r}.")


def share_by_class(counts: NDArray[np.intp], n_test: int, names: tuple[Label, ...]) -> NDArray[np.intp]:
    """Share the test rows among the classes by largest remainders, with at least one row on either side."""
    for name, count in zip(names, counts, strict=True):
        if count == 1:
            raise DataError(
                f"Class {name!r} has 1 row; a stratified split needs at least 2. Merge classes or add rows."
            )
    n, present = int(counts.sum()), int((counts > 0).sum())
    if not present <= n_test <= n - present:
        raise DataError(
            f"A stratified split of {n} rows in {present} classes needs {present} to {n - present} test rows; "
            f"`test_size` gives {n_test}."
        )
    quota = n_test * counts / n
    low, high = np.minimum(counts, 1), np.maximum(counts - 1, 0)
    share = np.clip(np.floor(quota).astype(np.intp), low, high)
    while (gap := n_test - int(share.sum())) != 0:
        rest = quota - share
        k = (
            np.argmax(np.where(share < high, rest, -np.inf))
            if gap > 0
            else np.argmin(np.where(share > low, rest, np.inf))
        )
        share[k] += np.sign(gap)
    return share


def draw_test_rows(
    y: NDArray[np.intp], class_names: tuple[Label, ...], test_size: float, random_seed: int
) -> NDArray[np.bool_]:
    """Return which rows (n,) of codes y are held out: at random, each class in proportion and present in both parts."""
    if not isinstance(random_seed, int | np.integer) or isinstance(random_seed, bool) or random_seed < 0:
        raise DataError(f"`random_seed` must be a non-negative integer; got {random_seed!r}.")
    counts = np.bincount(y, minlength=len(class_names))
    share = share_by_class(counts, number_of_rows(test_size, len(y)), class_names)
    rng = np.random.default_rng(random_seed)
    drawn = [rng.permutation(np.flatnonzero(y == k))[: share[k]] for k in range(len(class_names))]
    in_test = np.zeros(len(y), dtype=bool)
    in_test[np.concatenate(drawn)] = True
    return in_test
