"""Checks of numeric arguments: each returns the cleaned value, read-only, or raises one line that says what to do."""

import reprlib
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_gda.errors import BayesGDAError, DataError, PriorError

Floats = NDArray[np.float64]

# No number of a fitted model is beyond this: its square would overflow. Data are held to far less (`validate.LARGEST`).
LARGEST_STORED = 1e150


def frozen(a: ArrayLike) -> Floats:
    """Return `a` as a read-only float64 array of its own."""
    out = np.array(a, dtype=np.float64, order="C")
    out.setflags(write=False)
    return out


def numbers(name: str, value: ArrayLike, *, error: type[BayesGDAError] = DataError) -> Floats:
    """Return `value` as a float64 array of any shape, NaN and inf among them; copied only if need be."""
    try:
        if np.iscomplexobj(value):
            raise TypeError
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # text, ragged lists, whole numbers beyond 1.8e308
        raise error(f"`{name}` must be numeric; got {_short(value)}.") from None


def rectangle(name: str, value: ArrayLike, *, error: type[BayesGDAError] = DataError) -> NDArray[Any]:
    """Return `value` as an array of whatever type its entries have."""
    try:
        return np.asarray(value)
    except ValueError:
        raise error(f"`{name}` must be an array; got rows of different lengths, {_short(value)}.") from None


def positive(name: str, value: ArrayLike, *, infinite: bool = False, error: type[BayesGDAError] = PriorError) -> Floats:
    """Return `value` as an array of numbers > 0; `infinite` also admits inf."""
    array = frozen(numbers(name, value, error=error))
    good = (array > 0) & (np.isfinite(array) | infinite)
    if not good.all():
        rule = "greater than 0" if infinite else "finite and greater than 0"
        raise error(f"`{name}` must be {rule}; got {_first_bad(array, good)}.")
    return array


def positive_number(name: str, value: Any, *, infinite: bool = False, error: type[BayesGDAError] = PriorError) -> float:
    """Return `value` as one number > 0; `infinite` also admits inf."""
    array = positive(name, value, infinite=infinite, error=error)
    if array.ndim:
        raise error(f"`{name}` must be a single number; got shape {array.shape}.")
    return float(array)


def whole(name: str, value: Any, least: int, *, error: type[BayesGDAError] = DataError) -> int:
    """Return `value` as a whole number that is at least `least`."""
    if not isinstance(value, Integral):
        raise error(f"`{name}` must be a whole number, at least {least}; got {_short(value)}.")
    if value < least:
        raise error(f"`{name}` must be at least {least}; got {value}.")
    return int(value)


def inside_unit(name: str, value: Any, *, hint: str = "", error: type[BayesGDAError] = DataError) -> float:
    """Return `value` as a number strictly between 0 and 1."""
    if not isinstance(value, int | float | np.number) or not 0 < value < 1:
        got = f"{float(value):g}" if isinstance(value, float) else _short(value)
        raise error(f"`{name}` must lie between 0 and 1; got {got}.{hint}")
    return float(value)


def finite(name: str, value: ArrayLike, *, largest: float = np.inf, error: type[BayesGDAError] = PriorError) -> Floats:
    """Return `value` as an array of finite numbers, none beyond ±`largest`."""
    array = frozen(numbers(name, value, error=error))
    good = np.isfinite(array) & (np.abs(array) <= largest)
    if not good.all():
        rule = f"within ±{largest:g}" if np.isfinite(array).all() else "finite"
        raise error(f"`{name}` must be {rule}; got {_first_bad(array, good)}.")
    return array


def covariance(name: str, value: ArrayLike, *, error: type[BayesGDAError] = PriorError) -> Floats:
    """Return `value` as a symmetric positive-definite matrix."""
    array = finite(name, value, error=error)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise error(f"`{name}` must be a square matrix; got shape {array.shape}.")
    # Rounding leaves asymmetries of a few ulps of the largest entry; more than that is a mistake.
    with np.errstate(over="ignore"):
        asymmetry = np.abs(array - array.T)
    if (asymmetry > 1e-12 * np.abs(array).max() + 1e-10 * np.abs(array)).any():
        raise error(f"`{name}` must be symmetric; the largest asymmetry is {asymmetry.max():.3g}.")
    try:
        np.linalg.cholesky(array)
    except np.linalg.LinAlgError:
        low = np.linalg.eigvalsh(array)[0]
        raise error(
            f"`{name}` must be positive definite; its smallest eigenvalue is {low:.3g}. Add a ridge to its diagonal."
        ) from None
    return frozen(array / 2 + array.T / 2)


def vector(name: str, value: ArrayLike, size: int, *, error: type[BayesGDAError] = PriorError) -> Floats:
    """Return `value`, a scalar or a vector, as a vector of `size` numbers."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1 or (array.ndim == 1 and array.shape != (size,)):
        raise error(f"`{name}` must be a number or a vector of {size}; got shape {array.shape}.")
    return np.broadcast_to(array, (size,))


def sum_of_squares(X: Floats) -> float:
    """Return Σx² in one quick pass: nan or inf if a value is, or if it overflows."""
    # Not by BLAS, whose threads would spin for longer than a small table takes.
    flat = X.ravel(order="K") if X.flags.c_contiguous or X.flags.f_contiguous else X
    axes = list(range(flat.ndim))
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.einsum(flat, axes, flat, axes, []))


def finite_sum(X: Floats) -> bool:
    """Return whether the sum of squares of X is finite, which shows in one quick pass that all its values are.

    The converse does not hold, as the sum may overflow: a False says to look at the values.
    """
    return bool(np.isfinite(sum_of_squares(X)))


def check_design(Phi: ArrayLike) -> Floats:
    """Return Φ as a read-only C-ordered float64 matrix of finite numbers, copied only if need be."""
    array = np.ascontiguousarray(Phi, dtype=np.float64)
    if array.ndim != 2 or 0 in array.shape:
        raise DataError(f"`Phi` must be a matrix with rows and columns; got shape {array.shape}.")
    # A sum that overflows is looked at again.
    if not finite_sum(array) and not np.isfinite(array).all():
        i, j = np.argwhere(~np.isfinite(array))[0]
        raise DataError(f"`Phi` must be finite; got {array[i, j]:g} in row {i}, column {j}.")
    view = array.view()
    view.setflags(write=False)
    return view


def check_rows(name: str, value: ArrayLike, n: int) -> Floats:
    """Return `value` as n finite numbers ≥ 0, one per row."""
    array = finite(name, value, error=DataError)
    if array.shape != (n,):
        raise DataError(f"`{name}` must have one entry for each of the {n} rows; got shape {array.shape}.")
    if (array < 0).any():
        raise DataError(f"`{name}` must not be negative; got {array.min():g}.")
    return array


def _short(value: Any) -> str:
    """A value in one line that is no longer than others."""
    return reprlib.repr(value).replace("\n", " ")


def _first_bad(array: Floats, good: Any) -> str:
    value = array[~good].flat[0] if array.ndim else array[()]
    return f"{value:.6g}"
