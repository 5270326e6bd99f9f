"""Exact posteriors of the Gaussian models, where the prior is conjugate.

LDA (one Σ) and QDA (a Σ_k for each class), with n_k rows, mean x̄_k and scatter S_k in class k:

    κ_k' = κ_k + n_k,   m_k' = (κ_k m_k + n_k x̄_k)/κ_k',   α_k' = α_k + n_k
    Ψ' = Ψ + Σ_k [S_k + (κ_k n_k/κ_k') (x̄_k − m_k)(x̄_k − m_k)ᵀ],   ν' = ν + Σ_k n_k

with the sums over the classes that share the covariance. Everything else follows from these few numbers: draws, the
evidence (a ratio of normalising constants), the Student-t predictive, and leave-one-out by taking one row back out.
The naive model is the one-dimensional case, feature by feature, with ν = 2a and Ψ = 2b.

A flat mean (κ = 0, of `NIW.jeffreys`) takes a degree of freedom: as κ → 0, N(μ | m, Σ/κ) keeps |Σ|^{−1/2}, which a flat
density does not have. Such a prior starts at ν − 1 for each class that shares Σ, and has no evidence (nan).
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError, PriorError
from bayes_gda.linalg import blas_threads, for_blocks, solve_triangular
from bayes_gda.memory import require_memory
from bayes_gda.priors import NIG, NIW, Dirichlet, Seed

# The share of a feature's scale that the features before it leave open, at least: below it rounding decides whether Ψ
# and the covariances drawn with it are positive definite. The default prior keeps it above 1/n but for classes that
# are 1e5 of their own spreads apart in several features at once.
COLLINEAR = 1e-12
_PROPER = "Use the default prior, or another proper one."


@dataclass(frozen=True, slots=True, eq=False)
class NIWPosterior:
    """Exact posterior of LDA and QDA; also their prior, before any data (`n_k = 0`).

    Parameters
    ----------
    m
        (K, d) centres of the class means.
    kappa
        (K,) their weights, in rows.
    Psi
        (G, d, d) inverse-Wishart scales: G = 1 for LDA, whose classes share Σ, and G = K for QDA.
    nu
        (G,) degrees of freedom.
    alpha
        (K,) Dirichlet parameters of the class probabilities.
    log_evidence
        log p(X, y) of all rows seen so far.
    """

    m: Floats
    kappa: Floats
    Psi: Floats
    nu: Floats
    alpha: Floats
    log_evidence: float = 0.0

    @classmethod
    def from_prior(cls, prior: NIW, class_prior: Dirichlet, K: int, *, shared: bool) -> Self:
        """Start from the prior: `shared` covariance for LDA, one per class for QDA."""
        G = 1 if shared else K
        flat = 0 if prior.is_proper else K // G
        return cls(
            m=np.tile(prior.m, (K, 1)),
            kappa=np.full(K, prior.kappa),
            Psi=np.tile(prior.Psi, (G, 1, 1)),
            nu=np.full(G, prior.nu - flat),
            alpha=class_prior.vector(K),
        )

    def __post_init__(self) -> None:
        for name in ("m", "kappa", "Psi", "nu", "alpha"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def shared(self) -> bool:
        """Whether all classes share one covariance (LDA)."""
        return len(self.Psi) == 1

    def update(self, moments: Moments) -> Self:
        """Learn from more rows; the order and the size of the batches do not matter."""
        _check_fits(moments, self.m)
        _check_enough(self.kappa + moments.count)
        n, kappa = moments.count, self.kappa + moments.count
        delta = moments.mean - self.m
        with np.errstate(over="ignore", invalid="ignore"):
            gain = moments.scatter + (self.kappa / kappa * n)[:, None, None] * delta[:, :, None] * delta[:, None, :]
            # Summed over all classes for LDA (G = 1), kept apart for QDA (G = K).
            n_group, gain = (n.sum(keepdims=True), gain.sum(axis=0, keepdims=True)) if self.shared else (n, gain)
            Psi, nu, alpha = self.Psi + gain, self.nu + n_group, self.alpha + n
        if not np.isfinite(Psi).all():
            raise PriorError("The prior's `m` is so far from the data that squares overflow. Give it in their units.")
        d = moments.d
        m = self.m + (n / kappa)[:, None] * delta
        _check_freedom(nu, d)
        with blas_threads(d):
            _check_definite(Psi)
            if not self.kappa.all():
                return type(self)(m, kappa, Psi, nu, alpha, np.nan)
            normalizers = _log_normalizer(Psi, nu) - _log_normalizer(self.Psi, self.nu)
        log_evidence = (
            -0.5 * n.sum() * d * np.log(np.pi)
            + 0.5 * d * np.sum(np.log(self.kappa) - np.log(kappa))
            + np.sum(normalizers)
            + _dirichlet_log_normalizer(alpha)
            - _dirichlet_log_normalizer(self.alpha)
        )
        return type(self)(m, kappa, Psi, nu, alpha, self.log_evidence + float(log_evidence))

    def draw(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw independently `pi` (size, K), `mu` (size, K, d) and `Sigma` (size, [K,] d, d)."""
        rng = np.random.default_rng(random_seed)
        K, d = self.m.shape
        # L, LLᵀ and what makes them
        require_memory(
            24.0 * size * self.Psi.size, f"{size} covariances of {d} features", "Use fewer draws, or the naive model."
        )
        pi = rng.dirichlet(self.alpha, size=size)
        L = inverse_wishart_cholesky(self.Psi, self.nu, size, rng)
        noise = (L @ rng.standard_normal((size, K, d, 1)))[..., 0]
        mu = self.m + noise / np.sqrt(self.kappa)[:, None]
        Sigma = L @ np.swapaxes(L, -1, -2)
        return {"pi": pi, "mu": mu, "Sigma": Sigma[:, 0] if self.shared else Sigma}

    def _whitening(self) -> tuple[Floats, Floats]:
        """Return C_k⁻¹ (K, d, d) for Ψ_k = C_kC_kᵀ, and log|Ψ_k| (K,)."""
        K, d = self.m.shape
        with blas_threads(d):
            C = np.linalg.cholesky(self.Psi)
            white = np.array([solve_triangular(factor, np.eye(d)) for factor in C])
        log_det = 2 * np.log(np.diagonal(C, axis1=1, axis2=2)).sum(axis=1)
        return np.broadcast_to(white, (K, d, d)), np.broadcast_to(log_det, (K,))

    def log_joint(self, X: Floats) -> Floats:
        """Return log p(x, y = k | data) (n, K): E[π_k] times the Student-t predictive of class k."""
        white, log_det = self._whitening()
        log_share = np.log(self.alpha / self.alpha.sum())
        out = np.empty((len(X), len(self.m)))
        center = self.m.mean(axis=0)

        def densities(rows: slice) -> None:
            q = np.empty((len(self.m), rows.stop - rows.start))
            # z = C⁻¹(x − m), features by rows, so that squares are summed along the memory. Classes that share C share
            # the product, about their centre, so that a large offset of the features does not eat their digits.
            common = white[0] @ (X[rows] - center).T if self.shared else None
            for k, m in enumerate(self.m):
                z = white[k] @ (X[rows] - m).T if common is None else common - (white[0] @ (m - center))[:, None]
                np.einsum("dn,dn->n", z, z, out=q[k])
            out[rows] = log_student(q.T, log_det, self.kappa, self.nu, X.shape[1]) + log_share

        for_blocks(densities, *X.shape)
        return out

    def leave_one_out(self, X: Floats, y: NDArray[np.intp]) -> Floats:
        """Return log p(x_i, y = k | all rows but i) (n, K), exact, without refitting; entry y_i is the LOO density.

        With c = κ'/(κ' − 1) and u = C⁻¹(x − m') in the row's own class, Ψ = CCᵀ: Ψ₋ = C(I − c uuᵀ)Cᵀ, so
        log|Ψ₋| = log|Ψ| + log(1 − c uᵀu) and, for any v = C⁻¹(x − m_k), vᵀ(I − c uuᵀ)⁻¹v = vᵀv + c(uᵀv)²/(1 − c uᵀu).
        """
        rows = np.arange(len(X))
        y = np.asarray(y, dtype=np.intp)
        d = X.shape[1]
        _check_enough(np.where(self.kappa == 1, 0.0, 1.0), "Leave-one-out: ")
        _check_freedom(self.nu - 1, d, "Leave-one-out: ")
        white, log_det = self._whitening()
        z = np.stack([(X - m) @ white[k].T for k, m in enumerate(self.m)], axis=1)
        u = z[rows, y]
        c = self.kappa[y] / (self.kappa[y] - 1)
        left = 1 - c * np.einsum("nd,nd->n", u, u)
        _check_left(left)
        q = np.einsum("nkd,nkd->nk", z, z)
        own = np.arange(len(self.kappa)) == y[:, None]
        touched = np.ones_like(own) if self.shared else own  # whose covariance the row took part in
        cross = np.einsum("nd,nkd->nk", u, z)
        q = np.where(touched, q + (c / left)[:, None] * cross**2, q)
        # In its own class the mean moves too: x − m₋ = c (x − m').
        q = np.where(own, (c**2)[:, None] * q, q)
        log_det = log_det + np.where(touched, np.log(left)[:, None], 0.0)
        density = log_student(q, log_det, self.kappa - own, self.nu - touched, d)
        return density + np.log((self.alpha - own) / (self.alpha.sum() - 1))


@dataclass(frozen=True, slots=True, eq=False)
class NIGPosterior:
    """Exact posterior of the naive Gaussian model; also its prior, before any data.

    Parameters
    ----------
    m, kappa, a, b
        (K, d) normal-inverse-gamma parameters of each class and feature.
    alpha
        (K,) Dirichlet parameters of the class probabilities.
    log_evidence
        log p(X, y) of all rows seen so far.
    """

    m: Floats
    kappa: Floats
    a: Floats
    b: Floats
    alpha: Floats
    log_evidence: float = 0.0

    @classmethod
    def from_prior(cls, prior: NIG, class_prior: Dirichlet, K: int) -> Self:
        """Start from the prior, the same for every class."""
        m, kappa, a, b = (np.tile(part, (K, 1)) for part in (prior.m, prior.kappa, prior.a, prior.b))
        a = a if prior.is_proper else a - 0.5  # a flat mean takes a degree of freedom
        return cls(m=m, kappa=kappa, a=a, b=b, alpha=class_prior.vector(K))

    def __post_init__(self) -> None:
        for name in ("m", "kappa", "a", "b", "alpha"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def update(self, moments: Moments) -> Self:
        """Learn from more rows; the order and the size of the batches do not matter."""
        _check_fits(moments, self.m)
        n = moments.count[:, None]
        kappa, a, alpha = self.kappa + n, self.a + n / 2, self.alpha + moments.count
        _check_enough(kappa)
        _check_freedom(2 * a, 1)
        delta = moments.mean - self.m
        squares = np.diagonal(moments.scatter, axis1=1, axis2=2)
        b = self.b + 0.5 * (squares + self.kappa / kappa * n * delta**2)
        m = self.m + n / kappa * delta
        if not self.kappa.all():
            _check_spread(b)
            return type(self)(m, kappa, a, b, alpha, np.nan)
        log_evidence = (
            -0.5 * n.sum() * moments.d * np.log(2 * np.pi)
            + 0.5 * np.sum(np.log(self.kappa) - np.log(kappa))
            + np.sum(gammaln(a) - gammaln(self.a) + self.a * np.log(self.b) - a * np.log(b))
            + _dirichlet_log_normalizer(alpha)
            - _dirichlet_log_normalizer(self.alpha)
        )
        return type(self)(m, kappa, a, b, alpha, self.log_evidence + float(log_evidence))

    def draw(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw independently `pi` (size, K), `mu` and `sigma2` (size, K, d)."""
        rng = np.random.default_rng(random_seed)
        shape = (size, *self.m.shape)
        pi = rng.dirichlet(self.alpha, size=size)
        sigma2 = self.b / rng.gamma(self.a, size=shape)
        mu = self.m + np.sqrt(sigma2 / self.kappa) * rng.standard_normal(shape)
        return {"pi": pi, "mu": mu, "sigma2": sigma2}

    def log_joint(self, X: Floats) -> Floats:
        """Return log p(x, y = k | data) (n, K): E[π_k] times a product of Student-t predictives."""
        out = np.empty((len(X), len(self.m)))

        def densities(rows: slice) -> None:
            q = (X[rows, None, :] - self.m) ** 2 / (2 * self.b)
            out[rows] = log_student(q, np.log(2 * self.b), self.kappa, 2 * self.a, 1).sum(axis=-1)

        for_blocks(densities, len(X), self.m.size)
        return out + np.log(self.alpha / self.alpha.sum())

    def leave_one_out(self, X: Floats, y: NDArray[np.intp]) -> Floats:
        """Return log p(x_i, y = k | all rows but i) (n, K), exact, without refitting; entry y_i is the LOO density."""
        own = (np.arange(len(self.alpha)) == np.asarray(y, dtype=np.intp)[:, None])[:, :, None]
        _check_enough(np.where(self.kappa == 1, 0.0, 1.0), "Leave-one-out: ")
        _check_freedom(2 * self.a - 1, 1, "Leave-one-out: ")
        c = self.kappa / (self.kappa - own)
        Psi = 2 * self.b - np.where(own, c * (X[:, None, :] - self.m) ** 2, 0.0)
        _check_left(Psi)
        q = (c * (X[:, None, :] - self.m)) ** 2 / Psi  # c is 1 in the other classes
        density = log_student(q, np.log(Psi), self.kappa - own, 2 * self.a - own, 1)
        return density.sum(axis=-1) + np.log((self.alpha - own[..., 0]) / (self.alpha.sum() - 1))


def lda_posterior(moments: Moments, prior: NIW, class_prior: Dirichlet | None = None) -> NIWPosterior:
    """Return the exact posterior of LDA: x | y=k ~ N(μ_k, Σ)."""
    return NIWPosterior.from_prior(prior, class_prior or Dirichlet(), moments.K, shared=True).update(moments)


def qda_posterior(moments: Moments, prior: NIW, class_prior: Dirichlet | None = None) -> NIWPosterior:
    """Return the exact posterior of QDA: x | y=k ~ N(μ_k, Σ_k)."""
    return NIWPosterior.from_prior(prior, class_prior or Dirichlet(), moments.K, shared=False).update(moments)


def naive_posterior(moments: Moments, prior: NIG, class_prior: Dirichlet | None = None) -> NIGPosterior:
    """Return the exact posterior of the naive model: x_j | y=k ~ N(μ_kj, σ²_kj)."""
    return NIGPosterior.from_prior(prior, class_prior or Dirichlet(), moments.K).update(moments)


def log_student(q: Floats, log_det: Floats, kappa: Floats, nu: Floats, d: int) -> Floats:
    """Predictive density of one more row under a normal-inverse-Wishart, a Student-t with ν − d + 1 degrees of freedom.

    log p = logΓ((ν+1)/2) − logΓ((ν+1−d)/2) − (d/2) log π + (d/2) log r − ½ log|Ψ| − ((ν+1)/2) log(1 + r q)

    with r = κ/(κ+1) and q = (x − m)ᵀΨ⁻¹(x − m).
    """
    r = kappa / (kappa + 1)
    constant = gammaln((nu + 1) / 2) - gammaln((nu + 1 - d) / 2) - 0.5 * d * np.log(np.pi)
    out: Floats = constant + 0.5 * d * np.log(r) - 0.5 * log_det - 0.5 * (nu + 1) * np.log1p(r * q)
    return out


def inverse_wishart_cholesky(Psi: Floats, nu: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Draw the Cholesky factors (size, G, d, d) of Σ ~ IW(Ψ, ν).

    With Ψ = CCᵀ and T lower triangular, T_jj² ~ χ²(ν − d + j) for j = 1…d and T_ij ~ N(0, 1) below the diagonal,
    TᵀT is Wishart(ν, I) (Bartlett, read from the last row up), so Σ = LLᵀ with L = C T⁻¹.
    """
    G, d = Psi.shape[:2]
    T = np.tril(rng.standard_normal((size, G, d, d)), -1)
    df = nu[:, None] - d + np.arange(1, d + 1)
    T[..., np.arange(d), np.arange(d)] = np.sqrt(rng.chisquare(df, size=(size, G, d)))
    C = np.linalg.cholesky(Psi)
    return np.tril(C @ np.linalg.inv(T))


def _log_normalizer(Psi: Floats, nu: Floats) -> Floats:
    """log Γ_d(ν/2) − (ν/2) log|Ψ| but for its power of π: of the inverse-Wishart's normaliser what does not cancel."""
    d = Psi.shape[-1]
    log_det = np.linalg.slogdet(Psi)[1]
    with np.errstate(over="ignore", invalid="ignore"):
        out: Floats = gammaln((nu[:, None] - np.arange(d)) / 2).sum(axis=1) - 0.5 * nu * log_det
    if not np.isfinite(out).all():
        raise PriorError(f"The evidence leaves the range of floats with ν = {nu.max():.3g}. Give a smaller `nu`.")
    return out


def _dirichlet_log_normalizer(alpha: Floats) -> float:
    return float(gammaln(alpha).sum() - gammaln(alpha.sum()))


def _check_fits(moments: Moments, m: Floats) -> None:
    if moments.mean.shape != m.shape:
        raise PriorError(
            f"The data have {moments.K} classes × {moments.d} features, the prior {m.shape[0]} × {m.shape[1]}."
        )


def _check_enough(kappa: Floats, what: str = "") -> None:
    """Raise if a class has neither rows nor a prior mean, which an improper prior leaves it without."""
    if (kappa <= 0).any():
        k = int(np.argmin(kappa.reshape(len(kappa), -1).min(axis=1)))
        raise DataError(f"{what}class {k} has too few rows for an improper prior, which gives it no mean. {_PROPER}")


def _check_freedom(nu: Floats, d: int, what: str = "") -> None:
    """Raise if there are too few rows for the inverse Wishart to be proper, as an improper prior may leave it."""
    if nu.min() - d + 1 <= 0:
        missing = int(np.floor(d - 1 - nu.min())) + 1
        rows = "1 more row" if missing == 1 else f"{missing} more rows"
        raise DataError(f"{what}the improper prior needs {rows} to estimate a covariance. {_PROPER}")


def _check_spread(b: Floats) -> None:
    if not (b > 0).all():
        k, j = np.argwhere(~(b > 0))[0]
        raise DataError(f"Feature {j + 1} does not vary in class {k}, so the improper prior gives no spread. {_PROPER}")


def _check_definite(Psi: Floats) -> None:
    """Raise if a scale matrix is singular up to rounding: 1 − R² of each feature on those before it is C_jj²/Ψ_jj."""
    try:
        C = np.linalg.cholesky(Psi)
        left = (np.diagonal(C, axis1=1, axis2=2) ** 2 / np.diagonal(Psi, axis1=1, axis2=2)).min(axis=0)
    except np.linalg.LinAlgError:
        left = np.zeros(1)
    if not (left > COLLINEAR).all():
        where = f"Feature {int(np.argmin(left)) + 1} is" if len(left) > 1 else "Some features are"
        raise DataError(
            f"{where} a sum of others up to rounding, as seen against the spread within classes, so that the "
            "covariance is singular. Drop one of them, or give a `prior` with a larger `Psi`."
        )


def _check_left(left: Floats) -> None:
    if not (left > 0).all():
        raise DataError("Leave-one-out takes the rows that the posterior was fitted to; these were not among them.")
