"""Checks of numeric arguments: each returns the cleaned value, read-only, or raises one line that says what to do."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_gda.errors import BayesGDAError, PriorError

Floats = NDArray[np.float64]


def frozen(a: ArrayLike) -> Floats:
    """Return `a` as a read-only float64 array of its own."""
    out = np.array(a, dtype=np.float64, order="C")
    out.setflags(write=False)
    return out


def positive(name: str, value: ArrayLike, *, infinite: bool = False, error: type[BayesGDAError] = PriorError) -> Floats:
    """Return `value` as an array of numbers > 0; `infinite` also admits inf."""
    array = _numbers(name, value, error)
    good = (array > 0) & (np.isfinite(array) | infinite)
    if not good.all():
        rule = "greater than 0" if infinite else "finite and greater than 0"
        raise error(f"`{name}` must be {rule}; got {_first_bad(array, good)}.")
    return array


def finite(name: str, value: ArrayLike, *, error: type[BayesGDAError] = PriorError) -> Floats:
    """Return `value` as an array of finite numbers."""
    array = _numbers(name, value, error)
    good = np.isfinite(array)
    if not good.all():
        raise error(f"`{name}` must be finite; got {_first_bad(array, good)}.")
    return array


def covariance(name: str, value: ArrayLike, *, error: type[BayesGDAError] = PriorError) -> Floats:
    """Return `value` as a symmetric positive-definite matrix."""
    array = finite(name, value, error=error)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise error(f"`{name}` must be a square matrix; got shape {array.shape}.")
    # Rounding leaves asymmetries of a few ulps of the largest entry; more than that is a mistake.
    if not np.allclose(array, array.T, rtol=1e-10, atol=1e-12 * np.abs(array).max()):
        raise error(f"`{name}` must be symmetric; the largest asymmetry is {np.abs(array - array.T).max():.3g}.")
    try:
        np.linalg.cholesky(array)
    except np.linalg.LinAlgError:
        low = np.linalg.eigvalsh(array)[0]
        raise error(
            f"`{name}` must be positive definite; its smallest eigenvalue is {low:.3g}. Add a ridge to its diagonal."
        ) from None
    return frozen((array + array.T) / 2)


def vector(name: str, value: ArrayLike, size: int, *, error: type[BayesGDAError] = PriorError) -> Floats:
    """Return `value`, a scalar or a vector, as a vector of `size` numbers."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1 or (array.ndim == 1 and array.shape != (size,)):
        raise error(f"`{name}` must be a number or a vector of {size}; got shape {array.shape}.")
    return np.broadcast_to(array, (size,))


def _numbers(name: str, value: ArrayLike, error: type[BayesGDAError]) -> Floats:
    try:
        return frozen(value)
    except (TypeError, ValueError):
        raise error(f"`{name}` must be numeric; got {value!r}.") from None


def _first_bad(array: Floats, good: Any) -> str:
    value = array[~good].flat[0] if array.ndim else array[()]
    return f"{value:.6g}"
