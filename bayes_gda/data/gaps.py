"""Rows with gaps, kept as what a Gaussian likelihood needs of them: the moments of each pattern in each class.

Rows of one class that lack the same features form a group g, with n_g rows, mean x̄_g and scatter S_g of the features
that were observed. With P_g = diag(1 where observed), everything about a group follows from its moments and Σ:

    M = P Σ P + I − P,   log|M| = log|Σ_oo|,   A = Σ P M⁻¹ P,   C = Σ − A Σ Aᵀ

A regresses all features on the observed ones (it is the identity on these), and C is what remains unknown. The zeros
and ones that fill up P Σ P let one stacked LAPACK call serve all groups, and all draws of Σ. The cost grows with the
number of groups, and not with the number of rows.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_gda.checks import Floats, finite_sum, frozen
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError

Mask = NDArray[np.bool_]


def check_gapped(X: ArrayLike) -> Floats:
    """Return X (n, d) as float64; NaN is a missing value, infinite values are refused."""
    array = np.asarray(X)
    if array.dtype.kind not in "fiub":
        raise DataError(f"`X` must hold real numbers; got dtype {array.dtype}.")
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(f"`X` must be 2-d with columns; got shape {array.shape}. Use X[:, None] for one feature.")
    array = np.asarray(array, dtype=np.float64)
    if np.isinf(array).any():
        i, j = np.argwhere(np.isinf(array))[0]
        raise DataError(f"`X` must be finite, or NaN where missing; got {array[i, j]} in row {i}, column {j}.")
    return array


def has_gaps(X: Floats) -> bool:
    """Return whether any value is missing; one quick pass if none is."""
    return not finite_sum(X) and bool(np.isnan(X).any())


def find_patterns(X: Floats) -> list[tuple[Mask, NDArray[np.intp]]]:
    """Return the patterns of X (n, d): each a mask (d,) of what is observed, with the rows that have it."""
    observed = ~np.isnan(X)
    if observed.all():
        return [(np.ones(X.shape[1], dtype=bool), np.arange(len(X)))] if len(X) else []
    return [(observed[rows[0]], rows) for rows in _alike(np.packbits(observed, axis=1))]


@dataclass(frozen=True, slots=True, eq=False)
class PatternMoments:
    """Moments of the observed features, one group for each pattern in each class that has rows with it.

    Rows with nothing observed count in `class_count` and nowhere else: they say nothing of means and covariances.

    Parameters
    ----------
    class_count
        (K,) all rows of each class.
    label
        (G,) class of each group.
    observed
        (G, d) which features its rows have.
    count
        (G,) its rows.
    mean
        (G, d) their mean; zero where missing.
    root
        (G, d, d) R with RRᵀ the scatter about that mean; its columns from `rank` on, and its rows where missing, are 0.
    rank
        (G,) columns of R that are in use: min(n_g − 1, features observed).
    """

    class_count: Floats
    label: NDArray[np.intp]
    observed: Mask
    count: Floats
    mean: Floats
    root: Floats
    rank: NDArray[np.intp]

    def __post_init__(self) -> None:
        for name in ("class_count", "count", "mean", "root"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @classmethod
    def from_arrays(cls, X: ArrayLike, y: ArrayLike, K: int) -> Self:
        """Group the rows, and take the moments of each group.

        Parameters
        ----------
        X
            (n, d) features; NaN is a missing value.
        y
            (n,) class codes in 0…K−1.
        K
            Number of classes; one without rows has no groups.
        """
        X = check_gapped(X)
        codes = _check_codes(y, len(X), K)
        observed = ~np.isnan(X)
        useful = np.flatnonzero(observed.any(axis=1))
        if not len(useful):
            raise DataError(f"`X` has {len(X)} rows, but no values: all are missing. Add rows with values.")
        keys = np.column_stack([codes[useful], np.packbits(observed[useful], axis=1)])
        groups = [useful[rows] for rows in _alike(keys)]
        d = X.shape[1]
        mean, root, rank = np.zeros((len(groups), d)), np.zeros((len(groups), d, d)), np.zeros(len(groups), np.intp)
        for g, rows in enumerate(groups):
            o = np.flatnonzero(observed[rows[0]])
            Z = X[np.ix_(rows, o)]
            mean[g, o] = Z.mean(axis=0)
            rank[g] = min(len(rows) - 1, len(o))
            root[g][np.ix_(o, np.arange(rank[g]))] = _root(Z - mean[g, o], int(rank[g]))
        first = np.array([rows[0] for rows in groups], dtype=np.intp)
        return cls(
            class_count=np.bincount(codes, minlength=K).astype(np.float64),
            label=codes[first],
            observed=observed[first],
            count=np.array([len(rows) for rows in groups], dtype=np.float64),
            mean=mean,
            root=root,
            rank=rank,
        )

    @property
    def K(self) -> int:
        """Number of classes."""
        return len(self.class_count)

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.observed.shape[1])

    @property
    def used_count(self) -> Floats:
        """(K,) rows of each class with at least one value."""
        return np.bincount(self.label, self.count, minlength=self.K)

    @property
    def values(self) -> Floats:
        """(K, d) number of values observed in each class and feature."""
        out = np.zeros((self.K, self.d))
        np.add.at(out, self.label, self.count[:, None] * self.observed)
        return out

    def by_feature(self) -> tuple[Floats, Floats, Floats]:
        """Return number, mean and sum of squares about it (K, d each) of the values of each class and feature alone."""
        values, total, squares = self.values, np.zeros((self.K, self.d)), np.zeros((self.K, self.d))
        np.add.at(total, self.label, self.count[:, None] * self.mean)
        mean = total / np.maximum(values, 1)
        delta = np.where(self.observed, self.mean - mean[self.label], 0.0)
        inner = np.diagonal(self.scatter, axis1=1, axis2=2) + self.count[:, None] * delta**2
        np.add.at(squares, self.label, inner)
        return values, mean, squares

    @property
    def scatter(self) -> Floats:
        """(G, d, d) sums of squares and products about the means; zero where missing."""
        return np.asarray(self.root @ np.swapaxes(self.root, 1, 2))

    def in_groups(self, mu: Floats, Sigma: Floats) -> tuple[Floats, Floats]:
        """Return μ (…, G, d) and Σ (…, G, d, d) of each group's class, from (…, K, d) and (…, [K,] d, d)."""
        if Sigma.ndim == mu.ndim:  # one for all classes
            Sigma = np.broadcast_to(Sigma[..., None, :, :], (*mu.shape, mu.shape[-1]))
        return mu[..., self.label, :], Sigma[..., self.label, :, :]

    def regress(self, Sigma: Floats) -> tuple[Floats, Floats]:
        """Return A and C (…, G, d, d) of the groups' covariances (…, G, d, d): x | x_o ~ N(μ + A(x − μ), C)."""
        P = self.observed.astype(np.float64)
        # A Mᵀ = Σ P, solved from the left; the columns that are missing come out as zero.
        A = np.swapaxes(np.linalg.solve(self._filled(Sigma), np.swapaxes(Sigma * P[:, None, :], -1, -2)), -1, -2)
        A = np.where(self.observed[:, :, None], np.eye(self.d) * P[:, None, :], A * P[:, None, :])
        # What is observed has nothing unknown left: written in, not left to rounding.
        unknown = ~self.observed[:, :, None] & ~self.observed[:, None, :]
        C = np.where(unknown, Sigma - A @ Sigma, 0.0)
        return A, (C + np.swapaxes(C, -1, -2)) / 2

    def mean_information(self, Sigma: Floats) -> tuple[Floats, Floats]:
        """Return what the observed values say of the class means if Σ is known: precisions and precision × mean.

        Q_k = Σ_{g in k} n_g P M_g⁻¹ P  (…, K, d, d),   h_k = Σ_{g in k} n_g P M_g⁻¹ P x̄_g  (…, K, d)

        Parameters
        ----------
        Sigma
            (…, K, d, d) covariances of the classes.
        """
        both = self.observed[:, :, None] & self.observed[:, None, :]
        inverse = np.linalg.inv(self._filled(Sigma[..., self.label, :, :]))
        Q = np.where(both, inverse, 0.0) * self.count[:, None, None]
        h = (Q @ self.mean[:, :, None])[..., 0]
        return self._by_class(Q), self._member @ h

    def log_likelihood(self, pi: Floats, mu: Floats, Sigma: Floats) -> Floats:
        """Return log p(X_observed, y | π, μ, Σ) (…), with whatever is missing integrated out.

        Σ_k n_k log π_k − ½ Σ_g [n_g p_g log 2π + n_g log|Σ_oo| + tr Σ_oo⁻¹(S_g + n_g δδᵀ)],   δ = x̄_g − μ_o

        Parameters
        ----------
        pi
            (…, K) class probabilities.
        mu
            (…, K, d) class means.
        Sigma
            (…, [K,] d, d) covariances, shared or one per class.
        """
        shares = np.sum(np.where(self.class_count > 0, self.class_count * np.log(pi), 0.0), axis=-1)
        mu, Sigma = self.in_groups(mu, Sigma)
        L = np.linalg.cholesky(self._filled(Sigma))
        log_det = 2 * np.log(np.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
        delta = np.where(self.observed, self.mean - mu, 0.0) * np.sqrt(self.count)[:, None]
        # The trace is the sum of squares of L⁻¹[R, √n δ]: the scatter is not formed.
        wide = np.broadcast_to(self.root, (*delta.shape, self.d))
        Z = np.linalg.solve(L, np.concatenate([wide, delta[..., None]], axis=-1))
        constant = self.count * self.observed.sum(axis=1) * np.log(2 * np.pi)
        out: Floats = shares - 0.5 * (constant + self.count * log_det + (Z**2).sum(axis=(-2, -1))).sum(axis=-1)
        return out

    def merge(self, mean: Floats, scatter: Floats) -> tuple[Floats, Floats]:
        """Merge the moments of completed groups, (…, G, d) and (…, G, d, d), into those of the classes."""
        n = self.used_count
        center = self._member @ (self.count[:, None] * mean) / np.maximum(n, 1)[:, None]
        delta = mean - center[..., self.label, :]
        between = self.count[:, None, None] * delta[..., :, None] * delta[..., None, :]
        return center, self._by_class(scatter + between)

    @property
    def _member(self) -> Floats:
        """(K, G) ones where a group belongs to a class."""
        return (self.label == np.arange(self.K)[:, None]).astype(np.float64)

    def _by_class(self, matrices: Floats) -> Floats:
        """Sum (…, G, d, d) over the groups of each class, to (…, K, d, d)."""
        flat = self._member @ matrices.reshape(*matrices.shape[:-2], -1)
        return flat.reshape(*flat.shape[:-1], self.d, self.d)

    def _filled(self, Sigma: Floats) -> Floats:
        """M = P Σ P + I − P."""
        both = self.observed[:, :, None] & self.observed[:, None, :]
        return np.where(both, Sigma, np.eye(self.d))


def _alike(keys: NDArray[np.integer]) -> list[NDArray[np.intp]]:
    """Return the indices of the rows of `keys` that are equal, each set in its own order."""
    if len(keys) == 0:
        return []
    _, inverse = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    return np.split(order, np.cumsum(np.bincount(inverse.ravel()))[:-1])


def _root(Z: Floats, rank: int) -> Floats:
    """Return R (p, rank) with RRᵀ = ZᵀZ for centred rows Z (n, p), whose rank is at most min(n − 1, p)."""
    if len(Z) > Z.shape[1]:
        Z = np.linalg.qr(Z, mode="r")
    _, size, Vt = np.linalg.svd(Z, full_matrices=False)
    return np.asarray(Vt[:rank].T * size[:rank])


def _check_codes(y: ArrayLike, n: int, K: int) -> NDArray[np.intp]:
    codes = np.asarray(y)
    if codes.shape != (n,):
        raise DataError(f"`y` must have one code a row, shape ({n},); got {codes.shape}.")
    if codes.dtype.kind not in "iub":
        raise DataError(f"`y` must hold integer class codes 0…{K - 1}; got dtype {codes.dtype}.")
    if codes.size and (codes.min() < 0 or codes.max() >= K):
        raise DataError(f"`y` must lie in 0…{K - 1}; got {codes.min()}…{codes.max()}.")
    return codes.astype(np.intp, copy=False)


# ── Feature by feature ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class ObservedCounts:
    """How much a model knows that was fitted to rows with gaps: the moments of such rows do not add up.

    Parameters
    ----------
    count
        (K,) rows of each class.
    values
        (K, d) values of each feature that they have.
    """

    count: Floats
    values: Floats

    def __post_init__(self) -> None:
        count, values = frozen(self.count), frozen(self.values)
        if values.ndim != 2 or count.shape != values.shape[:1]:
            raise DataError(f"Counts need `count` (K,) and `values` (K, d); got {count.shape} and {values.shape}.")
        if not ((values >= 0) & (values <= count[:, None])).all():
            raise DataError("`values` must not be negative, nor more than the rows of their class.")
        for name, value in (("count", count), ("values", values)):
            object.__setattr__(self, name, value)

    @property
    def K(self) -> int:
        """Number of classes."""
        return len(self.count)

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.values.shape[1])

    @property
    def n(self) -> float:
        """Number of rows."""
        return float(self.count.sum())


def moments_by_feature(X: Floats, y: ArrayLike, K: int) -> list[Moments]:
    """Return the moments of each feature alone, of the rows that have it: all that the naive model needs of them."""
    codes, there = np.asarray(y), ~np.isnan(X)
    return [Moments.from_arrays(X[there[:, j], j : j + 1], codes[there[:, j]], K) for j in range(X.shape[1])]
