"""Features and class codes given as arrays: clean, checked, and read-only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_gda.checks import Floats, finite_sum
from bayes_gda.data.classes import plain
from bayes_gda.data.validate import check_distinct, check_infinite, constant_message
from bayes_gda.errors import DataError

# A column that varies within its first rows need not be read to its end.
_HEAD = 1024
# Rows hashed at a time: bounds the copy that makes the bytes canonical.
HASHED_ROWS = 4096


def as_features(X: ArrayLike) -> Floats:
    """Return a copy of X as float64 (n, d), n and d at least 1; a masked value becomes NaN."""
    if hasattr(X, "toarray"):
        raise DataError("`X` is a sparse matrix; use X.toarray().")
    try:
        array = np.ma.getdata(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    except (ValueError, TypeError):
        raise DataError("`X` must be 2-d; got rows of different lengths. Give each row as many values.") from None
    if array.dtype.kind not in "biuf":
        raise DataError(_kind_message(array))
    if array.ndim != 2:
        hint = " Use X[:, None] for one feature." if array.ndim == 1 else ""
        raise DataError(f"`X` must be 2-d; got shape {array.shape}.{hint}")
    if 0 in array.shape:
        raise DataError(f"`X` is empty: its shape is {array.shape}. Give at least one row and one feature.")
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes inf, and an error in check_infinite
        out = np.array(array, dtype=np.float64, order="C")
    if isinstance(X, np.ma.MaskedArray):
        out[np.ma.getmaskarray(X)] = np.nan
    return out


def _kind_message(array: NDArray[Any]) -> str:
    if array.dtype.kind == "c":
        return f"`X` must be real; got {array.dtype}. Use X.real, or its parts as two columns."
    if array.dtype.kind == "O":
        try:
            array.astype(np.float64)
        except OverflowError:
            return "`X` has a number too large for float64, whose largest is 1.8e308. Rescale it."
        except (TypeError, ValueError):
            pass
    return f"`X` must be numeric; got dtype {array.dtype}. Use X.astype(float), or Dataset.from_frame for a table."


def own_features(X: Any) -> Floats:
    """Return X checked and read-only; an array that is so already is not copied."""
    if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.size:
        flags = X.flags
        if flags.c_contiguous and flags.owndata and not flags.writeable:
            return X
    return read_only(as_features(X))


def as_codes(y: Any) -> NDArray[np.intp]:
    """Return a copy of `y` as read-only integers (n,)."""
    codes = np.asarray(y)
    if codes.ndim != 1:
        raise DataError(f"`y` must be 1-d; got shape {codes.shape}. Use np.ravel(y) for a single column.")
    values = [] if codes.dtype.kind in "iu" else codes.tolist()
    if bad := [value for value in values if type(value) is not int or abs(value) >= 2**63]:
        raise DataError(f"`y` must hold integer codes; got {bad[0]!r}. Use Dataset.from_arrays without class_names.")
    return read_only(codes.astype(np.intp))


def as_names(names: Sequence[Any], d: int) -> tuple[str, ...]:
    """Return the names of d features, which must be text and distinct."""
    names = tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"`feature_names` must be text; got {name!r}. Use str() on each.")
    if len(names) != d:
        raise DataError(f"`feature_names` must name {d} features; got {len(names)} names.")
    check_distinct(names, "Feature name")
    return names


def read_only(a: NDArray[Any]) -> NDArray[Any]:
    """Forbid to write into an array, and return it."""
    a.setflags(write=False)
    return a


# -- values ------------------------------------------------------------------------------------------------------------


def find_gaps(X: Floats, names: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
    """Return where X has missing values, for each column that has; infinite ones are an error."""
    if finite_sum(X):
        return {}
    if np.isinf(X).any():
        check_infinite(dict(zip(names, X.T, strict=True)))
    gaps = np.isnan(X)
    return {names[j]: gaps[:, j] for j in np.flatnonzero(gaps.any(axis=0)).tolist()}


def check_columns_vary(X: Floats, names: Sequence[str]) -> None:
    """Check that every column has two distinct values; those that have not are all named at once."""
    head = X[:_HEAD]
    suspects = np.flatnonzero(~(np.fmin.reduce(head) < np.fmax.reduce(head))).tolist()
    constant = {
        names[j]: (values, int((~np.isnan(X[:, j])).sum())) for j in suspects if len(values := extremes(X[:, j])) < 2
    }
    if constant:
        raise DataError(constant_message(constant, len(X)))


def extremes(cells: Floats) -> list[Any]:
    """Return the least and the greatest number, plain; one if they are equal, none if all are missing."""
    low, high = np.fmin.reduce(cells), np.fmax.reduce(cells)
    return [] if np.isnan(low) else [plain(low), plain(high)][: 1 + (low < high)]


def digest_of(X: Floats, y: NDArray[np.intp], rest: object) -> str:
    """Return the SHA-256 of features, codes and the `repr` of the rest; the same for −0 and 0, and for every NaN."""
    digest = hashlib.sha256(repr(rest).encode())
    for start in range(0, len(X), HASHED_ROWS):
        block = X[start : start + HASHED_ROWS] + 0.0  # −0 + 0 = 0
        block[np.isnan(block)] = np.nan
        digest.update(block.astype("<f8").tobytes())
    digest.update(y.astype("<i8").tobytes())
    return digest.hexdigest()
