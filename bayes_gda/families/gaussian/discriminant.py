"""Gaussian discriminant analysis with known parameters: discriminant functions, boundaries, distances, projection.

    δ_k(x) = log π_k − ½ log|Σ_k| − ½ (x − μ_k)ᵀΣ_k⁻¹(x − μ_k)                     quadratic
    δ_k(x) = log π_k − ½ μ_kᵀΣ⁻¹μ_k + xᵀΣ⁻¹μ_k                                     linear, all Σ_k = Σ

and the class of x is the k with the largest δ_k. The parameters are plug-in estimates or a single posterior draw.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.linalg import solve_triangular


@dataclass(frozen=True, slots=True, eq=False)
class Gaussians:
    """K weighted Gaussians: the parameters of LDA (one Σ), QDA (Σ_k) or the naive model (diagonal Σ_k).

    Parameters
    ----------
    pi
        (K,) class probabilities.
    mu
        (K, d) class means.
    Sigma
        (d, d) shared covariance, or (K, d, d) one per class.
    """

    pi: Floats
    mu: Floats
    Sigma: Floats

    def __post_init__(self) -> None:
        for name in ("pi", "mu", "Sigma"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def shared(self) -> bool:
        """Whether all classes share one covariance."""
        return self.Sigma.ndim == 2

    def cholesky(self) -> Floats:
        """Return the factors L_k (K, d, d) of Σ_k = L_k L_kᵀ."""
        K, d = self.mu.shape
        return np.broadcast_to(np.linalg.cholesky(self.Sigma), (K, d, d))

    def mahalanobis(self, X: Floats) -> Floats:
        """Return D² = (x − μ_k)ᵀΣ_k⁻¹(x − μ_k) (n, K), the squared distances of each row to each class mean."""
        L = self.cholesky()
        # D² = |L⁻¹(x − μ)|²
        z = [solve_triangular(L[k], (X - mu).T) for k, mu in enumerate(self.mu)]
        return np.stack([np.einsum("dn,dn->n", zk, zk) for zk in z], axis=1)

    def log_joint(self, X: Floats) -> Floats:
        """Return log p(x, y=k) = log π_k + log N(x | μ_k, Σ_k) (n, K)."""
        d = X.shape[1]
        return self.quadratic_discriminants(X) - 0.5 * d * np.log(2 * np.pi)

    def quadratic_discriminants(self, X: Floats) -> Floats:
        """Return δ_k(x) = log π_k − ½ log|Σ_k| − ½ D²_k (n, K)."""
        log_sqrt_det = np.log(np.diagonal(self.cholesky(), axis1=1, axis2=2)).sum(axis=1)
        out: Floats = np.log(self.pi) - log_sqrt_det - 0.5 * self.mahalanobis(X)
        return out

    def linear_discriminants(self, X: Floats) -> Floats:
        """Return δ_k(x) = log π_k − ½ μ_kᵀΣ⁻¹μ_k + xᵀΣ⁻¹μ_k (n, K); shared covariance only."""
        slopes, intercepts = self.linear_coefficients()
        return X @ slopes.T + intercepts

    def linear_coefficients(self) -> tuple[Floats, Floats]:
        """Return slopes Σ⁻¹μ_k (K, d) and intercepts log π_k − ½ μ_kᵀΣ⁻¹μ_k (K,) of the linear discriminants."""
        self._need_shared("Linear discriminants")
        slopes = np.linalg.solve(self.Sigma, self.mu.T).T
        return slopes, np.log(self.pi) - 0.5 * np.einsum("kd,kd->k", self.mu, slopes)

    def threshold_unit(self, positive: int = 1, negative: int = 0) -> tuple[Floats, float]:
        """Return (w, c) of the linear threshold unit w·x + c > 0 that prefers class `positive` to `negative`.

        w = Σ⁻¹(μ₁ − μ₀),   c = log(π₁/π₀) − ½ μ₁ᵀΣ⁻¹μ₁ + ½ μ₀ᵀΣ⁻¹μ₀
        """
        self._need_shared("A linear threshold unit")
        # Solved on the difference, and c at the midpoint, so that a large common offset of the means cancels first.
        w = np.linalg.solve(self.Sigma, self.mu[positive] - self.mu[negative])
        midpoint = (self.mu[positive] + self.mu[negative]) / 2
        return w, float(np.log(self.pi[positive]) - np.log(self.pi[negative]) - w @ midpoint)

    def boundary(self, i: int, j: int) -> "Quadric":
        """Return the surface δ_i(x) = δ_j(x) between two classes: a hyperplane if Σ is shared, else a quadric."""
        if self.shared:
            w, c = self.threshold_unit(i, j)
            return Quadric(np.zeros_like(self.Sigma), w, c)
        P = np.linalg.inv(self.Sigma)
        b = P[i] @ self.mu[i] - P[j] @ self.mu[j]
        constants = self.quadratic_discriminants(np.zeros((1, self.mu.shape[1])))[0]
        return Quadric(-0.5 * (P[i] - P[j]), b, float(constants[i] - constants[j]))

    def sphere(self, X: Floats) -> Floats:
        """Return B⁻¹x (n, d) for Σ = BBᵀ (Cholesky): in these coordinates every class has unit covariance."""
        self._need_shared("Sphering")
        out: Floats = solve_triangular(np.linalg.cholesky(self.Sigma), X.T).T
        return out

    def projection(self) -> "Projection":
        """Return the map to the (at most K−1)-dimensional space in which the sphered class means lie."""
        self._need_shared("The discriminant projection")
        center = self.pi @ self.mu / self.pi.sum()
        spread = self.sphere(self.mu - center)
        # Directions of the sphered means, the most spread first; weighted by π as in the between-class covariance.
        _, size, Vt = np.linalg.svd(np.sqrt(self.pi)[:, None] * spread, full_matrices=False)
        rank = int((size > max(spread.shape) * np.finfo(float).eps * size[0]).sum())
        axes = Vt[: min(rank, len(self.mu) - 1)]
        directions = solve_triangular(np.linalg.cholesky(self.Sigma), axes.T, transposed=True)
        return Projection(center, directions, spread @ axes.T, self.pi, size[: len(axes)] ** 2)

    def _need_shared(self, what: str) -> None:
        if not self.shared:
            raise DataError(
                f"{what} needs one covariance shared by all classes; this model has one per class. Use LDA."
            )


@dataclass(frozen=True, slots=True, eq=False)
class Quadric:
    """The function xᵀAx + bᵀx + c, zero on a decision boundary; a hyperplane where A = 0.

    Parameters
    ----------
    A
        (d, d) symmetric.
    b
        (d,) linear part.
    c
        Constant.
    """

    A: Floats
    b: Floats
    c: float

    def __call__(self, X: Floats) -> Floats:
        """Return the values (n,) at the rows of X."""
        out: Floats = np.einsum("nd,de,ne->n", X, self.A, X) + X @ self.b + self.c
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """z = (x − center) · directions: Euclidean distances to the class means in z decide as the full space does.

    Parameters
    ----------
    center
        (d,) weighted mean of the class means.
    directions
        (d, r) discriminant directions, r ≤ K − 1, the most informative first; within-class covariance of z is I.
    means
        (K, r) projected class means.
    pi
        (K,) class probabilities.
    spread
        (r,) between-class variance along each direction, in units of the within-class variance.
    """

    center: Floats
    directions: Floats
    means: Floats
    pi: Floats
    spread: Floats

    def __call__(self, X: Floats) -> Floats:
        """Project rows (n, d) to (n, r)."""
        return (X - self.center) @ self.directions

    def classify(self, X: Floats) -> NDArray[np.intp]:
        """Return the class codes argmin_k |z − z_k|² − 2 log π_k (n,), decided inside the projection."""
        z = self(X)
        distance = ((z[:, None, :] - self.means) ** 2).sum(axis=2)
        return np.argmin(distance - 2 * np.log(self.pi), axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class MeanSubspace:
    """The subspace that the differences of sphered class means span, with the matrices that project to it.

        W = [μ₂ − μ₁, …, μ_K − μ₁],   P = WW⁺,   W = UDVᵀ,   R = UᵀP

    P is the orthogonal projection onto the columns of W. U turns their span to the first coordinate axes, so that R x
    has the coordinates of the projection in its first r entries and zeros below. W⁺ is the pseudoinverse, which equals
    (WᵀW)⁻¹Wᵀ only if the means are in general position; if they are not, r < K − 1.

    Parameters
    ----------
    W
        (d, K−1) differences of the means to that of the first class.
    P
        (d, d) orthogonal projection: symmetric, PP = P, PW = W.
    R
        (d, d) projection, then the turn; rows r, r + 1, … are zero.
    rank
        Dimension r of the subspace.
    """

    W: Floats
    P: Floats
    R: Floats
    rank: int

    def __call__(self, X: Floats) -> Floats:
        """Return the coordinates (n, r) of sphered rows (n, d) in the subspace, relative to the origin."""
        out: Floats = X @ self.R[: self.rank].T
        return out


def mean_subspace(mu: Floats) -> MeanSubspace:
    """Return the subspace that class means differ in, with its projection matrices P and R.

    Distances to the class means within it decide as distances in all d dimensions do: what P removes of a row adds the
    same to its distances from all means. The signs of the columns of U, which no decomposition fixes, are those that
    make each column's largest entry positive.

    Parameters
    ----------
    mu
        (K, d) means of sphered classes, as `Gaussians.sphere` returns them; K ≥ 2.
    """
    if mu.ndim != 2 or len(mu) < 2:
        raise DataError(f"`mu` must be (K, d) with at least 2 class means; got shape {mu.shape}.")
    W = (mu[1:] - mu[0]).T
    U, size, _ = np.linalg.svd(W)
    rank = int((size > max(W.shape) * np.finfo(float).eps * size[0]).sum())
    basis = U[:, :rank]
    basis = basis * np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(rank)])
    # WW⁺ = U_r U_rᵀ, and UᵀP keeps the rows of U_r alone
    R = np.zeros((len(W), len(W)))
    R[:rank] = basis.T
    return MeanSubspace(W, basis @ basis.T, R, rank)


def plug_in_lda(moments: Moments, *, unbiased: bool = False) -> Gaussians:
    """Estimate LDA: π = n_k/n, μ = x̄_k, Σ = Σ_k S_k / n, or / (n − K) if `unbiased`.

    1/n is maximum likelihood and what scikit-learn uses; 1/(n − K) is what Hastie et al. and R's MASS use.
    """
    divisor = moments.n - moments.K if unbiased else moments.n
    _check_rows(moments, 1, "LDA")
    _check_divisor(divisor, "LDA")
    return Gaussians(moments.count / moments.n, moments.mean, _definite(moments.scatter.sum(axis=0) / divisor, "LDA"))


def plug_in_qda(moments: Moments, *, unbiased: bool = False) -> Gaussians:
    """Estimate QDA: Σ_k = S_k / n_k, or / (n_k − 1) if `unbiased`."""
    _check_rows(moments, moments.d + 1, "QDA")
    divisor = moments.count - 1 if unbiased else moments.count
    return Gaussians(
        moments.count / moments.n, moments.mean, _definite(moments.scatter / divisor[:, None, None], "QDA")
    )


def plug_in_naive(moments: Moments, *, unbiased: bool = False) -> Gaussians:
    """Estimate the naive model: variances as in QDA, correlations zero."""
    _check_rows(moments, 2, "The naive model")
    divisor = moments.count - 1 if unbiased else moments.count
    variances = np.diagonal(moments.scatter, axis1=1, axis2=2) / divisor[:, None]
    Sigma = variances[:, :, None] * np.eye(moments.d)
    return Gaussians(moments.count / moments.n, moments.mean, _definite(Sigma, "The naive model"))


def _check_rows(moments: Moments, minimum: int, model: str) -> None:
    k = int(np.argmin(moments.count))
    if moments.count[k] < minimum:
        raise DataError(
            f"Class {k} has {moments.count[k]:g} rows; plug-in {model} needs at least {minimum}. "
            "Merge classes, or use the Bayesian model, whose prior fills in."
        )


def _check_divisor(divisor: float, model: str) -> None:
    if divisor <= 0:
        raise DataError(f"Plug-in {model} needs more rows than classes for the divisor n − K; got {divisor:g}.")


def _definite(Sigma: Floats, model: str) -> Floats:
    # In correlation units, where scales do not matter; rounding alone leaves eigenvalues of some 1e-16 · d.
    sd = np.sqrt(np.diagonal(Sigma, axis1=-2, axis2=-1))
    if not (sd > 0).all() or np.linalg.eigvalsh(Sigma / sd[..., :, None] / sd[..., None, :]).min() < 1e-13:
        raise DataError(
            f"{model}: the estimated covariance is singular, as with collinear features or too few rows. "
            "Drop features, or use the Bayesian model, whose prior keeps it regular."
        )
    return Sigma
