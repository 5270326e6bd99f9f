"""Sufficient statistics of Gaussian discriminant analysis: counts, means and scatter matrices of the classes.

    n_k = Σ_i w_i [y_i = k],   x̄_k = Σ_i w_i x_i / n_k,   S_k = Σ_i w_i (x_i − x̄_k)(x_i − x̄_k)ᵀ

Two sets of rows merge without a second look at the data (Chan, Golub & LeVeque 1983):

    n = n_a + n_b,   x̄ = x̄_a + (n_b/n) δ,   S = S_a + S_b + (n_a n_b/n) δ δᵀ,   δ = x̄_b − x̄_a

which is stable where the textbook's Σxxᵀ − n x̄x̄ᵀ cancels: each block is centred on its own mean before it is squared.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_gda.checks import Floats, frozen, numbers, rectangle, whole
from bayes_gda.errors import DataError
from bayes_gda.linalg import blas_threads, gram, in_threads, parts

# Rows a block: it is gathered, centred and squared while it is in the cache, and memory beside the data stays flat.
# Measured on 1 000 000 × 30 with two threads, against 16384: 4096 takes 1.8 times as long and 8192 1.25 times, because
# short calls make the threads wait for the interpreter's lock; 32768 is no faster; 65536 takes twice as long,
# probably because OpenBLAS starts threads of its own for the mean of so long a class (from some 460 000 numbers).
BLOCK = 16384
# A block is not centred where its mean is within so many standard deviations of 0: one digit of the scatter is lost.
NEAR = 2.0
TOO_LARGE = "`X` is too large: its squares overflow float64. Rescale the features."


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Counts, means and scatter matrices of K classes: all that Gaussian discriminant analysis needs of the data.

    Parameters
    ----------
    count
        (K,) rows, or sums of their weights.
    mean
        (K, d) class means; zeros for an empty class.
    scatter
        (K, d, d) sums of squares and products about the class means.

    Examples
    --------
    >>> import numpy as np
    >>> from bayes_gda import Moments
    >>> X, y = np.array([[1.0], [3.0], [10.0]]), [0, 0, 1]
    >>> whole = Moments.from_arrays(X, y, 2)
    >>> parts = Moments.from_arrays(X[:1], y[:1], 2) + Moments.from_arrays(X[1:], y[1:], 2)
    >>> parts.mean.ravel(), np.allclose(parts.scatter, whole.scatter)
    (array([ 2., 10.]), True)
    """

    count: Floats
    mean: Floats
    scatter: Floats

    def __post_init__(self) -> None:
        count, mean, scatter = (frozen(numbers(name, getattr(self, name))) for name in ("count", "mean", "scatter"))
        K, d = mean.shape if mean.ndim == 2 else (-1, -1)
        if count.shape != (K,) or scatter.shape != (K, d, d):
            raise DataError(
                "Moments need `count` (K,), `mean` (K, d) and `scatter` (K, d, d); "
                f"got {count.shape}, {mean.shape} and {scatter.shape}."
            )
        if (count < 0).any():
            raise DataError(f"`count` must not be negative; got {count.min():g}.")
        for name, value in (("count", count), ("mean", mean), ("scatter", scatter)):
            object.__setattr__(self, name, value)

    @property
    def K(self) -> int:
        """Number of classes."""
        return len(self.count)

    @property
    def d(self) -> int:
        """Number of features."""
        return self.mean.shape[1]

    @property
    def n(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(self.count.sum())

    @classmethod
    def empty(cls, K: int, d: int) -> Self:
        """The moments of no rows: the neutral element of `+`."""
        return cls(np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d)))

    @classmethod
    def from_arrays(cls, X: ArrayLike, y: ArrayLike, K: int, *, sample_weight: ArrayLike | None = None) -> Self:
        """Take the moments of all rows in one pass, block by block.

        Parameters
        ----------
        X
            (n, d) features, finite.
        y
            (n,) class codes in 0…K−1.
        K
            Number of classes; one without rows has count 0.
        sample_weight
            (n,) weights ≥ 0; a weight of 2 counts as two rows. None weighs every row 1.
        """
        total = cls._summed(*_check_rows(X, y, whole("K", K, 0), sample_weight), K)
        _check_finite(np.asarray(X, dtype=np.float64), total.mean, total.scatter)
        return total

    @classmethod
    def of_whole_rows(
        cls, X: Floats, y: NDArray[np.intp], K: int, *, sample_weight: Floats | None = None
    ) -> Self | None:
        """Take the moments of checked rows; None if a value is NaN, which the sums show without another pass."""
        total = cls._summed(X, y, sample_weight, K)
        if not total._is_finite and np.isnan(X).any():
            return None
        _check_finite(X, total.mean, total.scatter)
        return total

    @classmethod
    def _summed(cls, X: Floats, y: NDArray[np.intp], weight: Floats | None, K: int) -> Self:
        n, d = X.shape
        codes = y.astype(np.int16) if K <= 2**15 else y  # NumPy sorts 16-bit codes by radix, five times as fast

        def sums(part: slice) -> tuple[Floats, Floats, Floats]:
            running = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d))
            buffer = np.empty((min(BLOCK, n), d))
            with np.errstate(over="ignore", invalid="ignore"):  # looked for below, and told in our own words
                for start in range(part.start, part.stop, BLOCK):
                    rows = slice(start, min(start + BLOCK, part.stop))
                    _add_block(running, X[rows], codes[rows], None if weight is None else weight[rows], buffer)
            return running

        with blas_threads(d):
            pieces = [cls(*running) for running in in_threads(sums, parts(n, d))]
        if len(pieces) == 1:
            return pieces[0]
        with np.errstate(over="ignore", invalid="ignore"):
            return reduce(add, pieces, cls.empty(K, d))

    @classmethod
    def from_chunks(cls, chunks: Iterable[tuple[ArrayLike, ...]], K: int) -> Self:
        """Take the moments of an iterator of chunks (X, y) or (X, y, weight), of which one is held at a time."""
        total: Self | None = None
        for chunk in chunks:
            if not isinstance(chunk, Sequence) or len(chunk) not in (2, 3):
                raise DataError(f"Chunks must be (X, y) or (X, y, weight); got {type(chunk).__name__}.")
            X, y, *weight = chunk
            part = cls.from_arrays(X, y, K, sample_weight=weight[0] if weight else None)
            total = part if total is None else total + part
        if total is None:
            raise DataError("The iterator of chunks is empty; give at least one (X, y).")
        return total

    def __add__(self, other: Self) -> Self:
        """Merge: the moments of both sets of rows."""
        self._check_alike(other)
        count = self.count + other.count
        share = np.divide(other.count, count, out=np.zeros_like(count), where=count > 0)
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below, and told in our own words
            delta = other.mean - self.mean
            mean = np.where((self.count > 0)[:, None], self.mean + share[:, None] * delta, other.mean)
            between = (self.count * share)[:, None, None] * delta[:, :, None] * delta[:, None, :]
            merged = type(self)(count, mean, self.scatter + other.scatter + between)
        if self._is_finite and other._is_finite and not merged._is_finite:
            raise DataError(TOO_LARGE)
        return merged

    def __sub__(self, other: Self) -> Self:
        """Remove: the moments of the rows that remain. `(a + b) - b` is `a` up to rounding."""
        self._check_alike(other)
        count = self.count - other.count
        slack = 1e-9 * self.count  # weights that were summed in another order
        if (count < -slack).any():
            k = int(np.argmin(count))
            raise DataError(
                f"Cannot remove {other.count[k]:g} rows of class {k}, which has {self.count[k]:g}: "
                "only rows that were added can be removed."
            )
        gone = count <= slack
        count = np.where(gone, 0.0, count)
        # From merge: with δ = x̄_b − x̄ (x̄ the mean of all), x̄_a = x̄ − (n_b/n_a) δ and S_a = S − S_b − (n n_b/n_a) δδᵀ.
        ratio = np.divide(other.count, count, out=np.zeros_like(count), where=~gone)
        with np.errstate(over="ignore", invalid="ignore"):
            delta = other.mean - self.mean
            mean = np.where(gone[:, None], 0.0, self.mean - ratio[:, None] * delta)
            between = (self.count * ratio)[:, None, None] * delta[:, :, None] * delta[:, None, :]
            scatter = np.where(gone[:, None, None], 0.0, self.scatter - other.scatter - between)
        variances = np.diagonal(scatter, axis1=1, axis2=2)
        if (variances < -1e-8 * np.diagonal(self.scatter, axis1=1, axis2=2)).any():
            raise DataError("Those rows were never added: removing them would leave a negative sum of squares.")
        return type(self)(count, mean, scatter)

    @property
    def _is_finite(self) -> bool:
        return all(np.isfinite(part).all() for part in (self.count, self.mean, self.scatter))

    def _check_alike(self, other: Self) -> None:
        if self.mean.shape != other.mean.shape:
            raise DataError(
                f"Moments of {self.K} classes × {self.d} features do not combine with {other.K} × {other.d}."
            )


def _add_block(
    running: tuple[Floats, Floats, Floats],
    X: Floats,
    y: NDArray[np.integer],
    weight: Floats | None,
    buffer: Floats,
) -> None:
    """Merge a block into the running count, mean and scatter, in place."""
    count, mean, scatter = running
    # One stable sort gathers the classes into contiguous slices, so that each row is copied once.
    order = np.argsort(y, kind="stable")
    Z = np.take(X, order, axis=0, out=buffer[: len(X)], mode="clip")  # "clip" writes straight into `out`
    edges = np.concatenate([[0], np.cumsum(np.bincount(y, minlength=len(count)))])
    for k in np.flatnonzero(np.diff(edges)):
        Zk = Z[edges[k] : edges[k + 1]]
        w = np.ones(len(Zk)) if weight is None else weight[order[edges[k] : edges[k + 1]]]
        nk = float(w.sum())
        if nk == 0:
            continue
        center = w @ Zk / nk
        # Σ(z − z̄)(z − z̄)ᵀ = Σzzᵀ − nz̄z̄ᵀ spares a pass, where that cancels few digits of the scatter so far.
        centred = not (count[k] > 0 and (count[k] * center * center <= NEAR**2 * np.diagonal(scatter[k])).all())
        if centred:
            Zk -= center
        if weight is not None:
            Zk *= np.sqrt(w)[:, None]
        scatter[k] += gram(Zk)
        if not centred:
            scatter[k] -= nk * np.outer(center, center)
        total = count[k] + nk
        delta = center - mean[k]
        if count[k] > 0:
            scatter[k] += (count[k] * nk / total) * np.outer(delta, delta)
        mean[k] += (nk / total) * delta
        count[k] = total


def _check_rows(
    X: ArrayLike, y: ArrayLike, K: int, sample_weight: ArrayLike | None
) -> tuple[Floats, NDArray[np.intp], Floats | None]:
    X = rectangle("X", X)
    if X.dtype.kind not in "fiub":
        raise DataError(f"`X` must hold real numbers; got dtype {X.dtype}.")
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise DataError(f"`X` must be 2-d; got shape {X.shape}. Use X[:, None] for one feature.")
    if not X.shape[1]:
        raise DataError(f"`X` must have a feature, at least one; got shape {X.shape}.")
    codes = rectangle("y", y)
    if codes.shape != (len(X),):
        raise DataError(f"`y` must have one code a row, shape ({len(X)},); got {codes.shape}.")
    if codes.dtype.kind not in "iub":
        raise DataError(
            f"`y` must hold integer class codes 0…{K - 1}; got dtype {codes.dtype}. Use Dataset.from_arrays."
        )
    codes = codes.astype(np.intp, copy=False)
    if codes.size and (codes.min() < 0 or codes.max() >= K):
        raise DataError(f"`y` must lie in 0…{K - 1}; got {codes.min()}…{codes.max()}.")
    if sample_weight is None:
        return X, codes, None
    weight = numbers("sample_weight", sample_weight)
    if weight.shape != (len(X),):
        raise DataError(f"`sample_weight` must have shape ({len(X)},); got {weight.shape}.")
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not (np.isfinite(total) and (weight >= 0).all()):
        raise DataError(f"`sample_weight` must be finite and not negative, and so must its sum; got {total:g} in all.")
    return X, codes, weight


def _check_finite(X: Floats, mean: Floats, scatter: Floats) -> None:
    """NaN and inf in X show in the sums, so a clean X is not read twice to look for them."""
    if np.isfinite(mean).all() and np.isfinite(scatter).all():
        return
    bad = np.flatnonzero(~np.isfinite(X).all(axis=0))
    if bad.size:
        count = int((~np.isfinite(X[:, bad[0]])).sum())
        raise DataError(f"`X` holds NaN or inf in column {bad[0]} ({count} rows). Drop those rows.")
    raise DataError(TOO_LARGE)
