"""Exact posteriors that move with the rows, by rank-one updates.

One more row x in a class with centre m and weight κ moves its normal-inverse-Wishart posterior to

    m' = m + (x − m)/(κ + 1),   κ' = κ + 1,   Ψ' = Ψ + r (x − m)(x − m)ᵀ,   r = κ/(κ + 1)

and taking it out again is the same with −1 in place of 1 and −r' = −κ'/(κ' − 1). With Ψ = CCᵀ and Cp = √r (x − m),

    Ψ' = C (I + ppᵀ) Cᵀ = (CL)(CL)ᵀ,   t_j = 1 + p_1² + … + p_j²,
    L_jj = √(t_j/t_{j−1}),   L_ij = p_i p_j/√(t_j t_{j−1})  for i > j

(Gill, Golub, Murray & Saunders 1974). Column j of CL needs Σ_{i>j} p_i C_i, a running sum: d² operations where a new
factor takes d³/3. The signs turn for a row that is taken out; there t_d is what remains of 1, and must.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dtrtrs

from bayes_gda.checks import Floats, check_rows
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.exact import NIGPosterior, NIWPosterior, log_student

# A row may be taken out if this share of a direction of Ψ remains. Rounding leaves 1e-16 of it, so that four digits of
# what remains are right at the least; a smaller remainder says that the row was never there.
REMAINDER = 1e-12


class StreamingGaussian:
    """LDA or QDA, one row at a time: learning, forgetting again and predicting a row cost O(d²) a class.

    It changes in place, since copying K d² numbers a row would cost as much as the update.

    Parameters
    ----------
    posterior
        Where to begin: the prior (`NIWPosterior.from_prior`) or what a batch has given.
    count
        (K,) rows of each class behind `posterior`, which may be removed; None if it is the prior.
    """

    __slots__ = ("C", "alpha", "count", "kappa", "log_det", "log_evidence", "m", "nu")

    def __init__(self, posterior: NIWPosterior, count: ArrayLike | None = None) -> None:
        self.m, self.kappa, self.nu = posterior.m.copy(), posterior.kappa.copy(), posterior.nu.copy()
        self.alpha, self.log_evidence = posterior.alpha.copy(), posterior.log_evidence
        self.C = np.linalg.cholesky(posterior.Psi)
        self.log_det = 2 * np.log(np.diagonal(self.C, axis1=1, axis2=2)).sum(axis=1)
        self.count = _rows_behind(count, len(self.m))

    @property
    def posterior(self) -> NIWPosterior:
        """The posterior of all rows learnt so far."""
        Psi = self.C @ np.swapaxes(self.C, 1, 2)
        return NIWPosterior(self.m, self.kappa, Psi, self.nu, self.alpha, self.log_evidence)

    def update(self, x: ArrayLike, y: int) -> None:
        """Learn row x (d,) of class y, a code in 0…K−1."""
        x, y = _check_row(x, y, self.m), int(y)
        g = self._group(y)
        delta, kappa = x - self.m[y], self.kappa[y]
        p = _solve(self.C[g], np.sqrt(kappa / (kappa + 1)) * delta)
        t = 1 + np.cumsum(p * p)
        self.log_evidence += self._log_predictive(y, g, float(t[-1]))
        self._move(g, p, t, 1.0)
        self.m[y] += delta / (kappa + 1)
        self._count(y, g, 1.0)

    def remove(self, x: ArrayLike, y: int) -> None:
        """Take row x (d,) of class y out again; exact, as if it had never been learnt.

        Raises
        ------
        DataError
            If such a row cannot have been learnt: its class has none left, or nothing positive definite would remain.
        """
        x, y = _check_row(x, y, self.m), int(y)
        g = self._group(y)
        _check_count(self.count, y)
        kappa = self.kappa[y]
        delta = x - self.m[y]
        p = _solve(self.C[g], np.sqrt(kappa / (kappa - 1)) * delta)
        t = 1 - np.cumsum(p * p)
        if not t[-1] > REMAINDER:
            raise DataError(_never_learnt(y))
        self._move(g, p, t, -1.0)
        self.m[y] -= delta / (kappa - 1)
        self._count(y, g, -1.0)
        # Ψ after over Ψ before is t: the row, learnt again, would find 1/t.
        self.log_evidence -= self._log_predictive(y, g, float(1 / t[-1]))

    def log_joint(self, x: ArrayLike) -> Floats:
        """Return log p(x, y = k | rows so far) (K,): E[π_k] times the Student-t predictive of class k."""
        x = _check_row(x, 0, self.m)
        # One solve a class also where they share C: OpenBLAS gives several right sides to threads, ten times as slow.
        z = np.array([_solve(self.C[self._group(k)], x - m) for k, m in enumerate(self.m)])
        q = np.einsum("kd,kd->k", z, z)
        return log_student(q, self.log_det, self.kappa, self.nu, len(x)) + np.log(self.alpha / self.alpha.sum())

    def _group(self, y: int) -> int:
        """Index of the covariance of class y."""
        return 0 if len(self.C) == 1 else y

    def _move(self, g: int, p: Floats, t: Floats, sign: float) -> None:
        """C ← CL of I ± ppᵀ, with t_1…t_d given."""
        C, before = self.C[g], np.empty_like(t)
        before[0], before[1:] = 1.0, t[:-1]
        rest = np.zeros_like(C)
        np.add.accumulate((C * p)[:, :0:-1], axis=1, out=rest[:, -2::-1])  # Σ_{i>j} p_i C_i
        rest *= sign * p / np.sqrt(t * before)
        C *= np.sqrt(t / before)
        C += rest
        self.log_det[g] += np.log(t[-1])  # |I ± ppᵀ| = t_d

    def _count(self, y: int, g: int, sign: float) -> None:
        for counter, entry in ((self.kappa, y), (self.alpha, y), (self.count, y), (self.nu, g)):
            counter[entry] += sign

    def _log_predictive(self, y: int, g: int, t: float) -> float:
        """log p(x, y | rows so far) of a row with 1 + r q = t."""
        kappa = self.kappa[y]
        q = (t - 1) * (kappa + 1) / kappa
        density = log_student(q, self.log_det[g], kappa, self.nu[g], self.m.shape[1])
        return float(density + np.log(self.alpha[y] / self.alpha.sum()))


class StreamingNaive:
    """The naive Gaussian model, one row at a time: O(d) a class. It changes in place.

    Parameters
    ----------
    posterior
        Where to begin: the prior (`NIGPosterior.from_prior`) or what a batch has given.
    count
        (K,) rows of each class behind `posterior`, which may be removed; None if it is the prior.
    """

    __slots__ = ("a", "alpha", "b", "count", "kappa", "log_evidence", "m")

    def __init__(self, posterior: NIGPosterior, count: ArrayLike | None = None) -> None:
        self.m, self.kappa, self.alpha = posterior.m.copy(), posterior.kappa.copy(), posterior.alpha.copy()
        self.a, self.b, self.log_evidence = posterior.a.copy(), posterior.b.copy(), posterior.log_evidence
        self.count = _rows_behind(count, len(self.m))

    @property
    def posterior(self) -> NIGPosterior:
        """The posterior of all rows learnt so far."""
        return NIGPosterior(self.m, self.kappa, self.a, self.b, self.alpha, self.log_evidence)

    def update(self, x: ArrayLike, y: int) -> None:
        """Learn row x (d,) of class y, a code in 0…K−1."""
        x, y = _check_row(x, y, self.m), int(y)
        delta, kappa = x - self.m[y], self.kappa[y].copy()
        self.log_evidence += self._log_predictive(x, y)
        self.b[y] += 0.5 * kappa / (kappa + 1) * delta**2
        self.m[y] += delta / (kappa + 1)
        self._count(y, 1.0)

    def remove(self, x: ArrayLike, y: int) -> None:
        """Take row x (d,) of class y out again; see `StreamingGaussian.remove`."""
        x, y = _check_row(x, y, self.m), int(y)
        _check_count(self.count, y)
        kappa = self.kappa[y].copy()
        delta = x - self.m[y]
        left = self.b[y] - 0.5 * kappa / (kappa - 1) * delta**2
        if not (left > REMAINDER * self.b[y]).all():
            raise DataError(_never_learnt(y))
        self.b[y] = left
        self.m[y] -= delta / (kappa - 1)
        self._count(y, -1.0)
        self.log_evidence -= self._log_predictive(x, y)

    def log_joint(self, x: ArrayLike) -> Floats:
        """Return log p(x, y = k | rows so far) (K,): E[π_k] times a product of Student-t predictives."""
        x = _check_row(x, 0, self.m)
        return self._log_density(x, slice(None)) + np.log(self.alpha / self.alpha.sum())

    def _log_density(self, x: Floats, k: int | slice) -> Floats:
        Psi = 2 * self.b[k]
        q = (x - self.m[k]) ** 2 / Psi
        return np.asarray(log_student(q, np.log(Psi), self.kappa[k], 2 * self.a[k], 1).sum(axis=-1))

    def _log_predictive(self, x: Floats, y: int) -> float:
        return float(self._log_density(x, y) + np.log(self.alpha[y] / self.alpha.sum()))

    def _count(self, y: int, sign: float) -> None:
        self.kappa[y] += sign
        self.a[y] += sign / 2
        self.alpha[y] += sign
        self.count[y] += sign


def _solve(C: Floats, v: Floats) -> Floats:
    """Return C⁻¹v for a C-ordered lower triangular C: LAPACK reads its memory as Cᵀ, so nothing is copied."""
    z: Floats = dtrtrs(C.T, v, lower=0, trans=1)[0]
    return z


def _check_row(x: ArrayLike, y: Any, m: Floats) -> Floats:
    row = np.asarray(x, dtype=np.float64)
    if row.shape != m.shape[1:] or not np.isfinite(row).all():
        raise DataError(f"`x` must be one row of {m.shape[1]} finite numbers; got {np.array2string(row, threshold=6)}.")
    if isinstance(y, bool) or not isinstance(y, (int, np.integer)) or not 0 <= y < len(m):
        raise DataError(f"`y` must be a class code in 0…{len(m) - 1}; got {y!r}.")
    return row


def _rows_behind(count: ArrayLike | None, K: int) -> Floats:
    return np.zeros(K) if count is None else check_rows("count", count, K).copy()


def _check_count(count: Floats, y: int) -> None:
    # Weights that were summed in another order may leave a little less than a whole row.
    if not count[y] > 1 - 1e-9:
        raise DataError(f"Class {y} has {count[y]:g} rows; one can be removed only where one was learnt.")


def _never_learnt(y: int) -> str:
    return f"That row of class {y} was never learnt: nothing positive definite would remain. Give the row as it was."
